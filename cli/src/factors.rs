//! Models of factors, `mf` and `als`: what is asked of them, of whom.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use megagrid_algorithms::search::Found;
use megagrid_datasets::output::Column;
use megagrid_datasets::{Dictionary, read_text};
use megagrid_partition::Side;
use megagrid_training::als::Recommender;
use megagrid_training::mf::Factors;
use megagrid_training::model::{self, Manifest};
use megagrid_training::{Error, Model};

use crate::failure::usage;
use crate::kinds;
use crate::progress::Progress;
use crate::rows::{Piece, named};

/// Reads a model of `mf` or `als`; of another kind says what to use instead.
pub fn load(directory: &Path) -> anyhow::Result<(Factors, Manifest)> {
    let manifest = model::manifest(directory)?;
    let _progress = Progress::spinner(false, "loading");
    match &manifest.kind[..] {
        Recommender::KIND => Ok(model::load::<Recommender>(directory).map(|(model, manifest)| (model.0, manifest))?),
        Factors::KIND => Ok(model::load::<Factors>(directory)?),
        other => Err(kinds::refused(directory, other, "mf or als")),
    }
}

/// Leaves predictions outside the range of ratings as they are.
pub fn unclipped(factors: Factors, manifest: &Manifest) -> anyhow::Result<Factors> {
    if manifest.kind != Factors::KIND {
        return Err(usage("--no-clip is for a model of ratings; scores of als have no range"));
    }
    Ok(Factors { range: None, ..factors })
}

/// Some vertices of a model, each once.
pub struct Asked {
    /// Their numbers in the model.
    pub ids: Vec<u32>,
    /// Whether it is one, named on the command line.
    pub is_one: bool,
}

impl Asked {
    /// Takes all vertices of a side.
    pub fn all(factors: &Factors, side: Side) -> anyhow::Result<Self> {
        Ok(Self { ids: (0..factors.names.get(side)?.len() as u32).collect(), is_one: false })
    }

    /// Takes the vertices named on the command line, all of which have to be known.
    pub fn named(factors: &Factors, side: Side, names: &[String]) -> anyhow::Result<Self> {
        let ids = names.iter().map(|name| factors.find(side, name)).collect::<Result<Vec<u32>, _>>()?;
        Ok(Self { is_one: names.len() == 1, ids: once(ids) })
    }

    /// Takes the vertices that a file names, one a line; says which of them the model does not know.
    pub fn of_file(factors: &Factors, side: Side, path: &Path) -> anyhow::Result<Self> {
        let (text, names) = (read(path)?, factors.names.get(side)?);
        let lookup = names.lookup();
        // A name may begin or end with a blank.
        let asked: Vec<&str> = text.lines().filter(|name| !name.is_empty()).collect();
        if asked.is_empty() {
            return Err(Error::invalid(path, "no name in it; expected one a line").into());
        }
        let (known, unknown): (Vec<&str>, Vec<&str>) = asked.iter().partition(|name| lookup.find(name).is_some());
        let (number, what) = (names.len(), called(side));
        if known.is_empty() {
            let problem = format!("none of its {} names is among the {number} {what} of the model", asked.len());
            return Err(Error::invalid(path, problem).into());
        }
        say_left_out(&unknown, asked.len(), what, "not in the model");
        Ok(Self { ids: once(known.into_iter().filter_map(|name| lookup.find(name)).collect()), is_one: false })
    }
}

/// Returns what vertices of a side are called.
pub fn called(side: Side) -> &'static str {
    if side == Side::Left { "users" } else { "items" }
}

/// Says in a line which names were left out, if any were.
pub fn say_left_out(names: &[impl AsRef<str>], of: usize, what: &str, why: &str) {
    const SHOWN: usize = 3;
    if names.is_empty() {
        return;
    }
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = if names.len() > SHOWN { " and others" } else { "" };
    eprintln!("megagrid: {} of {of} {what} are {why} and were left out: {}{more}", names.len(), shown.join(", "));
}

fn once(mut ids: Vec<u32>) -> Vec<u32> {
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(*id));
    ids
}

/// Reads a text, from stdin for "-".
fn read(path: &Path) -> anyhow::Result<String> {
    if path != Path::new("-") {
        return Ok(read_text(path)?);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("reading stdin")?;
    Ok(text)
}

/// Lists vertices with their places and scores.
pub fn listing(best: &[Found], names: &Dictionary) -> String {
    let line = |(at, &(id, score)): (usize, &Found)| format!("{at:>5}  {score:>8.4}  {}\n", names.name(id));
    (1..).zip(best).map(line).collect()
}

/// Makes rows of what was found for some vertices: the vertex, the place, what was found, its score.
pub fn rows(
    columns: [&'static str; 4],
    (asked, of): (&[u32], &Dictionary),
    (found, names): (&[Vec<Found>], &Dictionary),
) -> Piece<'static> {
    let whose = asked.iter().zip(found).flat_map(|(&id, found)| std::iter::repeat_n(id, found.len()));
    let places = found.iter().flat_map(|found| 1..=found.len() as u32);
    let (ids, scores): (Vec<u32>, Vec<f32>) = found.iter().flatten().copied().unzip();
    let [first, place, second, score] = columns;
    vec![
        (first, named(of, &whose.collect::<Vec<_>>())),
        (place, Column::U32(places.collect())),
        (second, named(names, &ids)),
        (score, Column::F32(scores.into())),
    ]
}
