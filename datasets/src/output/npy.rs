//! NumPy arrays: `.npy` files of format version 1.0, in C order and little-endian.
//!
//! The format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use bytemuck::Pod;

use super::replace_file;
use crate::Error;

const MAGIC: [u8; 8] = *b"\x93NUMPY\x01\x00";
/// The data start at a multiple of this.
const ALIGNMENT: usize = 64;

/// A number that NumPy knows.
pub trait Scalar: Pod {
    /// NumPy's name of the type.
    const DESCR: &'static str;
}

macro_rules! scalar {
    ($($number:ty => $descr:literal),*) => {
        $(impl Scalar for $number {
            const DESCR: &'static str = $descr;
        })*
    };
}
scalar!(f32 => "<f4", f64 => "<f8", u32 => "<u4", u64 => "<u8", i64 => "<i8");

// Numbers are written and read as they lie in memory.
#[cfg(target_endian = "big")]
compile_error!("only little-endian machines are supported");

/// An array that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// One or two sizes.
    pub shape: Vec<usize>,
    /// The entries, row after row.
    pub values: Vec<T>,
}

/// Writes `values` as an array of one dimension; replaces a file that is there.
///
/// # Errors
/// Where the system refuses.
pub fn write_vector<T: Scalar>(path: &Path, values: &[T]) -> Result<(), Error> {
    let header = header::<T>(&format!("({},)", values.len()));
    write(path, &header, std::iter::once(values))
}

/// Writes a matrix from its rows, of each only the first `num_columns` entries: what follows is padding. Replaces a file that is
/// there.
///
/// # Errors
/// Where the system refuses.
///
/// # Panics
/// Where a row is shorter than `num_columns`.
pub fn write_matrix<'a, T: Scalar>(
    path: &Path,
    num_columns: usize,
    rows: impl ExactSizeIterator<Item = &'a [T]>,
) -> Result<(), Error> {
    let header = header::<T>(&format!("({}, {num_columns})", rows.len()));
    write(path, &header, rows.map(|row| &row[..num_columns]))
}

fn header<T: Scalar>(shape: &str) -> Vec<u8> {
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", T::DESCR);
    let unpadded = MAGIC.len() + size_of::<u16>() + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(ALIGNMENT) - unpadded));
    text.push('\n');
    let length = text.len() as u16;
    [&MAGIC[..], &length.to_le_bytes(), text.as_bytes()].concat()
}

fn write<'a, T: Scalar>(path: &Path, header: &[u8], mut rows: impl Iterator<Item = &'a [T]>) -> Result<(), Error> {
    replace_file(path, |file| {
        let mut file = BufWriter::new(file);
        file.write_all(header)
            .and_then(|()| rows.try_for_each(|row| file.write_all(bytemuck::cast_slice(row))))
            .and_then(|()| file.flush())
            .map_err(Error::io(path))
    })
}

/// Reads an array of the type and the number of dimensions that a model's file should have.
///
/// # Errors
/// Where the file is not such an array, or its size is not what its shape needs.
pub fn read_npy<T: Scalar>(path: &Path, num_dimensions: usize) -> Result<Array<T>, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    let mut file = BufReader::new(file);
    let mut start = [0; MAGIC.len() + size_of::<u16>()];
    let text = file.read_exact(&mut start).and_then(|()| {
        let mut text = vec![0; usize::from(u16::from_le_bytes([start[8], start[9]]))];
        file.read_exact(&mut text).map(|()| text)
    });
    let text = match text {
        Ok(text) if start.starts_with(&MAGIC) => text,
        _ => return Err(Error::invalid(path, "not a NumPy array of format 1.0")),
    };
    let shape = shape::<T>(&text, num_dimensions).ok_or_else(|| {
        let found = String::from_utf8_lossy(&text);
        let expected = format!("expected type {} in C order with {num_dimensions} dimensions", T::DESCR);
        Error::invalid(path, format!("an array with header {}, {expected}", found.trim_ascii_end()))
    })?;
    let num_values = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    let num_bytes = num_values.and_then(|values| values.checked_mul(size_of::<T>()));
    let found = file_bytes.saturating_sub((start.len() + text.len()) as u64);
    // Compared before any memory is taken for them.
    let (Some(num_values), true) = (num_values, num_bytes.is_some_and(|expected| expected as u64 == found)) else {
        return Err(Error::invalid(path, format!("{found} bytes of data do not fit the shape {shape:?}; truncated?")));
    };
    let mut values = vec![T::zeroed(); num_values];
    file.read_exact(bytemuck::cast_slice_mut(&mut values)).map_err(Error::io(path))?;
    Ok(Array { shape, values })
}

/// Takes the shape from a header as [`header`] and NumPy write it; `None` if it is another kind of array.
fn shape<T: Scalar>(header: &[u8], num_dimensions: usize) -> Option<Vec<usize>> {
    let header = std::str::from_utf8(header).ok()?;
    let descr = format!("'descr': '{}'", T::DESCR);
    if !header.contains(&descr) || !header.contains("'fortran_order': False") {
        return None;
    }
    let sizes = header.split_once("'shape': (")?.1.split_once(')')?.0;
    let sizes = sizes.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape: Vec<usize> = sizes.map(|size| size.parse().ok()).collect::<Option<_>>()?;
    (shape.len() == num_dimensions).then_some(shape)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write_vector(&path, &[1u64, u64::MAX]).unwrap();
        assert_eq!(read_npy::<u64>(&path, 1).unwrap(), Array { shape: vec![2], values: vec![1, u64::MAX] });
        write_vector::<i64>(&path, &[]).unwrap();
        assert_eq!(read_npy::<i64>(&path, 1).unwrap(), Array { shape: vec![0], values: vec![] });
        let padded = [1.0f32, 2.0, 0.0, 3.0, 4.0, 0.0];
        write_matrix(&path, 2, padded.chunks_exact(3)).unwrap();
        let matrix = read_npy::<f32>(&path, 2).unwrap();
        assert_eq!(matrix, Array { shape: vec![2, 2], values: vec![1.0, 2.0, 3.0, 4.0] });
        assert_eq!(fs::metadata(&path).unwrap().len() % ALIGNMENT as u64, 16, "the data are aligned");
    }

    #[test]
    fn other_arrays_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write_vector(&path, &[1.0f32, 2.0]).unwrap();
        let message = read_npy::<f64>(&path, 1).unwrap_err().to_string();
        assert!(message.contains("'<f4'") && message.contains("expected type <f8"), "{message}");
        assert!(read_npy::<f32>(&path, 2).is_err());
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(read_npy::<f32>(&path, 1).is_err(), "cut to {length} bytes");
        }
        let huge = String::from_utf8_lossy(&whole[10..]).replace("(2,)", "(9999999999999999999,)");
        fs::write(&path, [&whole[..10], huge.as_bytes()].concat()).unwrap();
        assert!(read_npy::<f32>(&path, 1).is_err());
    }
}
