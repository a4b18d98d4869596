//! LIBSVM text: `label index:value ...` a line. A label is a number or a word. Indices may start from 0 or 1; what follows a `#` is a comment.
//!
//! Only features that occur become right vertices: a feature without a value anywhere has no weight to learn, and a
//! stray large index costs nothing.

use crate::labels::{self, Label, Labels};
use crate::rows::{self, Holds, Numbered, Rows};
use crate::text::{Fields, Input, Malformed, Text, integer, number, words};
use crate::{Dataset, Dictionary, Error, Samples};

/// Reads samples. `positive` lists the labels that count as 1, all others being -1; where it is empty, each label is a class.
pub(crate) fn read(input: &Input<'_>, positive: &[Label]) -> Result<Samples, Error> {
    let label = |rows: &mut Rows<f32>, fields: &mut Fields<'_>| {
        let label = fields.next().unwrap_or_default();
        labels::push(&mut rows.labels, label, positive)
    };
    let read = rows::read(input, Holds::Features, |_| (), |rows, line| sample(rows, line, label))?;
    Ok(Samples::new(read.data, Labels::of_column(read.labels, input, positive)?))
}

/// Reads samples whose labels are not known: what a line begins with, if it is not a feature, is skipped. Where lines have no labels, a blank
/// one before others is a sample without features.
pub(crate) fn read_unlabelled(input: &Input<'_>) -> Result<Dataset<f32>, Error> {
    let begin = |text: &mut Text<'_>| {
        if text.lines().map(|line| words(uncommented(line)).next()).find_map(|first| first).is_some_and(is_feature) {
            text.parse_blank_lines();
        }
    };
    let skip_label = |rows: &mut Rows<f32>, fields: &mut Fields<'_>| {
        if !fields.clone().next().is_some_and(is_feature) {
            fields.next();
        }
        rows.labels.ids.push(WRITTEN);
        Ok(())
    };
    let line = |rows: &mut Rows<f32>, line: &[u8]| {
        if line.is_empty() {
            rows.labels.ids.push(BLANK);
            rows.end();
            return Ok(());
        }
        sample(rows, line, skip_label)
    };
    let Numbered { mut data, labels: lines, .. } = rows::read(input, Holds::Features, begin, line)?;
    let lines = lines.ids.into_entries();
    let Some(last) = lines.iter().rposition(|&line| u64::from(line) == WRITTEN) else {
        return Err(Error::Empty { path: input.path().to_path_buf(), records: "features" });
    };
    if last + 1 < lines.len() {
        data.edges.num_left = last + 1;
        data.left_names = Dictionary::from_integers((1..=last as u64 + 1).collect());
    }
    Ok(data)
}

/// What a line of a sample without a label is.
const WRITTEN: u64 = 1;
const BLANK: u64 = 0;

fn is_feature(word: &[u8]) -> bool {
    memchr::memchr(b':', word).is_some()
}

/// Tells whether a line is one of LIBSVM that has features.
pub(crate) fn has_features(line: &[u8]) -> bool {
    let pair = |word: &[u8]| {
        let (index, value) = word.split_at(memchr::memchr(b':', word).unwrap_or(0));
        integer(index).is_some() && number(&value[1..]).is_some()
    };
    let mut words = words(uncommented(line)).peekable();
    // A label.
    words.next_if(|first| !is_feature(first));
    words.peek().is_some() && words.all(pair)
}

/// Returns a line without its comment.
fn uncommented(line: &[u8]) -> &[u8] {
    memchr::memchr(b'#', line).map_or(line, |comment| &line[..comment])
}

/// Adds the sample of a line; `label` takes the label off its fields.
fn sample(
    rows: &mut Rows<f32>,
    line: &[u8],
    label: impl FnOnce(&mut Rows<f32>, &mut Fields<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let line = uncommented(line);
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let mut fields = words(line);
    label(rows, &mut fields)?;
    for field in fields {
        let colon = memchr::memchr(b':', field);
        let colon = colon.ok_or_else(|| Malformed::new("feature", field, "index:value"))?;
        let (index, value) = (&field[..colon], &field[colon + 1..]);
        let index = integer(index)
            .ok_or_else(|| Malformed::new("feature index", index, "an integer from 0 to 18446744073709551615"))?;
        let value = number(value).ok_or_else(|| Malformed::new("feature value", value, "a finite number"))?;
        rows.push(index, value);
    }
    rows.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_between_others_are_samples_where_there_are_no_labels() {
        let read = |text: &str| {
            let data = read_unlabelled(&Input::from_bytes(text.as_bytes())).unwrap();
            let names: Vec<String> = data.left_names.iter().map(|name| name.into_owned()).collect();
            assert_eq!(names.len(), data.edges.num_left);
            (names.len(), data.edges.left)
        };
        assert_eq!(read("1:1\n\n2:1\n"), (3, vec![0, 2]));
        assert_eq!(read("# a comment\n\n1:1\n # another\n  \n\n2:1\n1\n\n\n"), (6, vec![1, 4]));
        assert_eq!(read("x 1:1\n\n1\n2:1"), (3, vec![0, 2]));
        assert_eq!(read("1\n-1\n"), (2, vec![]));
        assert!(read_unlabelled(&Input::from_bytes(b"\n# nothing\n")).is_err());
    }
}
