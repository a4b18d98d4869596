//! Graphs, ratings and word counts in Parquet files, one edge a row.
//!
//! The columns are those that a user names, else they are told by their names, as in the header of a text
//! ([`known`]). Where no such pair is there, the first two columns are the ends and the third is the number. Ids are integers or
//! text, as in text files; numbers are of any integer or floating-point type. Nothing may be null.

mod dates;

use std::path::{Path, PathBuf};

use ::parquet::basic::{ConvertedType as Converted, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use dates::seconds;
use megagrid_partition::parallel;

use crate::columns::{Columns, Named, Pass};
use crate::gather::Gathered;
use crate::header::{known, number_column, unnamed};
use crate::loaded::Loaded;
use crate::output::{fenced, is_unsigned, open_column, open_parquet, parquet_error, read_rows};
use crate::records::{Rating, Record};
use crate::roles::Places;
use crate::text::{Input, Malformed, share};
use crate::{Error, Readers};

/// Says that the edges have numbers.
pub(crate) fn weights(input: &Input<'_>) -> Option<&'static str> {
    let path = input.files().next()?;
    let has_numbers = |path| {
        let file = open_parquet(path)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let column = usual::<Rating>(&names(schema)).and_then(|(_, number)| Some(schema.column(number?)));
        Ok(column.is_some_and(|column| column.physical_type() != Physical::BYTE_ARRAY))
    };
    // Whatever is wrong with the file is reported when it is read.
    fenced(path, || has_numbers(path)).unwrap_or(false).then_some("a column of numbers")
}

/// Reads all files. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read<R: Record>(input: &Input<'_>, room: usize) -> Result<Loaded<R::Data>, Error> {
    let mut groups = Vec::new();
    for path in input.files() {
        groups.extend(fenced(path, || row_groups(path))?);
    }
    if input.files().next().is_none() {
        return Err(Error::invalid(
            input.path(),
            "Parquet is read only from files, not from a pipe or bytes in memory; save it in a file",
        ));
    }
    let groups = match input.readers() {
        Some(readers) => part_of(&groups, &**readers),
        None => &groups,
    };
    let mut named = Named::default();
    loop {
        let mut all = Gathered::new(R::SQUARE, named, None, room, input.readers()).undirected(input.is_undirected());
        let mut pass = Pass::Done;
        // A few at a time, so that what was decoded of them does not fill the memory.
        'all: for groups in groups.chunks(2 * rayon::current_num_threads()) {
            let parse_group = |place: &Place| {
                let mut columns = Columns::new(R::SQUARE, named);
                fenced(&place.path, || place.open(input, |group| group.parse::<R>(&mut columns)))?;
                Ok(columns)
            };
            let parsed = parallel::map(groups.len(), |at| parse_group(&groups[at]));
            for columns in parsed {
                let columns = columns?;
                if let Some(side) = columns.names_in {
                    pass = Pass::Name(side);
                    break 'all;
                }
                all.append(columns, input.path())?;
            }
        }
        match Pass::agree(Ok(pass), input.readers(), input.path())? {
            Pass::Name(side) => named.note(side, R::SQUARE),
            Pass::Done | Pass::Quotes => return all.finish(input.path(), R::NAMES),
        }
    }
}

/// Returns the row groups that this process is to read: about as many bytes as each other one.
fn part_of<'g>(groups: &'g [Place], readers: &dyn Readers) -> &'g [Place] {
    let bytes = groups.iter().map(|group| group.bytes).sum();
    let begin = |part: usize| {
        let (share, mut before) = (share(bytes, part, readers.processes()), 0);
        groups.iter().take_while(move |group| {
            let middle = before + group.bytes / 2;
            before += group.bytes;
            middle < share
        })
    };
    let is_last = readers.process() + 1 == readers.processes();
    let start = begin(readers.process()).count();
    let end = if is_last { groups.len() } else { begin(readers.process() + 1).count() };
    &groups[start..end.max(start)]
}

/// Where a row group is.
struct Place {
    path: PathBuf,
    /// Its position in the file.
    group: usize,
    /// Its bytes in the file.
    bytes: u64,
    /// Rows of the file before it.
    first_row: u64,
}

fn row_groups(path: &Path) -> Result<Vec<Place>, Error> {
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
    /// Opens the file anew: readers of one file on several threads would move each other's position in it.
    fn open(&self, input: &Input<'_>, read: impl FnOnce(&Group<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let file = open_parquet(&self.path)?;
        let reader = file.get_row_group(self.group).map_err(|error| parquet_error(&self.path, error))?;
        let num_rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(0);
        read(&Group { place: self, input, reader: &*reader, schema: reader.metadata().schema_descr(), num_rows })
    }
}

/// An open row group.
struct Group<'a> {
    place: &'a Place,
    input: &'a Input<'a>,
    reader: &'a dyn RowGroupReader,
    schema: &'a SchemaDescriptor,
    num_rows: usize,
}

impl Group<'_> {
    /// Adds the edges of its rows.
    fn parse<R: Record>(&self, columns: &mut Columns<R::Data>) -> Result<(), Error> {
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

    fn names(&self) -> Vec<String> {
        names(self.schema)
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
        let reader = self.column_reader(at, &described, false)?;
        Ok(match reader {
            ColumnReader::Int32ColumnReader(reader) => {
                let unsigned = is_unsigned(&described);
                let widen = |id: i32| if unsigned { i64::from(id as u32) } else { i64::from(id) };
                Ids::Signed(self.values(reader, &described)?.into_iter().map(widen).collect())
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let ids = self.values(reader, &described)?;
                if is_unsigned(&described) { Ids::Unsigned(ids) } else { Ids::Signed(ids) }
            }
            ColumnReader::ByteArrayColumnReader(reader) => Ids::Text(self.values(reader, &described)?),
            _ => return Err(self.wrong_type(&described, "integers or text")),
        })
    }

    fn numbers(&self, at: usize, are_times: bool) -> Result<Vec<f64>, Error> {
        let described = self.schema.column(at);
        let unsigned = is_unsigned(&described);
        Ok(match self.column_reader(at, &described, are_times)? {
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
            _ => return Err(self.wrong_type(&described, "numbers")),
        })
    }

    /// Returns times: dates as seconds since 1970, as those of a text are, and numbers as they are.
    fn times(&self, at: usize) -> Result<Vec<f64>, Error> {
        let times = self.numbers(at, true)?;
        Ok(match seconds(&self.schema.column(at)) {
            Some(seconds) => times.into_iter().map(seconds).collect(),
            None => times,
        })
    }

    fn column_reader(&self, at: usize, described: &ColumnDescriptor, is_time: bool) -> Result<ColumnReader, Error> {
        // A decimal or a date lies in an integer, but stands for something else.
        let stands_for_itself = is_unsigned(described)
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
        let stands_for_itself = stands_for_itself || is_time && is_date;
        let is_list = described.max_rep_level() > 0;
        if is_list || !stands_for_itself || described.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY {
            return Err(self.wrong_type(described, "integers, floating-point numbers or text"));
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
        let num_read = read.map_err(|error| self.error(error))?;
        if let Some(null) = levels.iter().position(|&level| level < described.max_def_level()) {
            let expected = format!("a value in column {}", described.name());
            return Err(self.malformed(null, Malformed::new("row", b"null", expected)));
        }
        if num_read != self.num_rows || values.len() != self.num_rows {
            return Err(self.invalid(format!("a row group has {num_read} rows, expected {}", self.num_rows)));
        }
        Ok(values)
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

    fn malformed(&self, row: usize, Malformed { field, found, expected }: Malformed) -> Error {
        let line = self.place.first_row + row as u64 + 1;
        Error::Malformed { path: self.place.path.clone(), line, field, found, expected }
    }

    fn wrong_type(&self, described: &ColumnDescriptor, expected: &str) -> Error {
        let (name, found) = (described.name(), described.physical_type());
        let list = if described.max_rep_level() > 0 { "lists of " } else { "" };
        self.invalid(format!(
            "column {name} holds {list}{found} ({:?}), expected {expected}",
            described.converted_type()
        ))
    }

    fn invalid(&self, problem: String) -> Error {
        Error::invalid(&self.place.path, problem)
    }

    fn error(&self, error: ParquetError) -> Error {
        parquet_error(&self.place.path, error)
    }
}

/// Returns what the columns are called.
fn names(schema: &SchemaDescriptor) -> Vec<String> {
    schema.columns().iter().map(|column| column.name().to_owned()).collect()
}

/// Returns the columns that are read where no roles are named; `None` where there are too few.
fn usual<R: Record>(names: &[String]) -> Option<Places> {
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
    Text(Vec<ByteArray>),
}

impl Ids {
    /// Returns an id as it would stand in a text.
    fn text<'a>(&'a self, row: usize, text: &'a mut itoa::Buffer) -> &'a [u8] {
        match self {
            Self::Signed(ids) => text.format(ids[row]).as_bytes(),
            Self::Unsigned(ids) => text.format(ids[row] as u64).as_bytes(),
            Self::Text(ids) => ids[row].data(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::output::{Column, write_table};
    use crate::{Format, load_times_with, parse_graph, parse_ratings, read_graph, read_ratings};

    fn write(directory: &Path, name: &str, columns: &[(&str, Column<'_>)]) -> PathBuf {
        let path = directory.join(name);
        write_table(&path, columns).unwrap();
        path
    }

    fn text(names: &[&str]) -> Column<'static> {
        Column::Strings(names.iter().map(|name| name.to_string()).collect())
    }

    #[test]
    fn ratings_are_those_of_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let expected = parse_ratings(b"30 x 4.5\n7 y 1\n30 z -2\n", Format::Ratings).unwrap();
        let users: [Column<'_>; 3] =
            [Column::U32(vec![30, 7, 30].into()), Column::I64(vec![30, 7, 30].into()), text(&["30", "7", "30"])];
        let values = [Column::F32(vec![4.5, 1.0, -2.0].into()), Column::F64(vec![4.5, 1.0, -2.0].into())];
        for (at, (user, value)) in users.iter().flat_map(|user| values.iter().map(move |v| (user, v))).enumerate() {
            let columns = [("Rating", value.clone()), ("item", text(&["x", "y", "z"])), ("USER", user.clone())];
            let path = write(directory.path(), &format!("{at}.parquet"), &columns);
            assert_eq!(read_ratings(&path, None).unwrap(), expected);
        }
    }

    #[test]
    fn times_are_those_of_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let times = |path: &Path| load_times_with(path, None, None)?.into_dataset().map(|timed| timed.edges.data);
        let write_text = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let csv = write_text("a.csv", "user,item,rating,date\n5,x,4,881250949\n7,y,1,-3.5\n5,z,2,2026-11-25\n");
        let seconds = [881_250_949.0, -3.5, 1795564800.0];
        assert_eq!(times(&csv).unwrap(), seconds);
        let json = write_text(
            "a.jsonl",
            "{\"user\":5,\"item\":1,\"time\":\"1970-01-01T00:00:10Z\"}\n{\"user\":5,\"item\":2,\"time\":7}\n",
        );
        assert_eq!(times(&json).unwrap(), [10.0, 7.0]);
        let columns = [
            ("user", Column::I64(vec![5, 7, 5].into())),
            ("item", text(&["x", "y", "z"])),
            ("timestamp", Column::F64(seconds.to_vec().into())),
        ];
        assert_eq!(times(&write(directory.path(), "a.parquet", &columns)).unwrap(), seconds);
        let no_time = write(directory.path(), "b.parquet", &columns[..2]);
        let message = times(&no_time).unwrap_err().to_string();
        let expected = "no column is called time, timestamp, date, datetime; say with --columns time=COLUMN";
        assert!(message.contains(expected) && message.ends_with("its columns are 1 user, 2 item"), "{message}");
    }

    #[test]
    fn a_directory_of_part_files_is_one_graph() {
        let directory = tempfile::tempdir().unwrap();
        let part = |name, from: &[u64], to: &[u64]| {
            let columns = [("a", Column::U64(from.into())), ("b", Column::U64(to.into()))];
            write(directory.path(), name, &columns);
        };
        part("part-0.parquet", &[5, u64::MAX], &[9, 5]);
        part("part-1.parquet", &[], &[]);
        part("part-2.parquet", &[9], &[9]);
        fs::write(directory.path().join("_SUCCESS"), b"").unwrap();
        let expected = parse_graph(b"5 9\n18446744073709551615 5\n9 9\n", Format::Edges).unwrap();
        assert_eq!(read_graph(directory.path(), Some(Format::Parquet)).unwrap(), expected);
        // A name in a later part makes names of all.
        write(directory.path(), "part-3.parquet", &[("a", text(&["x"])), ("b", text(&["5"]))]);
        let named = read_graph(directory.path(), None).unwrap();
        assert_eq!(named, parse_graph(b"5 9\n18446744073709551615 5\n9 9\nx 5\n", Format::Edges).unwrap());
    }

    #[test]
    fn bad_rows_and_columns_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (two, fine) = (Column::I64(vec![1, 2].into()), Column::F32(vec![1.0, 2.0].into()));
        let cases = [
            (
                vec![("user", Column::I64(vec![1, -7].into())), ("item", two.clone()), ("value", fine.clone())],
                "0.parquet:2: user: found \"-7\"",
            ),
            (
                vec![("user", two.clone()), ("item", two.clone()), ("value", Column::F32(vec![1.0, f32::NAN].into()))],
                "1.parquet:2: rating: found \"NaN\", expected a finite number",
            ),
            (
                vec![("user", two.clone()), ("item", two.clone()), ("value", Column::F64(vec![1e300, 0.0].into()))],
                "2.parquet:1: rating: found \"inf\"",
            ),
            (
                vec![("user", fine.clone()), ("item", two.clone()), ("value", fine.clone())],
                "column user holds FLOAT (NONE), expected integers or text",
            ),
            (
                vec![("user", two.clone()), ("item", two.clone()), ("stars", fine.clone())],
                "no column is called rating, value, weight, count; say with --columns rating=COLUMN",
            ),
            (vec![("user", two.clone())], "1 columns, expected two"),
            (
                vec![("a", two.clone()), ("b", two.clone()), ("c", text(&["x", "y"]))],
                "column c holds BYTE_ARRAY (UTF8), expected numbers",
            ),
        ];
        for (at, (columns, expected)) in cases.iter().enumerate() {
            let path = write(directory.path(), &format!("{at}.parquet"), columns);
            let message = read_ratings(&path, None).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
        let empty = write(directory.path(), "empty.parquet", &[("a", Column::I64(vec![].into())), ("b", text(&[]))]);
        assert!(matches!(read_graph(&empty, None), Err(Error::Empty { .. })));
    }
}
