//! Edges that a vertex has several times.

use megagrid_partition::EdgeList;

/// Adds up edges with the same ends. Where no two have the same, all stay as they are.
///
/// One pass where the edges are in the order of either end; otherwise they are put in that of left ends.
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
    add_up_by(edges, |same| same.iter().map(|&(_, value)| f64::from(value)).sum::<f64>() as f32);
}

/// As [`add_up`], of counts, which are the largest that there is beyond it.
pub(crate) fn add_up_counts(edges: &mut EdgeList<u32>) {
    add_up_by(edges, |same| same.iter().fold(0, |sum: u32, &(_, count)| sum.saturating_add(count)));
}

fn add_up_by<T: Copy>(edges: &mut EdgeList<T>, sum: impl Fn(&[(u32, T)]) -> T) {
    let EdgeList { left, right, data, num_left, num_right, .. } = edges;
    if !left.is_sorted() && right.is_sorted() {
        return add_up_runs((right, left, data), &mut Seen::of(*num_left), sum);
    }
    let seen = &mut Seen::of(*num_right);
    if !left.is_sorted() {
        let starts = starts(left, *num_left);
        let others = grouped(left, &starts, |at| right[at]);
        if starts.windows(2).all(|group| seen.are_different(&others[group[0]..group[1]])) {
            return;
        }
        let order = grouped(left, &starts, |at| at);
        *left = order.iter().map(|&at| left[at]).collect();
        *right = order.iter().map(|&at| right[at]).collect();
        *data = order.iter().map(|&at| data[at]).collect();
    }
    add_up_runs((left, right, data), seen, sum);
}

/// Returns where the edges of each of `num` ends begin, if they are put in the order of these, and where the last ones end.
fn starts(ends: &[u32], num: usize) -> Vec<usize> {
    let mut starts = vec![0; num + 1];
    ends.iter().for_each(|&end| starts[end as usize + 1] += 1);
    for end in 0..num {
        starts[end + 1] += starts[end];
    }
    starts
}

/// Returns what edges have, by their places, in the order of their ends.
fn grouped<V: Copy + Default>(ends: &[u32], starts: &[usize], of: impl Fn(usize) -> V) -> Vec<V> {
    let mut next = starts.to_vec();
    let mut found = vec![V::default(); ends.len()];
    for (at, &end) in ends.iter().enumerate() {
        found[next[end as usize]] = of(at);
        next[end as usize] += 1;
    }
    found
}

/// For each vertex, the last group in which it was seen.
struct Seen {
    last: Vec<u32>,
    num: usize,
    group: u32,
}

impl Seen {
    /// Begins with none of so many vertices.
    fn of(num: usize) -> Self {
        Self { last: Vec::new(), num, group: 0 }
    }

    /// Tells whether a group has no vertex twice.
    fn are_different(&mut self, group: &[u32]) -> bool {
        self.last.resize(self.num, 0);
        self.group += 1;
        group.iter().all(|&vertex| std::mem::replace(&mut self.last[vertex as usize], self.group) != self.group)
    }
}

/// Adds up edges in the order of one of their ends; those of a vertex that has some twice are put in the order of the others.
fn add_up_runs<T: Copy>(
    (ends, others, data): (&mut Vec<u32>, &mut Vec<u32>, &mut Vec<T>),
    seen: &mut Seen,
    sum: impl Fn(&[(u32, T)]) -> T,
) {
    let (mut begin, mut kept, mut sorted) = (0, 0, Vec::new());
    while begin < ends.len() {
        let vertex = ends[begin];
        let run = begin..begin + ends[begin..].iter().take_while(|&&end| end == vertex).count();
        begin = run.end;
        let (from, of_run) = (kept, &others[run.clone()]);
        if of_run.is_sorted_by(|one, next| one < next) || seen.are_different(of_run) {
            if kept < run.start {
                others.copy_within(run.clone(), kept);
                data.copy_within(run.clone(), kept);
            }
            kept += run.len();
        } else {
            sorted.clear();
            sorted.extend(of_run.iter().copied().zip(data[run].iter().copied()));
            sorted.sort_by_key(|&(other, _)| other);
            for same in sorted.chunk_by(|one, next| one.0 == next.0) {
                (others[kept], data[kept]) = (same[0].0, sum(same));
                kept += 1;
            }
        }
        ends[from..kept].fill(vertex);
    }
    ends.truncate(kept);
    others.truncate(kept);
    data.truncate(kept);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_added_up() {
        let mut edges = EdgeList { num_left: 2, num_right: 3, ..EdgeList::default() };
        [(0, 2, 1), (1, 1, u32::MAX), (0, 2, 4), (1, 1, 3), (1, 0, 2)]
            .into_iter()
            .for_each(|(left, right, count)| edges.push(left, right, count));
        add_up_counts(&mut edges);
        assert_eq!((edges.left, edges.right, edges.data), (vec![0, 1, 1], vec![2, 0, 1], vec![5, 2, u32::MAX]));
    }

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
