//! What is asked, as JSON has it, and what is common to all answers.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Refusal;

/// What a model answers.
pub trait Answers: Send + Sync {
    /// Lists its questions.
    fn questions(&self) -> &'static [&'static str];
    /// Answers one of them. No file is touched.
    ///
    /// # Errors
    /// A question that is not understood, or about what the model does not know.
    fn answer(&self, question: &str, body: &[u8]) -> Result<Answer<'_>, Refusal>;
}

/// What is answered, written in JSON as it is: of long answers no tree of values is made, which would take many times their bytes. Fields
/// are in the order of their names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer<'m> {
    /// The best vertices.
    Best(Vec<Scored<'m>>),
    /// The best vertices for each question.
    BestOfEach(Vec<Vec<Scored<'m>>>),
    /// The places of vertices.
    Places(Vec<Placed>),
    /// The topics of each text.
    Topics(Vec<Vec<Share>>),
    /// What the model keeps.
    Kept(&'m Value),
    /// Something short.
    Other(Value),
}

/// How many answers a question may ask for, and how many questions a request may hold.
pub const MOST: usize = 10_000;

/// The name of a user, an item, a feature or a page: text or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "TextOrInteger")]
pub struct Name(pub String);

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a name, which is a text or an integer")]
enum TextOrInteger {
    Text(String),
    Integer(u64),
    Negative(i64),
}

impl From<TextOrInteger> for Name {
    fn from(name: TextOrInteger) -> Self {
        Self(match name {
            TextOrInteger::Text(name) => name,
            TextOrInteger::Integer(name) => name.to_string(),
            TextOrInteger::Negative(name) => name.to_string(),
        })
    }
}

/// A vertex and its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored<'m> {
    /// The name of the vertex.
    pub id: Cow<'m, str>,
    /// Its score.
    pub score: f64,
}

/// A vertex and its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// The name of the vertex.
    pub id: String,
    /// Its place, from 1.
    pub place: u32,
    /// Its score.
    pub score: f64,
    /// Its score in each set of vertices to restart at, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<f64>,
}

/// A topic of a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How much of the text it has.
    pub share: f64,
    /// Its number, from 0.
    pub topic: u32,
}

/// Reads a question.
///
/// # Errors
/// What is wrong with it, by line and column.
pub fn parsed<Q: DeserializeOwned>(body: &[u8]) -> Result<Q, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::Bad(format!("the question is not understood: {error}")))
}

/// Checks how many answers are asked for.
///
/// # Errors
/// None, or more than [`MOST`].
pub fn checked_number(number: usize) -> Result<usize, Refusal> {
    checked("number", number)
}

/// Checks how many questions there are.
///
/// # Errors
/// None, or more than [`MOST`].
pub fn checked(what: &str, number: usize) -> Result<usize, Refusal> {
    if (1..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(Refusal::Bad(format!("{what} is {number}; expected 1 to {MOST}")))
}

/// How many answers a request may get in all: some 5 MB, and twice that in memory while they are made.
const MOST_IN_ALL: usize = 100_000;

/// Checks how many questions there are, `what` they are of, and how many answers each asks for; returns the latter.
///
/// # Errors
/// None, more than [`MOST`] of either, or more than 100,000 answers in all.
pub fn checked_together(what: &str, questions: usize, number: usize) -> Result<usize, Refusal> {
    if checked(what, questions)? * checked_number(number)? > MOST_IN_ALL {
        let problem = format!("{questions} times {number} answers; expected {MOST_IN_ALL} at most in a request");
        return Err(Refusal::Bad(problem));
    }
    Ok(number)
}

/// Checks a value that was sent.
///
/// # Errors
/// One that is beyond single precision.
pub fn checked_value(name: &Name, value: f32) -> Result<f32, Refusal> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Refusal::Bad(format!("the value of \"{}\" is {value}; expected a number", name.0)))
}

/// How many answers there are if nothing is said.
pub const fn ten() -> usize {
    10
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_text_or_any_integers() {
        let names: Vec<Name> = parsed(br#"["-1", -1, 3, 18446744073709551615]"#).unwrap();
        let names: Vec<&str> = names.iter().map(|Name(name)| &name[..]).collect();
        assert_eq!(names, ["-1", "-1", "3", "18446744073709551615"]);
        assert!(parsed::<Name>(b"1.5").is_err());
    }

    #[test]
    fn answers_are_written_as_trees_of_values_are() {
        let score = 0.1_f32;
        let placed = |sets| Placed { id: "4".to_owned(), place: 1, score: score.into(), sets };
        for (answer, tree) in [
            (Answer::Places(vec![placed(Vec::new())]), json!([{ "id": "4", "place": 1, "score": score }])),
            (
                Answer::Places(vec![placed(vec![1.0])]),
                json!([{ "id": "4", "place": 1, "score": score, "sets": [1.0_f32] }]),
            ),
            (
                Answer::Topics(vec![vec![Share { share: score.into(), topic: 3 }]]),
                json!([[{ "topic": 3, "share": score }]]),
            ),
            (
                Answer::BestOfEach(vec![vec![Scored { id: "4".into(), score: score.into() }]]),
                json!([[{ "id": "4", "score": score }]]),
            ),
        ] {
            assert_eq!(serde_json::to_string(&answer).unwrap(), tree.to_string());
        }
    }
}
