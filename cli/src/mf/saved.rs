//! The directory of a model of matrix factorization.

use std::path::Path;

use anyhow::bail;
use megagrid_algorithms::mf::Model;
use megagrid_datasets::output::{Column, read_npy, write_directory, write_matrix, write_table, write_vector};
use megagrid_datasets::{Dictionary, Names};
use megagrid_partition::Side;

use crate::model::{self, Manifest};
use crate::record::Record;

const KIND: &str = "mf";

/// The files of one side.
struct Files {
    factors: &'static str,
    biases: &'static str,
    ids: &'static str,
}

const USERS: Files = Files { factors: "users.npy", biases: "user_biases.npy", ids: "users.parquet" };
const ITEMS: Files = Files { factors: "items.npy", biases: "item_biases.npy", ids: "items.parquet" };

/// Writes a model.
pub fn write(directory: &Path, model: &Model, names: &Names, record: &Record, checksum: u64) -> anyhow::Result<()> {
    let mut manifest = Manifest::new(KIND, record, checksum);
    manifest.mean = model.mean;
    write_directory(directory, |into| -> anyhow::Result<()> {
        let sides = [
            (Side::Left, &USERS, (&model.users[..], &model.user_biases[..])),
            (Side::Right, &ITEMS, (&model.items[..], &model.item_biases[..])),
        ];
        for (side, files, arrays) in sides {
            let names = names.get(side)?;
            write_side(into, files, arrays, model.dims, &names, &mut manifest)?;
        }
        manifest.write(into)
    })
}

fn write_side(
    into: &Path,
    files: &Files,
    (factors, biases): (&[f32], &[f32]),
    dims: usize,
    names: &Dictionary,
    manifest: &mut Manifest,
) -> anyhow::Result<()> {
    write_matrix(&into.join(files.factors), dims, factors.chunks_exact(dims))?;
    manifest.shape(files.factors, &[names.len(), dims]);
    if !biases.is_empty() {
        write_vector(&into.join(files.biases), biases)?;
        manifest.shape(files.biases, &[names.len()]);
    }
    Ok(write_table(&into.join(files.ids), &[("id", Column::Names(names))])?)
}

/// A model and the names of its users and items.
pub struct Saved {
    /// The model.
    pub model: Model,
    /// Names of users.
    pub users: Dictionary,
    /// Names of items.
    pub items: Dictionary,
}

/// Reads a model.
pub fn read(directory: &Path) -> anyhow::Result<Saved> {
    let manifest = Manifest::read(directory, KIND)?;
    let (users, user_factors, user_biases, dims) = read_side(directory, &USERS, &manifest)?;
    let (items, item_factors, item_biases, item_dims) = read_side(directory, &ITEMS, &manifest)?;
    if dims != item_dims {
        bail!("{}: users have {dims} dims and items {item_dims}; train the model again", directory.display());
    }
    let model = Model { dims, mean: manifest.mean, users: user_factors, items: item_factors, user_biases, item_biases };
    Ok(Saved { model, users, items })
}

fn read_side(
    directory: &Path,
    files: &Files,
    manifest: &Manifest,
) -> anyhow::Result<(Dictionary, Vec<f32>, Vec<f32>, usize)> {
    let names = model::read_names(&directory.join(files.ids))?;
    let path = directory.join(files.factors);
    let factors = read_npy::<f32>(&path, 2)?;
    let biases = match manifest.shapes.contains_key(files.biases) {
        true => read_npy::<f32>(&directory.join(files.biases), 1)?.values,
        false => Vec::new(),
    };
    let (rows, dims) = (factors.shape[0], factors.shape[1]);
    if rows != names.len() || !(biases.is_empty() || biases.len() == rows) {
        bail!("{}: {rows} rows do not fit {} ids; train the model again", path.display(), names.len());
    }
    Ok((names, factors.values, biases, dims))
}

impl Saved {
    /// Returns the best items of a user, best first, but for those that `skip` names.
    pub fn best(&self, user: u32, number: usize, skip: impl Fn(u32) -> bool) -> Vec<(u32, f32)> {
        let items = (0..self.items.len() as u32).filter(|&item| !skip(item));
        let mut scored: Vec<_> = items.map(|item| (item, self.model.predict(user as usize, item as usize))).collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.truncate(number);
        scored
    }
}
