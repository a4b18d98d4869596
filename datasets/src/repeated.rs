//! Edges that a vertex has several times.

use megagrid_partition::EdgeList;

/// Adds up edges with the same ends. Where no two have the same, all stay as they are.
///
/// One pass where the edges are in the order of either end; otherwise they are sorted.
///
/// # Examples
/// ```
/// use megagrid_partition::EdgeList;
///
/// let mut edges = EdgeList { num_left: 1, num_right: 8, ..EdgeList::default() };
/// [(7, 1.0), (2, 3.0), (7, 0.5)].into_iter().for_each(|(right, value)| edges.push(0, right, value));
/// megagrid_datasets::add_up(&mut edges);
/// assert_eq!((edges.right, edges.data), (vec![2, 7], vec![3.0, 1.5]));
/// ```
pub fn add_up(edges: &mut EdgeList<f32>) {
    let EdgeList { left, right, data, .. } = edges;
    if !left.is_sorted() && right.is_sorted() {
        return add_up_runs(right, left, data);
    }
    if !left.is_sorted() {
        let mut order: Vec<usize> = (0..left.len()).collect();
        order.sort_by_key(|&at| (left[at], right[at]));
        if order.is_sorted_by(|&one, &next| (left[one], right[one]) < (left[next], right[next])) {
            return;
        }
        *left = order.iter().map(|&at| left[at]).collect();
        *right = order.iter().map(|&at| right[at]).collect();
        *data = order.iter().map(|&at| data[at]).collect();
    }
    add_up_runs(left, right, data);
}

/// Adds up edges in the order of one of their ends; those of a vertex that has some twice are put in the order of the others.
fn add_up_runs(ends: &mut Vec<u32>, others: &mut Vec<u32>, data: &mut Vec<f32>) {
    let (mut begin, mut kept, mut sorted) = (0, 0, Vec::new());
    while begin < ends.len() {
        let vertex = ends[begin];
        let run = begin..begin + ends[begin..].iter().take_while(|&&end| end == vertex).count();
        begin = run.end;
        let from = kept;
        if has_repeated(&others[run.clone()], &data[run.clone()], &mut sorted) {
            for same in sorted.chunk_by(|one, next| one.0 == next.0) {
                let sum: f64 = same.iter().map(|&(_, value)| f64::from(value)).sum();
                (others[kept], data[kept]) = (same[0].0, sum as f32);
                kept += 1;
            }
        } else {
            if kept < run.start {
                others.copy_within(run.clone(), kept);
                data.copy_within(run.clone(), kept);
            }
            kept += run.len();
        }
        ends[from..kept].fill(vertex);
    }
    ends.truncate(kept);
    others.truncate(kept);
    data.truncate(kept);
}

/// Whether a vertex has several edges to another. If so, `sorted` has them all in order.
fn has_repeated(others: &[u32], data: &[f32], sorted: &mut Vec<(u32, f32)>) -> bool {
    if others.is_sorted_by(|one, next| one < next) {
        return false;
    }
    sorted.clear();
    sorted.extend(others.iter().copied().zip(data.iter().copied()));
    sorted.sort_by_key(|&(other, _)| other);
    !sorted.is_sorted_by(|one, next| one.0 < next.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_pair_is_there_once_with_its_sum(
            mut pairs in prop::collection::vec((0_u32..6, 0_u32..5, -4_i8..4), 0..60),
            order in 0..3,
        ) {
            match order {
                0 => pairs.sort_by_key(|pair| pair.0),
                1 => pairs.sort_by_key(|pair| pair.1),
                _ => {}
            }
            let mut edges = EdgeList { num_left: 6, num_right: 5, ..EdgeList::default() };
            pairs.iter().for_each(|&(left, right, value)| edges.push(left, right, f32::from(value)));
            let before = edges.clone();
            add_up(&mut edges);
            let mut expected = BTreeMap::new();
            pairs.iter().for_each(|&(left, right, value)| {
                *expected.entry((left, right)).or_insert(0.0) += f32::from(value);
            });
            if expected.len() == pairs.len() {
                prop_assert_eq!(&edges, &before, "nothing is repeated");
            }
            let ends = edges.left.iter().copied().zip(edges.right.iter().copied());
            let mut found: Vec<_> = ends.zip(edges.data.iter().copied()).collect();
            found.sort_by_key(|&(ends, _)| ends);
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
