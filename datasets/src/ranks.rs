//! Ranks of integers among the distinct ones: the smallest id of a text becomes 0, the next 1, ...

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use megagrid_partition::parallel;

use crate::ids::Ids;
use crate::{Dictionary, Error, Readers};

/// The distinct ids of one side, and the rank of each.
#[derive(Debug)]
pub(crate) enum Ranks {
    /// For ids that are fewer than the edges: the rank of each, or [`ABSENT`].
    Dense { ranks: Vec<u32>, len: usize },
    /// For ids up to a few times their number: one bit per possible id, and how many ids come before each word.
    Bits { words: Vec<u64>, before: Vec<u32> },
    /// For ids spread over a wide range: all of them, ascending, and for each value of their high bits, which are as
    /// many as there are ids, where those start.
    Sorted { ids: Vec<u64>, starts: Vec<u32>, shift: u32 },
}

/// Ids of a column for each possible one where those are counted.
const IDS_PER_COUNT: u64 = 4;
/// Counts that are spent in any case.
const FREE_COUNTS: u64 = 1 << 16;
/// Bits per id that may be spent on the bitmap.
const BITS_PER_ID: u64 = 16;
/// A bitmap of this size is spent in any case.
const FREE_BITS: u64 = 1 << 23;
/// Ids sorted at a time, so that repeated ones are gone before many are held.
const SORTED_AT_A_TIME: usize = 1 << 20;
/// The rank of an id that does not occur.
const ABSENT: u32 = u32::MAX;

/// How often each id occurs in each column, by rank; `None` where that is not known.
type Counts = Option<Vec<Vec<u32>>>;

/// Ids of some columns, which name the same vertices, on their way to being ranked.
pub(crate) struct Distinct {
    columns: Range<usize>,
    found: Found,
}

enum Found {
    /// How often each possible id occurs, for each column and thread.
    Counts(Vec<Vec<Vec<u32>>>),
    Bits(Vec<AtomicU64>),
    /// Ascending lists, each at least twice as long as the next: an id is merged into a longer one a few times only.
    Sorted(Vec<Vec<u64>>),
}

impl Distinct {
    /// Begins with none of the ids that will be added: how many at most in each column, and the largest.
    pub(crate) fn new(columns: Range<usize>, num_edges: u64, max: u64) -> Self {
        let per_count = num_edges / max.saturating_add(1);
        let found = if max < FREE_COUNTS || per_count >= IDS_PER_COUNT {
            // Each thread counts for itself, as long as that takes less memory than the ids do.
            let threads = per_count.div_ceil(IDS_PER_COUNT).clamp(1, rayon::current_num_threads() as u64);
            let counts = vec![vec![0; max as usize + 1]; threads as usize];
            Found::Counts(vec![counts; columns.len()])
        } else if max < FREE_BITS.max(BITS_PER_ID.saturating_mul(num_edges)) {
            Found::Bits((0..=max / 64).map(|_| AtomicU64::new(0)).collect())
        } else {
            Found::Sorted(Vec::new())
        };
        Self { columns, found }
    }

    /// Adds the ids of its columns, on all threads.
    pub(crate) fn add(&mut self, ids: &[Ids]) {
        let ids = &ids[self.columns.clone()];
        match &mut self.found {
            Found::Counts(counts) => counts.iter_mut().zip(ids).for_each(|(counts, ids)| count(counts, ids)),
            Found::Bits(words) => ids.iter().for_each(|ids| set_bits(words, ids)),
            Found::Sorted(lists) => ids.iter().for_each(|ids| {
                let distinct = |mut ids: Vec<u64>| {
                    ids.sort_unstable();
                    ids.dedup();
                    ids
                };
                let more = match ids {
                    Ids::Narrow(ids) => each_chunk(ids, |ids| distinct(ids.iter().map(|&id| u64::from(id)).collect())),
                    Ids::Wide(ids) => each_chunk(ids, |ids| distinct(ids.to_vec())),
                };
                add_list(lists, merge_all(more));
            }),
        }
    }

    /// Ranks what has been added, by all processes if there are several, which began with the same numbers. Returns also how
    /// often each occurs.
    pub(crate) fn rank(self, readers: Option<&dyn Readers>, path: &Path) -> Result<(Ranks, Counts), Error> {
        let (ranks, counts) = self.found.rank(readers).map_err(Error::io(path))?;
        if ranks.len() > u32::MAX as usize {
            return Err(Error::TooManyVertices(path.to_path_buf()));
        }
        Ok((ranks, counts))
    }
}

/// Counts the ids of a column, a part of them for each of the counters.
fn count(counters: &mut [Vec<u32>], ids: &Ids) {
    let len = ids.len().div_ceil(counters.len()).max(1);
    match ids {
        Ids::Narrow(ids) => parallel::consume(counters.iter_mut().zip(ids.chunks(len)).collect(), |(counts, ids)| {
            ids.iter().for_each(|&id| counts[id as usize] += 1);
        }),
        Ids::Wide(ids) => parallel::consume(counters.iter_mut().zip(ids.chunks(len)).collect(), |(counts, ids)| {
            ids.iter().for_each(|&id| counts[id as usize] += 1);
        }),
    }
}

fn set_bits(words: &[AtomicU64], ids: &Ids) {
    let set = |id: u64| {
        let (word, bit) = (&words[(id / 64) as usize], 1 << (id % 64));
        // Most ids are there already, and a load leaves the cache line shared.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    };
    match ids {
        Ids::Narrow(ids) => drop(each_chunk(ids, |ids| ids.iter().for_each(|&id| set(u64::from(id))))),
        Ids::Wide(ids) => drop(each_chunk(ids, |ids| ids.iter().for_each(|&id| set(id)))),
    }
}

impl Found {
    fn rank(self, readers: Option<&dyn Readers>) -> io::Result<(Ranks, Counts)> {
        Ok(match self {
            Self::Counts(columns) => {
                let mut columns: Vec<Vec<u32>> = columns.into_iter().map(sum).collect();
                if let Some(readers) = readers {
                    columns.iter_mut().try_for_each(|counts| readers.sum(counts))?;
                }
                let (ranks, counts) = Ranks::dense(&columns);
                (ranks, Some(counts))
            }
            Self::Bits(words) => {
                let mut words: Vec<u64> = words.into_iter().map(AtomicU64::into_inner).collect();
                if let Some(readers) = readers {
                    for bytes in readers.all_gather(bytemuck::pod_collect_to_vec(&words))? {
                        let theirs: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
                        words.iter_mut().zip(theirs).for_each(|(word, more)| *word |= more);
                    }
                }
                (Ranks::bits(words), None)
            }
            Self::Sorted(lists) => {
                let mut ids = merge_all(lists);
                if let Some(readers) = readers {
                    let all = readers.all_gather(bytemuck::pod_collect_to_vec(&ids))?;
                    ids = all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).fold(Vec::new(), merge);
                }
                (Ranks::sorted(ids), None)
            }
        })
    }
}

/// Adds up what threads have counted.
fn sum(counters: Vec<Vec<u32>>) -> Vec<u32> {
    let mut counters = counters.into_iter();
    let mut total = counters.next().unwrap_or_default();
    for counts in counters {
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    total
}

impl Ranks {
    pub(crate) fn of(column: &Ids, path: &Path) -> Result<Self, Error> {
        let mut distinct = Distinct::new(0..1, column.len() as u64, column.max());
        distinct.add(std::slice::from_ref(column));
        Ok(distinct.rank(None, path)?.0)
    }

    /// Ranks the ids that occur in any column, whose counts are given; returns also these by rank.
    fn dense(columns: &[Vec<u32>]) -> (Self, Vec<Vec<u32>>) {
        let mut by_rank = vec![Vec::new(); columns.len()];
        let num_ids = columns.first().map_or(0, Vec::len);
        let mut ranks = vec![ABSENT; num_ids];
        for (id, rank) in ranks.iter_mut().enumerate() {
            if columns.iter().any(|counts| counts[id] > 0) {
                *rank = by_rank[0].len() as u32;
                by_rank.iter_mut().zip(columns).for_each(|(by_rank, counts)| by_rank.push(counts[id]));
            }
        }
        (Self::Dense { ranks, len: by_rank.first().map_or(0, Vec::len) }, by_rank)
    }

    fn bits(words: Vec<u64>) -> Self {
        let mut sum = 0u32;
        let before = words.iter().map(|word| {
            let before = sum;
            // The caller refuses more ids than this can count.
            sum = sum.wrapping_add(word.count_ones());
            before
        });
        let before = before.collect();
        Self::Bits { words, before }
    }

    fn sorted(ids: Vec<u64>) -> Self {
        let max = ids.last().copied().unwrap_or(0);
        let shift = (u64::BITS - max.leading_zeros()).saturating_sub(ids.len().checked_ilog2().unwrap_or(0)).min(63);
        let mut starts = Vec::with_capacity((max >> shift) as usize + 2);
        for (rank, id) in ids.iter().enumerate() {
            while starts.len() as u64 <= id >> shift {
                starts.push(rank as u32);
            }
        }
        starts.push(ids.len() as u32);
        Self::Sorted { ids, starts, shift }
    }

    /// Returns the number of distinct ids.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Dense { len, .. } => *len,
            Self::Bits { words, .. } => words.iter().map(|word| word.count_ones() as usize).sum(),
            Self::Sorted { ids, .. } => ids.len(),
        }
    }

    #[inline]
    pub(crate) fn rank(&self, id: u64) -> u32 {
        match self {
            Self::Dense { ranks, .. } => ranks[id as usize],
            Self::Bits { words, before } => {
                let word = (id / 64) as usize;
                before[word] + (words[word] & ((1 << (id % 64)) - 1)).count_ones()
            }
            Self::Sorted { ids, starts, shift } => {
                let bucket = (id >> shift) as usize;
                let (start, end) = (starts[bucket], starts[bucket + 1]);
                start + ids[start as usize..end as usize].partition_point(|&other| other < id) as u32
            }
        }
    }

    /// Returns the ids as names, in the order of their ranks.
    pub(crate) fn into_dictionary(self) -> Dictionary {
        Dictionary::from_integers(match self {
            Self::Dense { ranks, .. } => {
                let ids = (0..).zip(&ranks).filter_map(|(id, &rank)| (rank != ABSENT).then_some(id));
                ids.collect()
            }
            Self::Bits { words, .. } => {
                let mut ids = Vec::new();
                for (at, &word) in words.iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        ids.push(64 * at as u64 + u64::from(rest.trailing_zeros()));
                        rest &= rest - 1;
                    }
                }
                ids
            }
            Self::Sorted { ids, .. } => ids,
        })
    }
}

fn each_chunk<T: Sync, R: Send>(ids: &[T], task: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    let chunks: Vec<_> = ids.chunks(SORTED_AT_A_TIME).collect();
    parallel::map(chunks.len(), |at| task(chunks[at]))
}

/// Adds a list to others, each of which is at least twice as long as the next.
fn add_list(lists: &mut Vec<Vec<u64>>, mut list: Vec<u64>) {
    while let Some(last) = lists.pop_if(|last| last.len() < 2 * list.len()) {
        list = merge(last, list);
    }
    lists.push(list);
}

/// Merges sorted lists, two at a time.
fn merge_all(mut lists: Vec<Vec<u64>>) -> Vec<u64> {
    while lists.len() > 1 {
        let pairs: Vec<_> = lists.chunks_mut(2).map(|pair| Mutex::new(pair.iter_mut().map(std::mem::take))).collect();
        lists = parallel::map(pairs.len(), |at| {
            let mut pair = parallel::lock(&pairs[at]);
            merge(pair.next().unwrap_or_default(), pair.next().unwrap_or_default())
        });
    }
    lists.pop().unwrap_or_default()
}

/// Merges ascending ids without repetition.
fn merge(left: Vec<u64>, right: Vec<u64>) -> Vec<u64> {
    if left.is_empty() || right.is_empty() {
        return if left.is_empty() { right } else { left };
    }
    let mut merged = Vec::with_capacity(left.len().max(right.len()));
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        let (a, b) = (left[i], right[j]);
        merged.push(a.min(b));
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_halve_and_hold_all() {
        let mut lists = Vec::new();
        let id = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for chunk in 0..200_u64 {
            let mut list: Vec<u64> = (chunk * 3..chunk * 3 + 7).map(id).collect();
            list.sort_unstable();
            add_list(&mut lists, list);
            assert!(lists.windows(2).all(|pair| pair[0].len() >= 2 * pair[1].len()));
        }
        let mut expected: Vec<u64> = (0..604).map(id).collect();
        expected.sort_unstable();
        assert_eq!(merge_all(lists), expected);
    }

    /// What ids become does not depend on how they are ranked.
    #[test]
    fn dense_and_sparse_ids_are_ranked_alike() {
        let path = Path::new("text");
        for max in [1, FREE_COUNTS - 1, FREE_COUNTS, FREE_BITS - 1, FREE_BITS, u64::from(u32::MAX) + 1, u64::MAX] {
            let mut column = Ids::default();
            (0..1000_u64).for_each(|at| column.push(at.wrapping_mul(at * 7919) % max.max(2)));
            column.push(max);
            let mut expected: Vec<u64> = match &column {
                Ids::Narrow(ids) => ids.iter().map(|&id| u64::from(id)).collect(),
                Ids::Wide(ids) => ids.clone(),
            };
            let all = expected.clone();
            expected.sort_unstable();
            expected.dedup();
            let mut distinct = Distinct::new(0..1, column.len() as u64, max);
            distinct.add(&[column]);
            let (ranks, counts) = distinct.rank(None, path).unwrap();
            assert!(all.iter().all(|id| ranks.rank(*id) as usize == expected.binary_search(id).unwrap()), "{max}");
            if let Some(counts) = counts {
                let count = |id: &u64| all.iter().filter(|other| *other == id).count() as u32;
                assert!(expected.iter().map(count).eq(counts[0].iter().copied()), "{max}");
            }
            assert_eq!(ranks.into_dictionary().as_integers(), Some(&expected[..]), "{max}");
        }
    }
}
