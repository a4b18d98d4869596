//! What is ranked: links with or without weights, and where the surfer restarts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_algorithms::pagerank::{PageRank, Ranks, RanksOfSets, Restart, Sets, Weighted, WeightedSets};
use megagrid_datasets::cache::EdgeData;
use megagrid_datasets::{Edges, Layout, Names, load_graph_with, load_weighted_graph_with};
use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::{Item, Program};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::restart;
use crate::Error;
use crate::data::{Data, Reading};
use crate::error::reading;
use crate::graph::Graph;
use crate::input::{Source, digest};
use crate::model::Manifest;
use crate::options::lossy;
use crate::record::{InputSizes, Phases};

/// How links are read, and where the surfer restarts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args)]
pub struct LinkOptions {
    /// Links have weights, 0 or above: the third column, the column that --columns names weight, or the values of a matrix. A page divides
    /// its score by the weights of the links out of it rather than evenly.
    #[arg(long)]
    pub weights: bool,
    /// Each line is a link both ways; one from a vertex to itself is one link. Lines that repeat add up, also if one has the ends the
    /// other way round, so a file that has both directions already needs no --undirected. Of a symmetric matrix nothing changes.
    #[arg(long)]
    pub undirected: bool,
    /// Restart only at the vertices in this file, each time with a chance by their weights, and go there from vertices without links too
    /// (personalized PageRank). A line is an id, or an id, a blank, tab or comma, and a weight, which is 1 if there is none; repeated
    /// ids add up. Lines that begin with # are comments.
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "lossy")]
    pub restart: Option<PathBuf>,
    /// Rank for several sets of vertices to restart at, one a line of this file, all in one run: ids that are separated by tabs, else by
    /// commas, semicolons or blanks, each with :WEIGHT behind it if it is not 1. The model has a column score_1, score_2, ... for each set in
    /// the order of the lines, beside their mean, which is the score of all sets together.
    #[arg(long, value_name = "FILE", conflicts_with = "restart")]
    #[serde(default, serialize_with = "lossy")]
    pub restart_sets: Option<PathBuf>,
}

/// The links of a graph.
#[derive(Debug)]
pub enum Links {
    /// Links that count the same.
    Plain(Graph),
    /// Links with weights, and the weight of all links out of each vertex.
    Weighted(Graph<f32>, Vec<f64>),
}

/// A graph to rank.
#[derive(Debug)]
pub struct Web {
    /// Its links.
    pub links: Links,
    /// Where the surfer restarts.
    restarts: Restarts,
    /// A checksum of that, if it is not anywhere.
    restart_checksum: Option<u64>,
    /// Scores of an earlier model, by page; of new pages nothing. Empty without a model.
    pub(super) start: Vec<Option<f32>>,
}

/// Where the surfer restarts.
#[derive(Debug)]
enum Restarts {
    Anywhere,
    At(Restart),
    /// One rank for each.
    AtEach(Vec<Restart>),
}

impl Web {
    /// Takes a graph whose links count the same.
    #[must_use]
    pub fn new(graph: Graph) -> Self {
        Self::of(Links::Plain(graph))
    }

    fn of(links: Links) -> Self {
        Self { links, restarts: Restarts::Anywhere, restart_checksum: None, start: Vec::new() }
    }

    /// Takes a graph whose links have weights. If several processes have read it together, all of them call it.
    ///
    /// # Errors
    /// A weight that is below 0 or no number; weights out of a vertex whose sum is too small or too large to divide by; links that cannot be
    /// read.
    pub fn weighted(graph: Graph<f32>) -> Result<Self, Error> {
        // Any weight that is not 0 or above makes its sum no number, which stays one.
        let weight = |&weight: &f32| if weight >= 0.0 { f64::from(weight) } else { f64::NAN };
        let sums = graph.edges.left_sums(weight).map_err(reading)?;
        if let Some(page) = sums.iter().position(|&sum| sum != 0.0 && !SUMS.contains(&sum)) {
            let name = graph.names.get(Side::Left)?.name(page as u32).into_owned();
            return Err(Error::Missing(format!(
                "weights of the links out of \"{name}\" sum to {:.3e}; expected 0, or from {:e} to {:e}: scale all weights",
                sums[page],
                SUMS.start(),
                SUMS.end()
            )));
        }
        Ok(Self::of(Links::Weighted(graph, sums)))
    }

    /// Has the surfer restart at vertices by their names and weights only.
    ///
    /// # Errors
    /// A vertex that is not there; weights below 0, or which sum to 0.
    pub fn restart_at<'n>(&mut self, vertices: impl IntoIterator<Item = (&'n str, f64)>) -> Result<(), Error> {
        let restart = self.restart_of(vertices)?;
        self.restart_by(Restarts::At(restart))
    }

    /// Ranks for several sets of vertices to restart at, by their names and weights.
    ///
    /// # Errors
    /// As [`restart_at`](Self::restart_at); no set.
    pub fn restart_at_each<'n, S: IntoIterator<Item = (&'n str, f64)>>(
        &mut self,
        sets: impl IntoIterator<Item = S>,
    ) -> Result<(), Error> {
        let sets = sets.into_iter().map(|set| self.restart_of(set)).collect::<Result<Vec<_>, Error>>()?;
        if sets.is_empty() {
            return Err(Error::Missing("there is no set of vertices to restart at; name one or more".to_owned()));
        }
        self.restart_by(Restarts::AtEach(sets))
    }

    fn restart_of<'n>(&self, vertices: impl IntoIterator<Item = (&'n str, f64)>) -> Result<Restart, Error> {
        let lookup = self.names().get(Side::Left)?.lookup();
        let found = vertices.into_iter().map(|(name, weight)| {
            let page = lookup.find(name).ok_or_else(|| Error::Missing(format!("no vertex \"{name}\" in the graph")));
            page.map(|page| (page as usize, weight))
        });
        let found: Vec<_> = found.collect::<Result<_, _>>()?;
        Ok(Restart::new(self.links.pages(), &found)?)
    }

    /// Has the surfer restart as distributions say. The checksum is the same whatever order vertices are in.
    fn restart_by(&mut self, restarts: Restarts) -> Result<(), Error> {
        let names = self.names().get(Side::Left)?;
        let of_page = |set: u64, (page, chance): (u32, &f32)| {
            xxh3_64_with_seed(names.name(page).as_bytes(), set << 32 | u64::from(chance.to_bits()))
        };
        let of_set = |set: u64, restart: &Restart| {
            let chances = (0..).zip(restart.chances()).filter(|(_, chance)| **chance > 0.0);
            chances.map(|one| of_page(set, one)).fold(0, u64::wrapping_add)
        };
        let checksum = match &restarts {
            Restarts::Anywhere => None,
            Restarts::At(restart) => Some(of_set(0, restart)),
            Restarts::AtEach(sets) => {
                Some((1..).zip(sets).map(|(set, restart)| of_set(set, restart)).fold(0, u64::wrapping_add))
            }
        };
        drop(names);
        (self.restarts, self.restart_checksum) = (restarts, checksum);
        Ok(())
    }

    /// Returns where the surfer restarts; `None`: anywhere, or at several sets.
    #[must_use]
    pub fn restart(&self) -> Option<&Restart> {
        if let Restarts::At(restart) = &self.restarts { Some(restart) } else { None }
    }

    /// Returns the sets at each of which the surfer restarts; empty where ranks are not of several.
    #[must_use]
    pub fn restart_sets(&self) -> &[Restart] {
        if let Restarts::AtEach(sets) = &self.restarts { sets } else { &[] }
    }

    /// Returns the names of the vertices.
    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        match &self.links {
            Links::Plain(graph) => &graph.names,
            Links::Weighted(graph, _) => &graph.names,
        }
    }

    /// Returns a checksum of where the surfer restarts, if that is not anywhere.
    pub(super) fn restart_checksum(&self) -> Option<u64> {
        self.restart_checksum
    }

    /// Returns the same as it stands in records.
    pub(super) fn restart_checksum_text(&self) -> Option<String> {
        self.restart_checksum.map(|checksum| format!("{checksum:016x}"))
    }
}

/// What the weights out of a vertex may sum to: scores of single precision that are divided by it neither overflow nor vanish.
const SUMS: std::ops::RangeInclusive<f64> = 1e-20..=1e20;

impl Links {
    /// Returns the number of vertices.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.sizes().left
    }

    /// Returns the weight of all links out of each vertex.
    pub(super) fn out_weight(&self) -> Box<dyn Fn(usize) -> f64 + Sync + '_> {
        match self {
            Self::Plain(graph) => {
                let offsets = graph.edges.offsets(Side::Left);
                Box::new(|page| (offsets[page + 1] - offsets[page]) as f64)
            }
            Self::Weighted(_, sums) => Box::new(|page| sums[page]),
        }
    }

    fn sizes(&self) -> InputSizes {
        match self {
            Self::Plain(graph) => graph.sizes(),
            Self::Weighted(graph, _) => graph.sizes(),
        }
    }
}

/// What a link carries, which decides the program that ranks.
pub(super) trait Link: EdgeData + Item {
    /// The program.
    type Program: Ranks + Program<Edge = Self>;
    /// That of several sets of restarts.
    type OfSets: RanksOfSets + Program<Edge = Self>;

    /// Returns the links, which carry this.
    fn of(links: &Links) -> &Edges<Self>;
}

impl Link for () {
    type Program = PageRank;
    type OfSets = Sets;

    fn of(links: &Links) -> &Edges<()> {
        match links {
            Links::Plain(graph) => &graph.edges,
            Links::Weighted(..) => unreachable!("`Ranking::form` takes the program of the links"),
        }
    }
}

impl Link for f32 {
    type Program = Weighted;
    type OfSets = WeightedSets;

    fn of(links: &Links) -> &Edges<f32> {
        match links {
            Links::Weighted(graph, _) => &graph.edges,
            Links::Plain(_) => unreachable!("`Ranking::form` takes the program of the links"),
        }
    }
}

impl Data for Web {
    type Options = LinkOptions;
    const FIXED: &'static [&'static str] = &["weights", "undirected"];

    fn read(source: &mut Source, options: &LinkOptions, how: &Reading<'_>) -> Result<(Self, Phases), Error> {
        let LinkOptions { weights, undirected, ref restart, ref restart_sets } = *options;
        let (mut web, phases) = if weights {
            let load = |path: &Path, layout: &Layout| load_weighted_graph_with(path, layout, how.readers);
            let (graph, phases) = Graph::read_with(source, undirected, how, load)?;
            (Self::weighted(graph)?, phases)
        } else {
            let load = |path: &Path, layout: &Layout| load_graph_with(path, layout, how.readers);
            let (graph, phases) = Graph::read_with(source, undirected, how, load)?;
            (Self::new(graph), phases)
        };
        if let Some(file) = restart {
            let restart = restart::read(file, web.names())?;
            web.restart_by(Restarts::At(restart))?;
        }
        if let Some(file) = restart_sets {
            let sets = restart::read_sets(file, web.names())?;
            web.restart_by(Restarts::AtEach(sets))?;
        }
        Ok((web, phases))
    }

    fn sizes(&self) -> InputSizes {
        self.links.sizes()
    }

    fn checksum(&self) -> Result<u64, Error> {
        let of_links = match &self.links {
            Links::Plain(graph) => graph.checksum()?,
            Links::Weighted(graph, _) => digest(&graph.edges, |&weight| f64::from(weight))?.checksum,
        };
        Ok(of_links ^ self.restart_checksum().unwrap_or(0))
    }

    fn check_beside(&self, before: &Manifest) -> Result<(), String> {
        let known: Option<String> = before.option("restart_checksum");
        if known.is_none() || known == self.restart_checksum_text() {
            return Ok(());
        }
        let file = before.option::<Option<String>>("restart").or(before.option("restart_sets")).unwrap_or_default();
        Err(format!("{file}: has other vertices to restart at than when the model was trained; train with --from"))
    }

    fn release(&mut self) {
        match &mut self.links {
            Links::Plain(graph) => graph.release(),
            Links::Weighted(graph, sums) => {
                graph.release();
                *sums = Vec::new();
            }
        }
    }
}
