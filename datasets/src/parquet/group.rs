//! A row group of a file: where it is, and its columns.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ::parquet::basic::{ConvertedType as Converted, LogicalType, Type as Physical};
use ::parquet::column::reader::ColumnReader;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use megagrid_partition::parallel;

use super::cells::{Cells, Value};
use super::dates::seconds;
use super::decimals::scale;
use crate::Error;
use crate::columns::{Columns, Named};
use crate::header::{known, known_beside, number_column, unnamed};
use crate::output::{is_unsigned, open_column, open_parquet, parquet_error};
use crate::records::Record;
use crate::roles::Places;
use crate::text::{Input, Malformed};

/// Rows that are decoded at a time, and how many of them a thread makes edges of at a time.
const ROWS_AT_ONCE: usize = 1 << 16;
const ROWS_OF_A_PIECE: usize = 1 << 15;

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
    schema: &'a SchemaDescriptor,
    num_rows: usize,
}

impl Group<'_> {
    /// Returns the edges of its rows, in pieces; up to the first row that has a name in a column that was taken for integers.
    pub(super) fn parse<R: Record>(&self, named: Named) -> Result<Vec<Columns<R::Data>>, Error> {
        let (ends, number) = self.columns::<R>()?;
        let number = match number {
            Some(at) => Some(self.numbers(at, R::IS_TIME)?),
            None if R::has_number() => {
                let names = self.names();
                return Err(self.invalid(unnamed::<R>(&names, names.len())));
            }
            None => None,
        };
        let mut edges = Edges { left: self.ids(ends[0])?, right: self.ids(ends[1])?, number };
        let mut parsed = Vec::new();
        for first in (0..self.num_rows).step_by(ROWS_AT_ONCE) {
            let rows = first..self.num_rows.min(first + ROWS_AT_ONCE);
            edges.read(self, rows.clone())?;
            let pieces = parallel::map(rows.len().div_ceil(ROWS_OF_A_PIECE), |piece| {
                let begin = piece * ROWS_OF_A_PIECE;
                edges.parse::<R>(begin..rows.len().min(begin + ROWS_OF_A_PIECE), named)
            });
            for piece in pieces {
                let columns = piece.map_err(|(row, malformed)| self.malformed(first + row, malformed))?;
                let is_over = columns.names_in.is_some();
                parsed.push(columns);
                if is_over {
                    return Ok(parsed);
                }
            }
        }
        Ok(parsed)
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
        let Some(usual) = known_beside::<R>(&names, self.input.roles()).or_else(|| usual::<R>(&names)) else {
            return Err(self.invalid(format!("{} columns, expected two for the ends of edges", names.len())));
        };
        let found = self.input.roles().columns(R::ROLES, &names, names.len(), usual);
        found.map_err(|problem| self.invalid(problem))
    }

    fn ids(&self, at: usize) -> Result<Cells, Error> {
        let cells = self.cells_of(at, false, PLAIN)?;
        if cells.are_whole() || cells.are_texts() {
            return Ok(cells);
        }
        Err(self.wrong_type(&self.schema.column(at), "integers or text"))
    }

    /// Opens a column of numbers. Dates are seconds since 1970, as those of a text are.
    fn numbers(&self, at: usize, are_times: bool) -> Result<Numbers, Error> {
        let (described, cells) = (self.schema.column(at), self.cells_of(at, are_times, PLAIN)?);
        if cells.are_numbers() {
            return Ok(Numbers { cells, seconds: seconds(&described).filter(|_| are_times) });
        }
        Err(self.wrong_type(&described, "numbers"))
    }

    /// Opens a column of truth values, numbers or texts. `expected` says what it should hold otherwise.
    pub(crate) fn cells(&self, at: usize, expected: &str) -> Result<Cells, Error> {
        self.cells_of(at, false, expected)
    }

    /// Opens a column, which may have dates if these are times.
    fn cells_of(&self, at: usize, are_times: bool, expected: &str) -> Result<Cells, Error> {
        let described = self.schema.column(at);
        let reader = self.column_reader(at, &described, are_times, expected)?;
        Cells::new(reader, &described).ok_or_else(|| self.wrong_type(&described, expected))
    }

    /// Opens a column. What does not stand for itself, as dates do where they are not times, is refused as not `expected`.
    fn column_reader(
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

    /// Checks how many of some rows a column had.
    pub(crate) fn check_rows(&self, read: Result<usize, ParquetError>, rows: Range<usize>) -> Result<(), Error> {
        let read = read.map_err(|error| self.error(error))?;
        if read == rows.len() {
            return Ok(());
        }
        let missing = self.num_rows - rows.start - read;
        Err(self.invalid(format!("a column ends {missing} rows before the row group does")))
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

    fn wrong_type(&self, described: &ColumnDescriptor, expected: &str) -> Error {
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

/// The columns of edges, of some rows at a time.
struct Edges {
    left: Cells,
    right: Cells,
    number: Option<Numbers>,
}

struct Numbers {
    cells: Cells,
    /// Makes seconds since 1970 of dates.
    seconds: Option<fn(f64) -> f64>,
}

impl Edges {
    /// Goes on to the next rows, each column on a thread that is free.
    fn read(&mut self, group: &Group<'_>, rows: Range<usize>) -> Result<(), Error> {
        let Self { left, right, number } = self;
        let (of_left, (of_right, of_number)) = parallel::join(
            || left.read(rows.len()),
            || {
                let number = || number.as_mut().map(|number| number.cells.read(rows.len()));
                parallel::join(|| right.read(rows.len()), number)
            },
        );
        for read in [Some(of_left), Some(of_right), of_number].into_iter().flatten() {
            group.check_rows(read, rows.clone())?;
        }
        let number = number.as_ref().map(|number| &number.cells);
        for cells in [Some(&*left), Some(&*right), number].into_iter().flatten() {
            if let Some(row) = cells.null() {
                let expected = format!("a value in column {}", cells.name());
                return Err(group.malformed(rows.start + row, Malformed::new("row", b"null", expected)));
            }
        }
        Ok(())
    }

    /// Returns the edges of some of these rows, or which row is malformed.
    fn parse<R: Record>(&self, rows: Range<usize>, named: Named) -> Result<Columns<R::Data>, (usize, Malformed)> {
        let mut columns = Columns::new(R::SQUARE, named);
        for row in rows {
            self.add::<R>(row, &mut columns).map_err(|malformed| (row, malformed))?;
            if columns.names_in.is_some() {
                break;
            }
        }
        Ok(columns)
    }

    #[inline]
    fn add<R: Record>(&self, row: usize, columns: &mut Columns<R::Data>) -> Result<(), Malformed> {
        let number = match &self.number {
            Some(Numbers { cells, seconds }) => {
                let number = value(cells, row)?.number().unwrap_or(f64::NAN);
                seconds.map_or(number, |seconds| seconds(number))
            }
            None => 0.0,
        };
        let data = R::of_number(number)
            .ok_or_else(|| Malformed::new(R::number_name(), (number as f32).to_string().as_bytes(), R::NUMBER))?;
        let ends = [value(&self.left, row)?, value(&self.right, row)?];
        if let [Value::Integer(left), Value::Integer(right)] = ends
            && let (Ok(left), Ok(right)) = (u64::try_from(left), u64::try_from(right))
            && columns.named == Named::default()
        {
            columns.push_ids([left, right], data);
            return Ok(());
        }
        let mut texts = [itoa::Buffer::new(), itoa::Buffer::new()];
        let mut texts = texts.iter_mut();
        let ends = ends.map(|end| match (end, texts.next()) {
            (Value::Text(text), _) => text,
            (Value::Integer(integer), Some(text)) => text.format(integer).as_bytes(),
            // Other columns are refused.
            _ => b"",
        });
        columns.push(R::FIELDS, ends, data)
    }
}

fn value(cells: &Cells, row: usize) -> Result<Value<'_>, Malformed> {
    cells.value(row).map_err(|expected| Malformed::new("value", b"a longer one", expected))
}
