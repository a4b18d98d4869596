//! What can be wrong with an algorithm's parameters.

/// Why an algorithm refuses its parameters.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter out of range.
    #[error("{name} is {found}; expected {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
}

impl Error {
    /// Says that a parameter is out of range.
    pub(crate) fn setting(name: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self::Setting { name, found: found.to_string(), expected }
    }
}
