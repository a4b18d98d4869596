//! Documents as rows of Parquet files.

use std::path::Path;

use ::parquet::basic::ConvertedType as Converted;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::file::reader::{FileReader, RowGroupReader};
use ::parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use crate::column::{Column, intern};
use crate::output::{fenced, is_unsigned, open_column, open_parquet, parquet_error, read_rows};
use crate::rows::{Holds, Rows};
use crate::text::{Input, Malformed};
use crate::texts::names::unnamed;
use crate::{Dataset, Error, Role, Tokenizer};

/// Returns what the columns of the first file are called.
pub(super) fn names(input: &Input<'_>) -> Option<Vec<String>> {
    let path = input.files().next()?;
    // Whatever is wrong with the file is reported when it is read.
    fenced(path, || Ok(names_of(open_parquet(path)?.metadata().file_metadata().schema_descr()))).ok()
}

fn names_of(schema: &SchemaDescriptor) -> Vec<String> {
    schema.columns().iter().map(|column| column.path().string()).collect()
}

/// Reads the documents of all files, and their names, if a column has some. Each of several processes reads all.
pub(super) fn read(input: &Input<'_>, tokenizer: Tokenizer) -> Result<(Dataset<f32>, Column), Error> {
    let mut rows = Rows::default();
    for path in input.files() {
        fenced(path, || read_file(path, input, tokenizer, &mut rows))?;
    }
    rows.finish(input, Holds::Words)
}

fn read_file(path: &Path, input: &Input<'_>, tokenizer: Tokenizer, rows: &mut Rows<f32>) -> Result<(), Error> {
    let file = open_parquet(path)?;
    let names = names_of(file.metadata().file_metadata().schema_descr());
    let place = |role| input.roles().find(role, &names).map_err(|problem| Error::invalid(path, problem));
    let (text, document) = (place(Role::Text)?, place(Role::Document)?);
    let Some(text) = text else { return Err(Error::invalid(path, unnamed(&names))) };
    if document == Some(text) {
        let problem = format!("column {} would be both document and text; name both in --columns", names[text]);
        return Err(Error::invalid(path, problem));
    }
    let mut first_row = 0;
    for at in 0..file.num_row_groups() {
        let group = file.get_row_group(at).map_err(|error| parquet_error(path, error))?;
        let num_rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let group = Group { path, reader: &*group, num_rows };
        let texts = group.texts(text, "texts")?;
        let documents = document.map(|at| group.ids(at)).transpose()?;
        for row in 0..num_rows {
            let named = documents.as_ref().map_or(Ok(()), |ids| name(rows, ids[row].as_deref()));
            let text = texts[row].as_deref().unwrap_or_default();
            let read = named.and_then(|()| tokenizer.each_word(text, |word| rows.add_name("word", word, 1.0)));
            read.map_err(|Malformed { field, found, expected }| {
                let line = first_row + row as u64 + 1;
                Error::Malformed { path: path.to_path_buf(), line, field, found, expected }
            })?;
            rows.end();
        }
        first_row += num_rows as u64;
    }
    Ok(())
}

/// Names the document that the next [`Rows::end`] ends.
fn name(rows: &mut Rows<f32>, id: Option<&[u8]>) -> Result<(), Malformed> {
    let id = id.ok_or_else(|| Malformed::new("document", b"null", "an id"))?;
    let entry = intern(&mut rows.labels.names, "document", id)?;
    rows.labels.ids.push(entry);
    Ok(())
}

/// The values of a column, row by row; `None` is null.
type Values = Vec<Option<Vec<u8>>>;

/// An open row group.
struct Group<'a> {
    path: &'a Path,
    reader: &'a dyn RowGroupReader,
    num_rows: usize,
}

impl Group<'_> {
    fn texts(&self, at: usize, expected: &str) -> Result<Values, Error> {
        let described = self.reader.metadata().column(at).column_descr_ptr();
        let are_texts = matches!(described.converted_type(), Converted::NONE | Converted::UTF8 | Converted::ENUM);
        match self.open(at, expected)? {
            ColumnReader::ByteArrayColumnReader(reader) if are_texts => {
                self.values(reader, &described, |value| value.data().to_vec())
            }
            _ => Err(self.wrong_type(&described, expected)),
        }
    }

    fn ids(&self, at: usize) -> Result<Values, Error> {
        let described = self.reader.metadata().column(at).column_descr_ptr();
        let are_plain = is_unsigned(&described)
            || matches!(
                described.converted_type(),
                Converted::NONE | Converted::INT_8 | Converted::INT_16 | Converted::INT_32 | Converted::INT_64
            );
        let expected = "integers or texts";
        let unsigned = is_unsigned(&described);
        match self.open(at, expected)? {
            ColumnReader::Int32ColumnReader(reader) if are_plain => self.values(reader, &described, |&id| {
                if unsigned { (id as u32).to_string().into_bytes() } else { id.to_string().into_bytes() }
            }),
            ColumnReader::Int64ColumnReader(reader) if are_plain => self.values(reader, &described, |&id| {
                if unsigned { (id as u64).to_string().into_bytes() } else { id.to_string().into_bytes() }
            }),
            _ => self.texts(at, expected),
        }
    }

    fn open(&self, at: usize, expected: &str) -> Result<ColumnReader, Error> {
        let described = self.reader.metadata().column(at).column_descr_ptr();
        if described.max_rep_level() > 0 || described.path().parts().len() > 1 {
            return Err(self.wrong_type(&described, expected));
        }
        open_column(self.reader, at).map_err(|error| parquet_error(self.path, error))
    }

    fn values<D: DataType>(
        &self,
        mut reader: ColumnReaderImpl<D>,
        described: &ColumnDescriptor,
        bytes: impl Fn(&D::T) -> Vec<u8>,
    ) -> Result<Values, Error> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let read = read_rows(&mut reader, self.num_rows, Some(&mut levels), &mut values);
        let num_read = read.map_err(|error| parquet_error(self.path, error))?;
        let is_null = |row: usize| levels.get(row).is_some_and(|&level| level < described.max_def_level());
        let num_values = (0..num_read).filter(|&row| !is_null(row)).count();
        if num_read != self.num_rows || values.len() != num_values {
            let problem = format!("a row group has {num_read} rows, expected {}", self.num_rows);
            return Err(Error::invalid(self.path, problem));
        }
        let mut values = values.iter();
        Ok((0..self.num_rows).map(|row| if is_null(row) { None } else { values.next().map(&bytes) }).collect())
    }

    fn wrong_type(&self, described: &ColumnDescriptor, expected: &str) -> Error {
        let (name, found) = (described.path().string(), described.physical_type());
        let list = if described.max_rep_level() > 0 { "lists of " } else { "" };
        let problem =
            format!("column {name} holds {list}{found} ({:?}), expected {expected}", described.converted_type());
        Error::invalid(self.path, problem)
    }
}
