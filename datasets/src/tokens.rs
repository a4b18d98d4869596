//! From a line of plain text to words.

use std::str::FromStr;

use crate::Error;
use crate::text::{Malformed, read_text, words};

/// How words are found in plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokenizer {
    /// Whether words are taken in lower case.
    pub lower_case: bool,
    /// What separates words.
    pub split: Split,
    /// Whether each two words that follow one another are found too, with a blank between them.
    pub bigrams: bool,
}

/// What separates words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// White space: words are taken as they stand.
    #[default]
    Space,
    /// All but letters, digits, and `'`, `-` and `_` inside a word.
    Punctuation,
}

impl FromStr for Split {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "space" => Ok(Self::Space),
            "punctuation" => Ok(Self::Punctuation),
            _ => Err(format!("\"{name}\" does not separate words; expected space or punctuation")),
        }
    }
}

impl Tokenizer {
    /// Returns the words of a text.
    #[must_use]
    pub fn words(self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        // Nothing of a string is malformed.
        let _ = self.each_word(text.as_bytes(), |word| {
            found.push(String::from_utf8_lossy(word).into_owned());
            Ok(())
        });
        found
    }

    pub(crate) fn each_word(
        self,
        line: &[u8],
        mut visit: impl FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if !self.bigrams {
            return self.each_single(line, visit);
        }
        let mut pair = Vec::new();
        self.each_single(line, |word| {
            visit(word)?;
            if !pair.is_empty() {
                pair.push(b' ');
                pair.extend_from_slice(word);
                visit(&pair)?;
            }
            pair.clear();
            pair.extend_from_slice(word);
            Ok(())
        })
    }

    fn each_single(self, line: &[u8], mut visit: impl FnMut(&[u8]) -> Result<(), Malformed>) -> Result<(), Malformed> {
        if !self.lower_case && self.split == Split::Space {
            return words(line).try_for_each(visit);
        }
        let text = std::str::from_utf8(line).map_err(|_| Malformed::new("document", line, "text in UTF-8"))?;
        let lower;
        let text = if self.lower_case {
            lower = text.to_lowercase();
            &lower
        } else {
            text
        };
        match self.split {
            Split::Space => words(text.as_bytes()).try_for_each(visit),
            Split::Punctuation => {
                let pieces = text.split(|c: char| !(c.is_alphanumeric() || is_inner(c)));
                // Two dashes part words, one joins them.
                let pieces = pieces.flat_map(|piece| piece.split("--"));
                let words = pieces.map(|piece| piece.trim_matches(is_inner)).filter(|word| !word.is_empty());
                words.map(str::as_bytes).try_for_each(&mut visit)
            }
        }
    }
}

/// Tells whether a mark belongs to a word that goes on behind it.
fn is_inner(c: char) -> bool {
    matches!(c, '\'' | '’' | '-' | '_')
}

/// Words that are left out of a corpus.
#[derive(Clone, Debug, Default)]
pub struct StopWords(std::collections::HashSet<Box<str>, rustc_hash::FxBuildHasher>);

impl StopWords {
    /// Returns the built-in list of English words that are frequent in any text.
    #[must_use]
    pub fn english() -> Self {
        include_str!("stop_words.txt").split_ascii_whitespace().collect()
    }

    /// Reads words from a file, separated by white space.
    ///
    /// # Errors
    /// Where the file cannot be read or is not UTF-8.
    pub fn read(path: &std::path::Path) -> Result<Self, Error> {
        Ok(read_text(path)?.split_whitespace().collect())
    }

    /// Tells whether there is no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether a word, in lower case or as it stands, is left out.
    #[must_use]
    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(word) || !self.0.is_empty() && self.0.contains(word.to_lowercase().as_str())
    }
}

impl<'w> FromIterator<&'w str> for StopWords {
    fn from_iter<I: IntoIterator<Item = &'w str>>(words: I) -> Self {
        Self(words.into_iter().map(Box::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(tokenizer: Tokenizer, line: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut visit = |word: &[u8]| {
            found.push(String::from_utf8_lossy(word).into_owned());
            Ok(())
        };
        tokenizer.each_word(line.as_bytes(), &mut visit).unwrap();
        found
    }

    #[test]
    fn words_are_separated_by_what_was_asked_for() {
        let line = "Don't say: \"well-known\" Ünlü--so, 3.5 -";
        let plain = Tokenizer::default();
        assert_eq!(words_of(plain, line), ["Don't", "say:", "\"well-known\"", "Ünlü--so,", "3.5", "-"]);
        let lower = Tokenizer { lower_case: true, ..plain };
        assert_eq!(words_of(lower, "Ünlü So,"), ["ünlü", "so,"]);
        let marks = Tokenizer { lower_case: true, split: Split::Punctuation, ..plain };
        assert_eq!(words_of(marks, line), ["don't", "say", "well-known", "ünlü", "so", "3", "5"]);
        assert!(marks.each_word(b"\xff", |_| Ok(())).is_err());
        let bigrams = Tokenizer { bigrams: true, ..marks };
        assert_eq!(words_of(bigrams, "New York, new"), ["new", "york", "new york", "new", "york new"]);
        assert_eq!(words_of(bigrams, "alone"), ["alone"]);
        assert!(words_of(bigrams, " ").is_empty());
    }

    #[test]
    fn stop_words_are_found_in_any_case() {
        let english = StopWords::english();
        assert!(english.contains("The") && english.contains("don't") && !english.contains("graph"));
        assert!(!StopWords::default().contains("the"));
    }
}
