//! Samples and documents as rows of Parquet files. The type of a column tells what it holds: integers, decimals and floating-point numbers are
//! numbers, true is 1, and a text is a category whatever it looks like.

use std::path::Path;
use std::sync::Arc;

use megagrid_partition::parallel;

use super::cell::Cell;
use super::shape::{Labelled, Reader, Shape, Use};
use crate::Error;
use crate::output::fenced;
use crate::parquet::{Cells, Group, Place, Value, groups};
use crate::roles::listed;
use crate::rows::{Holds, Numbered, Pieces, Rows, RowsOf};
use crate::text::{Input, Malformed, Separator};

/// Rows that are decoded together.
const ROWS_AT_ONCE: usize = 1 << 12;

/// What pandas calls the columns that number the rows of a frame, which it writes where they are not 0, 1, 2 and so on.
const INDEX: &str = "__index_level_";

/// What columns hold that count.
const EXPECTED: &str = "integers, floating-point numbers, truth values or text";

impl Reader<'_> {
    /// Reads the rows of all files; of several processes each reads a part, and then all have all.
    pub(super) fn parquet(self, input: &Input<'_>, holds: Holds) -> Result<Numbered<f32>, Error> {
        let groups = groups(input)?;
        let mut pieces = Pieces::new(input);
        // A few at a time, so that what was decoded of them does not fill the memory.
        for groups in groups.chunks(2 * rayon::current_num_threads()) {
            let rows_of = |at: usize| {
                let (place, mut rows) = (&groups[at], Rows::default());
                fenced(place.path(), || place.open(input, |group| self.group(place, group, &mut rows)))?;
                Ok(rows)
            };
            parallel::map(groups.len(), rows_of).into_iter().try_for_each(|rows| pieces.take(rows?))?;
        }
        pieces.finish(holds)
    }

    /// Adds the rows of a row group.
    fn group(self, place: &Place, group: &Group<'_>, rows: &mut Rows<f32>) -> Result<(), Error> {
        let shape = self.shape_of(place.path(), group.names())?;
        // Labels and weights that are not looked at may be anything.
        let counts = |of: Use| match of {
            Use::Label | Use::Weight => !matches!(self.labelled, Labelled::No),
            Use::Text | Use::Feature | Use::Category => true,
            Use::Nothing => false,
        };
        let of = |(at, &of): (usize, &Use)| counts(of).then(|| Ok((at, of, self.cells(group, at, of)?)));
        let mut columns = shape.uses.iter().enumerate().filter_map(of).collect::<Result<Vec<_>, Error>>()?;
        let known = vec![None; shape.names.len()];
        let mut chunk = RowsOf { shape: Arc::new(shape), rows: std::mem::take(rows), known };
        for first in (0..group.num_rows()).step_by(ROWS_AT_ONCE) {
            let wanted = first..group.num_rows().min(first + ROWS_AT_ONCE);
            for (.., cells) in &mut columns {
                group.check_rows(cells.read(wanted.len()), wanted.clone())?;
            }
            for row in wanted {
                self.row(&mut chunk, &mut columns).map_err(|malformed| group.malformed(row, malformed))?;
            }
        }
        *rows = chunk.rows;
        Ok(())
    }

    /// Says what the columns are for. A model keeps their names, and would find others by their numbers.
    pub(super) fn shape_of(self, path: &Path, names: Vec<String>) -> Result<Shape, Error> {
        let problem = if let Some(at) = names.iter().position(String::is_empty) {
            Some(format!("column {} has no name; give it one", at + 1))
        } else if self.roles.width() > 0 && !self.are_documents() {
            let columns = listed(&names, names.len());
            Some(format!("name the columns in --columns, label=NAME say, not their numbers; {columns}"))
        } else {
            None
        };
        let named = problem.map_or_else(|| self.named(Separator::Space, names), Err);
        let mut shape = self.checked(path, named)?;
        if shape.usual == Use::Feature {
            let features = shape.names.iter().zip(&mut shape.uses).filter(|(_, of)| **of == Use::Feature);
            features.filter(|(name, _)| name.starts_with(INDEX)).for_each(|(_, of)| *of = Use::Nothing);
        }
        Ok(shape)
    }

    fn cells(self, group: &Group<'_>, at: usize, of: Use) -> Result<Cells, Error> {
        let cells = group.cells(at, EXPECTED).map_err(|error| match error {
            Error::Invalid { path, problem } if of == Use::Feature => {
                let name = &group.names()[at];
                Error::Invalid { path, problem: format!("{problem}; --columns without={name} leaves it out") }
            }
            error => error,
        })?;
        if of == Use::Text && !cells.are_texts() {
            return Err(group.no_texts(at));
        }
        Ok(cells)
    }

    /// Adds the sample of the next row.
    fn row(self, chunk: &mut RowsOf<Shape, f32>, columns: &mut [(usize, Use, Cells)]) -> Result<(), Malformed> {
        let RowsOf { shape, rows, known } = chunk;
        let (mut label, mut weight) = (None, None);
        for (at, of, cells) in columns {
            let name = &shape.names[*at];
            let value = cells.next().map_err(|expected| Malformed::new("value", name.as_bytes(), expected))?;
            match (of, value) {
                (Use::Label, _) => label = value.text().map(|text| text.into_owned()),
                (Use::Weight, _) => weight = value.text().map(|text| text.into_owned()),
                (Use::Text, Value::Text(text)) => self.words(rows, text)?,
                (Use::Feature, _) => Cell::of_typed(value)?.add_to(rows, name, &mut known[*at])?,
                (Use::Category, _) => Cell::of_any_typed(value).add_to(rows, name, &mut known[*at])?,
                (Use::Text | Use::Nothing, _) => {}
            }
        }
        self.end(chunk, [label.as_deref(), weight.as_deref()], b"null")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use ::parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
    use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use ::parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::{Dictionary, Label, Layout, Samples, Tokenizer, read_corpus, read_samples, read_unlabelled};

    type Group<'f> = SerializedRowGroupWriter<'f, fs::File>;

    /// Writes a row group of columns that may have nulls.
    fn write(path: &Path, columns: &str, fill: impl Fn(&mut Group<'_>)) {
        let schema = Arc::new(parse_message_type(&format!("message m {{ {columns} }}")).unwrap());
        let mut file = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Default::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        fill(&mut group);
        group.close().unwrap();
        file.close().unwrap();
    }

    /// Writes the next column, which may have nulls.
    fn column<D: DataType>(group: &mut Group<'_>, rows: &[Option<D::T>]) {
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
        let values: Vec<D::T> = rows.iter().flatten().cloned().collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<D>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
    }

    const COLUMNS: &str =
        "optional boolean clicked; optional int32 age; optional int64 price (DECIMAL(9,2)); optional float ratio;
        optional double zip; optional binary city (UTF8); optional int32 day (DATE);";

    fn people(directory: &Path) -> PathBuf {
        let path = directory.join("people.parquet");
        write(&path, COLUMNS, |group| {
            column::<BoolType>(group, &[Some(true), Some(false), Some(true)]);
            column::<Int32Type>(group, &[Some(41), None, Some(-7)]);
            column::<Int64Type>(group, &[Some(1999), Some(0), None]);
            column::<FloatType>(group, &[Some(0.1), Some(f32::NAN), None]);
            column::<DoubleType>(group, &[Some(1040.0), Some(8001.5), None]);
            column::<ByteArrayType>(group, &[Some("7".into()), Some("Oslo".into()), Some("".into())]);
            column::<Int32Type>(group, &[Some(1), Some(2), Some(3)]);
        });
        path
    }

    fn layout(roles: &str) -> Layout {
        Layout { roles: roles.parse().unwrap(), ..Layout::default() }
    }

    /// The features of each sample, and its label.
    fn shown(Samples { data, labels, .. }: &Samples) -> Vec<String> {
        let label = |at: usize| labels.of.get(at).map_or("", |&of| &labels.classes[of as usize]);
        let mut all: Vec<String> = (0..data.edges.num_left).map(|at| label(at).to_owned()).collect();
        for ((&left, &right), value) in data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data) {
            all[left as usize] += &format!(" {}:{value}", data.right_names().name(right));
        }
        all
    }

    #[test]
    fn types_tell_what_columns_hold() {
        let directory = tempfile::tempdir().unwrap();
        let path = people(directory.path());
        let read = |roles: &str| read_samples(&path, layout(roles), &[]).unwrap();
        let expected =
            ["true age:41 price:19.99 ratio:0.1 zip=1040:1 city=7:1", "false zip=8001.5:1 city=Oslo:1", "true age:-7"];
        assert_eq!(shown(&read("label=clicked,without=day,category=zip")), expected);
        let by_number = read_samples(&path, layout("label=1,without=day"), &[]).unwrap_err().to_string();
        assert!(by_number.contains("label=NAME say, not their numbers; its columns are 1 clicked"), "{by_number}");
        let positive = [Label::Word("true".to_owned())];
        let signs = read_samples(&path, layout("label=city,without=day"), &positive);
        assert!(signs.unwrap_err().to_string().contains("people.parquet:3: label: found"));
        let of_day = read_samples(&path, layout("label=clicked"), &[]).unwrap_err().to_string();
        assert!(
            of_day.contains("column day holds INT32 (DATE)") && of_day.contains("without=day leaves it out"),
            "{of_day}"
        );
        let no_label = read_samples(&path, layout("without=day"), &[]).unwrap_err().to_string();
        assert!(no_label.contains("say with --columns label=COLUMN") && no_label.contains("6 city"), "{no_label}");
        let of_text = read_samples(&path, layout("label=clicked,text=age"), &[]).unwrap_err().to_string();
        assert!(of_text.contains("column age holds INT32 (NONE), expected texts"), "{of_text}");
    }

    #[test]
    fn samples_without_labels_are_read_where_no_column_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new.parquet");
        write(&path, "optional int32 age; required int32 label; required int32 __index_level_0__;", |group| {
            column::<Int32Type>(group, &[Some(41), None]);
            column::<Int32Type>(group, &[Some(2), Some(3)]);
            column::<Int32Type>(group, &[Some(7), Some(8)]);
        });
        let labelled = read_samples(&path, Layout::default(), &[]).unwrap();
        assert_eq!(shown(&labelled), ["2 age:41", "3"]);
        let named = read_samples(&path, layout("label=label,feature=__index_level_0__"), &[]).unwrap();
        assert_eq!(shown(&named)[1], "3 __index_level_0__:8");
        let features = Dictionary::from_integers(Vec::new());
        let data = read_unlabelled(&path, Layout::default(), Tokenizer::default(), &features).unwrap();
        assert_eq!(shown(&Samples::new(data, Default::default())), [" age:41", ""]);
    }

    #[test]
    fn numbers_beyond_single_precision_and_missing_labels_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bad.parquet");
        for (age, label, expected) in [
            (Some(1e300), Some(1), "bad.parquet:2: value: found \"1000"),
            (Some(f64::NEG_INFINITY), Some(1), "found \"-inf\", expected a finite number"),
            (Some(1.0), None, "bad.parquet:2: label: found \"null\", expected a record with a label"),
        ] {
            write(&path, "optional double age; optional int64 y;", |group| {
                column::<DoubleType>(group, &[Some(1.0), age]);
                column::<Int64Type>(group, &[Some(0), label]);
            });
            let said = read_samples(&path, Layout::default(), &[]).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn documents_without_a_text_have_no_word() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("texts.parquet");
        write(&path, "optional binary body (UTF8); optional int64 id (UINT_64);", |group| {
            column::<ByteArrayType>(group, &[Some("sea ship sea".into()), None, Some("rye".into())]);
            column::<Int64Type>(group, &[Some(-1), Some(7), None]);
        });
        let corpus = read_corpus(&path, layout("text=body")).unwrap();
        assert_eq!((corpus.data.edges.num_left, corpus.num_tokens), (3, 4));
        let unnamed = read_corpus(&path, layout("text=body,document=id")).unwrap_err().to_string();
        assert!(
            unnamed.contains("texts.parquet:3: document: found \"null\", expected a record with an id"),
            "{unnamed}"
        );
    }

    #[test]
    fn rows_are_more_than_are_decoded_together() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("many.parquet");
        let rows = 2 * ROWS_AT_ONCE + 5;
        write(&path, "optional int32 x; required int32 y;", |group| {
            let x = |row: usize| (!row.is_multiple_of(3)).then_some(row as i32);
            column::<Int32Type>(group, &(0..rows).map(x).collect::<Vec<_>>());
            column::<Int32Type>(group, &(0..rows).map(|row| Some(row as i32 % 2)).collect::<Vec<_>>());
        });
        let samples = read_samples(&path, Layout::default(), &[]).unwrap();
        let edges = samples.data.edges;
        let expected = (0..rows).filter(|row| !row.is_multiple_of(3));
        assert!(
            edges
                .left
                .iter()
                .zip(&edges.data)
                .map(|(&left, &x)| (left as usize, x))
                .eq(expected.map(|row| (row, row as f32)))
        );
        assert!(samples.labels.of.iter().enumerate().all(|(row, &of)| of as usize == row % 2));
    }
}
