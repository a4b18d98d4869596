//! How words are found in texts.

use megagrid_datasets::{Split, Tokenizer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How words are found in texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct WordOptions {
    /// Take words in lower case (plain text, and columns of texts).
    #[arg(long, help_heading = "Words")]
    pub lower_case: bool,
    /// What separates words in texts: space, or punctuation as well.
    #[arg(long, value_name = "space|punctuation", default_value = "space", help_heading = "Words")]
    #[serde(serialize_with = "split_name", deserialize_with = "split_named")]
    pub split: Split,
    /// Take each two words that follow one another too, as "new york"; one of a stop word is left out with it.
    #[arg(long, help_heading = "Words")]
    pub bigrams: bool,
}

impl WordOptions {
    /// Returns what finds words.
    #[must_use]
    pub fn tokenizer(self) -> Tokenizer {
        Tokenizer { lower_case: self.lower_case, split: self.split, bigrams: self.bigrams }
    }

    /// Returns the options that stand in a configuration; those that do not have their defaults.
    #[must_use]
    pub fn of(config: &serde_json::Value) -> Self {
        serde_json::from_value(config.clone()).unwrap_or_default()
    }
}

fn split_name<S: Serializer>(split: &Split, to: S) -> Result<S::Ok, S::Error> {
    match split {
        Split::Space => "space",
        Split::Punctuation => "punctuation",
    }
    .serialize(to)
}

fn split_named<'d, D: Deserializer<'d>>(from: D) -> Result<Split, D::Error> {
    let name = String::deserialize(from)?;
    Ok(if name == "punctuation" { Split::Punctuation } else { Split::Space })
}
