//! A row group of a file: where it is, and its columns.

use std::path::{Path, PathBuf};

use ::parquet::basic::{ConvertedType as Converted, LogicalType, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{AsBytes, ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::dates::seconds;
use super::decimals::{integer, scale};
use crate::Error;
use crate::columns::Columns;
use crate::header::{known, number_column, unnamed};
use crate::output::{is_unsigned, open_column, open_parquet, parquet_error, read_rows};
use crate::records::Record;
use crate::roles::Places;
use crate::text::{Input, Malformed};

/// What columns of edges hold.
const PLAIN: &str = "integers, floating-point numbers or text";

/// Where a row group is.
pub(crate) struct Place {
    path: PathBuf,
    /// Its position in the file.
    group: usize,
    /// Its bytes in the file.
    pub(super) bytes: u64,
    /// Rows of the file before it.
    first_row: u64,
}

/// Finds the row groups of a file.
pub(super) fn row_groups(path: &Path) -> Result<Vec<Place>, Error> {
    let reader = open_parquet(path)?;
    let mut first_row = 0;
    let place = |(group, metadata): (usize, &::parquet::file::metadata::RowGroupMetaData)| {
        let bytes = u64::try_from(metadata.compressed_size()).unwrap_or(0);
        let place = Place { path: path.to_path_buf(), group, bytes, first_row };
        first_row += u64::try_from(metadata.num_rows()).unwrap_or(0);
        place
    };
    Ok(reader.metadata().row_groups().iter().enumerate().map(place).collect())
}

impl Place {
    /// Returns the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file anew: readers of one file on several threads would move each other's position in it.
    pub(crate) fn open(
        &self,
        input: &Input<'_>,
        read: impl FnOnce(&Group<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let file = open_parquet(&self.path)?;
        let reader = file.get_row_group(self.group).map_err(|error| parquet_error(&self.path, error))?;
        let num_rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(0);
        read(&Group { place: self, input, reader: &*reader, schema: reader.metadata().schema_descr(), num_rows })
    }
}

/// An open row group.
pub(crate) struct Group<'a> {
    place: &'a Place,
    input: &'a Input<'a>,
    reader: &'a dyn RowGroupReader,
    pub(super) schema: &'a SchemaDescriptor,
    num_rows: usize,
}

impl Group<'_> {
    /// Adds the edges of its rows.
    pub(super) fn parse<R: Record>(&self, columns: &mut Columns<R::Data>) -> Result<(), Error> {
        let (ends, number) = self.columns::<R>()?;
        let [left, right] = [self.ids(ends[0])?, self.ids(ends[1])?];
        let numbers = match number {
            Some(at) if R::IS_TIME => self.times(at)?,
            Some(at) => self.numbers(at, false)?,
            None if R::has_number() => {
                let names = self.names();
                return Err(self.invalid(unnamed::<R>(&names, names.len())));
            }
            None => Vec::new(),
        };
        self.each_row(|row, [a, b]| {
            let number = numbers.get(row).copied().unwrap_or_default();
            let data = R::of_number(number)
                .ok_or_else(|| Malformed::new(R::number_name(), (number as f32).to_string().as_bytes(), R::NUMBER))?;
            columns.push(R::FIELDS, [left.text(row, a), right.text(row, b)], data)
        })
    }

    /// Returns what its columns are called.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.schema)
    }

    /// Returns the number of its rows.
    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn columns<R: Record>(&self) -> Result<Places, Error> {
        let names = self.names();
        let Some(usual) = usual::<R>(&names) else {
            return Err(self.invalid(format!("{} columns, expected two for the ends of edges", names.len())));
        };
        let found = self.input.roles().columns(R::ROLES, &names, names.len(), usual);
        found.map_err(|problem| self.invalid(problem))
    }

    fn ids(&self, at: usize) -> Result<Ids, Error> {
        let described = self.schema.column(at);
        let is_whole = scale(&described).map(|scale| scale == 0);
        let reader = self.column_reader(at, &described, false, PLAIN)?;
        Ok(match reader {
            _ if is_whole == Some(false) => return Err(self.wrong_type(&described, "integers or text")),
            ColumnReader::Int32ColumnReader(reader) => {
                let unsigned = is_unsigned(&described);
                let widen = |id: i32| if unsigned { i64::from(id as u32) } else { i64::from(id) };
                Ids::Signed(self.values(reader, &described)?.into_iter().map(widen).collect())
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let ids = self.values(reader, &described)?;
                if is_unsigned(&described) { Ids::Unsigned(ids) } else { Ids::Signed(ids) }
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Ids::Wide(self.integers(reader, &described)?),
            ColumnReader::ByteArrayColumnReader(reader) if is_whole.is_some() => {
                Ids::Wide(self.integers(reader, &described)?)
            }
            ColumnReader::ByteArrayColumnReader(reader) => Ids::Text(self.values(reader, &described)?),
            _ => return Err(self.wrong_type(&described, "integers or text")),
        })
    }

    fn numbers(&self, at: usize, are_times: bool) -> Result<Vec<f64>, Error> {
        let described = self.schema.column(at);
        let (unsigned, scale) = (is_unsigned(&described), scale(&described));
        let number = |integer: i128| integer as f64;
        let mut numbers = match self.column_reader(at, &described, are_times, PLAIN)? {
            ColumnReader::FloatColumnReader(reader) => widen(self.values(reader, &described)?, f64::from),
            ColumnReader::DoubleColumnReader(reader) => self.values(reader, &described)?,
            ColumnReader::Int32ColumnReader(reader) => {
                let number = |value: i32| if unsigned { f64::from(value as u32) } else { f64::from(value) };
                widen(self.values(reader, &described)?, number)
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let number = |value: i64| if unsigned { value as u64 as f64 } else { value as f64 };
                widen(self.values(reader, &described)?, number)
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => widen(self.integers(reader, &described)?, number),
            ColumnReader::ByteArrayColumnReader(reader) if scale.is_some() => {
                widen(self.integers(reader, &described)?, number)
            }
            _ => return Err(self.wrong_type(&described, "numbers")),
        };
        if let Some(scale) = scale {
            let unit = 10_f64.powi(scale);
            numbers.iter_mut().for_each(|number| *number /= unit);
        }
        Ok(numbers)
    }

    /// Returns the whole numbers that decimals are of in bytes.
    fn integers<D: DataType<T: AsBytes>>(
        &self,
        reader: ColumnReaderImpl<D>,
        described: &ColumnDescriptor,
    ) -> Result<Vec<i128>, Error> {
        let values = self.values(reader, described)?;
        let integers: Option<Vec<i128>> = values.iter().map(|value| integer(value.as_bytes())).collect();
        integers.ok_or_else(|| self.invalid(format!("column {} has decimals of more than 128 bits", described.name())))
    }

    /// Returns times: dates as seconds since 1970, as those of a text are, and numbers as they are.
    fn times(&self, at: usize) -> Result<Vec<f64>, Error> {
        let times = self.numbers(at, true)?;
        Ok(match seconds(&self.schema.column(at)) {
            Some(seconds) => times.into_iter().map(seconds).collect(),
            None => times,
        })
    }

    /// Opens a column. What does not stand for itself, as dates do where they are not times, is refused as not `expected`.
    pub(super) fn column_reader(
        &self,
        at: usize,
        described: &ColumnDescriptor,
        is_time: bool,
        expected: &str,
    ) -> Result<ColumnReader, Error> {
        let is_decimal = scale(described).is_some();
        // A date lies in an integer, but stands for something else.
        let stands_for_itself = is_unsigned(described)
            || is_decimal
            || matches!(
                described.converted_type(),
                Converted::NONE
                    | Converted::UTF8
                    | Converted::ENUM
                    | Converted::INT_8
                    | Converted::INT_16
                    | Converted::INT_32
                    | Converted::INT_64
            );
        let is_date = matches!(
            described.converted_type(),
            Converted::DATE | Converted::TIMESTAMP_MILLIS | Converted::TIMESTAMP_MICROS
        );
        // Times in nanoseconds have no converted type.
        let is_time_of_day = matches!(described.logical_type_ref(), Some(LogicalType::Time(_)));
        let is_date = is_date || matches!(described.logical_type_ref(), Some(LogicalType::Timestamp(_)));
        let stands_for_itself = stands_for_itself && !is_date && !is_time_of_day || is_time && is_date;
        let is_nested = described.max_rep_level() > 0 || described.path().parts().len() > 1;
        let are_bytes = described.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY && !is_decimal;
        if is_nested || !stands_for_itself || are_bytes {
            return Err(self.wrong_type(described, expected));
        }
        if let Some(readers) = self.input.readers() {
            readers.has_read(u64::try_from(self.reader.metadata().column(at).compressed_size()).unwrap_or(0));
        }
        open_column(self.reader, at).map_err(|error| self.error(error))
    }

    fn values<D: DataType>(
        &self,
        mut reader: ColumnReaderImpl<D>,
        described: &ColumnDescriptor,
    ) -> Result<Vec<D::T>, Error> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let read = read_rows(&mut reader, self.num_rows, Some(&mut levels), &mut values);
        if let Some(null) = levels.iter().position(|&level| level < described.max_def_level()) {
            let expected = format!("a value in column {}", described.name());
            return Err(self.malformed(null, Malformed::new("row", b"null", expected)));
        }
        self.check_rows(read.map(|read| read.min(values.len())), self.num_rows)?;
        Ok(values)
    }

    /// Checks how many rows a column had where so many are expected.
    pub(crate) fn check_rows(&self, read: Result<usize, ParquetError>, expected: usize) -> Result<(), Error> {
        let read = read.map_err(|error| self.error(error))?;
        if read == expected {
            return Ok(());
        }
        Err(self.invalid(format!("a column ends {} rows before the row group does", expected - read)))
    }

    /// Parses the rows. The texts are room for the ids of a row.
    fn each_row(
        &self,
        mut parse: impl FnMut(usize, &mut [itoa::Buffer; 2]) -> Result<(), Malformed>,
    ) -> Result<(), Error> {
        let mut texts = [itoa::Buffer::new(), itoa::Buffer::new()];
        let mut rows = 0..self.num_rows;
        rows.try_for_each(|row| parse(row, &mut texts).map_err(|malformed| self.malformed(row, malformed)))
    }

    /// Says which row it is that is malformed.
    pub(crate) fn malformed(&self, row: usize, Malformed { field, found, expected }: Malformed) -> Error {
        let line = self.place.first_row + row as u64 + 1;
        Error::Malformed { path: self.place.path.clone(), line, field, found, expected }
    }

    /// Refuses a column that does not hold texts.
    pub(crate) fn no_texts(&self, at: usize) -> Error {
        self.wrong_type(&self.schema.column(at), "texts")
    }

    pub(super) fn wrong_type(&self, described: &ColumnDescriptor, expected: &str) -> Error {
        let (name, found) = (described.path().string(), described.physical_type());
        let list = if described.max_rep_level() > 0 { "lists of " } else { "" };
        // What stands in another column has its name before its own.
        let of = if described.path().parts().len() > 1 { " in a column of their own" } else { "" };
        // Times in nanoseconds have no converted type.
        let kind = match described.logical_type_ref() {
            Some(LogicalType::Timestamp(_)) => "TIMESTAMP".to_owned(),
            Some(LogicalType::Time(_)) => "TIME".to_owned(),
            _ => format!("{:?}", described.converted_type()),
        };
        self.invalid(format!("column {name} holds {list}{found} ({kind}), expected {expected}{of}"))
    }

    fn invalid(&self, problem: String) -> Error {
        Error::invalid(&self.place.path, problem)
    }

    fn error(&self, error: ParquetError) -> Error {
        parquet_error(&self.place.path, error)
    }
}

/// Returns what the columns are called.
pub(super) fn names(schema: &SchemaDescriptor) -> Vec<String> {
    // Of a column in another, with that before it: such a one is not taken for one of its name.
    schema.columns().iter().map(|column| column.path().string()).collect()
}

/// Returns the columns that are read where no roles are named; `None` where there are too few.
pub(super) fn usual<R: Record>(names: &[String]) -> Option<Places> {
    let in_order = ([0, 1], number_column::<R>(names).filter(|&at| at < names.len()));
    known::<R>(names).or((names.len() >= 2).then_some(in_order))
}

fn widen<V>(values: Vec<V>, number: impl Fn(V) -> f64) -> Vec<f64> {
    values.into_iter().map(number).collect()
}

enum Ids {
    Signed(Vec<i64>),
    /// The bits of unsigned integers.
    Unsigned(Vec<i64>),
    /// Those of decimals.
    Wide(Vec<i128>),
    Text(Vec<ByteArray>),
}

impl Ids {
    /// Returns an id as it would stand in a text.
    fn text<'a>(&'a self, row: usize, text: &'a mut itoa::Buffer) -> &'a [u8] {
        match self {
            Self::Signed(ids) => text.format(ids[row]).as_bytes(),
            Self::Unsigned(ids) => text.format(ids[row] as u64).as_bytes(),
            Self::Wide(ids) => text.format(ids[row]).as_bytes(),
            Self::Text(ids) => ids[row].data(),
        }
    }
}
