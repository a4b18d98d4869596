//! LIBSVM text: `label index:value ...` a line. Indices may start from 0 or 1; what follows a `#` is a comment.
//!
//! Only features that occur become right vertices: a feature without a value anywhere has no weight to learn, and a
//! stray large index costs nothing.

use crate::rows::{self, Rows};
use crate::text::{Fields, Input, Malformed, integer, number, words};
use crate::{Classes, Dataset, Error, Samples};

/// Reads samples. `positive` lists the labels that count as 1, all others being -1; where it is empty, the labels
/// have to be -1 and 1, or 0 and 1.
pub(crate) fn read(input: &Input<'_>, positive: &[f32]) -> Result<Samples, Error> {
    let label = |fields: &mut Fields<'_>| label(fields.next().unwrap_or_default(), positive);
    let (data, mut labels) = rows::read(input, "features", |_| (), |rows, line| sample(rows, line, label))?;
    if labels.contains(&0.0) && labels.contains(&-1.0) {
        let problem = "labels -1, 0 and 1 all occur, expected -1 and 1 or 0 and 1; say which ones are positive";
        return Err(Error::invalid(input.path(), problem));
    }
    labels.iter_mut().for_each(|label| *label = if *label > 0.0 { 1.0 } else { -1.0 });
    Ok(Samples { data, labels })
}

/// Reads samples of any classes: each label is one.
pub(crate) fn read_classes(input: &Input<'_>) -> Result<Classes, Error> {
    let label = |fields: &mut Fields<'_>| {
        let field = fields.next().unwrap_or_default();
        // Zero has no sign.
        number(field).map(|label| label + 0.0).ok_or_else(|| Malformed::new("label", field, "a number"))
    };
    let (data, of_samples) = rows::read(input, "features", |_| (), |rows, line| sample(rows, line, label))?;
    let mut labels = of_samples.clone();
    labels.sort_by(f32::total_cmp);
    labels.dedup();
    let class = |label: &f32| labels.partition_point(|other| other < label) as u32;
    let classes = of_samples.iter().map(class).collect();
    Ok(Classes { data, labels, classes })
}

/// Reads samples whose labels are not known: what a line begins with, if it is not a feature, is skipped.
pub(crate) fn read_unlabelled(input: &Input<'_>) -> Result<Dataset<f32>, Error> {
    let skip_label = |fields: &mut Fields<'_>| {
        let is_label = |first: &[u8]| memchr::memchr(b':', first).is_none();
        if fields.clone().next().is_some_and(is_label) {
            fields.next();
        }
        Ok(())
    };
    rows::read(input, "features", |_| (), |rows, line| sample(rows, line, skip_label)).map(|(data, _)| data)
}

/// Adds the sample of a line; `label` takes the label off its fields.
fn sample<L>(
    rows: &mut Rows<f32, L>,
    line: &[u8],
    label: impl FnOnce(&mut Fields<'_>) -> Result<L, Malformed>,
) -> Result<(), Malformed> {
    let line = memchr::memchr(b'#', line).map_or(line, |comment| &line[..comment]);
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let mut fields = words(line);
    let label = label(&mut fields)?;
    for field in fields {
        let colon = memchr::memchr(b':', field);
        let colon = colon.ok_or_else(|| Malformed::new("feature", field, "index:value"))?;
        let (index, value) = (&field[..colon], &field[colon + 1..]);
        let index = integer(index)
            .ok_or_else(|| Malformed::new("feature index", index, "an integer from 0 to 18446744073709551615"))?;
        let value = number(value).ok_or_else(|| Malformed::new("feature value", value, "a finite number"))?;
        rows.push(index, value);
    }
    rows.end(label);
    Ok(())
}

fn label(field: &[u8], positive: &[f32]) -> Result<f32, Malformed> {
    let label = number(field).ok_or_else(|| Malformed::new("label", field, "a number"))?;
    if !positive.is_empty() {
        return Ok(if positive.contains(&label) { 1.0 } else { -1.0 });
    }
    if label == 1.0 || label == -1.0 || label == 0.0 {
        return Ok(label);
    }
    Err(Malformed::new("label", field, "-1 or 1, or 0 or 1; for other classes say which ones are positive"))
}
