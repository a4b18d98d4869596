//! The names in a column of a large text, in one table that all threads fill.
//!
//! While a chunk of text is parsed, its tokens are copied, with their hashes, to one stream for each shard of the
//! table. Then each shard looks up all tokens of its streams, chunk by chunk: a shard fits the cache where the whole
//! table would not, streams are read in order, and no two threads meet in a shard (a radix-partitioned hash join).
//! Last, each chunk is walked once more for the order of first appearance, by which names are numbered.

use std::path::Path;

use megagrid_partition::parallel;

use crate::column::no_id;
use crate::dictionary::dictionary;
use crate::missing::MISSING;
use crate::name_table::{NameTable, hash};
use crate::readers::misfit;
use crate::text::Malformed;
use crate::{Dictionary, Error, Readers};

const SHARD_BITS: u32 = 6;
const NUM_SHARDS: usize = 1 << SHARD_BITS;
/// What is set aside for a stream at first.
const STREAM_BYTES: usize = 1 << 12;

/// The tokens of a chunk, dealt to streams by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens {
    /// The stream of each token.
    shards: Vec<u8>,
    /// By shard; no stream at all where there is no token. A token is its hash, its length (u32 each) and its bytes.
    streams: Vec<Vec<u8>>,
}

impl Tokens {
    /// Appends a token. `field` says what it stands for.
    #[inline]
    pub(crate) fn push(&mut self, field: &'static str, token: &[u8]) -> Result<(), Malformed> {
        if token.is_empty() || !(token.is_ascii() || std::str::from_utf8(token).is_ok()) {
            return Err(no_id(field, token));
        }
        if self.streams.is_empty() {
            self.streams.resize_with(NUM_SHARDS, || Vec::with_capacity(STREAM_BYTES));
        }
        let hash = hash(token);
        let shard = hash >> (u32::BITS - SHARD_BITS);
        self.shards.push(shard as u8);
        let stream = &mut self.streams[shard as usize];
        let head = u64::from(hash) | (token.len() as u64) << 32;
        stream.extend_from_slice(&head.to_le_bytes());
        stream.extend_from_slice(token);
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.len() + self.streams.iter().map(Vec::len).sum::<usize>()
    }

    fn of_shard(&self, shard: usize) -> impl Iterator<Item = (u32, &[u8])> {
        let mut rest = self.streams.get(shard).map_or(&[][..], Vec::as_slice);
        std::iter::from_fn(move || {
            let (head, tokens) = rest.split_first_chunk()?;
            let head = u64::from_le_bytes(*head);
            let (token, tokens) = tokens.split_at((head >> 32) as usize);
            rest = tokens;
            Some((head as u32, token))
        })
    }
}

/// Distinct names. A name's code is its entry in its shard and the shard's number, in the lowest bits.
#[derive(Debug)]
pub(crate) struct Names {
    shards: Vec<NameTable>,
    /// The codes in order of first appearance.
    order: Vec<u32>,
}

impl Default for Names {
    fn default() -> Self {
        Self { shards: vec![NameTable::default(); NUM_SHARDS], order: Vec::new() }
    }
}

impl Names {
    /// Looks up the tokens of the chunks that follow; returns the code of each token.
    pub(crate) fn resolve(&mut self, chunks: &[Tokens], path: &Path) -> Result<Vec<Vec<u32>>, Error> {
        let look_up = |shard: usize, table: &mut NameTable| -> Vec<Found> {
            let found = chunks.iter().map(|chunk| {
                let known = table.len();
                let entries = chunk.of_shard(shard).map(|(hash, name)| table.intern_hashed(hash, name)).collect();
                Found { known, entries }
            });
            found.collect()
        };
        let mut found: Vec<Vec<Found>> = self.shards.iter().map(|_| Vec::new()).collect();
        let shards = self.shards.iter_mut().zip(&mut found).enumerate();
        parallel::consume(shards.collect(), |(shard, (table, found))| *found = look_up(shard, table));
        let codes_fit = |table: &NameTable| table.len() <= 1 << (u32::BITS - SHARD_BITS);
        let num_names: usize = self.shards.iter().map(NameTable::len).sum();
        if num_names > u32::MAX as usize || !self.shards.iter().all(codes_fit) {
            return Err(Error::TooManyVertices(path.to_path_buf()));
        }
        let walked = parallel::map(chunks.len(), |at| in_order(&chunks[at], &found, at));
        Ok(walked
            .into_iter()
            .map(|(codes, new)| {
                self.order.extend_from_slice(&new);
                codes
            })
            .collect())
    }

    /// Numbers the names of all processes in order of first appearance, process after process.
    pub(crate) fn agree(self, readers: &dyn Readers, path: &Path) -> Result<Numbered, Error> {
        let mut mine = Vec::new();
        for name in self.in_order() {
            mine.extend_from_slice(&(name.len() as u32).to_le_bytes());
            mine.extend_from_slice(name);
        }
        let (mut all, mut numbers) = (NameTable::default(), Vec::new());
        for (process, bytes) in readers.all_gather(mine).map_err(Error::io(path))?.iter().enumerate() {
            let mut rest = &bytes[..];
            while let Some((len, more)) = rest.split_first_chunk() {
                let Some((name, more)) = more.split_at_checked(u32::from_le_bytes(*len) as usize) else {
                    return Err(Error::io(path)(misfit()));
                };
                if all.len() >= u32::MAX as usize {
                    return Err(Error::TooManyVertices(path.to_path_buf()));
                }
                let number = all.intern(name);
                if process == readers.process() {
                    numbers.push(number);
                }
                rest = more;
            }
        }
        let mut numbered = self.number();
        numbered.ids.iter_mut().for_each(|id| *id = numbers[*id as usize]);
        Ok(Numbered { all: Some(all), ..numbered })
    }

    fn in_order(&self) -> impl Iterator<Item = &[u8]> {
        self.order.iter().map(|&code| self.shards[shard_of(code)].get(entry_of(code)))
    }

    /// Numbers the names in order of first appearance.
    pub(crate) fn number(self) -> Numbered {
        let mut starts = Vec::with_capacity(NUM_SHARDS);
        let mut sum = 0;
        for table in &self.shards {
            starts.push(sum);
            sum += table.len();
        }
        let mut ids = vec![0; sum];
        for (id, &code) in self.order.iter().enumerate() {
            ids[starts[shard_of(code)] + entry_of(code) as usize] = id as u32;
        }
        Numbered { names: self, starts, ids, all: None }
    }
}

/// What a shard found in one chunk.
struct Found {
    /// Names that the shard held before.
    known: usize,
    /// The entry of each token.
    entries: Vec<u32>,
}

/// Returns the codes of a chunk's tokens in their order, and those that appear there first.
fn in_order(chunk: &Tokens, found: &[Vec<Found>], at: usize) -> (Vec<u32>, Vec<u32>) {
    let mut left: Vec<_> = found.iter().map(|shard| shard[at].entries.iter()).collect();
    // Entries of a shard are given in order, so a name is new where its entry is the next one.
    let mut next: Vec<usize> = found.iter().map(|shard| shard[at].known).collect();
    let mut new = Vec::new();
    let codes = chunk.shards.iter().filter_map(|&shard| {
        let shard = usize::from(shard);
        let entry = *left[shard].next()?;
        let code = entry << SHARD_BITS | shard as u32;
        if entry as usize == next[shard] {
            next[shard] += 1;
            new.push(code);
        }
        Some(code)
    });
    let codes = codes.collect();
    (codes, new)
}

fn shard_of(code: u32) -> usize {
    code as usize % NUM_SHARDS
}

fn entry_of(code: u32) -> u32 {
    code >> SHARD_BITS
}

#[derive(Debug)]
pub(crate) struct Numbered {
    names: Names,
    /// Where each shard's part of `ids` starts.
    starts: Vec<usize>,
    /// The number of each entry of each shard.
    ids: Vec<u32>,
    /// The names of all processes by number, where there are several.
    all: Option<NameTable>,
}

impl Numbered {
    #[inline]
    pub(crate) fn id(&self, code: u32) -> u32 {
        self.ids[self.starts[shard_of(code)] + entry_of(code) as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.as_ref().map_or(self.ids.len(), NameTable::len)
    }

    /// Returns a name that stands for an id that is not there.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let shard = |name: &[u8]| &self.names.shards[(hash(name) >> (u32::BITS - SHARD_BITS)) as usize];
        let is_there = |name: &[u8]| self.all.as_ref().unwrap_or_else(|| shard(name)).find(name).is_some();
        MISSING.into_iter().find(|name| is_there(name.as_bytes()))
    }

    pub(crate) fn into_dictionary(self, path: &Path) -> Result<Dictionary, Error> {
        if let Some(all) = self.all {
            let (text, offsets) = all.into_arena();
            return dictionary(text, offsets, path);
        }
        drop(self.ids);
        let (mut text, mut offsets) = (Vec::new(), Vec::with_capacity(self.names.order.len() + 1));
        offsets.push(0);
        for name in self.names.in_order() {
            text.extend_from_slice(name);
            offsets.push(text.len() as u64);
        }
        dictionary(text, offsets, path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Tokens of which many repeat, some of them beyond ASCII.
    fn tokens(num: u64) -> Vec<String> {
        let mixed = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % (1 + at / 2);
        (0..num).map(|at| if at % 7 == 0 { format!("zoë {}", mixed(at)) } else { mixed(at).to_string() }).collect()
    }

    #[test]
    fn a_name_may_stand_for_none() {
        let numbered = |tokens: &[&str]| {
            let mut pushed = Tokens::default();
            tokens.iter().for_each(|token| pushed.push("vertex", token.as_bytes()).unwrap());
            let mut names = Names::default();
            names.resolve(&[pushed], Path::new("")).unwrap();
            names.number()
        };
        assert_eq!(numbered(&["ann", "NULL", "bob"]).missing(), Some("NULL"));
        assert_eq!(numbered(&["ann", "Nan", "nullius"]).missing(), None);
    }

    #[test]
    fn names_are_numbered_by_first_appearance() {
        let tokens = tokens(5000);
        let mut expected = Vec::new();
        let mut known = HashMap::new();
        for token in &tokens {
            let next = known.len() as u32;
            expected.push(*known.entry(token).or_insert(next));
        }
        for (chunk_len, batch_len, threads) in [(5000, 1, 1), (700, 3, 4), (13, 50, 3), (1, 1000, 2)] {
            let chunks = tokens.chunks(chunk_len).map(|chunk| {
                let mut pushed = Tokens::default();
                chunk.iter().for_each(|token| pushed.push("vertex", token.as_bytes()).unwrap());
                pushed
            });
            let chunks: Vec<Tokens> = chunks.collect();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (mut names, mut codes) = (Names::default(), Vec::new());
            for batch in chunks.chunks(batch_len) {
                codes.extend(pool.install(|| names.resolve(batch, Path::new("text"))).unwrap().concat());
            }
            let numbered = names.number();
            assert_eq!(numbered.len(), known.len());
            assert!(codes.iter().map(|&code| numbered.id(code)).eq(expected.iter().copied()));
            let dictionary = numbered.into_dictionary(Path::new("text")).unwrap();
            assert!(tokens.iter().zip(&expected).all(|(token, &id)| dictionary.name(id) == token.as_str()));
        }
    }

    #[test]
    fn tokens_are_text() {
        let mut tokens = Tokens::default();
        assert!(tokens.push("vertex", b"").is_err());
        assert!(tokens.push("vertex", b"\xff").is_err());
        assert_eq!(tokens.bytes(), 0);
        assert!(Names::default().resolve(&[tokens], Path::new("text")).unwrap().concat().is_empty());
    }
}
