use megagrid_stages::vertex;

use super::super::pick::SLICE_BYTES;
use super::*;
use crate::grid::VertexArrays;
use crate::grid::entries::Entries;

const ROWS: usize = 3000;
const DIMS: usize = 60;

vertex! {
    /// Rows of numbers, with something of the replica's beside them.
    struct Numbers { sync: [f32], delta: [f32], mirror: u32 }
}

vertex! {
    /// Entries, of which some are used.
    struct Counted { sync: Entries, delta: Entries }
}

/// Counts in rows, with more of them beside.
struct Topics;

impl Vertex for Topics {
    type Sync = [f32];
    type Delta = [f32];
    type Master = ();
    type Mirror = [u32];
    const COUNTS: bool = true;
}

fn arrays<V: Vertex>() -> VertexArrays<V> {
    let capacities: Vec<u32> = (0..ROWS as u32).map(|row| row % DIMS as u32).collect();
    VertexArrays::new(vec![0, ROWS], DIMS, 1, Some(&capacities)).unwrap()
}

/// All rows, every third, and none.
fn picks() -> [Pick; 3] {
    [Pick::All(ROWS), Pick::Some((0..ROWS as u32).step_by(3).collect()), Pick::Some(Box::default())]
}

fn fill<I: bytemuck::Pod>(items: &mut [I], of: impl Fn(usize) -> I, used: usize) {
    items.iter_mut().enumerate().take(used).for_each(|(at, item)| *item = of(at));
}

#[test]
fn slices_of_synced_rows_arrive_as_they_were() {
    let (from, into) = (arrays::<Numbers>(), arrays::<Numbers>());
    let mut rows = from.try_own(0..1).unwrap();
    (0..ROWS).for_each(|row| fill(rows.row(row).sync, |at| (row * DIMS + at) as f32, DIMS));
    drop(rows);
    for pick in picks() {
        let rows = from.try_share(0..1).unwrap();
        let mut arrived = into.try_own(0..1).unwrap();
        (0..ROWS).for_each(|row| arrived.row(row).sync.fill(0.0));
        let parts: Vec<_> = slices(pick.len(), about_sync_bytes(&rows, DIMS)).collect();
        assert_eq!(parts.len(), (pick.len() * DIMS * 4).div_ceil(SLICE_BYTES / (DIMS * 4) * DIMS * 4));
        for part in parts {
            let body = pack_sync(&rows, &pick.part(part.clone()), DIMS);
            assert!(body.len() <= SLICE_BYTES && body.len() == part.len() * DIMS * 4);
            assert_eq!(unpack_sync(&mut arrived, &pick.part(part.clone()), DIMS, &body[4..]), Err(Malformed));
            assert_eq!(unpack_sync(&mut arrived, &pick.part(part), DIMS, &body), Ok(()));
        }
        let picked: std::collections::HashSet<usize> = pick.rows(0).collect();
        for row in 0..ROWS {
            let expected: Vec<f32> =
                (0..DIMS).map(|at| if picked.contains(&row) { (row * DIMS + at) as f32 } else { 0.0 }).collect();
            assert_eq!(arrived.row(row).sync[..DIMS], expected, "row {row}");
        }
    }
}

#[test]
fn slices_of_a_moving_shard_arrive_as_they_were() {
    let (from, into) = (arrays::<Counted>(), arrays::<Counted>());
    let mut rows = from.try_own(0..1).unwrap();
    for row in 0..ROWS {
        let items = rows.row(row).sync;
        let used = items.len() / 2;
        fill(items, |at| (at * row) as u32 + 1, used);
    }
    drop(rows);
    let rows = from.try_share(0..1).unwrap();
    let mut arrived = into.try_own(0..1).unwrap();
    (0..ROWS).for_each(|row| fill(arrived.row(row).sync, |_| 1, DIMS));
    let parts: Vec<_> = slices(ROWS, about_whole_bytes(&rows, DIMS)).collect();
    assert!(parts.len() > 1);
    for part in parts {
        let slice = Slice::Range(part);
        let body = pack_whole(&rows, &slice, DIMS, false);
        assert_eq!(unpack_whole(&mut arrived, &slice, DIMS, false, &body), Ok(()));
    }
    (0..ROWS).for_each(|row| assert_eq!(bytes(arrived.row(row).sync), bytes(rows.sync.items(row)), "row {row}"));
}

#[test]
fn slices_of_deltas_add_up() {
    add_up::<Numbers>(&picks(), |row, at| (row + at) as f32);
    add_up::<Counted>(&picks(), |row, at| (at * row) as u32 + 1);
    add_up::<Topics>(&picks(), |row, at| (row * at % 90) as f32);
}

#[test]
fn counts_travel_in_fewer_bytes() {
    let (from, into) = (arrays::<Topics>(), arrays::<Topics>());
    let mut rows = from.try_own(0..1).unwrap();
    for row in 0..ROWS {
        fill(rows.row(row).sync, |at| if at % 3 == 0 { (row % 50) as f32 } else { 0.0 }, DIMS);
        fill(rows.row(row).mirror, |at| (row * at) as u32, DIMS);
    }
    drop(rows);
    let (rows, mut arrived) = (from.try_share(0..1).unwrap(), into.try_own(0..1).unwrap());
    for pick in picks() {
        let body = pack_sync(&rows, &pick.whole(), DIMS);
        assert!(body.len() <= pick.len() * (DIMS / 3 + DIMS.div_ceil(8)), "{} bytes", body.len());
        assert_eq!(unpack_sync(&mut arrived, &pick.whole(), DIMS, &body), Ok(()));
        if !body.is_empty() {
            assert_eq!(unpack_sync(&mut arrived, &pick.whole(), DIMS, &body[1..]), Err(Malformed));
        }
    }
    let body = pack_whole(&rows, &Slice::Range(0..ROWS), DIMS, true);
    assert_eq!(unpack_whole(&mut arrived, &Slice::Range(0..ROWS), DIMS, true, &body), Ok(()));
    for row in 0..ROWS {
        let row_there = arrived.row(row);
        assert_eq!((&*row_there.sync, &*row_there.mirror), (rows.sync.items(row), rows.mirror.items(row)), "row {row}");
    }
}

fn bytes<I: bytemuck::Pod>(items: &[I]) -> &[u8] {
    cast_slice(items)
}

/// Sends deltas of some rows twice, and compares with their double; nothing is left where they were.
fn add_up<V: Vertex>(picks: &[Pick], of: impl Fn(usize, usize) -> <V::Delta as Store>::Item) {
    let (from, into) = (arrays::<V>(), arrays::<V>());
    for pick in picks {
        let (mut mine, mut masters) = (from.try_own(0..1).unwrap(), into.try_own(0..1).unwrap());
        let picked: Vec<usize> = pick.rows(0).collect();
        let mut expected: Vec<Vec<_>> =
            (0..ROWS).map(|row| vec![Zeroable::zeroed(); mine.row(row).delta.len()]).collect();
        (0..ROWS).for_each(|row| masters.row(row).delta.fill(Zeroable::zeroed()));
        for _ in 0..2 {
            for &row in &picked {
                let delta = mine.row(row).delta;
                let used = delta.len().min(DIMS);
                fill(delta, |at| of(row, at), used);
                let delta = delta.to_vec();
                V::Delta::view_mut(&mut expected[row]).add(V::Delta::view(&delta));
            }
            let mut sent = Vec::new();
            pack_deltas(&mut mine, pick, DIMS, |places, body| sent.push((places, body)));
            assert_eq!(sent.is_empty(), pick.is_empty());
            assert!(V::COUNTS || sent.len() != 1, "rows of this many bytes go in slices");
            for (places, body) in sent {
                assert_eq!(add_deltas(&mut masters, &pick.part(places), DIMS, &body), Ok(()));
            }
        }
        for (row, expected) in expected.iter().enumerate() {
            assert_eq!(bytes(masters.row(row).delta), bytes(expected), "row {row}");
            assert!(bytes(mine.row(row).delta).iter().all(|&byte| byte == 0), "row {row}");
        }
    }
}
