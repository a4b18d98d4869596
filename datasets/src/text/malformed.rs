//! Fields without what surrounds them, and what is wrong with them.

/// A line that does not follow its format.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) field: &'static str,
    pub(crate) found: String,
    pub(crate) expected: String,
}

/// Characters of an offending field that a message shows.
const SHOWN_CHARS: usize = 40;

impl Malformed {
    /// Reports a field: what it stands for, its text, and what would have been accepted.
    #[cold]
    pub(crate) fn new(field: &'static str, found: &[u8], expected: impl Into<String>) -> Self {
        let text = String::from_utf8_lossy(&found[..found.len().min(4 * SHOWN_CHARS)]);
        let mut shown: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
        if text.chars().count() > SHOWN_CHARS {
            shown.push_str("...");
        }
        Self { field, found: shown, expected: expected.into() }
    }
}

/// Returns a field without the blanks around it.
#[inline]
pub(super) fn trim(mut field: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = field {
        field = rest;
    }
    while let [rest @ .., b' '] = field {
        field = rest;
    }
    field
}
