//! Answers as rows of a table: to a file or to stdout, in pieces, so that they need not fit into memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use megagrid_datasets::Dictionary;
use megagrid_datasets::output::{Column, check_replaceable, replace_file, write_pieces};
use serde_json::Value;

use crate::failure::{Failure, usage};
use crate::progress::Progress;
use crate::{interrupt, output};

/// Columns of some rows.
pub type Piece<'c> = Vec<(&'c str, Column<'c>)>;

/// Rows of a piece, more or less.
pub const ROWS: usize = 1 << 18;

/// Where rows go.
#[derive(Clone, Debug, clap::Args)]
pub struct Output {
    /// Write a table: Parquet if the name ends in .parquet, JSON, an object a line, if it ends in .jsonl or .ndjson, fields between tabs if
    /// it ends in .tsv, else CSV; "-" is stdout.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write it as JSON, an object a line; "-" is stdout.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Form {
    /// Text, with what separates its fields.
    Delimited(u8),
    Json,
    Parquet,
}

impl Output {
    /// Tells whether a place was named.
    pub fn is_named(&self) -> bool {
        self.output.is_some() || self.json.is_some()
    }

    /// Checks before a long computation that what is to be written can be.
    pub fn check(&self) -> anyhow::Result<()> {
        let (path, form) = self.place()?;
        if path != Path::new("-") {
            return Ok(check_replaceable(path)?);
        }
        if matches!(form, Form::Parquet) {
            return Err(usage("a Parquet table goes to a file, not to stdout"));
        }
        Ok(())
    }

    fn place(&self) -> anyhow::Result<(&Path, Form)> {
        if let Some(path) = &self.json {
            return Ok((path, Form::Json));
        }
        let path = self.output.as_deref().unwrap_or("-".as_ref());
        let form = match &output::ending(path)[..] {
            "parquet" => Form::Parquet,
            "jsonl" | "ndjson" => Form::Json,
            "tsv" => Form::Delimited(b'\t'),
            other if other == "mgrid" || output::OTHER_FORMATS.contains(&other) => {
                let expected = "expected a name that ends in .parquet, .jsonl, .ndjson, .tsv or .csv";
                return Err(usage(format!("{} would not be what .{other} says; {expected}", path.display())));
            }
            _ => Form::Delimited(b','),
        };
        Ok((path, form))
    }

    /// Writes rows; to stdout if no place was named. A regular file is whole or absent, and replaced if there is one. An interrupt ends it after
    /// the piece at hand.
    pub fn write<'c>(&self, pieces: impl Iterator<Item = anyhow::Result<Piece<'c>>>) -> anyhow::Result<()> {
        let (path, form) = self.place()?;
        interrupt::count_only();
        let progress = Progress::spinner(path == Path::new("-"), "writing");
        let mut rows = 0;
        let pieces = pieces.map(|piece| {
            if interrupt::count() > 0 {
                return Err(Failure::Interrupted.into());
            }
            rows += piece.as_ref().map_or(0, |piece| num_rows(piece));
            progress.say(format!("writing, {rows} rows"));
            piece
        });
        match form {
            Form::Parquet => write_pieces(path, pieces),
            _ if path == Path::new("-") => {
                lines(&mut std::io::stdout().lock(), form, pieces).map_err(output::of_stdout)
            }
            _ => replace_file(path, |file: &mut File| {
                lines(file, form, pieces).with_context(|| path.display().to_string())
            }),
        }
    }
}

fn lines<'c>(
    to: &mut dyn Write,
    form: Form,
    pieces: impl Iterator<Item = anyhow::Result<Piece<'c>>>,
) -> anyhow::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    for (at, piece) in pieces.enumerate() {
        let piece = piece?;
        if let (0, Form::Delimited(separator)) = (at, form) {
            let names: Vec<_> = piece.iter().map(|(name, _)| quoted(name, separator)).collect();
            writeln!(to, "{}", names.join(&char::from(separator).to_string()))?;
        }
        for row in 0..num_rows(&piece) {
            match form {
                Form::Delimited(separator) => delimited_line(&mut to, &piece, row, separator)?,
                Form::Json | Form::Parquet => json_line(&mut to, &piece, row)?,
            }
        }
    }
    Ok(to.flush()?)
}

fn num_rows(piece: &Piece<'_>) -> usize {
    piece.first().map_or(0, |(_, column)| column.len())
}

fn delimited_line(to: &mut impl Write, piece: &Piece<'_>, row: usize, separator: u8) -> std::io::Result<()> {
    for (at, (_, column)) in piece.iter().enumerate() {
        if at > 0 {
            to.write_all(&[separator])?;
        }
        match column {
            Column::U32(values) => write!(to, "{}", values[row])?,
            Column::U64(values) => write!(to, "{}", values[row])?,
            Column::I64(values) => write!(to, "{}", values[row])?,
            Column::F32(values) => write!(to, "{}", values[row])?,
            Column::F64(values) => write!(to, "{}", values[row])?,
            Column::Strings(values) => to.write_all(quoted(&values[row], separator).as_bytes())?,
            Column::Names(names) => to.write_all(quoted(&names.name(row as u32), separator).as_bytes())?,
        }
    }
    to.write_all(b"\n")
}

/// Quotes a field where it has to be (RFC 4180), and where it begins or ends with a blank, which readers would take off.
fn quoted(field: &str, separator: u8) -> std::borrow::Cow<'_, str> {
    match field.contains([char::from(separator), '"', '\n', '\r']) || field.trim() != field {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}

fn json_line(to: &mut impl Write, piece: &Piece<'_>, row: usize) -> anyhow::Result<()> {
    for (at, (name, column)) in piece.iter().enumerate() {
        let value: Value = match column {
            Column::U32(values) => values[row].into(),
            Column::U64(values) => values[row].into(),
            Column::I64(values) => values[row].into(),
            Column::F32(values) => shortest(values[row]),
            Column::F64(values) => values[row].into(),
            Column::Strings(values) => values[row].as_str().into(),
            Column::Names(names) => names.name(row as u32).into(),
        };
        write!(to, "{}{}:{value}", if at == 0 { '{' } else { ',' }, Value::from(*name))?;
    }
    Ok(to.write_all(b"}\n")?)
}

/// Returns a number of JSON with no more digits than tell it from others of single precision.
pub fn shortest(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Returns the names of some vertices as a column: of integers where they are.
pub fn named(names: &Dictionary, ids: &[u32]) -> Column<'static> {
    match names.as_integers() {
        Some(integers) => Column::U64(ids.iter().map(|&id| integers[id as usize]).collect()),
        None => Column::Strings(ids.iter().map(|&id| names.name(id).into_owned()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form) -> String {
        let piece = |first: u64| -> anyhow::Result<Piece<'static>> {
            let names = vec![" plain".to_owned(), "a, \"b\"\nc".to_owned()];
            Ok(vec![
                ("id", Column::U64(vec![first, first + 1].into())),
                ("name", Column::Strings(names.into())),
                ("score", Column::F32(vec![0.1, -2.0].into())),
            ])
        };
        let mut text = Vec::new();
        lines(&mut text, form, [piece(1), piece(3)].into_iter()).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn fields_of_csv_are_quoted_where_they_have_to_be() {
        let quoted = "\"a, \"\"b\"\"\nc\"";
        let plain = "\" plain\"";
        let expected = format!("id,name,score\n1,{plain},0.1\n2,{quoted},-2\n3,{plain},0.1\n4,{quoted},-2\n");
        assert_eq!(written(Form::Delimited(b',')), expected);
    }

    #[test]
    fn a_row_is_an_object_of_json() {
        let text = written(Form::Json);
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[1], serde_json::json!({"id": 2, "name": "a, \"b\"\nc", "score": -2.0}));
        assert!(text.starts_with("{\"id\":1,\"name\":\" plain\",\"score\":0.1}\n"), "{text}");
    }
}
