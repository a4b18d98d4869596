//! For Miri too: `cargo +nightly miri test -p megagrid-engine --lib grid`.

use std::ops::Range;

use megagrid_stages::{Add, Read, Update, mode, program, vertex};

use super::super::block::Listed;
use super::super::entries::Entries;
use super::super::rows::VertexArrays;
use super::super::width::{Fixed, Runtime};
use super::*;

/// Ends of edges, left and right.
type Ends = Vec<(usize, usize)>;

/// A few edges that visit every row, some rows more often than others.
fn ends(rows: [usize; 2], edges: usize) -> Ends {
    (0..edges).map(|edge| (edge * edge % rows[0], (edge * 7 + edge / 3) % rows[1])).collect()
}

fn walk<'h, P: Program<Worker = (), Global = ()>, E: Exchange<P>, I: Id>(
    stage: &E,
    (edges, block): (&LocalEdges<I>, usize),
    mut left: HeldRows<'h, P::Left, E::Left>,
    mut right: HeldRows<'h, P::Right, E::Right>,
    data: &mut [EdgeItem<P>],
    widths: (usize, usize),
) {
    let (left, right) = (&mut left, &mut right);
    let mut cx = Context { worker: &mut (), global: &(), iteration: 1, seed: 0 };
    if widths == (16, 16) {
        Walk {
            edges,
            block,
            left,
            right,
            data,
            visits: &mut Visits::default(),
            awake: None,
            stage,
            widths: (Fixed::<16>, Fixed::<16>),
        }
        .run(&mut cx);
    } else {
        let widths = (Runtime(widths.0), Runtime(widths.1));
        Walk { edges, block, left, right, data, visits: &mut Visits::default(), awake: None, stage, widths }
            .run(&mut cx);
    }
}

vertex! {
    /// A vertex that edges change in place.
    struct Factors { sync: [f32], mirror: u32 }
}
program! { struct Factorize { vertices: Factors, edge: f32 } }

fn pull(left: &mut [f32], right: &mut [f32], edge: &mut f32) {
    for (l, r) in left.iter_mut().zip(right) {
        let (old_left, old_right) = (*l, *r);
        *l += *edge * old_right;
        *r -= *edge * old_left;
    }
    *edge *= 0.5;
}

impl Exchange<Factorize> for Factorize {
    type Left = mode::Update;
    type Right = mode::Update;

    fn exchange(
        &self,
        left: Update<'_, Factors>,
        right: Update<'_, Factors>,
        edge: &mut f32,
        _: &mut Context<'_, Self>,
    ) {
        pull(left.sync, right.sync, edge);
        *left.mirror += 1;
        *right.mirror += 1;
    }
}

fn begin_factors(rows: usize, width: usize) -> Vec<Vec<f32>> {
    (0..rows).map(|row| (0..width).map(|at| ((row * 5 + at) % 7) as f32 - 3.0).collect()).collect()
}

fn check_pairs(dims: [usize; 2]) {
    let rows = [5, 4];
    let [left, right] =
        [0, 1].map(|side| VertexArrays::<Factors>::new(vec![0, 2, rows[side]], dims[side], 1, None).unwrap());
    let mut expected = [begin_factors(5, left.width()), begin_factors(4, right.width())];
    for (side, first) in [&left, &right].into_iter().zip(&expected) {
        side.try_own(0..2).unwrap().each_row().for_each(|row| row.sync.copy_from_slice(&first[row.row]));
    }
    // One block of all rows, after an empty one.
    let ends = ends(rows, 23);
    let (lefts, rights) = ends.iter().map(|&(l, r)| (l as u16, r as u16)).unzip();
    let edges = Listed::from_pairs(&[2, 5], 4, &[0, 0, 23], lefts, rights).end();
    let mut data: Vec<f32> = (0..23).map(|edge| 0.01 * edge as f32).collect();
    let mut expected_data = data.clone();
    let widths = (left.width(), right.width());
    for (block, data) in [(0, &mut [][..]), (1, &mut data)] {
        let held = (left.try_hold(0..2, 0).unwrap(), right.try_hold(0..2, 0).unwrap());
        walk(&Factorize, (&edges, block), held.0, held.1, data, widths);
    }
    let mut visits = [vec![0; 5], vec![0; 4]];
    for (&(l, r), edge) in ends.iter().zip(&mut expected_data) {
        let [lefts, rights] = &mut expected;
        pull(&mut lefts[l], &mut rights[r], edge);
        visits[0][l] += 1;
        visits[1][r] += 1;
    }
    assert_eq!(data, expected_data);
    for (side, rows) in [&left, &right].into_iter().enumerate() {
        for row in rows.try_own(0..2).unwrap().each_row() {
            assert_eq!((&*row.sync, row.mirror[0]), (&*expected[side][row.row], visits[side][row.row]));
        }
    }
}

#[test]
fn pairs_change_both_rows_in_place() {
    check_pairs([10, 16]);
    check_pairs([16, 40]);
}

#[test]
fn workers_walk_different_blocks_at_the_same_time() {
    let left = VertexArrays::<Factors>::new(vec![0, 3, 6], 4, 1, None).unwrap();
    let right = VertexArrays::<Factors>::new(vec![0, 3, 6], 4, 1, None).unwrap();
    std::thread::scope(|threads| {
        for shard in 0..2 {
            let (left, right) = (&left, &right);
            threads.spawn(move || {
                let edges = Listed::<u16>::from_pairs(&[3], 3, &[0, 2], vec![0, 2], vec![2, 1]).end();
                let held = (left.try_hold(shard..shard + 1, 0), right.try_hold(1 - shard..2 - shard, 0));
                walk(&Factorize, (&edges, 0), held.0.unwrap(), held.1.unwrap(), &mut [1.0, 2.0], (16, 16));
            });
        }
    });
    for side in [left, right] {
        assert_eq!(side.try_own(0..2).unwrap().each_row().map(|row| row.mirror[0]).sum::<u32>(), 4);
    }
}

vertex! {
    /// A vertex that edges add to.
    struct Page { sync: f64, delta: f64 }
}
program! { struct Spread { vertices: Page } }

impl Exchange<Spread> for Spread {
    type Left = mode::Read;
    type Right = mode::Add;

    fn exchange(&self, left: Read<'_, Page>, right: Add<'_, Page>, _: &mut (), _: &mut Context<'_, Self>) {
        *right.delta += left.sync * 2.0 + right.sync;
    }
}

/// As [`Spread`], for right vertices whose row is no multiple of three.
struct SpreadSome;

fn is_active(sync: f64) -> bool {
    sync as u64 % 3 != 1
}

impl Exchange<Spread> for SpreadSome {
    type Left = mode::Read;
    type Right = mode::Add;
    const GROUPED: bool = true;

    fn is_active(&self, right: Read<'_, Page>, _: &Context<'_, Spread>) -> bool {
        is_active(*right.sync)
    }

    fn exchange(&self, left: Read<'_, Page>, right: Add<'_, Page>, edge: &mut (), cx: &mut Context<'_, Spread>) {
        assert!(is_active(*right.sync), "an active vertex");
        Spread.exchange(left, right, edge, cx);
    }
}

/// Vertices of degree 1 to 20, listed by degree, over `left` rows; their ends as absolute rows.
fn listed(left: Range<usize>, rights: usize) -> Vec<(usize, Vec<u32>)> {
    (0..rights)
        .map(|right| (rights - 1 - right, right * 21 / rights.max(21) % 20 + 1))
        .map(|(right, degree)| (right, (0..degree).map(|n| (left.start + n * 3 % left.len()) as u32).collect()))
        .collect()
}

fn check_grouped(left: &VertexArrays<Page>, right: &VertexArrays<Page>, lefts: Range<usize>, rights: Range<usize>) {
    check_groups(&Spread, |_| true, (left, lefts.clone()), (right, rights.clone()));
    check_groups(&SpreadSome, is_active, (left, lefts), (right, rights));
}

fn check_groups(
    stage: &impl Exchange<Spread, Left = mode::Read, Right = mode::Add>,
    is_active: fn(f64) -> bool,
    (left, lefts): (&VertexArrays<Page>, Range<usize>),
    (right, rights): (&VertexArrays<Page>, Range<usize>),
) {
    let mut edges = Listed::<u32>::new(rights.len(), true);
    let vertices = listed(lefts.clone(), rights.len());
    edges.push_grouped(lefts.clone(), vertices.iter().map(|(right, ends)| (*right, &ends[..])));
    let edges = edges.end();
    let pieces = |arrays: &VertexArrays<Page>, rows: &Range<usize>| {
        let at = |row| arrays.bounds().iter().position(|&bound| bound == row).unwrap();
        at(rows.start)..at(rows.end)
    };
    let all = |arrays: &VertexArrays<Page>| 0..arrays.bounds().len() - 1;
    let mut expected = vec![0.0; right.bounds()[all(right).end]];
    for (right, ends) in &vertices {
        let sync = |row: usize| row as f64 + 1.0;
        let row = rights.start + right;
        if !is_active(sync(row)) {
            continue;
        }
        expected[row] += ends.iter().map(|&end| sync(end as usize) * 2.0 + sync(row)).sum::<f64>();
    }
    for side in [left, right] {
        for row in side.try_own(all(side)).unwrap().each_row() {
            (row.sync[0], row.delta[0]) = (row.row as f64 + 1.0, 0.0);
        }
    }
    let held = (left.try_hold(pieces(left, &lefts), 0).unwrap(), right.try_hold(pieces(right, &rights), 0).unwrap());
    let len = edges.blocks()[0].edges.len();
    walk(stage, (&edges, 0), held.0, held.1, &mut vec![(); len], (16, 16));
    for row in right.try_own(all(right)).unwrap().each_row() {
        assert_eq!(row.delta[0], expected[row.row], "row {}", row.row);
    }
}

#[test]
fn runs_of_every_degree_add_up() {
    let left = VertexArrays::<Page>::new(vec![0, 7], 1, 1, None).unwrap();
    let right = VertexArrays::<Page>::new(vec![0, 5, 47], 1, 1, None).unwrap();
    check_grouped(&left, &right, 0..7, 5..47);
    check_grouped(&left, &right, 0..7, 0..5);
    let many = VertexArrays::<Page>::new(vec![0, 300], 1, 1, None).unwrap();
    check_grouped(&left, &many, 0..7, 0..300);
}

#[test]
fn both_sides_may_be_the_same_rows() {
    let pages = VertexArrays::<Page>::new(vec![0, 2, 5, 30], 1, 1, None).unwrap();
    check_grouped(&pages, &pages, 0..5, 2..30);
    check_grouped(&pages, &pages, 0..30, 0..30);
}

vertex! {
    /// A vertex with a capacity of its own.
    struct Topics { sync: Entries, delta: Entries }
}
program! { struct Sample { vertices: Topics, edge: [u32] } }

impl Exchange<Sample> for Sample {
    type Left = mode::Read;
    type Right = mode::Add;

    fn exchange(&self, left: Read<'_, Topics>, right: Add<'_, Topics>, topics: &mut [u32], _: &mut Context<'_, Self>) {
        for topic in topics {
            right.delta.0[*topic as usize] += left.sync.0.get(*topic as usize).copied().unwrap_or(0);
            *topic += 1;
        }
    }
}

#[test]
fn entries_and_slices_are_the_vertex_s_and_the_edge_s_own() {
    let left = VertexArrays::<Topics>::new(vec![0, 2, 3], 8, 1, Some(&[1, 2, 3])).unwrap();
    let right = VertexArrays::<Topics>::new(vec![0, 2], 8, 1, Some(&[4, 2])).unwrap();
    for row in left.try_own(0..2).unwrap().each_row() {
        row.sync.fill(10 * row.row as u32 + 1);
    }
    // Edges in two blocks, of left rows 0..2 and 2..3: their ends, and their topics.
    let ends = [[(1, vec![0, 1]), (0, vec![0])], [(0, vec![2]), (1, vec![2])]];
    let topics = [vec![vec![0], vec![0, 1], vec![1]], vec![vec![2, 0], vec![]]];
    let mut edges = Listed::<u16>::new(2, true);
    for (rows, vertices) in [0..2, 2..3].into_iter().zip(&ends) {
        edges.push_grouped(rows, vertices.iter().map(|(right, ends)| (*right, &ends[..])));
    }
    edges.set_slice_offsets(vec![0, 1, 3, 4, 6, 6]);
    let edges = edges.end();
    for (block, pieces) in [0..1, 1..2].into_iter().enumerate() {
        let mut data: Vec<u32> = topics[block].concat();
        let held = (left.try_hold(pieces, 0).unwrap(), right.try_hold(0..1, 0).unwrap());
        walk(&Sample, (&edges, block), held.0, held.1, &mut data, (16, 16));
        assert!(data.iter().zip(topics[block].concat()).all(|(&after, before)| after == before + 1));
    }
    let deltas: Vec<Vec<u32>> = right.try_own(0..1).unwrap().each_row().map(|row| row.delta.to_vec()).collect();
    // Row 1: topic 0 of left 0 (1 time), topics 0 and 1 of left 1 (11 times each); row 0: topic 1 of left 0 (none), ...
    assert_eq!(deltas, [vec![21, 0, 21, 0], vec![12, 11]]);
}

fn walk_rows(rows: usize, width: usize) {
    let side = || VertexArrays::<Factors>::new(vec![0, 2, 4], 16, 1, None).unwrap();
    let (left, right) = (side(), side());
    let edges = Listed::<u16>::from_pairs(&[rows], 2, &[0, 1], vec![0], vec![0]).end();
    let held = (left.try_hold(0..1, 0).unwrap(), right.try_hold(0..1, 0).unwrap());
    walk(&Factorize, (&edges, 0), held.0, held.1, &mut [0.0], (width, width));
}

#[test]
fn as_many_rows_as_the_ids_need_suffice() {
    walk_rows(2, 16);
}

#[test]
#[should_panic(expected = "all rows of the block are held")]
fn too_few_held_rows_are_refused() {
    walk_rows(3, 16);
}

#[test]
#[should_panic(expected = "rows have the width that is held")]
fn another_width_is_refused() {
    walk_rows(2, 32);
}

#[test]
#[should_panic(expected = "one item of data for each edge")]
fn too_little_data_is_refused() {
    let side = || VertexArrays::<Factors>::new(vec![0, 1], 16, 1, None).unwrap();
    let (left, right) = (side(), side());
    let edges = Listed::<u16>::from_pairs(&[1], 1, &[0, 1], vec![0], vec![0]).end();
    let held = (left.try_hold(0..1, 0).unwrap(), right.try_hold(0..1, 0).unwrap());
    walk(&Factorize, (&edges, 0), held.0, held.1, &mut [], (16, 16));
}

#[test]
#[should_panic(expected = "left ids are rows of their shard")]
fn an_id_beyond_its_shard_is_refused() {
    Listed::<u16>::from_pairs(&[1], 1, &[0, 1], vec![1], vec![0]);
}
