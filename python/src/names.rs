//! Names of vertices, and rows in their order.

use megagrid_datasets::Dictionary;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;

/// Names as Python gives them.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Numbers(PyReadonlyArray1<'py, u64>),
    Texts(Vec<String>),
}

impl Given<'_> {
    pub fn names(&self) -> Dictionary {
        match self {
            Self::Numbers(numbers) => Dictionary::from_integers(numbers.as_array().iter().copied().collect()),
            Self::Texts(texts) => Dictionary::from_strings(texts),
        }
    }
}

/// Returns the names of columns that a file of ratings may have: of users and items, of values, and of times.
#[pyfunction]
pub fn rating_columns() -> (Vec<(&'static str, &'static str)>, Vec<&'static str>, Vec<&'static str>) {
    let (ends, values, times) = megagrid_datasets::rating_columns();
    (ends.into_iter().map(|[users, items]| (users, items)).collect(), values.to_vec(), times.to_vec())
}

/// The names `first..first + number`, for the rows of a matrix.
pub fn numbered(first: u64, number: usize) -> Dictionary {
    Dictionary::from_integers((first..first + number as u64).collect())
}

/// Returns vertices in the order in which Python gets them: numbers ascend, as in the matrix that they came from; texts stay as they
/// are, those with most edges first.
pub fn order(names: &Dictionary) -> Vec<u32> {
    let mut order: Vec<u32> = (0..names.len() as u32).collect();
    if let Some(numbers) = names.as_integers() {
        order.sort_unstable_by_key(|&at| numbers[at as usize]);
    }
    order
}

/// Returns rows of `dims` items in order.
pub fn in_order<T: Copy>(order: &[u32], dims: usize, rows: &[T]) -> Vec<T> {
    let mut ordered = Vec::with_capacity(rows.len());
    order.iter().for_each(|&at| ordered.extend_from_slice(&rows[at as usize * dims..][..dims]));
    ordered
}

/// Gives Python names in order: an array of numbers or a list of texts.
pub fn give(py: Python<'_>, names: &Dictionary, order: &[u32]) -> PyResult<Py<PyAny>> {
    let names = names.reorder(order);
    match names.as_integers() {
        Some(numbers) => Ok(numbers.to_vec().into_pyarray(py).into_any().unbind()),
        None => Ok(names.iter().map(String::from).collect::<Vec<_>>().into_pyobject(py)?.unbind()),
    }
}
