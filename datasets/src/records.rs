//! What the records of a table are, whatever it is written in: two ends, and perhaps a number.

use std::marker::PhantomData;

use crate::cache::EdgeData;
use crate::roles::Role;
use crate::text::{integer, number};
use crate::time::time;

/// A record with an id in each of two columns.
pub(crate) trait Record: Sync {
    /// What an edge carries.
    type Data: EdgeData;
    /// Whether both columns name the same vertices.
    const SQUARE: bool;
    /// What a record is called.
    const NAME: &'static str;
    /// What several are called.
    const NAMES: &'static str;
    /// What the ends stand for.
    const FIELDS: [&'static str; 2];
    /// The roles of its columns: those of the ends, and that of the number if it has one.
    const ROLES: &'static [Role];
    /// What a number has to be.
    const NUMBER: &'static str;
    /// What its column may be called, in any case.
    const NUMBER_COLUMNS: &'static [&'static str] = &["rating", "value", "weight", "count"];
    /// Whether it is a time.
    const IS_TIME: bool = false;

    /// Returns the data of a number as it stands in a text.
    fn of_text(number: &[u8]) -> Option<Self::Data>;

    /// Returns the data of a number.
    fn of_number(number: f64) -> Option<Self::Data>;

    /// Whether it has a number.
    fn has_number() -> bool {
        Self::ROLES.len() > 2
    }

    /// The column of its number, from 0, where nothing is said.
    fn usual_number() -> Option<usize> {
        Self::has_number().then_some(2)
    }

    /// The name of its number's role.
    fn number_name() -> &'static str {
        Self::ROLES.get(2).map_or("number", |role| role.name())
    }
}

/// An edge of a graph.
pub(crate) struct Link;

impl Record for Link {
    type Data = ();
    const SQUARE: bool = true;
    const NAME: &'static str = "edge";
    const NAMES: &'static str = "edges";
    const FIELDS: [&'static str; 2] = ["source vertex", "target vertex"];
    const ROLES: &'static [Role] = &[Role::From, Role::To];
    const NUMBER: &'static str = "";

    fn of_text(_: &[u8]) -> Option<()> {
        Some(())
    }

    fn of_number(_: f64) -> Option<()> {
        Some(())
    }
}

/// An edge of a graph with a weight.
pub(crate) struct WeightedLink;

impl Record for WeightedLink {
    type Data = f32;
    const SQUARE: bool = true;
    const NAME: &'static str = Link::NAME;
    const NAMES: &'static str = Link::NAMES;
    const FIELDS: [&'static str; 2] = Link::FIELDS;
    const ROLES: &'static [Role] = &[Role::From, Role::To, Role::Weight];
    const NUMBER: &'static str = "a finite number, 0 or above";

    #[inline]
    fn of_text(text: &[u8]) -> Option<f32> {
        number(text).filter(|&weight| weight >= 0.0)
    }

    fn of_number(number: f64) -> Option<f32> {
        Some(number as f32).filter(|&weight| weight.is_finite() && weight >= 0.0)
    }
}

/// A rating.
pub(crate) struct Rating;

impl Record for Rating {
    type Data = f32;
    const SQUARE: bool = false;
    const NAME: &'static str = "rating";
    const NAMES: &'static str = "ratings";
    const FIELDS: [&'static str; 2] = ["user", "item"];
    const ROLES: &'static [Role] = &[Role::User, Role::Item, Role::Rating];
    const NUMBER: &'static str = "a finite number";

    #[inline]
    fn of_text(text: &[u8]) -> Option<f32> {
        number(text)
    }

    fn of_number(number: f64) -> Option<f32> {
        Some(number as f32).filter(|number| number.is_finite())
    }
}

/// What is a 1 each time it is there, without a column of numbers: a rating because somebody has used something, a word of a document, once.
pub(crate) struct Pair<R>(PhantomData<R>);

impl<R: Record> Record for Pair<R> {
    // Counts of words are added up in it, which is exact up to 2^24.
    type Data = f32;
    const SQUARE: bool = R::SQUARE;
    const NAME: &'static str = "pair";
    const NAMES: &'static str = "pairs";
    const FIELDS: [&'static str; 2] = R::FIELDS;
    const ROLES: &'static [Role] = R::ROLES.split_at(2).0;
    const NUMBER: &'static str = "";

    #[inline]
    fn of_text(_: &[u8]) -> Option<f32> {
        Some(1.0)
    }

    fn of_number(_: f64) -> Option<f32> {
        Some(1.0)
    }
}

/// The roles that columns of ratings may have.
pub(crate) const OF_RATINGS: &[Role] = &[Role::User, Role::Item, Role::Rating, Role::Time];

/// When a rating was made.
pub(crate) struct RatingTime;

impl Record for RatingTime {
    type Data = f64;
    const SQUARE: bool = false;
    const NAME: &'static str = Rating::NAME;
    const NAMES: &'static str = Rating::NAMES;
    const FIELDS: [&'static str; 2] = Rating::FIELDS;
    const ROLES: &'static [Role] = &[Role::User, Role::Item, Role::Time];
    const NUMBER: &'static str = "a finite number, or a date as 2026-11-25 or 2026-11-25T08:30:00";
    const NUMBER_COLUMNS: &'static [&'static str] = &["time", "timestamp", "date", "datetime"];
    const IS_TIME: bool = true;

    fn of_text(text: &[u8]) -> Option<f64> {
        // JSON has quotes around dates.
        time(text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text))
    }

    fn of_number(number: f64) -> Option<f64> {
        Some(number).filter(|number| number.is_finite())
    }

    /// Further columns may hold anything.
    fn usual_number() -> Option<usize> {
        None
    }
}

/// How often a word occurs in a document.
pub(crate) struct WordCount;

impl Record for WordCount {
    type Data = u32;
    const SQUARE: bool = false;
    const NAME: &'static str = "entry";
    const NAMES: &'static str = "words";
    const FIELDS: [&'static str; 2] = ["document", "word"];
    const ROLES: &'static [Role] = &[Role::Document, Role::Word, Role::Count];
    const NUMBER: &'static str = "an integer from 1 to 4294967295";

    #[inline]
    fn of_text(text: &[u8]) -> Option<u32> {
        integer(text).and_then(|count| u32::try_from(count).ok()).filter(|&count| count > 0)
    }

    fn of_number(number: f64) -> Option<u32> {
        (number.fract() == 0.0 && number >= 1.0 && number <= f64::from(u32::MAX)).then_some(number as u32)
    }
}
