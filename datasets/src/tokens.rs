//! From a line of plain text to words.

use std::borrow::Cow;
use std::str::FromStr;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

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
    /// All but letters with their accents and other marks, digits, and `'`, `-`, `_` and joiners inside a word.
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
                let pieces = text.split(|c: char| !(c.is_alphanumeric() || is_inner(c) || is_mark(c)));
                // Two dashes part words, one joins them.
                let pieces = pieces.flat_map(|piece| piece.split("--"));
                let words = pieces.map(|piece| {
                    // A mark belongs to the letter before it.
                    piece.trim_start_matches(|c| is_inner(c) || is_mark(c)).trim_end_matches(is_inner)
                });
                words.filter(|word| !word.is_empty()).map(str::as_bytes).try_for_each(&mut visit)
            }
        }
    }
}

/// Tells whether a character belongs to a word that goes on behind it: the last two join letters or keep them apart.
fn is_inner(c: char) -> bool {
    matches!(c, '\'' | '’' | '-' | '_' | '\u{200c}' | '\u{200d}')
}

/// Tells whether a character is an accent or a vowel sign, say, that a letter carries.
fn is_mark(c: char) -> bool {
    // There is none before.
    c >= '\u{300}' && c.general_category_group() == GeneralCategoryGroup::Mark
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

    /// Tells whether a word, in lower case or as it stands, is left out. Both kinds of apostrophes are the same.
    #[must_use]
    pub fn contains(&self, word: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let word = with_plain_apostrophes(word);
        self.0.contains(&*word) || self.0.contains(word.to_lowercase().as_str())
    }
}

impl<'w> FromIterator<&'w str> for StopWords {
    fn from_iter<I: IntoIterator<Item = &'w str>>(words: I) -> Self {
        Self(words.into_iter().map(|word| Box::from(with_plain_apostrophes(word))).collect())
    }
}

fn with_plain_apostrophes(word: &str) -> Cow<'_, str> {
    if word.contains('’') { word.replace('’', "'").into() } else { word.into() }
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
    fn marks_belong_to_the_letters_before_them() {
        let marks = Tokenizer { lower_case: true, split: Split::Punctuation, bigrams: false };
        assert_eq!(words_of(marks, "नमस्ते, दुनिया। வணக்கம் น้ำ"), ["नमस्ते", "दुनिया", "வணக்கம்", "น้ำ"]);
        assert_eq!(words_of(marks, "re\u{301}sume\u{301} İstanbul"), ["re\u{301}sume\u{301}", "i\u{307}stanbul"]);
        assert_eq!(words_of(marks, "می\u{200c}روم\u{200c} \u{200d}"), ["می\u{200c}روم"], "joiners are inside of words");
        assert_eq!(words_of(marks, "so ❤\u{fe0f} 'tis"), ["so", "tis"], "a mark behind a symbol is no word");
    }

    #[test]
    fn stop_words_are_found_in_any_case_and_with_either_apostrophe() {
        let english = StopWords::english();
        assert!(english.contains("The") && english.contains("don't") && !english.contains("graph"));
        assert!(english.contains("don’t") && english.contains("They’re") && !english.contains("graph’s"));
        let own: StopWords = std::iter::once("c’est").collect();
        assert!(own.contains("c’est") && own.contains("c'est"));
        assert!(!StopWords::default().contains("the"));
    }
}
