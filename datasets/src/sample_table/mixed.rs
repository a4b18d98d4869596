//! Columns of numbers that have a few texts, which are categories then: `1,000` say.

use std::borrow::Cow;
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::Dataset;

/// Columns that a warning names.
const NAMED: usize = 3;

/// A column that has numbers and texts.
#[derive(Debug, PartialEq, Eq)]
struct Mixed<'d> {
    column: Cow<'d, str>,
    texts: usize,
    first: String,
}

/// Warns of columns that have numbers, and texts in fewer than half of the samples.
pub(super) fn warn(path: &Path, data: &Dataset<f32>) {
    let (samples, found) = (data.edges.num_left, find(data));
    if found.is_empty() {
        return;
    }
    let of = |Mixed { column, texts, first }: &Mixed<'_>| {
        format!("{column}: {texts} of {samples} values are no numbers, the first \"{first}\"")
    };
    let named: Vec<String> = found.iter().take(NAMED).map(of).collect();
    tracing::warn!("{}: {}; they are categories", path.display(), named.join("; "));
}

/// Finds them by the names of features, `column` of its numbers and `column=text`, the one with the most texts first.
fn find(data: &Dataset<f32>) -> Vec<Mixed<'_>> {
    let names = data.right_names();
    let numbers = names.iter().filter(|name| !name.contains('=')).map(|name| (name, None));
    let mut columns: FxHashMap<Cow<'_, str>, Option<(usize, String)>> = numbers.collect();
    if columns.is_empty() || columns.len() == names.len() {
        return Vec::new();
    }
    let mut counts = vec![0_usize; names.len()];
    data.edges.right.iter().for_each(|&feature| counts[feature as usize] += 1);
    // Names are in the order in which they appear.
    for (name, count) in names.iter().zip(counts) {
        if let Some((column, text)) = name.split_once('=')
            && let Some(found) = columns.get_mut(column)
        {
            found.get_or_insert_with(|| (0, text.to_owned())).0 += count;
        }
    }
    let few = |texts: usize| 2 * texts < data.edges.num_left;
    let mixed = columns.into_iter().filter_map(|(column, found)| {
        let (texts, first) = found.filter(|found| few(found.0))?;
        Some(Mixed { column, texts, first })
    });
    let mut mixed: Vec<Mixed<'_>> = mixed.collect();
    mixed.sort_by(|a, b| b.texts.cmp(&a.texts).then_with(|| a.column.cmp(&b.column)));
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse_samples};

    #[test]
    fn texts_in_columns_of_numbers_are_found() {
        let csv = "label,age,city,n\n1,40,3,1\n0,\"1,000\",Oslo,x\n1,0,Rome,2\n0,7,4,?\n1,8,Bern,3\n";
        let samples = parse_samples(csv.as_bytes(), Format::Table, &[]).unwrap();
        let mixed = |column: &str, texts, first: &str| Mixed {
            column: column.to_owned().into(),
            texts,
            first: first.to_owned(),
        };
        assert_eq!(find(&samples.data), [mixed("n", 2, "x"), mixed("age", 1, "1,000")]);
        let plain = parse_samples(b"label,age,city\n1,40,Oslo\n0,30,Rome\n", Format::Table, &[]).unwrap();
        assert_eq!(find(&plain.data), []);
    }
}
