//! What a column says of a sample: a number, a category, or nothing.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::missing::is_missing;
use crate::parquet::Value;
use crate::rows::Rows;
use crate::text::{Malformed, number};

/// What a column says of a sample.
pub(super) enum Cell<'c> {
    Nothing,
    Number(f32),
    Text(Cow<'c, [u8]>),
}

impl<'c> Cell<'c> {
    /// Takes a field of delimited text. As in JSON, true is 1 and what is missing is nothing, however programs write these.
    pub(super) fn of_text(text: Cow<'c, [u8]>) -> Self {
        match number(&text) {
            Some(number) => Self::Number(number),
            None if is_missing(&text) => Self::Nothing,
            None if text.eq_ignore_ascii_case(b"true") => Self::Number(1.0),
            None if text.eq_ignore_ascii_case(b"false") => Self::Number(0.0),
            None => Self::Text(text),
        }
    }

    /// Takes a field of delimited text for a category, whatever it looks like.
    pub(super) fn of_category(text: Cow<'c, [u8]>) -> Self {
        if is_missing(&text) { Self::Nothing } else { Self::Text(text) }
    }

    /// Takes a value of JSON: true is 1, and a text is one, also of digits.
    pub(super) fn of_value(value: &'c RawValue) -> Result<Self, Malformed> {
        let text = text_of(value)?;
        Ok(match value.get().as_bytes() {
            b"true" => Self::Number(1.0),
            b"false" => Self::Number(0.0),
            [b'"', ..] if !text.is_empty() => Self::Text(text),
            _ if text.is_empty() => Self::Nothing,
            found => Self::Number(number(found).ok_or_else(|| Malformed::new("value", found, "a finite number"))?),
        })
    }

    /// Takes a value of JSON for a category, whatever it is.
    pub(super) fn of_any_value(value: &'c RawValue) -> Result<Self, Malformed> {
        text_of(value).map(|text| if text.is_empty() { Self::Nothing } else { Self::Text(text) })
    }

    /// Takes a value of a column of some type: true is 1, and a text is one, also of digits.
    pub(super) fn of_typed(value: Value<'c>) -> Result<Self, Malformed> {
        let number = match value {
            Value::Nothing | Value::Text(b"") => return Ok(Self::Nothing),
            Value::Text(text) => return Ok(Self::Text(Cow::Borrowed(text))),
            Value::Truth(truth) => f32::from(u8::from(truth)),
            Value::Integer(integer) => integer as f32,
            Value::Single(number) => number,
            Value::Double(number) => number as f32,
        };
        if number.is_finite() {
            return Ok(Self::Number(number));
        }
        let found = value.text().unwrap_or_default();
        Err(Malformed::new("value", &found, "a finite number of single precision"))
    }

    /// Takes a value of a column of some type for a category, whatever it is.
    pub(super) fn of_any_typed(value: Value<'c>) -> Self {
        value.text().filter(|text| !text.is_empty()).map_or(Self::Nothing, Self::Text)
    }

    /// Adds what the column says of the sample that the next [`Rows::end`] ends. `known` keeps the entry of the column's name.
    pub(super) fn add_to(self, rows: &mut Rows<f32>, column: &str, known: &mut Option<u32>) -> Result<(), Malformed> {
        match self {
            Self::Nothing | Self::Number(0.0) => Ok(()),
            Self::Number(number) => rows.add_known(known, "feature", column.as_bytes(), number),
            Self::Text(text) => rows.add_name("feature", &[column.as_bytes(), b"=", &text[..]].concat(), 1.0),
        }
    }
}

/// Says of which key the value is that is wrong.
pub(super) fn of_key(key: &str) -> impl Fn(Malformed) -> Malformed {
    move |malformed| {
        let expected = format!("{} for \"{key}\"; --columns without={key} leaves it out", malformed.expected);
        Malformed { expected, ..malformed }
    }
}

/// Returns a value of JSON as it would stand in delimited text.
pub(super) fn text_of(value: &RawValue) -> Result<Cow<'_, [u8]>, Malformed> {
    let text = value.get();
    match text.as_bytes() {
        [b'"', ..] => match serde_json::from_str::<String>(text) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(_) => Err(Malformed::new("value", text.as_bytes(), "text in Unicode")),
        },
        [b'{' | b'[', ..] => Err(Malformed::new("value", text.as_bytes(), "a number, a text, true, false or null")),
        b"null" => Ok(Cow::Borrowed(b"")),
        plain => Ok(Cow::Borrowed(plain)),
    }
}
