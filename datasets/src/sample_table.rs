//! Labelled samples as tables, a sample a record: delimited text with a header, JSON lines, or Parquet. Documents of a corpus are read
//! alike: samples that have the words of a text, and a name in the place of a label.
//!
//! One column holds labels, and another may hold weights. Where a column of texts is named, its words are features, and their counts the values. All other columns are
//! features, by their names; where a text or some features are named, only those that are named as features or categories. A number is the
//! value, true is 1, and any other text a category, which is a feature `column=text` of value 1. What is missing is 0.

mod cell;
mod columns;
mod mixed;
mod parquet;
mod shape;

use std::borrow::Cow;
use std::path::Path;

use self::cell::{Cell, of_key, text_of};
pub use self::columns::SampleColumns;
pub(crate) use self::shape::Labelled;
use self::shape::{Reader, Shape, Use, is_bare};
use crate::column::{Column, intern};
use crate::json_lines::{entries, not_json};
use crate::labels::{self, KNOWN, Labels};
use crate::missing::is_missing;
use crate::roles::listed;
use crate::rows::{self, Holds, Numbered, Rows, RowsOf};
use crate::text::{Input, Lines, Malformed, Text, number};
use crate::texts::names::unnamed;
use crate::warned::is_first;
use crate::{Dataset, Error, Format, Role, Samples, Tokenizer};

/// What may stand for a label that is not there, and is the name of a class as often.
const MAY_BE_CLASSES: [&[u8]; 2] = [b"None", b"N/A"];

/// Reads samples of a table; `tokenizer` finds words.
pub(crate) fn read(
    input: &Input<'_>,
    format: Format,
    labelled: Labelled<'_>,
    tokenizer: Tokenizer,
) -> Result<Samples, Error> {
    let Numbered { data, labels, weights } = rows_of(input, format, labelled, tokenizer)?;
    let is_told = input.readers().is_none_or(|readers| readers.process() == 0);
    if is_told && format == Format::Table && is_bare(input.roles()) && is_first(input.path(), "bare") {
        warn_of_header(input, labelled, tokenizer);
    }
    if is_told && !input.roles().has(Role::Text) && is_first(input.path(), "mixed") {
        mixed::warn(input, &data);
    }
    let labels = match labelled {
        Labelled::As(positive) => Labels::of_column(labels, input, positive)?,
        Labelled::No | Labelled::Documents => Labels::default(),
    };
    Ok(Samples { data, labels, weights })
}

/// Warns of a first line that is read as a sample, and reads like a header. What cannot be looked at again is not.
fn warn_of_header(input: &Input<'_>, labelled: Labelled<'_>, tokenizer: Tokenizer) {
    let reader = Reader { roles: input.roles(), is_json: false, labelled, tokenizer };
    let first = input.head().ok().and_then(|mut text| reader.doubtful_first(&mut text));
    if let Some(first) = first {
        tracing::warn!(
            "{}: the first line, \"{first}\", is read as a sample; if it names the columns, name these by it, not by numbers",
            input.path().display(),
        );
    }
}

/// Reads documents whose words `tokenizer` finds in a column of texts, and their names, if a column has some.
pub(crate) fn read_documents(
    input: &Input<'_>,
    format: Format,
    tokenizer: Tokenizer,
) -> Result<(Dataset<f32>, Column), Error> {
    rows_of(input, format, Labelled::Documents, tokenizer).map(|read| (read.data, read.labels))
}

fn rows_of(
    input: &Input<'_>,
    format: Format,
    labelled: Labelled<'_>,
    tokenizer: Tokenizer,
) -> Result<Numbered<f32>, Error> {
    let reader = Reader { roles: input.roles(), is_json: format == Format::JsonLines, labelled, tokenizer };
    let holds = if reader.are_documents() { Holds::Words } else { Holds::Features };
    if format == Format::Parquet {
        return reader.parquet(input, holds);
    }
    // Quotes may go over line ends, which a part of a file cannot know.
    let input = &input.in_whole_files()?;
    rows::read_as(input, holds, |text: &mut Text<'_>| reader.begin(text), reader)
}

impl Reader<'_> {
    fn begin(self, text: &mut Text<'_>) -> Result<Shape, Error> {
        let path = text.path().to_path_buf();
        self.checked(&path, if self.is_json { self.keys(text) } else { self.columns(text) })
    }

    /// Refuses a table without labels or texts where these are wanted.
    fn checked(self, path: &Path, shape: Result<Shape, String>) -> Result<Shape, Error> {
        let shape = shape.map_err(|problem| Error::invalid(path, problem))?;
        if shape.label.is_none() && matches!(self.labelled, Labelled::As(_)) {
            let (known, columns) = (KNOWN.join(", "), listed(&shape.names, shape.names.len()));
            let problem = format!(
                "no column is called {known}; say with --columns label=COLUMN which holds the labels; {columns}"
            );
            return Err(Error::invalid(path, problem));
        }
        if shape.text.is_none() && self.are_documents() {
            return Err(Error::invalid(path, unnamed(&shape.names)));
        }
        Ok(shape)
    }

    /// Adds the words of a text to the sample that the next [`Rows::end`] ends.
    fn words(self, rows: &mut Rows<f32>, text: &[u8]) -> Result<(), Malformed> {
        self.tokenizer.each_word(text, |word| rows.add_name("word", word, 1.0))
    }

    /// Ends a sample that has this label and weight.
    fn end(
        self,
        chunk: &mut RowsOf<Shape, f32>,
        [label, weight]: [Option<&[u8]>; 2],
        record: &[u8],
    ) -> Result<(), Malformed> {
        let labels = &mut chunk.rows.labels;
        match self.labelled {
            Labelled::As(positive) => {
                let label = label.ok_or_else(|| Malformed::new("label", record, "a record with a label"))?;
                labels::push(labels, label, positive)?;
                if chunk.shape.weight.is_some() {
                    let text = weight.ok_or_else(|| Malformed::new("weight", record, "a record with a weight"))?;
                    let weight = number(text).filter(|&weight| weight >= 0.0);
                    let expected = || Malformed::new("weight", text, "a number, 0 or above");
                    chunk.rows.weights.push(weight.ok_or_else(expected)?);
                }
            }
            Labelled::Documents if chunk.shape.label.is_some() => {
                let name = label.ok_or_else(|| Malformed::new("document", record, "a record with an id"))?;
                let entry = intern(&mut labels.names, "document", name)?;
                labels.ids.push(entry);
            }
            Labelled::No | Labelled::Documents => {}
        }
        chunk.rows.end();
        Ok(())
    }

    /// Refuses what stands for a label that is not there, which would be a class.
    fn check_label(self, label: Option<&[u8]>) -> Result<(), Malformed> {
        match (self.labelled, label) {
            (Labelled::As(_), Some(label)) if is_missing(label) && !MAY_BE_CLASSES.contains(&label) => {
                Err(Malformed::new("label", label, "a label; leave out samples that have none"))
            }
            _ => Ok(()),
        }
    }

    /// Adds the sample of a delimited record.
    fn record<'f>(
        self,
        chunk: &mut RowsOf<Shape, f32>,
        record: &[u8],
        fields: impl Iterator<Item = Result<Cow<'f, [u8]>, Malformed>>,
    ) -> Result<(), Malformed> {
        let RowsOf { shape, rows, known } = chunk;
        let (mut label, mut weight, mut found) = (None, None, 0);
        known.resize(shape.names.len(), None);
        for field in fields {
            let field = field?;
            let Some(name) = shape.names.get(found) else {
                let (width, separator) = (shape.names.len(), shape.separator.name());
                let expected = format!(
                    "{width} fields separated by {separator}, as in the first line; a field that has {separator} in it needs quotes"
                );
                return Err(Malformed::new(if self.are_documents() { "document" } else { "sample" }, record, expected));
            };
            let cell = match shape.uses[found] {
                Use::Label => {
                    label = Some(field);
                    Cell::Nothing
                }
                Use::Weight => {
                    weight = Some(field);
                    Cell::Nothing
                }
                Use::Text => {
                    self.words(rows, &field)?;
                    Cell::Nothing
                }
                Use::Feature => Cell::of_text(field),
                Use::Category => Cell::of_category(field),
                Use::Nothing => Cell::Nothing,
            };
            if name.is_empty() && !matches!(cell, Cell::Nothing) {
                let number = found + 1;
                let expected =
                    format!("nothing in column {number}, which has no name; --columns without={number} leaves it out");
                return Err(Malformed::new("sample", record, expected));
            }
            cell.add_to(rows, name, &mut known[found])?;
            found += 1;
        }
        if self.are_documents() && shape.text.is_some_and(|at| at >= found) {
            return Err(Malformed::new("document", record, "a record with a text"));
        }
        self.check_label(label.as_deref())?;
        self.end(chunk, [label.as_deref(), weight.as_deref()], record)
    }

    /// Adds the sample of an object.
    fn object(self, chunk: &mut RowsOf<Shape, f32>, line: &[u8]) -> Result<(), Malformed> {
        let (shape, rows): (&Shape, _) = (&chunk.shape, &mut chunk.rows);
        let (mut label, mut weight, mut has_text) = (None, None, false);
        for (key, value) in entries(line).map_err(|error| not_json(line, &error))? {
            match shape.use_of(&key) {
                Use::Label => label = Some(text_of(value)?),
                Use::Weight => weight = Some(text_of(value)?),
                Use::Text => {
                    self.words(rows, &text_of(value)?)?;
                    has_text = true;
                }
                Use::Feature => Cell::of_value(value).map_err(of_key(&key))?.add_to(rows, &key, &mut None)?,
                Use::Category => Cell::of_any_value(value).map_err(of_key(&key))?.add_to(rows, &key, &mut None)?,
                Use::Nothing => {}
            }
        }
        if let (Some(at), false) = (shape.text, has_text) {
            return Err(Malformed::new("text", line, format!("a value of \"{}\", or null", shape.names[at])));
        }
        self.end(chunk, [label.as_deref(), weight.as_deref()], line)
    }
}

impl Lines<RowsOf<Shape, f32>> for Reader<'_> {
    fn line(&self, chunk: &mut RowsOf<Shape, f32>, line: &[u8]) -> Result<(), Malformed> {
        if self.is_json {
            return self.object(chunk, line);
        }
        let fields = chunk.shape.separator.fields(line).map(|field| Ok(Cow::Borrowed(field)));
        self.record(chunk, line, fields)
    }

    fn quoted(&self, chunk: &mut RowsOf<Shape, f32>, record: &[u8]) -> Result<(), Malformed> {
        match chunk.shape.separator.quoted_fields(record) {
            Some(fields) if !self.is_json => self.record(chunk, record, fields),
            _ => self.line(chunk, record),
        }
    }
}

#[cfg(test)]
mod tests;
