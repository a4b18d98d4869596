//! Directed graphs to train on, and vertices by their scores.

use std::path::Path;
use std::sync::Arc;

use megagrid_datasets::cache::{Cache, EdgeData, EdgeType};
use megagrid_datasets::output::{Column, read_table, write_table, write_vector};
use megagrid_datasets::{
    Dataset, Dictionary, Edges, Format, Layout, Loaded, Names, Prepared, load_graph_with, load_weighted_graph_with,
};
use megagrid_partition::{EdgeSource, Side};
use rayon::slice::ParallelSliceMut;
use serde::Deserialize;

use crate::Error;
use crate::data::{Data, NoOptions, Reading};
use crate::input::{Source, Stopwatch, digest, no_edges, open, ordered, phases};
use crate::model::{DAMAGED, Manifest, Scored, best, check_numbers, names};
use crate::record::{InputSizes, Phases};
use crate::room;

/// A directed graph, whose links carry nothing, or a weight.
#[derive(Debug)]
pub struct Graph<T = ()> {
    /// Links, grouped by their targets.
    pub edges: Edges<T>,
    /// Names of the vertices.
    pub names: Arc<Names>,
    sizes: InputSizes,
}

impl<T: EdgeData> Graph<T> {
    /// Takes a graph in memory.
    #[must_use]
    pub fn new(graph: Dataset<T>) -> Self {
        Self::of(Prepared::new(graph, &[Side::Right]))
    }

    /// Takes a graph that is prepared.
    #[must_use]
    pub fn of(prepared: Prepared<T>) -> Self {
        let Prepared { edges, names, .. } = prepared;
        let [left, right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
        let sizes = InputSizes { left, right, edges: edges.num_edges(), ..InputSizes::default() };
        Self { edges, names: Arc::new(names), sizes }
    }

    /// Returns the numbers of vertices and links.
    #[must_use]
    pub fn sizes(&self) -> InputSizes {
        self.sizes.clone()
    }

    /// Gives up the links.
    pub(crate) fn release(&mut self) {
        self.edges = no_edges();
    }

    /// Reads a graph; `load` reads it where it is no cache. If it is undirected, each line is a link both ways.
    pub(crate) fn read_with(
        source: &mut Source,
        undirected: bool,
        how: &Reading<'_>,
        load: impl Fn(&Path, &Layout) -> Result<Loaded<T>, megagrid_datasets::Error>,
    ) -> Result<(Self, Phases), Error> {
        let mut clock = Stopwatch::start();
        let layout = Layout { undirected, ..source.find(Format::Edges)? };
        room::check(source, how.parts())?;
        let (path, is_cache, is_weighted) = (&source.input, source.is_cache(), T::TYPE == EdgeType::Float);
        how.agree(is_cache, ("weights", is_weighted.to_string()))?;
        if is_cache && is_weighted {
            let problem = "a cache of a graph holds no weights; leave out --weights, or train on the text";
            return Err(Error::invalid(path, problem));
        }
        if is_cache && undirected || !source.changes.is_empty() {
            let graph = source.whole(|source| {
                let layout = Layout { undirected, ..source.find(Format::Edges)? };
                if !source.is_cache() {
                    return Ok(load(&source.input, &layout)?.into_dataset()?);
                }
                let graph = Cache::open(&source.input)?.to_dataset()?;
                Ok(if undirected { graph.both_ways() } else { graph })
            })?;
            let load = clock.lap();
            return Ok((Self::new(ordered(graph, how.degree_order)), phases(load, clock.lap())));
        }
        if is_cache {
            let graph = Self::of(open(path, how.readers)?);
            return Ok((graph, phases(clock.lap(), 0.0)));
        }
        let loaded = load(path, &layout)?;
        let load = clock.lap();
        let graph = Self::of(loaded.prepare(Side::Right, how.degree_order)?);
        Ok((graph, phases(load, clock.lap())))
    }
}

macro_rules! data_of_graph {
    ($weight:ty, $load:ident, $number:expr) => {
        impl Data for Graph<$weight> {
            type Options = NoOptions;

            fn read(source: &mut Source, _: &NoOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
                Self::read_with(source, false, how, |path, layout| $load(path, layout, how.readers))
            }

            fn sizes(&self) -> InputSizes {
                self.sizes.clone()
            }

            fn checksum(&self) -> Result<u64, Error> {
                Ok(digest(&self.edges, $number)?.checksum)
            }

            fn release(&mut self) {
                Self::release(self);
            }
        }
    };
}
data_of_graph!((), load_graph_with, |()| 0.0);
data_of_graph!(f32, load_weighted_graph_with, |weight| f64::from(*weight));

/// Vertices and their scores, best first.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Names of the vertices.
    pub names: Dictionary,
    /// Their scores.
    pub scores: Vec<f32>,
}

impl Ranked {
    /// Puts vertices in order of their scores, ties by id.
    ///
    /// # Errors
    /// Names of a cache that cannot be read.
    pub fn new(scores: &[f32], names: &Names) -> Result<Self, Error> {
        Self::with_order(scores, names).map(|(ranked, _)| ranked)
    }

    /// As [`new`](Self::new); returns also the vertices in their order.
    pub(crate) fn with_order(scores: &[f32], names: &Names) -> Result<(Self, Vec<u32>), Error> {
        let mut keys: Vec<u64> = (0..).zip(scores).map(|(page, &score)| descending(score) << 32 | page).collect();
        keys.par_sort_unstable();
        let order: Vec<u32> = keys.into_iter().map(|key| key as u32).collect();
        let sorted = order.iter().map(|&page| scores[page as usize]).collect();
        Ok((Self { names: names.get(Side::Left)?.reorder(&order), scores: sorted }, order))
    }

    /// Returns the best `number`.
    #[must_use]
    pub fn top(&self, number: usize) -> Vec<Scored> {
        let best = self.scores.iter().take(number).zip(0..);
        best.map(|(&score, at)| Scored { name: self.names.name(at).into_owned(), score: score.into() }).collect()
    }

    /// Returns the best `number` of a set, from 1, by the scores of each set of vertices to restart at.
    ///
    /// # Errors
    /// No such set.
    pub fn top_of_set(&self, sets: &[Vec<f32>], set: usize, number: usize) -> Result<Vec<Scored>, Error> {
        let Some(scores) = set.checked_sub(1).and_then(|at| sets.get(at)) else {
            return Err(Error::option(match sets.len() {
                0 => "the model has no sets; rank with pagerank --restart-sets".to_owned(),
                sets => format!("there is no set {set}; the model has the sets 1 to {sets}"),
            }));
        };
        let best = best((0..).zip(scores.iter().copied()), number);
        let scored = |(at, score): (u32, f32)| Scored { name: self.names.name(at).into_owned(), score: score.into() };
        Ok(best.into_iter().map(scored).collect())
    }

    /// Writes vertices and scores, and `more` columns of scores.
    pub(crate) fn write(
        &self,
        into: &Path,
        name: &str,
        more: &[(String, &[f32])],
        manifest: &mut Manifest,
    ) -> Result<(), Error> {
        let mut table = vec![("id", Column::Names(&self.names)), ("score", Column::F32((&self.scores).into()))];
        table.extend(more.iter().map(|(title, scores)| (&title[..], Column::F32((*scores).into()))));
        write_table(&into.join(format!("{name}.parquet")), &table)?;
        let array = format!("{name}.npy");
        manifest.shape(&array, &[self.scores.len()]);
        Ok(write_vector(&into.join(array), &self.scores)?)
    }

    /// Reads vertices and scores, and all other columns of scores in their order.
    pub(crate) fn read(from: &Path, name: &str) -> Result<(Self, Vec<Vec<f32>>), Error> {
        let path = from.join(format!("{name}.parquet"));
        let (mut ids, mut all) = (None, Vec::new());
        for (title, column) in read_table(&path)? {
            match column {
                ids_of_table if title == "id" => ids = Some(ids_of_table),
                Column::F32(scores) if title.starts_with("score") => {
                    check_numbers(&path, &scores)?;
                    all.push(scores.into_owned());
                }
                _ => return Err(Error::invalid(&path, format!("no scores in column {title}; {DAMAGED}"))),
            }
        }
        let mut all = all.into_iter();
        let Some(scores) = all.next() else {
            return Err(Error::invalid(&path, format!("no column score of numbers; {DAMAGED}")));
        };
        Ok((Self { names: names(&path, ids)?, scores }, all.collect()))
    }

    pub(crate) fn bytes(&self) -> u64 {
        size_of_val(&self.scores[..]) as u64
    }
}

/// Returns a number of 32 bits that is the smaller the larger a score is, in the order of [`f32::total_cmp`].
fn descending(score: f32) -> u64 {
    let bits = score.to_bits();
    u64::from(if score.is_sign_negative() { bits } else { !bits & !(1 << 31) })
}

/// Asks for the best vertices.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Top {
    /// How many.
    pub number: usize,
    /// Whether as hubs, where a model tells them apart.
    #[serde(default)]
    pub hubs: bool,
    /// By the scores of which set of vertices to restart at, from 1, where a model has several; nothing: of all.
    #[serde(default)]
    pub set: Option<usize>,
}

/// Lists vertices with their places.
#[must_use]
pub fn listing(best: &[Scored]) -> String {
    let line = |(at, one): (usize, &Scored)| format!("{at:>5}  {:.6e}  {}\n", one.score, one.name);
    (1..).zip(best).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_descend_and_ties_are_in_the_order_of_ids() {
        let scores = [0.5, -0.0, f32::MAX, 0.0, -3.0, 0.5, 1e-40, f32::NEG_INFINITY, f32::INFINITY];
        let mut expected: Vec<u32> = (0..scores.len() as u32).collect();
        expected.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
        let names = Names::new(Dictionary::from_integers((0..scores.len() as u64).collect()), None);
        let ranked = Ranked::new(&scores, &names).unwrap();
        assert!(ranked.names.as_integers().unwrap().iter().copied().eq(expected.iter().map(|&id| u64::from(id))));
    }
}
