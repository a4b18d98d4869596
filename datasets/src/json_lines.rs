//! Tables as JSON lines: an object a line, whose keys are its columns.
//!
//! The keys are those that a user names, else they have names that are known, as in the header of a text. Others are ignored.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::columns::Columns;
use crate::header::{known_beside, known_number, role_of};
use crate::loaded::Loaded;
use crate::records::Record;
use crate::table::{self, Syntax};
use crate::text::{Input, Malformed, Text};
use crate::{Error, Role, Roles};

/// Reads JSON lines. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read<R: Record>(input: &Input<'_>, room: usize) -> Result<Loaded<R::Data>, Error> {
    table::read::<R>(input, room, &JsonLines(input.roles()))
}

/// Returns the role of the first end, where the keys of the first line tell it.
pub(crate) fn role(text: &Text<'_>) -> Option<Role> {
    let first = text.lines().find(|line| !line.is_empty())?;
    object(first, AllKeys).ok().and_then(|keys| role_of(&keys))
}

/// Records as JSON lines, whose keys have these roles.
struct JsonLines<'r>(&'r Roles);

impl<R: Record> Syntax<R> for JsonLines<'_> {
    /// The keys of the ends, and that of the number if there is one.
    type Shape = Vec<String>;

    fn begin(&self, text: &mut Text<'_>) -> Result<Vec<String>, Error> {
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        // What is wrong with the line is reported when it is read: no key is empty.
        let Ok(keys) = object(first, AllKeys) else { return Ok(vec![String::new(); 3]) };
        self.keys::<R>(&keys).map_err(|problem| Error::invalid(text.path(), problem))
    }

    fn line(&self, keys: &Vec<String>, columns: &mut Columns<R::Data>, line: &[u8]) -> Result<(), Malformed> {
        let values = object(line, Values(keys)).map_err(|error| not_json(line, &error))?;
        let missing = |at: usize, field| Malformed::new(field, line, format!("a value of \"{}\"", keys[at]));
        let value = |at: usize, field| values[at].ok_or_else(|| missing(at, field));
        let [left, right] = R::FIELDS;
        let (left, right) = (id(left, value(0, left)?)?, id(right, value(1, right)?)?);
        let number = if R::has_number() { value(2, R::number_name())?.get() } else { "" };
        let data = R::of_text(number.as_bytes());
        let data = data.ok_or_else(|| Malformed::new(R::number_name(), number.as_bytes(), R::NUMBER))?;
        columns.push(R::FIELDS, [&left, &right], data)
    }
}

impl JsonLines<'_> {
    fn keys<R: Record>(&self, keys: &[String]) -> Result<Vec<String>, String> {
        let roles = self.0;
        if roles.width() > 0 {
            return Err("JSON lines have keys, which are not numbered; name them in --columns, user=who say".to_owned());
        }
        let (known, number) = (known_beside::<R>(keys, roles), known_number::<R>(keys));
        let unknown = |(at, _): &(usize, &Role)| match at {
            2 => number.is_none(),
            _ => known.is_none(),
        };
        let missing = R::ROLES.iter().enumerate().filter(unknown).find(|(_, role)| !roles.has(**role));
        if let Some((_, role)) = missing {
            let (name, keys) = (role.name(), if keys.is_empty() { "it has none".to_owned() } else { keys.join(", ") });
            return Err(format!("none of its keys is known for {name}: {keys}; name it with --columns {name}=KEY"));
        }
        let (ends, number) = roles.columns(R::ROLES, keys, keys.len(), known.unwrap_or(([0, 0], number)))?;
        Ok(ends.into_iter().chain(number).map(|at| keys[at].clone()).collect())
    }
}

/// Returns an id as it would stand in a text.
fn id<'v>(field: &'static str, value: &'v RawValue) -> Result<Cow<'v, [u8]>, Malformed> {
    let text = value.get();
    match text.as_bytes() {
        [b'"', inside @ .., b'"'] if memchr::memchr(b'\\', inside).is_none() => Ok(Cow::Borrowed(inside)),
        [b'"', ..] => match serde_json::from_str::<String>(text) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(_) => Err(Malformed::new(field, text.as_bytes(), "text in Unicode")),
        },
        digits @ [b'0'..=b'9' | b'-', ..] if !digits.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => {
            Ok(Cow::Borrowed(digits))
        }
        other => Err(Malformed::new(field, other, "an integer or a text")),
    }
}

/// Says what is wrong with a line.
pub(crate) fn not_json(line: &[u8], error: &serde_json::Error) -> Malformed {
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or_default();
    Malformed::new("JSON", line, format!("an object ({problem} at column {})", error.column()))
}

/// Reads a line that is one object: its keys, and their values as they stand in the text.
pub(crate) fn entries(line: &[u8]) -> Result<Vec<(String, &RawValue)>, serde_json::Error> {
    object(line, AllEntries)
}

/// Reads a line that is one object.
fn object<'l, S: DeserializeSeed<'l>>(line: &'l [u8], seed: S) -> Result<S::Value, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let read = seed.deserialize(&mut json)?;
    json.end().map(|()| read)
}

/// Collects the keys of an object and their values.
struct AllEntries;

impl<'l> DeserializeSeed<'l> for AllEntries {
    type Value = Vec<(String, &'l RawValue)>;

    fn deserialize<D: Deserializer<'l>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'l> Visitor<'l> for AllEntries {
    type Value = Vec<(String, &'l RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(all)
    }
}

/// Collects the keys of an object.
struct AllKeys;

impl<'l> DeserializeSeed<'l> for AllKeys {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'l>>(self, from: D) -> Result<Vec<String>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'l> Visitor<'l> for AllKeys {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            keys.push(key);
        }
        Ok(keys)
    }
}

/// Finds the values of some keys, up to three, as they stand in the text.
#[derive(Clone, Copy)]
struct Values<'k>(&'k [String]);

impl<'l> DeserializeSeed<'l> for Values<'_> {
    type Value = [Option<&'l RawValue>; 3];

    fn deserialize<D: Deserializer<'l>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'l> Visitor<'l> for Values<'_> {
    type Value = [Option<&'l RawValue>; 3];

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [None; 3];
        while let Some(at) = map.next_key_seed(KeyOf(self.0))? {
            match at.and_then(|at| values.get_mut(at)) {
                Some(value) => *value = Some(map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(values)
    }
}

/// Finds which of some keys a key is.
struct KeyOf<'k>(&'k [String]);

impl<'l> DeserializeSeed<'l> for KeyOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'l>>(self, from: D) -> Result<Option<usize>, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|known| known == key))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, parse_graph, parse_ratings};

    #[test]
    fn objects_are_read_as_lines() {
        let plain = parse_ratings(b"a,1,4\nb \",2,3.5\n7,1,-1e1\n".as_slice(), Format::Ratings).unwrap();
        let text = r#"{"user": "a", "item": 1, "rating": 4}
            {"more": {"user": [1, "}"]}, "rating": 3.5, "item": 2, "us\u0065r": "b \u0022"}

            {"item":1,"user":7,"rating":-1e1}"#;
        assert_eq!(parse_ratings(text.as_bytes(), Format::JsonLines).unwrap(), plain);
        assert_eq!(Format::from_content(text.as_bytes()), Some(Format::JsonLines));
        let graph = parse_graph(b"{\"src\":1,\"dst\":2,\"w\":3}\n", Format::JsonLines).unwrap();
        assert_eq!(graph, parse_graph(b"1 2\n", Format::Edges).unwrap());
    }

    #[test]
    fn what_is_wrong_with_an_object_is_told() {
        let first = "{\"user\":1,\"item\":2,\"rating\":3}\n";
        for (line, expected) in [
            (
                "{\"user\":1,\"item\":2}",
                "<bytes>:2: rating: found \"{\\\"user\\\":1,\\\"item\\\":2}\", expected a value of \"rating\"",
            ),
            (
                "{\"user\":null,\"item\":2,\"rating\":3}",
                "<bytes>:2: user: found \"null\", expected an integer or a text",
            ),
            ("{\"user\":1.5,\"item\":2,\"rating\":3}", "<bytes>:2: user: found \"1.5\""),
            ("{\"user\":-1,\"item\":2,\"rating\":3}", "<bytes>:2: user: found \"-1\", expected an id from 0"),
            (
                "{\"user\":1,\"item\":2,\"rating\":\"3\"}",
                "<bytes>:2: rating: found \"\\\"3\\\"\", expected a finite number",
            ),
            ("{\"user\":1,\"item\":2,\"rating\":1e60}", "<bytes>:2: rating: found \"1e60\""),
            ("{\"user\":1,\"item\":2,\"rati", "<bytes>:2: JSON: found"),
            ("[1,2,3]", "<bytes>:2: JSON: found \"[1,2,3]\", expected an object"),
            ("{} x", "<bytes>:2: JSON: found"),
        ] {
            let said = parse_ratings(format!("{first}{line}\n").as_bytes(), Format::JsonLines).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
        for (text, expected) in [
            ("no object\n", "<bytes>:1: JSON: found \"no object\", expected an object"),
            ("{}\n", "<bytes>: none of its keys is known for user: it has none"),
        ] {
            let said = parse_ratings(text.as_bytes(), Format::JsonLines).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
        let unknown =
            parse_ratings(b"{\"who\":1,\"what\":2,\"stars\":3}\n", Format::JsonLines).unwrap_err().to_string();
        assert!(
            unknown.contains("none of its keys is known for user: who, what, stars; name it with --columns user=KEY"),
            "{unknown}"
        );
    }
}
