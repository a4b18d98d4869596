//! How an input is laid out: its format, and what its columns are.

use std::path::Path;

use crate::header::role_in;
use crate::text::Input;
use crate::{Error, Format, Role, Roles, is_pipe, json_lines, parquet};

/// How an input is laid out. What is not said is told by its name and content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The format.
    pub format: Option<Format>,
    /// Which columns hold what, in a table.
    pub roles: Roles,
    /// Whether each line of a graph is an edge both ways, one behind the other; an edge from a vertex to itself is one.
    pub undirected: bool,
}

impl From<Option<Format>> for Layout {
    fn from(format: Option<Format>) -> Self {
        Self { format, ..Self::default() }
    }
}

impl From<&Self> for Layout {
    fn from(layout: &Self) -> Self {
        layout.clone()
    }
}

impl Layout {
    /// Tells the format of a file, or of the first file of a directory: the one that is stated, or see [`Format::detect`]. A text
    /// is of the format that its roles belong to, where there are some.
    ///
    /// # Errors
    /// As [`Format::detect`].
    pub fn find(&self, path: &Path) -> Result<Format, Error> {
        let format = self.find_any(path)?;
        if matches!(format, Format::Parquet | Format::Cache) && is_pipe(path) {
            let problem = format!(
                "a file of the format {format} is read here and there, which a pipe cannot be; save it in a file"
            );
            return Err(Error::invalid(path, problem));
        }
        Ok(format)
    }

    /// Returns a role of what an input holds: the first that is named; else that of its first end where columns have names that are
    /// known, in a header, as keys or in a schema: [`Role::User`], [`Role::Document`], or [`Role::From`] of edges without weights. `None`
    /// where they say nothing, or a text is stated to be of some format.
    ///
    /// # Errors
    /// As [`Layout::find`].
    pub fn role(&self, path: &Path) -> Result<Option<Role>, Error> {
        // Documents may have texts as samples have.
        if self.roles.has(Role::Document) {
            return Ok(Some(Role::Document));
        }
        if let Some(role) = self.roles.first() {
            return Ok(Some(role));
        }
        Ok(match self.find(path)? {
            Format::Edges | Format::Ratings if self.format.is_none() => role_in(&mut Input::open(path)?.head()?),
            Format::JsonLines => json_lines::role(&Input::open(path)?.head()?),
            Format::Parquet => parquet::role(&Input::open(path)?),
            _ => None,
        })
    }

    fn find_any(&self, path: &Path) -> Result<Format, Error> {
        let Some(role) = self.roles.first() else { return self.format.map_or_else(|| Format::detect(path), Ok) };
        let of_role = match role {
            Role::User | Role::Item | Role::Rating | Role::Time => Format::Ratings,
            Role::From | Role::To | Role::Weight => Format::Edges,
            _ if self.roles.has(Role::Text) => Format::Table,
            Role::Document | Role::Word | Role::Count => Format::Counts,
            Role::Label | Role::Text | Role::Without | Role::Category | Role::Feature => Format::Table,
        };
        let format = match self.format.map_or_else(|| Format::detect(path), Ok) {
            Ok(Format::Libsvm | Format::BagOfWords | Format::LdaC | Format::Text | Format::Ratings | Format::Edges)
            | Err(Error::UnknownFormat(_))
                if self.format.is_none() =>
            {
                of_role
            }
            found => found?,
        };
        match format {
            Format::Edges | Format::Ratings | Format::Counts | Format::Table | Format::JsonLines | Format::Parquet => {
                Ok(format)
            }
            _ => Err(Error::invalid(
                path,
                format!("the format is {format}, which has no columns to name; leave --columns out"),
            )),
        }
    }
}
