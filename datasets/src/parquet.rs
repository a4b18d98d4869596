//! Graphs, ratings and word counts in Parquet files, one edge a row. Samples and texts are read by [`crate::sample_table`].
//!
//! The columns are those that a user names, else they are told by their names, as in the header of a text
//! ([`crate::header::known`]). Where no such pair is there, the first two columns are the ends and the third is the number. Ids are integers or
//! text, as in text files; numbers are of any integer or floating-point type. Decimals are numbers, or ids without digits behind the point.
//! Nothing may be null.

mod cells;
mod dates;
mod decimals;
mod group;

use std::ops::Range;

use ::parquet::basic::Type as Physical;
use ::parquet::file::reader::FileReader;

pub(crate) use cells::{Cells, Value};
pub(crate) use group::{Group, Place};
use group::{names, row_groups, usual};
use megagrid_partition::parallel;

use crate::columns::{Named, Pass};
use crate::gather::Gathered;
use crate::header::role_of;
use crate::loaded::Loaded;
use crate::output::{fenced, open_parquet};
use crate::records::{Rating, Record};
use crate::text::{Input, share};
use crate::{Error, Readers, Role};

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

/// Returns the role of the first end, where the names of columns tell it.
pub(crate) fn role(input: &Input<'_>) -> Option<Role> {
    role_of(&column_names(input)?)
}

/// Returns what the columns of the first file are called.
pub(crate) fn column_names(input: &Input<'_>) -> Option<Vec<String>> {
    let path = input.files().next()?;
    // Whatever is wrong with the file is reported when it is read.
    fenced(path, || Ok(names(open_parquet(path)?.metadata().file_metadata().schema_descr()))).ok()
}

/// Returns the row groups of all files that this process is to read.
pub(crate) fn groups(input: &Input<'_>) -> Result<Vec<Place>, Error> {
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
    if let Some(readers) = input.readers() {
        let part = part_of(&groups, &**readers);
        groups = groups.drain(part).collect();
    }
    Ok(groups)
}

/// Reads all files. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read<R: Record>(input: &Input<'_>, room: usize) -> Result<Loaded<R::Data>, Error> {
    let groups = groups(input)?;
    let mut named = Named::default();
    loop {
        let mut all = Gathered::new(R::SQUARE, named, None, room, input.readers()).undirected(input.is_undirected());
        let mut pass = Pass::Done;
        // A few at a time, so that what was decoded of them does not fill the memory.
        'all: for groups in groups.chunks(2 * rayon::current_num_threads()) {
            let parse_group = |place: &Place| {
                let mut parsed = Vec::new();
                fenced(place.path(), || {
                    place.open(input, |group| {
                        parsed = group.parse::<R>(named)?;
                        Ok(())
                    })
                })?;
                Ok(parsed)
            };
            let parsed = parallel::map(groups.len(), |at| parse_group(&groups[at]));
            for parsed in parsed {
                for columns in parsed? {
                    if let Some(side) = columns.names_in {
                        pass = Pass::Name(side);
                        break 'all;
                    }
                    all.append(columns, input.path())?;
                }
            }
        }
        match Pass::agree(Ok(pass), input.readers(), input.path())? {
            Pass::Name(side) => named.note(side, R::SQUARE),
            Pass::Done | Pass::Quotes => return all.finish(input.path(), R::NAMES),
        }
    }
}

/// Returns which row groups this process is to read: about as many bytes as each other one.
fn part_of(groups: &[Place], readers: &dyn Readers) -> Range<usize> {
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
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

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

    /// A row group is decoded in several parts, and edges of one are made by several threads.
    #[test]
    fn long_row_groups_are_those_of_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let rows = 140_000;
        let user = |row: usize, name: &str| if row == 100_001 { name.to_owned() } else { (row * 7 % 1009).to_string() };
        for name in ["5", "x", "-7"] {
            let users: Vec<String> = (0..rows).map(|row| user(row, name)).collect();
            let items: Vec<i64> = (0..rows as i64).map(|row| row * row % 1013).collect();
            let values: Vec<f32> = (0..rows).map(|row| (row % 5) as f32).collect();
            let lines = users.iter().zip(&items).zip(&values);
            let text: String = lines.map(|((user, item), value)| format!("{user} {item} {value}\n")).collect();
            let columns = [
                ("user", Column::Strings(users.into())),
                ("item", Column::I64(items.into())),
                ("rating", Column::F32(values.into())),
            ];
            let found = read_ratings(write(directory.path(), "long.parquet", &columns), None);
            match parse_ratings(text.as_bytes(), Format::Ratings) {
                Ok(expected) => assert_eq!(found.unwrap(), expected, "{name}"),
                Err(_) => {
                    let message = found.unwrap_err().to_string();
                    assert!(message.contains("long.parquet:100002: user: found \"-7\""), "{message}");
                }
            }
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
