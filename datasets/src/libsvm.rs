//! LIBSVM text: `label index:value ...` a line. A label is a number or a word. Indices may start from 0 or 1; what follows a `#` is a comment.
//!
//! Only features that occur become right vertices: a feature without a value anywhere has no weight to learn, and a
//! stray large index costs nothing.

use crate::labels::{self, Labels};
use crate::rows::{self, Rows};
use crate::text::{Fields, Input, Malformed, integer, number, words};
use crate::{Dataset, Error, Samples};

/// Reads samples. `positive` lists the labels that count as 1, all others being -1; where it is empty, each label is a class.
pub(crate) fn read(input: &Input<'_>, positive: &[f32]) -> Result<Samples, Error> {
    let label = |rows: &mut Rows<f32>, fields: &mut Fields<'_>| {
        let label = fields.next().unwrap_or_default();
        labels::push(&mut rows.labels, if positive.is_empty() { label } else { sign(label, positive)? })
    };
    let (data, column) = rows::read(input, "features", |_| (), |rows, line| sample(rows, line, label))?;
    Ok(Samples { data, labels: Labels::of_column(column, input.path(), !positive.is_empty())? })
}

/// Reads samples whose labels are not known: what a line begins with, if it is not a feature, is skipped.
pub(crate) fn read_unlabelled(input: &Input<'_>) -> Result<Dataset<f32>, Error> {
    let skip_label = |_: &mut Rows<f32>, fields: &mut Fields<'_>| {
        let is_label = |first: &[u8]| memchr::memchr(b':', first).is_none();
        if fields.clone().next().is_some_and(is_label) {
            fields.next();
        }
        Ok(())
    };
    rows::read(input, "features", |_| (), |rows, line| sample(rows, line, skip_label)).map(|(data, _)| data)
}

/// Adds the sample of a line; `label` takes the label off its fields.
fn sample(
    rows: &mut Rows<f32>,
    line: &[u8],
    label: impl FnOnce(&mut Rows<f32>, &mut Fields<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let line = memchr::memchr(b'#', line).map_or(line, |comment| &line[..comment]);
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

/// Returns the label that a label counts as.
pub(crate) fn sign(label: &[u8], positive: &[f32]) -> Result<&'static [u8], Malformed> {
    let label = number(label).ok_or_else(|| {
        Malformed::new("label", label, "a number, as the positive labels are: leave these out to have classes")
    })?;
    Ok(if positive.contains(&label) { b"1" } else { b"-1" })
}
