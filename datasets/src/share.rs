//! A share of some things: a number of them, or a part.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// How many of some things are taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Share {
    /// This number of them, where there are more.
    Number(usize),
    /// This part of them, rounded down.
    Part(f64),
}

impl Share {
    /// Returns how many of `all` are taken: fewer than all.
    pub(crate) fn of(self, all: usize) -> usize {
        match self {
            Self::Number(number) => Some(number).filter(|&number| number < all).unwrap_or(0),
            // A hair more, so that a tenth of ten is one whatever the rounding.
            Self::Part(part) => ((part * all as f64 + 1e-9) as usize).min(all.saturating_sub(1)),
        }
    }

    /// Refuses a number of 0, and a part that is none.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self {
            Self::Number(1..) => Ok(()),
            Self::Part(part) if part > 0.0 && part < 1.0 => Ok(()),
            _ => Err(Error::HoldoutShare(self.to_string())),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Part(part) => write!(f, "{part}"),
        }
    }
}

impl FromStr for Share {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let share = text.parse().map(Self::Number).or_else(|_| text.parse().map(Self::Part));
        let share = share.map_err(|_| Error::HoldoutShare(text.to_owned()))?;
        share.check().map(|()| share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_parts() {
        let read = |text: &str| text.parse::<Share>();
        assert_eq!((read("3").unwrap(), read("0.25").unwrap()), (Share::Number(3), Share::Part(0.25)));
        for text in ["0", "1.5", "1.0", "-1", "0.0", "many", "nan", ""] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("a number, 1 say, or a part above 0 and below 1"), "{error}");
        }
        assert_eq!((1..=12).map(|all| Share::Part(0.1).of(all)).sum::<usize>(), 3);
    }
}
