//! Arrays of NumPy and SciPy as edges. Indices and values are read where they are, whatever their type, and copied once: into the
//! edges that a grid is built from.

use std::ops::Range;

use megagrid_engine::{Error as EngineError, os};
use megagrid_partition::EdgeList;
use megagrid_training::Error;
use numpy::ndarray::ArrayView2;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::{FromPyObject, PyResult, Python};

use crate::error::raised;

/// Indices.
#[derive(FromPyObject)]
pub enum Ids<'py> {
    Narrow(PyReadonlyArray1<'py, i32>),
    Wide(PyReadonlyArray1<'py, i64>),
}

/// Values.
#[derive(FromPyObject)]
pub enum Values<'py> {
    F32(PyReadonlyArray1<'py, f32>),
    F64(PyReadonlyArray1<'py, f64>),
    I32(PyReadonlyArray1<'py, i32>),
    I64(PyReadonlyArray1<'py, i64>),
}

/// A matrix that Python's side has checked: arrays are contiguous, values are numbers within the range of what an edge carries.
#[derive(FromPyObject)]
pub enum Matrix<'py> {
    /// Whether by columns (CSC, else CSR), where rows begin, column of each value, values (1 if there are none), shape.
    Compressed(bool, Ids<'py>, Ids<'py>, Option<Values<'py>>, (usize, usize)),
    /// Row and column of each value, values (1 if there are none), shape.
    Coordinates(Ids<'py>, Ids<'py>, Option<Values<'py>>, (usize, usize)),
    /// All values; 0 is none.
    Single(PyReadonlyArray2<'py, f32>),
    /// The same.
    Double(PyReadonlyArray2<'py, f64>),
}

/// Indices without Python.
#[derive(Clone, Copy)]
enum IdSlice<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

/// Values without Python.
#[derive(Clone, Copy)]
enum ValueSlice<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    /// All are 1.
    Ones,
}

/// A matrix without Python.
enum View<'a> {
    Compressed(bool, IdSlice<'a>, IdSlice<'a>, ValueSlice<'a>),
    Coordinates(IdSlice<'a>, IdSlice<'a>, ValueSlice<'a>),
    Single(ArrayView2<'a, f32>),
    Double(ArrayView2<'a, f64>),
}

fn misfit(what: impl Into<String>) -> Error {
    Error::Missing(what.into())
}

fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> Result<&'a [T], Error> {
    array.as_slice().map_err(|_| misfit("an array is not contiguous"))
}

impl Ids<'_> {
    fn view(&self) -> Result<IdSlice<'_>, Error> {
        Ok(match self {
            Self::Narrow(ids) => IdSlice::Narrow(slice(ids)?),
            Self::Wide(ids) => IdSlice::Wide(slice(ids)?),
        })
    }
}

impl IdSlice<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    /// Returns an index; one below 0 is larger than any that can be.
    #[inline]
    fn at(&self, at: usize) -> u64 {
        match self {
            Self::Narrow(ids) => ids[at] as u64,
            Self::Wide(ids) => ids[at] as u64,
        }
    }
}

impl Values<'_> {
    fn view(of: &Option<Self>) -> Result<ValueSlice<'_>, Error> {
        Ok(match of {
            Some(Self::F32(values)) => ValueSlice::F32(slice(values)?),
            Some(Self::F64(values)) => ValueSlice::F64(slice(values)?),
            Some(Self::I32(values)) => ValueSlice::I32(slice(values)?),
            Some(Self::I64(values)) => ValueSlice::I64(slice(values)?),
            None => ValueSlice::Ones,
        })
    }
}

impl ValueSlice<'_> {
    fn has_one_for_each_of(&self, number: usize) -> bool {
        match self {
            Self::F32(values) => values.len() == number,
            Self::F64(values) => values.len() == number,
            Self::I32(values) => values.len() == number,
            Self::I64(values) => values.len() == number,
            Self::Ones => true,
        }
    }

    #[inline]
    fn at(&self, at: usize) -> f64 {
        match self {
            Self::F32(values) => f64::from(values[at]),
            Self::F64(values) => values[at],
            Self::I32(values) => f64::from(values[at]),
            Self::I64(values) => values[at] as f64,
            Self::Ones => 1.0,
        }
    }
}

impl Matrix<'_> {
    fn view(&self) -> Result<(View<'_>, (usize, usize)), Error> {
        Ok(match self {
            Self::Compressed(by_columns, starts, others, values, shape) => {
                (View::Compressed(*by_columns, starts.view()?, others.view()?, Values::view(values)?), *shape)
            }
            Self::Coordinates(rows, columns, values, shape) => {
                (View::Coordinates(rows.view()?, columns.view()?, Values::view(values)?), *shape)
            }
            Self::Single(array) => (View::Single(array.as_array()), array.as_array().dim()),
            Self::Double(array) => (View::Double(array.as_array()), array.as_array().dim()),
        })
    }

    /// Returns the values of which `keep` makes edge data, as edges from rows to columns, without holding the interpreter.
    ///
    /// # Errors
    /// Indices out of range; too little memory.
    pub fn edges<T: Copy + Send>(
        &self,
        py: Python<'_>,
        is_square: bool,
        keep: impl Fn(f64) -> Option<T> + Send + Sync,
    ) -> PyResult<EdgeList<T>> {
        let read = || {
            let (view, shape) = self.view()?;
            py.detach(|| view.edges(shape, is_square, keep))
        };
        read().map_err(|error| raised(&error))
    }

    /// Returns the whole numbers of each row, by column.
    ///
    /// # Errors
    /// As [`edges`](Self::edges).
    pub fn counts(&self, py: Python<'_>) -> PyResult<Vec<Vec<(u32, u32)>>> {
        let edges = self.edges(py, false, count)?;
        let mut rows = vec![Vec::new(); edges.num_left];
        for ((&row, &column), &count) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
            rows[row as usize].push((column, count));
        }
        Ok(rows)
    }
}

/// Bytes that the name, the degree, the place in an order and the beginnings of the edges of a vertex take, some of them twice.
const BYTES_OF_VERTEX: usize = 40;

/// Keeps what is above 0, rounded.
pub fn count(value: f64) -> Option<u32> {
    let count = value.round() as u32;
    (count > 0).then_some(count)
}

/// Keeps what is not 0.
pub fn nonzero(value: f64) -> Option<f32> {
    (value != 0.0).then_some(value as f32)
}

impl View<'_> {
    fn edges<T: Copy>(
        &self,
        (rows, columns): (usize, usize),
        is_square: bool,
        keep: impl Fn(f64) -> Option<T>,
    ) -> Result<EdgeList<T>, Error> {
        for (side, number) in [("rows", rows), ("columns", columns)] {
            if u32::try_from(number).is_err() {
                return Err(misfit(format!("{number} {side} are more than indices of 32 bits can number")));
            }
        }
        let (most, bytes) = (self.most_edges(), 2 * size_of::<u32>() + size_of::<T>());
        check_room((most * bytes + (rows + columns) * BYTES_OF_VERTEX) as u64)?;
        let num_edges = if matches!(self, Self::Single(_) | Self::Double(_)) { 0 } else { most };
        let mut edges = EdgeList::with_capacity(num_edges);
        (edges.num_left, edges.num_right, edges.square) = (rows, columns, is_square);
        let mut push = |row: usize, column: u64, value: f64| {
            if let Some(data) = keep(value) {
                edges.push(row as u32, column as u32, data);
            }
        };
        match self {
            Self::Compressed(by_columns, starts, others, values) => {
                let shape = if *by_columns { (columns, rows) } else { (rows, columns) };
                if !values.has_one_for_each_of(others.len()) {
                    return Err(misfit(format!(
                        "the matrix is damaged: not each of its {} indices has a value",
                        others.len()
                    )));
                }
                for (this, range) in (0..).zip(ranges(starts, shape.0, others.len())?) {
                    for at in range {
                        let (other, value) = (below(others.at(at), shape.1)?, values.at(at));
                        if *by_columns { push(other as usize, this as u64, value) } else { push(this, other, value) }
                    }
                }
            }
            Self::Coordinates(left, right, values) => {
                if left.len() != right.len() || !values.has_one_for_each_of(left.len()) {
                    return Err(misfit(format!("{} rows and {} columns do not fit", left.len(), right.len())));
                }
                for at in 0..left.len() {
                    push(below(left.at(at), rows)? as usize, below(right.at(at), columns)?, values.at(at));
                }
            }
            Self::Single(array) => array.indexed_iter().for_each(|((row, at), &x)| push(row, at as u64, f64::from(x))),
            Self::Double(array) => array.indexed_iter().for_each(|((row, at), &x)| push(row, at as u64, x)),
        }
        Ok(edges)
    }

    fn most_edges(&self) -> usize {
        match self {
            Self::Compressed(_, _, ids, _) | Self::Coordinates(ids, ..) => ids.len(),
            Self::Single(array) => array.len(),
            Self::Double(array) => array.len(),
        }
    }
}

/// Returns where the values of each row are.
fn ranges<'a>(
    starts: &'a IdSlice<'_>,
    rows: usize,
    values: usize,
) -> Result<impl Iterator<Item = Range<usize>> + 'a, Error> {
    let fits = starts.len() == rows + 1 && starts.at(0) == 0 && starts.at(rows) <= values as u64;
    if !fits || (0..rows).any(|row| starts.at(row) > starts.at(row + 1)) {
        return Err(misfit(format!(
            "the matrix is damaged: its row pointers do not fit {rows} rows of {values} values"
        )));
    }
    Ok((0..rows).map(|row| starts.at(row) as usize..starts.at(row + 1) as usize))
}

#[inline]
fn below(id: u64, number: usize) -> Result<u64, Error> {
    if id < number as u64 {
        return Ok(id);
    }
    Err(misfit(format!("index {} is out of range; expected 0 or above and below {number}", id as i64)))
}

/// Refuses to copy what there is no memory for.
fn check_room(needed_bytes: u64) -> Result<(), Error> {
    match os::available_memory_bytes() {
        Some(available_bytes) if needed_bytes > available_bytes => {
            Err(EngineError::NotEnoughMemory { needed_bytes, available_bytes }.into())
        }
        _ => Ok(()),
    }
}
