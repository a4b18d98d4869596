//! Tables of named columns: Parquet files, compressed with zstd, that pandas, Polars, DuckDB and others open.

use std::borrow::Cow;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use ::parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::{ColumnDescriptor, Type};

use super::pages::{Finite, open_column, read_rows};
use super::replace_file;
use crate::{Dictionary, Error};

/// Rows that are encoded together; what a reader takes into memory at a time.
const ROWS_PER_GROUP: usize = 1 << 20;

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Column<'a> {
    /// Unsigned integers of 32 bits.
    U32(Cow<'a, [u32]>),
    /// Unsigned integers of 64 bits.
    U64(Cow<'a, [u64]>),
    /// Signed integers of 64 bits.
    I64(Cow<'a, [i64]>),
    /// Numbers of single precision.
    F32(Cow<'a, [f32]>),
    /// Numbers of double precision.
    F64(Cow<'a, [f64]>),
    /// Text.
    Strings(Cow<'a, [String]>),
    /// The names of vertices, as integers where they are, otherwise as text. A column that is read is not of this kind.
    Names(&'a Dictionary),
}

impl Column<'_> {
    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Strings(values) => values.len(),
            Self::Names(names) => names.len(),
        }
    }

    /// Tells whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Named columns of one length.
pub type Table = Vec<(String, Column<'static>)>;

/// Writes a table; replaces a file that is there.
///
/// # Errors
/// Where the system refuses.
///
/// # Panics
/// Where the columns are not of one length.
pub fn write_table(path: &Path, columns: &[(&str, Column<'_>)]) -> Result<(), Error> {
    replace_file(path, |file| {
        let written = begin(file, columns).and_then(|mut writer| {
            add(&mut writer, columns)?;
            writer.close()
        });
        written.map(drop).map_err(|error| parquet_error(path, error))
    })
}

/// Writes a table that comes in pieces, of the same columns, so that it need not fit into memory; replaces a file that is there. Rows of a
/// piece are encoded together. A table without pieces has no columns.
///
/// # Errors
/// Where the system refuses, and the first error among the pieces. An earlier file is left as it was then.
///
/// # Panics
/// Where the columns of a piece are not of one length.
pub fn write_pieces<'c, E: From<Error>>(
    path: &Path,
    pieces: impl IntoIterator<Item = Result<Vec<(&'c str, Column<'c>)>, E>>,
) -> Result<(), E> {
    let refused = |error| E::from(parquet_error(path, error));
    replace_file(path, |file| {
        let mut pieces = pieces.into_iter().peekable();
        let columns = match pieces.peek() {
            Some(Ok(first)) => first.clone(),
            _ => Vec::new(),
        };
        let mut writer = begin(file, &columns).map_err(refused)?;
        drop(columns);
        pieces.try_for_each(|piece| add(&mut writer, &piece?).map_err(refused))?;
        writer.close().map(drop).map_err(refused)
    })
}

fn begin<'f>(
    file: &'f mut File,
    columns: &[(&str, Column<'_>)],
) -> Result<SerializedFileWriter<&'f mut File>, ParquetError> {
    let fields = columns.iter().map(|(name, column)| field(name, column).map(Arc::new));
    let schema = Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
}

fn add(writer: &mut SerializedFileWriter<&mut File>, columns: &[(&str, Column<'_>)]) -> Result<(), ParquetError> {
    let num_rows = columns.first().map_or(0, |(_, column)| column.len());
    assert!(columns.iter().all(|(_, column)| column.len() == num_rows), "the columns of a table have one length");
    for start in (0..num_rows).step_by(ROWS_PER_GROUP) {
        let rows = start..num_rows.min(start + ROWS_PER_GROUP);
        let mut group = writer.next_row_group()?;
        for (_, column) in columns {
            write_column(&mut group, column, rows.clone())?;
        }
        group.close()?;
    }
    Ok(())
}

fn field(name: &str, column: &Column<'_>) -> Result<Type, ParquetError> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let (physical, logical) = match column {
        Column::U32(_) => (Physical::INT32, unsigned(32)),
        Column::U64(_) => (Physical::INT64, unsigned(64)),
        Column::I64(_) => (Physical::INT64, None),
        Column::F32(_) => (Physical::FLOAT, None),
        Column::F64(_) => (Physical::DOUBLE, None),
        Column::Names(names) if names.is_integers() => (Physical::INT64, unsigned(64)),
        Column::Strings(_) | Column::Names(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(logical)
        .build()
}

fn write_column<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<'_>,
    rows: std::ops::Range<usize>,
) -> Result<(), ParquetError> {
    let text = |name: &str| ByteArray::from(name.as_bytes().to_vec());
    match column {
        // Parquet keeps unsigned integers in signed ones of the same bits.
        Column::U32(values) => write_values::<Int32Type, _>(group, bytemuck::cast_slice(&values[rows])),
        Column::U64(values) => write_values::<Int64Type, _>(group, bytemuck::cast_slice(&values[rows])),
        Column::I64(values) => write_values::<Int64Type, _>(group, &values[rows]),
        Column::F32(values) => write_values::<FloatType, _>(group, &values[rows]),
        Column::F64(values) => write_values::<DoubleType, _>(group, &values[rows]),
        Column::Strings(values) => {
            let values: Vec<_> = values[rows].iter().map(|name| text(name)).collect();
            write_values::<ByteArrayType, _>(group, &values)
        }
        Column::Names(names) => match names.as_integers() {
            Some(values) => write_values::<Int64Type, _>(group, bytemuck::cast_slice(&values[rows])),
            None => {
                let values: Vec<_> = rows.map(|id| text(&names.name(id as u32))).collect();
                write_values::<ByteArrayType, _>(group, &values)
            }
        },
    }
}

fn write_values<D: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[D::T],
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than the table".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<D>().write_batch(values, None, None)?;
    column.close()
}

/// Reads a table as [`write_table`] writes them: without nulls, lists or structs.
///
/// # Errors
/// Where the system refuses or the file is not such a table.
pub fn read_table(path: &Path) -> Result<Table, Error> {
    fenced(path, || {
        let reader = open_parquet(path)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let read = |(at, described): (usize, &Arc<ColumnDescriptor>)| {
            let name = described.name().to_string();
            let column = read_column(&reader, at, described).map_err(|error| parquet_error(path, error))?;
            let problem = || format!("column {name} has nulls, lists or an unexpected type");
            let column = column.ok_or_else(|| Error::invalid(path, problem()))?;
            Ok((name, column))
        };
        schema.columns().iter().enumerate().map(read).collect()
    })
}

fn read_column(
    reader: &SerializedFileReader<Finite>,
    at: usize,
    described: &ColumnDescriptor,
) -> Result<Option<Column<'static>>, ParquetError> {
    if described.max_def_level() > 0 || described.max_rep_level() > 0 {
        return Ok(None);
    }
    let is_unsigned = is_unsigned(described);
    Ok(Some(match described.physical_type() {
        Physical::INT32 if is_unsigned => {
            Column::U32(read_values::<Int32Type>(reader, at)?.into_iter().map(|value| value as u32).collect())
        }
        Physical::INT64 if is_unsigned => {
            Column::U64(read_values::<Int64Type>(reader, at)?.into_iter().map(|value| value as u64).collect())
        }
        Physical::INT64 => Column::I64(read_values::<Int64Type>(reader, at)?.into()),
        Physical::FLOAT => Column::F32(read_values::<FloatType>(reader, at)?.into()),
        Physical::DOUBLE => Column::F64(read_values::<DoubleType>(reader, at)?.into()),
        Physical::BYTE_ARRAY => {
            let values = read_values::<ByteArrayType>(reader, at)?;
            let text = |value: &ByteArray| value.as_utf8().map(str::to_string);
            Column::Strings(values.iter().map(text).collect::<Result<Vec<_>, _>>()?.into())
        }
        _ => return Ok(None),
    }))
}

fn read_values<D: DataType>(reader: &SerializedFileReader<Finite>, at: usize) -> Result<Vec<D::T>, ParquetError> {
    let mut values = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let num_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut column: ColumnReaderImpl<D> = get_typed_column_reader(open_column(&*group, at)?);
        let read = read_rows(&mut column, num_rows, None, &mut values)?;
        if read != num_rows {
            return Err(ParquetError::EOF(format!("found {read} of {num_rows} rows")));
        }
    }
    Ok(values)
}

/// Runs a reading by the `parquet` crate, which panics on some damaged files, and makes an error of that.
pub(crate) fn fenced<R>(path: &Path, read: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    let damaged = || Error::invalid(path, "the Parquet data are damaged; copy or download the file again");
    // Nothing that `read` may have left half done is looked at afterwards.
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged()))
}

/// Opens a Parquet file whose columns lie inside it. The `parquet` crate takes memory for them before it looks.
pub(crate) fn open_parquet(path: &Path) -> Result<SerializedFileReader<Finite>, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    let file_bytes = file.metadata().map_err(Error::io(path))?.len();
    let reader = Finite::new(file).and_then(SerializedFileReader::new).map_err(|error| parquet_error(path, error))?;
    let lies_inside = |column: &ColumnChunkMetaData| {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size()).and_then(|end| u64::try_from(end).ok());
        start >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end <= file_bytes)
    };
    let groups = reader.metadata().row_groups();
    if groups.iter().all(|group| group.num_rows() >= 0 && group.columns().iter().all(lies_inside)) {
        Ok(reader)
    } else {
        Err(Error::invalid(path, "columns beyond the end of the file; it is damaged, copy or download it again"))
    }
}

/// Tells whether the bits of a column of integers stand for unsigned ones.
pub(crate) fn is_unsigned(described: &ColumnDescriptor) -> bool {
    use ::parquet::basic::ConvertedType as Converted;
    matches!(
        described.converted_type(),
        Converted::UINT_8 | Converted::UINT_16 | Converted::UINT_32 | Converted::UINT_64
    )
}

/// Tells an I/O failure, a full disk say, from a file that is not as it should be.
pub(crate) fn parquet_error(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io(path)(*source),
            Err(source) => Error::invalid(path, format!("parquet: {source}")),
        },
        error => Error::invalid(path, format!("not a readable Parquet file ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_kinds(num_rows: usize) -> Table {
        let numbers = 0..num_rows;
        vec![
            ("u32".into(), Column::U32(numbers.clone().map(|i| u32::MAX - i as u32).collect())),
            ("u64".into(), Column::U64(numbers.clone().map(|i| u64::MAX - i as u64).collect())),
            ("i64".into(), Column::I64(numbers.clone().map(|i| -(i as i64)).collect())),
            ("f32".into(), Column::F32(numbers.clone().map(|i| i as f32 / 3.0).collect())),
            ("f64".into(), Column::F64(numbers.clone().map(|i| i as f64 / 3.0).collect())),
            ("a name".into(), Column::Strings(numbers.map(|i| format!("zoë {i}")).collect())),
        ]
    }

    fn borrowed(table: &Table) -> Vec<(&str, Column<'_>)> {
        table.iter().map(|(name, column)| (name.as_str(), column.clone())).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        for num_rows in [0, 1, 1000] {
            let table = all_kinds(num_rows);
            write_table(&path, &borrowed(&table)).unwrap();
            assert_eq!(read_table(&path).unwrap(), table);
        }
    }

    #[test]
    fn several_row_groups_are_one_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let values: Vec<u32> = (0..ROWS_PER_GROUP as u32 + 5).collect();
        write_table(&path, &[("n", Column::U32(Cow::Borrowed(&values)))]).unwrap();
        assert_eq!(read_table(&path).unwrap(), [("n".to_string(), Column::U32(values.into()))]);
    }

    #[test]
    fn pieces_are_one_table_and_an_error_among_them_leaves_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let piece = |first: u32| vec![("n", Column::U32((first..first + 3).collect()))];
        write_pieces(&path, [0, 3, 6].map(|first| Ok::<_, Error>(piece(first)))).unwrap();
        let whole = [("n".to_string(), Column::U32((0..9).collect()))];
        assert_eq!(read_table(&path).unwrap(), whole);
        let failed = write_pieces(&path, [Ok(piece(5)), Err(Error::invalid(&path, "stop"))]);
        assert!(failed.unwrap_err().to_string().ends_with("stop"));
        assert_eq!(read_table(&path).unwrap(), whole);
        write_pieces(&path, [] as [Result<_, Error>; 0]).unwrap();
        assert_eq!(read_table(&path).unwrap(), []);
    }

    #[test]
    fn names_are_integers_or_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let (integers, strings) = (Dictionary::from_integers(vec![7, 2]), Dictionary::from_strings(["x", "y"]));
        write_table(&path, &[("a", Column::Names(&integers)), ("b", Column::Names(&strings))]).unwrap();
        let read = read_table(&path).unwrap();
        assert_eq!(read[0].1, Column::U64(vec![7, 2].into()));
        assert_eq!(read[1].1, Column::Strings(vec!["x".to_string(), "y".to_string()].into()));
    }

    /// A dictionary of two values whose header claims 600 million of them.
    #[test]
    fn a_dictionary_that_claims_more_than_its_page_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        write_table(&path, &[("n", Column::U32(vec![3, 9, 3].into()))]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let size = bytes.len();
        // The header of its page: the kind, both sizes, and in a struct the number of values, as a zigzag number.
        let at = bytes.windows(4).position(|four| matches!(four, [0x4c, 0x15, 4, 0x15])).unwrap();
        bytes.splice(at + 2..at + 3, [0x80, 0x8c, 0x9f, 0xbc, 4]);
        std::fs::write(&path, &bytes[..]).unwrap();
        assert!(bytes.len() > size);
        assert!(read_table(&path).is_err());
    }

    #[test]
    fn damaged_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        write_table(&path, &borrowed(&all_kinds(10))).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(read_table(&path).is_err(), "cut to {length} bytes");
        }
    }
}
