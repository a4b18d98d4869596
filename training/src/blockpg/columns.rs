//! What the columns of tables say of samples: which one holds labels, and which ones a model knows and a file lacks.

use std::collections::BTreeSet;

use megagrid_datasets::{Dictionary, Labels, Layout, Role, SampleColumns};

use super::reading::find;
use crate::Error;
use crate::input::Source;

/// Columns that a message names.
const LISTED: usize = 5;
/// So many classes may have few samples each.
const FEW: usize = 20;

/// Returns the columns of a source that is a table.
pub(super) fn columns(source: &Source) -> Result<Option<SampleColumns>, Error> {
    let mut source = source.clone();
    find(&mut source)?;
    let layout = Layout { format: source.format, ..source.layout() };
    Ok(layout.sample_columns(&source.input)?)
}

/// Warns where a table lacks columns that hold features.
///
/// # Errors
/// A table that cannot be read.
pub fn warn_of_absent(source: &Source, features: &Dictionary) -> Result<(), Error> {
    let are_words = source.columns.as_ref().is_some_and(|roles| roles.has(Role::Text));
    let Some(SampleColumns { names, .. }) = columns(source)?.filter(|found| found.are_all && !are_words) else {
        return Ok(());
    };
    let there: BTreeSet<&str> = names.iter().map(|name| &name[..]).collect();
    let mut absent = BTreeSet::new();
    for feature in features.iter() {
        // Names of columns, and texts, may have the sign in them.
        let of_category = || feature.match_indices('=').any(|(at, _)| there.contains(&feature[..at]));
        if !there.contains(&*feature) && !of_category() {
            absent.insert(feature.split_once('=').map_or(&*feature, |(column, _)| column).to_owned());
        }
    }
    if absent.is_empty() {
        return Ok(());
    }
    let named = |column: &String| match names.iter().find(|name| name.eq_ignore_ascii_case(column)) {
        Some(similar) => format!("{column} (it has {similar})"),
        None => column.clone(),
    };
    let more = if absent.len() > LISTED { format!(" and {} more", absent.len() - LISTED) } else { String::new() };
    let listed: Vec<String> = absent.iter().take(LISTED).map(named).collect();
    tracing::warn!(
        "{}: there is no column {}{more}, of which there are features in training; its values count as 0",
        source.input.display(),
        listed.join(", "),
    );
    Ok(())
}

/// Warns of labels that look like numbers to be predicted: nearly all differ, or many are no whole numbers.
pub(super) fn warn_of_numbers(labels: &Labels) {
    let number = labels.classes.len();
    let Some(numbers) = labels.classes.iter().map(|name| Labels::number(name)).collect::<Option<Vec<f64>>>() else {
        return;
    };
    let parts = numbers.iter().filter(|number| number.fract() != 0.0).count();
    if number > FEW && (number > labels.of.len() / 4 || parts > number / 2) {
        tracing::warn!(
            "the labels of {} samples are {number} classes, each of which is told from the rest; if they are numbers to be \
             predicted, cut them into ranges, or name another column of labels",
            labels.of.len()
        );
    }
}
