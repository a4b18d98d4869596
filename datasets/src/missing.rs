//! What stands for a value that is not there.

/// What pandas, R and databases write in its place. An empty field is none either.
pub(crate) const MISSING: [&str; 8] = ["NA", "N/A", "NaN", "nan", "null", "NULL", "None", "\\N"];

/// Tells whether a field has no value.
pub(crate) fn is_missing(text: &[u8]) -> bool {
    text.is_empty() || MISSING.iter().any(|missing| missing.as_bytes() == text)
}
