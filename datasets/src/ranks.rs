//! Ranks of integers among the distinct ones: the smallest id of a text becomes 0, the next 1, ...

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use megagrid_partition::parallel;

use crate::ids::Ids;
use crate::{Dictionary, Error, Readers};

/// The distinct ids of one side, and the rank of each.
#[derive(Debug)]
pub(crate) enum Ranks {
    /// For ids up to a few times their number: one bit per possible id, and how many ids come before each word.
    Bits { words: Vec<u64>, before: Vec<u32> },
    /// For ids spread over a wide range: all of them, ascending, and for each value of their high bits, which are as
    /// many as there are ids, where those start.
    Sorted { ids: Vec<u64>, starts: Vec<u32>, shift: u32 },
}

/// Bits per id that may be spent on the bitmap.
const BITS_PER_ID: u64 = 16;
/// A bitmap of this size is spent in any case.
const FREE_BITS: u64 = 1 << 23;
/// Ids sorted at a time, so that repeated ones are gone before many are held.
const SORTED_AT_A_TIME: usize = 1 << 20;

/// Ids on their way to being ranked.
pub(crate) enum Distinct {
    Bits(Vec<AtomicU64>),
    Sorted(Vec<u64>),
}

impl Distinct {
    /// Begins with none of the ids that will be added: how many at most, and the largest.
    pub(crate) fn new(num_ids: u64, max: u64) -> Self {
        if max < FREE_BITS.max(BITS_PER_ID.saturating_mul(num_ids)) {
            Self::Bits((0..=max / 64).map(|_| AtomicU64::new(0)).collect())
        } else {
            Self::Sorted(Vec::new())
        }
    }

    /// Adds ids, on all threads.
    pub(crate) fn add(&mut self, ids: &Ids) {
        match self {
            Self::Bits(words) => {
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
            Self::Sorted(all) => {
                let distinct = |mut ids: Vec<u64>| {
                    ids.sort_unstable();
                    ids.dedup();
                    ids
                };
                let more = match ids {
                    Ids::Narrow(ids) => each_chunk(ids, |ids| distinct(ids.iter().map(|&id| u64::from(id)).collect())),
                    Ids::Wide(ids) => each_chunk(ids, |ids| distinct(ids.to_vec())),
                };
                *all = merge(std::mem::take(all), merge_all(more));
            }
        }
    }

    /// Adds what all processes have added to theirs, which began with the same numbers.
    pub(crate) fn agree(self, readers: &dyn Readers) -> io::Result<Self> {
        Ok(match self {
            Self::Bits(words) => {
                let mine: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
                for bytes in readers.all_gather(bytemuck::pod_collect_to_vec(&mine))? {
                    let theirs: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
                    words.iter().zip(theirs).for_each(|(word, more)| {
                        word.fetch_or(more, Ordering::Relaxed);
                    });
                }
                Self::Bits(words)
            }
            Self::Sorted(ids) => {
                let all = readers.all_gather(bytemuck::pod_collect_to_vec(&ids))?;
                Self::Sorted(all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).fold(Vec::new(), merge))
            }
        })
    }

    /// Ranks what has been added.
    pub(crate) fn rank(self, path: &Path) -> Result<Ranks, Error> {
        let ranks = match self {
            Self::Bits(words) => Ranks::bits(words.into_iter().map(AtomicU64::into_inner).collect()),
            Self::Sorted(ids) => Ranks::sorted(ids),
        };
        if ranks.len() > u32::MAX as usize {
            return Err(Error::TooManyVertices(path.to_path_buf()));
        }
        Ok(ranks)
    }
}

impl Ranks {
    pub(crate) fn of(column: &Ids, path: &Path) -> Result<Self, Error> {
        let mut distinct = Distinct::new(column.len() as u64, column.max());
        distinct.add(column);
        distinct.rank(path)
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
            Self::Bits { words, .. } => words.iter().map(|word| word.count_ones() as usize).sum(),
            Self::Sorted { ids, .. } => ids.len(),
        }
    }

    #[inline]
    pub(crate) fn rank(&self, id: u64) -> u32 {
        match self {
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
        let Self::Bits { words, .. } = &self else {
            let Self::Sorted { ids, .. } = self else { unreachable!("the other variant") };
            return Dictionary::from_integers(ids);
        };
        let mut ids = Vec::with_capacity(self.len());
        for (at, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                ids.push(64 * at as u64 + u64::from(rest.trailing_zeros()));
                rest &= rest - 1;
            }
        }
        Dictionary::from_integers(ids)
    }
}

fn each_chunk<T: Sync, R: Send>(ids: &[T], task: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    let chunks: Vec<_> = ids.chunks(SORTED_AT_A_TIME).collect();
    parallel::map(chunks.len(), |at| task(chunks[at]))
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
