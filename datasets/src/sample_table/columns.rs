//! The columns of tables, before these are read.

use std::path::Path;

use super::is_bare;
use super::shape::{First, Labelled, Reader};
use crate::text::{Input, is_pipe};
use crate::{Error, Format, Layout, Tokenizer, parquet};

/// The columns of a table of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleColumns {
    /// Their names, in their order, in the first file.
    pub names: Vec<String>,
    /// That of labels.
    pub label: Option<String>,
    /// Whether there are no others: lines of JSON, and further files, may have more.
    pub are_all: bool,
}

impl Layout {
    /// Returns the number of columns of a table of samples without a header; `None` of anything else.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn num_columns(&self, path: &Path) -> Result<Option<usize>, Error> {
        if self.format != Some(Format::Table) || !is_bare(&self.roles) {
            return Ok(None);
        }
        Ok(Some(First::of(&mut Input::open(path)?.head()?).fields.len()))
    }

    /// Returns the columns of a table of samples, which may lack labels; `None` of anything else, and of a pipe.
    ///
    /// # Errors
    /// A file that cannot be read, or lacks a column that the layout names.
    pub fn sample_columns(&self, path: &Path) -> Result<Option<SampleColumns>, Error> {
        let is_table = matches!(self.format, Some(Format::Table | Format::JsonLines | Format::Parquet));
        if !is_table || is_pipe(path) {
            return Ok(None);
        }
        let input = Input::open(path)?.with_roles(&self.roles);
        let is_json = self.format == Some(Format::JsonLines);
        let reader = Reader { roles: &self.roles, is_json, labelled: Labelled::No, tokenizer: Tokenizer::default() };
        let shape = match self.format {
            Some(Format::Parquet) => reader.shape_of(path, parquet::column_names(&input).unwrap_or_default())?,
            _ => reader.begin(&mut input.head()?)?,
        };
        let label = shape.label.map(|at| shape.names[at].clone());
        let are_all = !is_json && input.files().count() == 1;
        Ok(Some(SampleColumns { names: shape.names, label, are_all }))
    }
}
