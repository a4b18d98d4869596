//! Names by which columns of texts are known.

use crate::roles::listed;

/// What columns of texts are called where nobody names theirs, in any case.
const TEXTS: [&str; 12] = [
    "text",
    "body",
    "content",
    "message",
    "review",
    "comment",
    "abstract",
    "post",
    "tweet",
    "article",
    "description",
    "full_text",
];

/// Finds the column of texts by names that are known.
pub(crate) fn known(names: &[String]) -> Option<usize> {
    TEXTS.iter().find_map(|known| called(names, known))
}

pub(super) fn called(names: &[String], known: &str) -> Option<usize> {
    names.iter().position(|name| name.eq_ignore_ascii_case(known))
}

/// Says that no column is known to hold texts.
pub(crate) fn unnamed(names: &[String]) -> String {
    let (known, columns) = (TEXTS.join(", "), listed(names, names.len()));
    format!("no column is called {known}; say with --columns text=COLUMN which holds the texts; {columns}")
}
