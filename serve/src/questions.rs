//! What is asked, as JSON has it, and what is common to all answers.

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
    fn answer(&self, question: &str, body: &[u8]) -> Result<Value, Refusal>;
}

/// How many answers a question may ask for, and how many questions a request may hold.
pub const MOST: usize = 10_000;

/// The name of a user, an item, a feature or a page: text or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "TextOrInteger")]
pub struct Name(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrInteger {
    Text(String),
    Integer(u64),
}

impl From<TextOrInteger> for Name {
    fn from(name: TextOrInteger) -> Self {
        Self(match name {
            TextOrInteger::Text(name) => name,
            TextOrInteger::Integer(name) => name.to_string(),
        })
    }
}

/// A vertex and its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored {
    /// The name of the vertex.
    pub id: String,
    /// Its score.
    pub score: f64,
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

/// How many answers a request may get in all: some 10 MB.
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
