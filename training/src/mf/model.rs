//! The model of matrix factorization, and its directory.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use megagrid_algorithms::mf::Model as Rows;
use megagrid_datasets::output::{read_npy, write_matrix, write_vector};
use megagrid_datasets::{Dictionary, Names};
use megagrid_partition::Side;
use serde::Deserialize;

use crate::Error;
use crate::model::{Manifest, Model, Scored, best, read_names, write_names};

/// Factors of users and items, with their names.
#[derive(Clone, Debug)]
pub struct Factors {
    /// The factors.
    pub model: Rows,
    /// Names of users and items.
    pub names: Arc<Names>,
}

/// The files of one side.
struct Files {
    factors: &'static str,
    biases: &'static str,
    ids: &'static str,
}

const USERS: Files = Files { factors: "users.npy", biases: "user_biases.npy", ids: "users.parquet" };
const ITEMS: Files = Files { factors: "items.npy", biases: "item_biases.npy", ids: "items.parquet" };

/// Asks for the best items of a user.
#[derive(Clone, Debug, Deserialize)]
pub struct Recommend {
    /// The user.
    pub user: String,
    /// How many items.
    pub number: usize,
    /// Items to leave out.
    #[serde(default)]
    pub without: HashSet<String>,
}

impl Factors {
    /// Returns the best items of a user, best first, but for those that `is_skipped` names.
    #[must_use]
    pub fn best(&self, user: u32, number: usize, is_skipped: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
        let items = (0..(self.model.items.len() / self.model.dims) as u32).filter(|&item| !is_skipped(item));
        best(items.map(|item| (item, self.model.predict(user as usize, item as usize))), number)
    }
}

impl Model for Factors {
    const KIND: &'static str = "mf";
    type Question = Recommend;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        let Rows { dims, mean, users, items, user_biases, item_biases } = &self.model;
        manifest.mean = *mean;
        for (side, files, factors, biases) in
            [(Side::Left, &USERS, users, user_biases), (Side::Right, &ITEMS, items, item_biases)]
        {
            write_side(into, files, (factors, biases), *dims, &*self.names.get(side)?, manifest)?;
        }
        Ok(())
    }

    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error> {
        let (user_names, users, user_biases, dims) = read_side(from, &USERS, manifest)?;
        let (item_names, items, item_biases, item_dims) = read_side(from, &ITEMS, manifest)?;
        if dims != item_dims {
            let problem = format!("users have {dims} dims and items {item_dims}; train the model again");
            return Err(Error::invalid(from, problem));
        }
        let model = Rows { dims, mean: manifest.mean, users, items, user_biases, item_biases };
        Ok(Self { model, names: Arc::new(Names::new(user_names, Some(item_names))) })
    }

    fn answer(&self, question: &Recommend) -> Result<Vec<Scored>, Error> {
        let (users, items) = (self.names.get(Side::Left)?, self.names.get(Side::Right)?);
        let user = users.find(&question.user).ok_or_else(|| {
            let (number, user) = (users.len(), &question.user);
            Error::Missing(format!(
                "user \"{user}\" is not among the {number} users of the model; name it as the ratings did"
            ))
        })?;
        let skipped: HashSet<u32> = question.without.iter().filter_map(|name| items.find(name)).collect();
        let best = self.best(user, question.number, |item| skipped.contains(&item));
        let scored = |(item, score): (u32, f32)| Scored { name: items.name(item).into_owned(), score: score.into() };
        Ok(best.into_iter().map(scored).collect())
    }

    fn bytes(&self) -> u64 {
        let Rows { users, items, user_biases, item_biases, .. } = &self.model;
        [users, items, user_biases, item_biases].map(|values| size_of_val(&values[..]) as u64).iter().sum()
    }
}

fn write_side(
    into: &Path,
    files: &Files,
    (factors, biases): (&[f32], &[f32]),
    dims: usize,
    names: &Dictionary,
    manifest: &mut Manifest,
) -> Result<(), Error> {
    write_matrix(&into.join(files.factors), dims, factors.chunks_exact(dims))?;
    manifest.shape(files.factors, &[names.len(), dims]);
    if !biases.is_empty() {
        write_vector(&into.join(files.biases), biases)?;
        manifest.shape(files.biases, &[names.len()]);
    }
    write_names(&into.join(files.ids), names)
}

type ReadSide = (Dictionary, Vec<f32>, Vec<f32>, usize);

fn read_side(directory: &Path, files: &Files, manifest: &Manifest) -> Result<ReadSide, Error> {
    let names = read_names(&directory.join(files.ids))?;
    let path = directory.join(files.factors);
    let factors = read_npy::<f32>(&path, 2)?;
    let biases = match manifest.shapes.contains_key(files.biases) {
        true => read_npy::<f32>(&directory.join(files.biases), 1)?.values,
        false => Vec::new(),
    };
    let (rows, dims) = (factors.shape[0], factors.shape[1]);
    if rows != names.len() || dims == 0 || !(biases.is_empty() || biases.len() == rows) {
        let problem = format!("{rows} rows of {dims} do not fit {} ids; train the model again", names.len());
        return Err(Error::invalid(&path, problem));
    }
    Ok((names, factors.values, biases, dims))
}
