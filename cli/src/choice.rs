//! Options that are one of a few names.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

/// A type whose values have names, by which serde knows them.
pub trait Choice: DeserializeOwned + Clone + Send + Sync + 'static {
    /// Names, and what help says of each.
    const VALUES: &'static [(&'static str, &'static str)];
}

/// Reads one of the names of a type.
pub fn choice<C: Choice>() -> impl TypedValueParser<Value = C> {
    let values = C::VALUES.iter().map(|&(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|name| serde_json::from_value(serde_json::Value::String(name)))
}
