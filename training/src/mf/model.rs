//! The model of matrix factorization, and its directory.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use megagrid_algorithms::mf::Model as Rows;
use megagrid_datasets::output::{read_npy, write_matrix, write_vector};
use megagrid_datasets::{Dictionary, Names};
use megagrid_partition::Side;
use serde::Deserialize;

use super::answers::{Recommendations, clipped};
use crate::Error;
use crate::model::{Manifest, Model, Scored, check_numbers, read_names, write_names};

/// Factors of users and items, with their names.
#[derive(Clone, Debug)]
pub struct Factors {
    /// The factors.
    pub model: Rows,
    /// Names of users and items.
    pub names: Arc<Names>,
    /// The least and the greatest rating, which predictions are kept within; nothing: they are left as they are.
    pub range: Option<[f32; 2]>,
    /// Sums of mean squared gradients of users and of items, to which steps adapt: with them an update can go on. Nothing where steps do
    /// not adapt, or where several processes have trained.
    pub squares: Option<[Vec<f32>; 2]>,
}

/// The files of one side.
struct Files {
    factors: &'static str,
    biases: &'static str,
    squares: &'static str,
    ids: &'static str,
}

const USERS: Files =
    Files { factors: "users.npy", biases: "user_biases.npy", squares: "user_squares.npy", ids: "users.parquet" };
const ITEMS: Files =
    Files { factors: "items.npy", biases: "item_biases.npy", squares: "item_squares.npy", ids: "items.parquet" };

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
    /// Returns the number of a user or an item.
    ///
    /// # Errors
    /// One that the model has not seen.
    pub fn find(&self, side: Side, name: &str) -> Result<u32, Error> {
        let names = self.names.get(side)?;
        names.find(name).ok_or_else(|| {
            let (number, one) = (names.len(), if side == Side::Left { "user" } else { "item" });
            Error::Missing(format!(
                "{one} \"{name}\" is not among the {number} {one}s of the model; name it as the ratings did"
            ))
        })
    }

    /// Keeps a prediction within the range of ratings.
    #[must_use]
    pub fn clipped(&self, rating: f32) -> f32 {
        clipped(rating, self.range)
    }

    /// Predicts the rating of a user, or someone unknown, for an item, or something unknown: what is known counts.
    ///
    /// # Panics
    /// Where the model has no such user or item.
    #[must_use]
    pub fn predict(&self, user: Option<u32>, item: Option<u32>) -> f32 {
        self.clipped(self.model.predict_known(user, item))
    }
}

impl Model for Factors {
    const KIND: &'static str = "mf";
    type Question = Recommend;
    type Answer = Vec<Scored>;

    fn write(&self, into: &Path, manifest: &mut Manifest) -> Result<(), Error> {
        let Rows { dims, mean, unit, users, items, user_biases, item_biases } = &self.model;
        (manifest.mean, manifest.unit, manifest.range) = (*mean, *unit, self.range);
        for (side, files, factors, biases) in
            [(Side::Left, &USERS, users, user_biases), (Side::Right, &ITEMS, items, item_biases)]
        {
            let squares = self.squares.as_ref().map_or(&[][..], |both| &both[side as usize]);
            write_side(into, files, (factors, biases, squares), *dims, &*self.names.get(side)?, manifest)?;
        }
        // After an update there are more than it was trained on.
        let [left, right] = [&mut manifest.data.left, &mut manifest.data.right];
        (*left, *right) = (users.len() / dims, items.len() / dims);
        Ok(())
    }

    fn read(from: &Path, manifest: &Manifest) -> Result<Self, Error> {
        let (user_names, users, [user_biases, user_squares], dims) = read_side(from, &USERS, manifest)?;
        let (item_names, items, [item_biases, item_squares], item_dims) = read_side(from, &ITEMS, manifest)?;
        if dims != item_dims {
            let problem = format!("users have {dims} dims and items {item_dims}; train the model again");
            return Err(Error::invalid(from, problem));
        }
        let Manifest { mean, unit, .. } = *manifest;
        let model = Rows { dims, mean, unit, users, items, user_biases, item_biases };
        let range = manifest.range.filter(|[least, greatest]| least <= greatest);
        let has_squares = [&user_squares, &item_squares].iter().all(|squares| !squares.is_empty());
        let squares = has_squares.then_some([user_squares, item_squares]);
        Ok(Self { model, names: Arc::new(Names::new(user_names, Some(item_names))), range, squares })
    }

    fn answer(&self, question: &Recommend) -> Result<Vec<Scored>, Error> {
        let items = self.names.get(Side::Right)?;
        let user = self.find(Side::Left, &question.user)?;
        let mut left_out: Vec<u32> = question.without.iter().filter_map(|name| items.find(name)).collect();
        left_out.sort_unstable();
        let best = Recommendations::new(&self.model, self.range).of(&[user], question.number, |_| &left_out);
        let scored = |(item, score): (u32, f32)| Scored { name: items.name(item).into_owned(), score: score.into() };
        Ok(best.into_iter().flatten().map(scored).collect())
    }

    fn bytes(&self) -> u64 {
        let Rows { users, items, user_biases, item_biases, .. } = &self.model;
        [users, items, user_biases, item_biases].map(|values| size_of_val(&values[..]) as u64).iter().sum()
    }
}

fn write_side(
    into: &Path,
    files: &Files,
    (factors, biases, squares): (&[f32], &[f32], &[f32]),
    dims: usize,
    names: &Dictionary,
    manifest: &mut Manifest,
) -> Result<(), Error> {
    write_matrix(&into.join(files.factors), dims, factors.chunks_exact(dims))?;
    manifest.shape(files.factors, &[names.len(), dims]);
    for (file, values) in [(files.biases, biases), (files.squares, squares)] {
        if !values.is_empty() {
            write_vector(&into.join(file), values)?;
            manifest.shape(file, &[names.len()]);
        }
    }
    write_names(&into.join(files.ids), names)
}

type ReadSide = (Dictionary, Vec<f32>, [Vec<f32>; 2], usize);

fn read_side(directory: &Path, files: &Files, manifest: &Manifest) -> Result<ReadSide, Error> {
    let names = read_names(&directory.join(files.ids))?;
    let path = directory.join(files.factors);
    let factors = read_npy::<f32>(&path, 2)?;
    let vector = |file: &str| match manifest.shapes.contains_key(file) {
        true => Ok::<_, Error>(read_npy::<f32>(&directory.join(file), 1)?.values),
        false => Ok(Vec::new()),
    };
    let vectors = [vector(files.biases)?, vector(files.squares)?];
    check_numbers(&path, &factors.values)?;
    for (file, values) in [files.biases, files.squares].iter().zip(&vectors) {
        check_numbers(&directory.join(file), values)?;
    }
    let (rows, dims) = (factors.shape[0], factors.shape[1]);
    if rows != names.len() || dims == 0 || vectors.iter().any(|one| !one.is_empty() && one.len() != rows) {
        let problem = format!("{rows} rows of {dims} do not fit {} ids; train the model again", names.len());
        return Err(Error::invalid(&path, problem));
    }
    Ok((names, factors.values, vectors, dims))
}
