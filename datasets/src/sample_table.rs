//! Labelled samples as tables, a sample a record: delimited text with a header, or JSON lines. Documents of a corpus are read alike: samples
//! that have the words of a text, and a name in the place of a label.
//!
//! One column holds labels. Where a column of texts is named, its words are the features, and their counts the values. Else all other
//! columns are features, by their names: a number is the value, any other text a category, which is a feature `column=text` of value 1. What is
//! empty, or `null`, is 0.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::column::{Column, intern};
use crate::json_lines::{entries, not_json};
use crate::labels::{self, Labels};
use crate::libsvm::sign;
use crate::roles::listed;
use crate::rows::{self, Rows, RowsOf};
use crate::text::{Input, Lines, Malformed, Separator, Text, number, paired};
use crate::texts::names::{known as known_text, unnamed};
use crate::{Dataset, Error, Format, Role, Roles, Samples, Tokenizer};

/// What labels are called where nobody names their column.
const LABELS: [&str; 4] = ["label", "class", "target", "y"];

/// What becomes of labels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Labelled<'p> {
    /// Those that count as 1, all others -1; none: each is a class.
    As(&'p [f32]),
    /// They are not looked at, and may be missing.
    No,
    /// They are names of documents, where a column is named for these.
    Documents,
}

/// Reads samples of a table; `tokenizer` finds words.
pub(crate) fn read(
    input: &Input<'_>,
    format: Format,
    labelled: Labelled<'_>,
    tokenizer: Tokenizer,
) -> Result<Samples, Error> {
    let (data, column) = rows_of(input, format, labelled, tokenizer)?;
    let labels = match labelled {
        Labelled::As(positive) => Labels::of_column(column, input.path(), !positive.is_empty())?,
        Labelled::No | Labelled::Documents => Labels::default(),
    };
    Ok(Samples { data, labels })
}

/// Reads documents whose words `tokenizer` finds in a column of texts, and their names, if a column has some.
pub(crate) fn read_documents(
    input: &Input<'_>,
    format: Format,
    tokenizer: Tokenizer,
) -> Result<(Dataset<f32>, Column), Error> {
    rows_of(input, format, Labelled::Documents, tokenizer)
}

fn rows_of(
    input: &Input<'_>,
    format: Format,
    labelled: Labelled<'_>,
    tokenizer: Tokenizer,
) -> Result<(Dataset<f32>, Column), Error> {
    // Quotes may go over line ends, which a part of a file cannot know.
    let input = &input.in_whole_files()?;
    let reader = Reader { roles: input.roles(), is_json: format == Format::JsonLines, labelled, tokenizer };
    let records = if reader.are_documents() { "words" } else { "features" };
    rows::read_as(input, records, |text: &mut Text<'_>| reader.begin(text), reader)
}

#[derive(Clone, Copy)]
struct Reader<'r> {
    roles: &'r Roles,
    is_json: bool,
    labelled: Labelled<'r>,
    tokenizer: Tokenizer,
}

/// How the records of a file are written.
#[derive(Debug)]
struct Shape {
    /// Of delimited text.
    separator: Separator,
    /// Names of its columns.
    names: Vec<String>,
    /// Which of them hold labels and texts.
    label: Option<usize>,
    text: Option<usize>,
}

impl Shape {
    /// Tells whether a column that may have been found has a name.
    fn is_called(&self, column: Option<usize>, name: &str) -> bool {
        column.is_some_and(|at| self.names[at] == name)
    }
}

/// What a column says of a sample.
enum Cell<'c> {
    Nothing,
    Number(f32),
    Text(Cow<'c, [u8]>),
}

impl<'c> Cell<'c> {
    fn of_text(text: Cow<'c, [u8]>) -> Self {
        match number(&text) {
            _ if text.is_empty() => Self::Nothing,
            Some(number) => Self::Number(number),
            None => Self::Text(text),
        }
    }
}

impl Reader<'_> {
    fn are_documents(self) -> bool {
        matches!(self.labelled, Labelled::Documents)
    }

    fn begin(self, text: &mut Text<'_>) -> Result<Shape, Error> {
        let path = text.path().to_path_buf();
        let shape = if self.is_json { self.keys(text) } else { self.columns(text) };
        let shape = shape.map_err(|problem| Error::invalid(&path, problem))?;
        if shape.label.is_none() && matches!(self.labelled, Labelled::As(_)) {
            let (known, columns) = (LABELS.join(", "), listed(&shape.names, shape.names.len()));
            let problem = format!(
                "no column is called {known}; say with --columns label=COLUMN which holds the labels; {columns}"
            );
            return Err(Error::invalid(&path, problem));
        }
        if shape.text.is_none() && self.are_documents() {
            return Err(Error::invalid(&path, unnamed(&shape.names)));
        }
        Ok(shape)
    }

    /// Takes the header off delimited text.
    fn columns(self, text: &mut Text<'_>) -> Result<Shape, String> {
        let first = paired(text.head()).find(|line| !line.is_empty());
        // Texts have blanks: a header without another separator is that of one column.
        let separator = match Separator::of(first.into_iter(), usize::MAX) {
            Separator::Space | Separator::Colons => Separator::Byte(b','),
            byte => byte,
        };
        text.separate(separator);
        let first = text.records().find(|(_, record)| !record.is_empty());
        let (skipped, fields) = first.map_or((0, Vec::new()), |(at, record)| {
            (at + 1 + memchr::memchr_iter(b'\n', record).count(), separator.all_fields(record))
        });
        let mut names: Vec<String> = fields.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        if self.roles.only_numbers() {
            // Columns without names are called by their numbers.
            names = (1..=names.len()).map(|number| number.to_string()).collect();
        } else {
            text.skip_lines(skipped);
        }
        self.shape(separator, names)
    }

    /// Looks at the keys of the first object.
    fn keys(self, text: &Text<'_>) -> Result<Shape, String> {
        if self.roles.width() > 0 {
            return Err(
                "JSON lines have keys, which are not numbered; name them in --columns, text=body say".to_owned()
            );
        }
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        // What is wrong with the line is reported when it is read.
        let names = entries(first).map(|all| all.into_iter().map(|(key, _)| key).collect());
        self.shape(Separator::Space, names.unwrap_or_default())
    }

    fn shape(self, separator: Separator, names: Vec<String>) -> Result<Shape, String> {
        let named = |role: Role| match self.roles.find(role, &names) {
            // Samples whose labels are not known may have none.
            Err(_) if role == Role::Label && matches!(self.labelled, Labelled::No) => Ok(None),
            found => found,
        };
        let known = || LABELS.iter().find_map(|known| names.iter().position(|name| name.eq_ignore_ascii_case(known)));
        let (role, label, text) = match self.labelled {
            Labelled::Documents => {
                let text = named(Role::Text)?.or_else(|| known_text(&names));
                (Role::Document, named(Role::Document)?, text)
            }
            _ => (Role::Label, named(Role::Label)?.or_else(known), named(Role::Text)?),
        };
        if let Some(at) = label.filter(|_| label == text) {
            let role = role.name();
            return Err(format!("column {} would be both {role} and text; name both in --columns", names[at]));
        }
        Ok(Shape { separator, label, text, names })
    }

    /// Adds the words of a text to the sample that the next [`Rows::end`] ends.
    fn words(self, rows: &mut Rows<f32>, text: &[u8]) -> Result<(), Malformed> {
        self.tokenizer.each_word(text, |word| rows.add_name("word", word, 1.0))
    }

    fn label(self, chunk: &mut RowsOf<Shape, f32>, label: Option<&[u8]>, record: &[u8]) -> Result<(), Malformed> {
        let labels = &mut chunk.rows.labels;
        match self.labelled {
            Labelled::As(positive) => {
                let label = label.ok_or_else(|| Malformed::new("label", record, "a record with a label"))?;
                labels::push(labels, if positive.is_empty() { label } else { sign(label, positive)? })
            }
            Labelled::Documents if chunk.shape.label.is_some() => {
                let name = label.ok_or_else(|| Malformed::new("document", record, "a record with an id"))?;
                let entry = intern(&mut labels.names, "document", name)?;
                labels.ids.push(entry);
                Ok(())
            }
            Labelled::No | Labelled::Documents => Ok(()),
        }
    }

    /// Adds the sample of a delimited record.
    fn record<'f>(
        self,
        chunk: &mut RowsOf<Shape, f32>,
        record: &[u8],
        fields: impl Iterator<Item = Result<Cow<'f, [u8]>, Malformed>>,
    ) -> Result<(), Malformed> {
        let (shape, rows): (&Shape, _) = (&chunk.shape, &mut chunk.rows);
        let (mut label, mut found) = (None, 0);
        for field in fields {
            let field = field?;
            let Some(name) = shape.names.get(found) else {
                let (width, separator) = (shape.names.len(), shape.separator.name());
                let expected = format!(
                    "{width} fields separated by {separator}, as in the first line; a field that has {separator} in it needs quotes"
                );
                return Err(Malformed::new(if self.are_documents() { "document" } else { "sample" }, record, expected));
            };
            if shape.label == Some(found) {
                label = Some(field);
            } else if shape.text == Some(found) {
                self.words(rows, &field)?;
            } else if shape.text.is_none() {
                add(rows, name, Cell::of_text(field))?;
            }
            found += 1;
        }
        if self.are_documents() && shape.text.is_some_and(|at| at >= found) {
            return Err(Malformed::new("document", record, "a record with a text"));
        }
        self.label(chunk, label.as_deref(), record)?;
        chunk.rows.end();
        Ok(())
    }

    /// Adds the sample of an object.
    fn object(self, chunk: &mut RowsOf<Shape, f32>, line: &[u8]) -> Result<(), Malformed> {
        let (shape, rows): (&Shape, _) = (&chunk.shape, &mut chunk.rows);
        let (mut label, mut has_text) = (None, false);
        for (key, value) in entries(line).map_err(|error| not_json(line, &error))? {
            if shape.is_called(shape.label, &key) {
                label = Some(text_of(value)?);
            } else if shape.is_called(shape.text, &key) {
                self.words(rows, &text_of(value)?)?;
                has_text = true;
            } else if shape.text.is_none() {
                add(rows, &key, cell_of(value)?)?;
            }
        }
        if let (Some(at), false) = (shape.text, has_text) {
            return Err(Malformed::new("text", line, format!("a value of \"{}\", or null", shape.names[at])));
        }
        self.label(chunk, label.as_deref(), line)?;
        chunk.rows.end();
        Ok(())
    }
}

/// Adds what a column says of the sample that the next [`Rows::end`] ends.
fn add(rows: &mut Rows<f32>, column: &str, cell: Cell<'_>) -> Result<(), Malformed> {
    match cell {
        Cell::Nothing => Ok(()),
        Cell::Number(0.0) => Ok(()),
        Cell::Number(number) => rows.add_name("feature", column.as_bytes(), number),
        Cell::Text(text) => rows.add_name("feature", &[column.as_bytes(), b"=", &text[..]].concat(), 1.0),
    }
}

/// Returns a value of JSON as it would stand in delimited text.
fn text_of(value: &RawValue) -> Result<Cow<'_, [u8]>, Malformed> {
    let text = value.get();
    match text.as_bytes() {
        [b'"', ..] => match serde_json::from_str::<String>(text) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(_) => Err(Malformed::new("value", text.as_bytes(), "text in Unicode")),
        },
        [b'{' | b'[', ..] => Err(Malformed::new("value", text.as_bytes(), "a number, a text, true, false or null")),
        b"null" => Ok(Cow::Borrowed(b"")),
        plain => Ok(Cow::Borrowed(plain)),
    }
}

/// Returns what a value of JSON says: true is 1, and a text is one, also of digits.
fn cell_of(value: &RawValue) -> Result<Cell<'_>, Malformed> {
    let text = text_of(value)?;
    Ok(match value.get().as_bytes() {
        b"true" => Cell::Number(1.0),
        b"false" => Cell::Number(0.0),
        [b'"', ..] if !text.is_empty() => Cell::Text(text),
        _ if text.is_empty() => Cell::Nothing,
        found => Cell::Number(number(found).ok_or_else(|| Malformed::new("value", found, "a finite number"))?),
    })
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
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Split;

    const WORDS: Tokenizer = Tokenizer { lower_case: true, split: Split::Punctuation, bigrams: false };

    fn read_as(text: &str, format: Format, roles: &str, labelled: Labelled<'_>) -> Result<Samples, String> {
        let roles = if roles.is_empty() { Roles::default() } else { roles.parse().unwrap() };
        let input = Input::from_bytes(text.as_bytes()).with_roles(&roles);
        read(&input, format, labelled, WORDS).map_err(|error| error.to_string())
    }

    /// Returns the label of each sample and the values of its features.
    fn shown(samples: &Samples) -> Vec<(String, BTreeMap<String, f32>)> {
        let Samples { data, labels } = samples;
        let label = |at: usize| labels.of.get(at).map_or(String::new(), |&of| labels.classes[of as usize].clone());
        let mut all: Vec<_> = (0..data.edges.num_left).map(|at| (label(at), BTreeMap::new())).collect();
        for ((&left, &right), &value) in data.edges.left.iter().zip(&data.edges.right).zip(&data.edges.data) {
            let name = data.right_names().name(right).into_owned();
            assert!(all[left as usize].1.insert(name, value).is_none(), "each once");
        }
        all
    }

    fn sample(label: &str, values: &[(&str, f32)]) -> (String, BTreeMap<String, f32>) {
        (label.to_owned(), values.iter().map(|&(name, value)| (name.to_owned(), value)).collect())
    }

    #[test]
    fn words_of_a_column_are_features_in_any_syntax() {
        let expected = [
            sample("4", &[("good", 2.0), ("very", 1.0), ("a", 1.0)]),
            sample("1", &[("bad", 1.0), ("a", 1.0), ("b", 1.0)]),
            sample("4", &[]),
        ];
        let csv = "id,stars,body\n1,4,\"Good, very good\na\"\n\n2,1,\"bad; \"\"a\"\" b\"\n3,4,\n";
        let tabs = "Good very good a\t4\nbad a b\t1\n\t4\n";
        let json = r#"{"body": "Good, very\ngood a", "stars": 4, "id": [1]}
            {"stars": 1, "body": "bad \u0022a\u0022 b", "more": {"x": 1}}
            {"stars": 4, "body": null}"#;
        for (text, format, roles) in [
            (csv, Format::Table, "text=body,label=stars"),
            (csv.split_once('\n').unwrap().1, Format::Table, "text=3,label=2"),
            (tabs, Format::Table, "text=1,label=2"),
            (json, Format::JsonLines, "text=body,label=stars"),
        ] {
            let read = read_as(text, format, roles, Labelled::As(&[])).unwrap();
            assert_eq!(shown(&read), expected, "{text}");
        }
        let signs = read_as(csv, Format::Table, "text=body,label=stars", Labelled::As(&[4.0])).unwrap();
        assert_eq!(shown(&signs).iter().map(|(label, _)| &label[..]).collect::<Vec<_>>(), ["1", "-1", "1"]);
        let unknown = read_as("body\ngood a\n", Format::Table, "text=body,label=stars", Labelled::No).unwrap();
        assert_eq!(shown(&unknown), [sample("", &[("good", 1.0), ("a", 1.0)])]);
    }

    #[test]
    fn columns_are_features_by_name() {
        let expected = [
            sample("no", &[("age", 41.5), ("city=Oslo", 1.0)]),
            sample("yes", &[("age", -3.0), ("city=New York", 1.0), ("is_new", 1.0)]),
            sample("yes", &[]),
        ];
        let csv = "age;Class;city;is_new\n41.5;no;Oslo;0\n-3;yes;\"New York\";1\n;yes;;\n";
        let json = r#"{"age": 41.5, "label": "no", "city": "Oslo", "is_new": false}
            {"is_new": true, "city": "New York", "age": -3, "label": "yes"}
            {"label": "yes", "city": "", "age": null, "is_new": 0}"#;
        for (text, format) in [(csv, Format::Table), (json, Format::JsonLines)] {
            assert_eq!(shown(&read_as(text, format, "", Labelled::As(&[])).unwrap()), expected);
        }
    }

    #[test]
    fn what_is_wrong_with_a_table_is_told() {
        for (text, format, roles, expected) in [
            (
                "a,b\n1,2\n",
                Format::Table,
                "",
                "no column is called label, class, target, y; say with --columns label=COLUMN",
            ),
            ("a,b\n1,2\n", Format::Table, "label=c", "there is no column c for label; its columns are 1 a, 2 b"),
            ("a,b\n1,2\n", Format::Table, "label=a,text=a", "column a would be both label and text"),
            (
                "label,b\n1,2\n2,3,4\n",
                Format::Table,
                "",
                "<bytes>:3: sample: found \"2,3,4\", expected 2 fields separated by commas",
            ),
            ("b,label\n1\n", Format::Table, "", "<bytes>:2: label: found \"1\", expected a record with a label"),
            (
                "label,b\n,2\n",
                Format::Table,
                "",
                "<bytes>:2: label: found \"\", expected a number or the name of a class",
            ),
            (
                "{\"label\":1,\"b\":[2]}",
                Format::JsonLines,
                "",
                "<bytes>:1: value: found \"[2]\", expected a number, a text",
            ),
            (
                "{\"label\":1,\"b\":1e60}",
                Format::JsonLines,
                "",
                "<bytes>:1: value: found \"1e60\", expected a finite number",
            ),
            (
                "{\"label\":1,\"b\":\"x\"}\n{\"label\":2}",
                Format::JsonLines,
                "text=b,label=label",
                "<bytes>:2: text: found \"{\\\"label\\\":2}\", expected a value of \"b\", or null",
            ),
            ("{\"label\":1,\"b\":1}\n{\"b\":2}", Format::JsonLines, "", "<bytes>:2: label: found"),
            ("{\"label\":1,", Format::JsonLines, "label=label", "there is no column label for label"),
            ("{\"label\":1}\n[1]", Format::JsonLines, "", "<bytes>:2: JSON: found \"[1]\", expected an object"),
        ] {
            let said = read_as(text, format, roles, Labelled::As(&[])).unwrap_err();
            assert!(said.contains(expected), "{text:?}: {said}");
        }
    }
}
