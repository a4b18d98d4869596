//! What samples are labelled with.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::column::Column;
use crate::name_table::NameTable;
use crate::text::{Input, Malformed};
use crate::{Dictionary, Error, Role, Roles};

/// What labels are called where nobody names their column.
pub(crate) const KNOWN: [&str; 4] = ["label", "class", "target", "y"];

/// Tells whether one of the names of columns says that it holds labels.
pub(crate) fn is_label_named(names: &[Cow<'_, [u8]>]) -> bool {
    names.iter().any(|name| KNOWN.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())))
}

/// Says by which of its usual names the column of labels is known, where another one is that of a feature.
pub(crate) fn labelled_beside(roles: Roles, features: &Dictionary) -> Roles {
    let is_category = |feature: &str, name: &str| feature.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
    let is_feature = |name: &str| features.iter().any(|feature| feature == name || is_category(&feature, name));
    let are_said = [Role::Label, Role::Text, Role::Feature].into_iter().any(|role| roles.has(role));
    let (taken, free): (Vec<&str>, Vec<&str>) = KNOWN.iter().partition(|name| !are_said && is_feature(name));
    match free.first() {
        Some(name) if !taken.is_empty() => roles.with(Role::Label, name),
        _ => roles,
    }
}

/// A label as somebody names it: a number, however it is written, or a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

impl FromStr for Label {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let text = text.trim();
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        Ok(number.map_or_else(|| Self::Word(text.to_owned()), Self::Number))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

impl Label {
    /// Tells whether a text says the same.
    fn is(&self, text: &str) -> bool {
        match self {
            Self::Number(number) => text.parse() == Ok(*number),
            Self::Word(word) => word == text || truth(word.as_bytes()) == Some(text),
        }
    }
}

/// The classes of samples, and which one each sample has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Names of the classes, each once: ascending, by their numbers where all are [numbers](Self::number).
    pub classes: Vec<String>,
    /// The place of each sample's class among them.
    pub of: Vec<u32>,
}

impl Labels {
    /// More different labels than this are numbers to be predicted rather than classes.
    pub const MOST_CLASSES: usize = 1000;

    /// Takes labels of two classes, called -1 and 1: those above 0 have the second.
    #[must_use]
    pub fn of_signs(signs: impl IntoIterator<Item = f32>) -> Self {
        Self {
            classes: vec!["-1".to_owned(), "1".to_owned()],
            of: signs.into_iter().map(|sign| u32::from(sign > 0.0)).collect(),
        }
    }

    /// Takes labels that are numbers.
    ///
    /// # Errors
    /// One that is not finite, or too many classes: what is wrong.
    pub fn of_numbers(numbers: &[f32]) -> Result<Self, String> {
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(format!("label {number}, expected a finite number"));
        }
        let mut names = NameTable::default();
        let mut of = Vec::with_capacity(numbers.len());
        for number in numbers {
            of.push(names.intern(number.to_string().as_bytes()));
            if names.len() > Self::MOST_CLASSES {
                return Err(too_many());
            }
        }
        Ok(Self::of_names(&names, &of))
    }

    /// Returns -1 for each sample of the first class, 1 for any other.
    pub fn signs(&self) -> impl ExactSizeIterator<Item = f32> + '_ {
        self.of.iter().map(|&class| if class == 0 { -1.0 } else { 1.0 })
    }

    /// Returns the number of samples of each class.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        self.of.iter().for_each(|&class| counts[class as usize] += 1);
        counts
    }

    /// Returns the labels of the samples with these numbers, in their order.
    #[must_use]
    pub fn reorder(&self, order: &[u32]) -> Self {
        Self { classes: self.classes.clone(), of: order.iter().map(|&old| self.of[old as usize]).collect() }
    }

    /// Adds the labels of more samples behind its own. A class that is new takes its place among the others.
    #[must_use]
    pub fn append(mut self, more: &Self) -> Self {
        if let Ok(of) = more.among(&self.classes) {
            self.of.extend(of);
            return self;
        }
        let mut names = NameTable::default();
        for class in &self.classes {
            names.intern(class.as_bytes());
        }
        // Where one word makes names of all labels, those before are numbers still.
        let same = |class: &String| {
            let number = Self::number(class)?;
            self.classes.iter().find(|known| Self::number(known) == Some(number))
        };
        let place = |class: &String| names.intern(same(class).unwrap_or(class).as_bytes());
        let places: Vec<u32> = more.classes.iter().map(place).collect();
        let mut entries = self.of;
        entries.extend(more.of.iter().map(|&class| places[class as usize]));
        Self::of_names(&names, &entries)
    }

    /// Returns the labels as numbers.
    ///
    /// # Errors
    /// The name of a class that is no number of 32 bits.
    pub fn numbers(&self) -> Result<Vec<f32>, &str> {
        let number = |name: &String| name.parse::<f32>().ok().filter(|number| number.to_string() == *name);
        let all = self.classes.iter().map(|name| number(name).ok_or(&name[..])).collect::<Result<Vec<f32>, _>>()?;
        Ok(self.of.iter().map(|&class| all[class as usize]).collect())
    }

    /// Returns the place of each sample's class among `classes`. Of the two classes -1 and 1 the first is also called 0, and the other way round,
    /// unless there are samples of -1 and of 0.
    ///
    /// # Errors
    /// The name of a class that is none of these.
    pub fn among(&self, classes: &[String]) -> Result<Vec<u32>, &str> {
        let counts = self.counts();
        let is_used = |name: &str| self.classes.iter().zip(&counts).any(|(class, &used)| class == name && used > 0);
        let is_other_name = |name: &str| match classes {
            [first, second] => {
                second == "1" && matches!((&first[..], name), ("-1", "0") | ("0", "-1")) && !is_used(first)
            }
            _ => false,
        };
        let place = |name: &str| {
            let at = classes.iter().position(|class| Self::is_same(class, name));
            at.or_else(|| is_other_name(name).then_some(0)).map(|at| at as u32)
        };
        let used = self.classes.iter().zip(&counts);
        let known = used.map(|(name, &used)| if used > 0 { place(name).ok_or(&name[..]) } else { Ok(0) });
        let places = known.collect::<Result<Vec<u32>, _>>()?;
        Ok(self.of.iter().map(|&class| places[class as usize]).collect())
    }

    /// Returns the number that the name of a class is. Whole numbers that `f64` does not tell apart are words.
    #[must_use]
    pub fn number(name: &str) -> Option<f64> {
        const LARGEST: f64 = 9_007_199_254_740_992.0;
        // 0 has no sign.
        name.parse::<f64>().ok().filter(|number| number.abs() < LARGEST).map(|number| number + 0.0)
    }

    /// Tells whether two names are of one class: truth may be written as `True`, `TRUE` or `true`.
    #[must_use]
    pub fn is_same(one: &str, other: &str) -> bool {
        let [truth_of_one, truth_of_other] = [one, other].map(|name| truth(name.as_bytes()));
        one == other || truth_of_one.is_some() && truth_of_one == truth_of_other
    }

    /// Gives classes the names that are in a text: "+1", "1" and "1.0" are one.
    fn of_names(names: &NameTable, entries: &[u32]) -> Self {
        let text: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let numbers: Option<Vec<f64>> = text.iter().map(|name| Self::number(name)).collect();
        let named: Vec<String> = match &numbers {
            Some(numbers) => numbers.iter().map(f64::to_string).collect(),
            None => text,
        };
        let mut order: Vec<usize> = (0..named.len()).collect();
        match &numbers {
            Some(numbers) => order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b])),
            None => order.sort_by(|&a, &b| named[a].cmp(&named[b])),
        }
        let (mut classes, mut places) = (Vec::<String>::new(), vec![0; named.len()]);
        for at in order {
            if classes.last() != Some(&named[at]) {
                classes.push(named[at].clone());
            }
            places[at] = classes.len() as u32 - 1;
        }
        Self { classes, of: entries.iter().map(|&entry| places[entry as usize]).collect() }
    }

    /// Numbers the classes of a column of labels; where there are `positive` ones, it is of signs, and both are classes.
    pub(crate) fn of_column(column: Column, input: &Input<'_>, positive: &[Label]) -> Result<Self, Error> {
        let Column { ids, names } = column;
        if names.len() > Self::MOST_CLASSES {
            return Err(Error::invalid(input.path(), too_many()));
        }
        let entries = ids.into_entries();
        if positive.is_empty() {
            return Ok(Self::of_names(&names, &entries));
        }
        let is_told = input.readers().is_none_or(|readers| readers.process() == 0);
        let is_there = |at: usize| names.iter().any(|name| name == at.to_string().as_bytes());
        // Where there are none at all, whoever tells classes apart says so.
        let is_told = is_told && (0..positive.len()).any(is_there);
        for (at, label) in positive.iter().enumerate().filter(|(at, _)| is_told && !is_there(*at)) {
            if positive[..at].contains(label) {
                continue;
            }
            tracing::warn!("{}: no sample has the label {label}, which would be 1", input.path().display());
        }
        Ok(Self::of_signs(entries.iter().map(|&entry| if names.get(entry) == OTHER { -1.0 } else { 1.0 })))
    }
}

/// What stands for a label that is none of the positive ones.
const OTHER: &[u8] = b"-1";

/// Adds a label to a column of them; where there are `positive` ones, the place of it among these, or -1.
pub(crate) fn push(column: &mut Column, label: &[u8], positive: &[Label]) -> Result<(), Malformed> {
    let label = truth(label).map_or(label, str::as_bytes);
    let sign = if positive.is_empty() { None } else { Some(sign(label, positive)?) };
    let label = sign.as_deref().unwrap_or(label);
    let before = column.names.len();
    let entry = column.names.intern(label);
    if column.names.len() > before {
        checked(label)?;
        if column.names.len() > Labels::MOST_CLASSES {
            return Err(Malformed::new(
                "label",
                label,
                format!("one of {} classes at most: {ADVICE}", Labels::MOST_CLASSES),
            ));
        }
    }
    column.ids.push(u64::from(entry));
    Ok(())
}

/// Returns what stands for a label. Where numbers are named, a word may be one that nobody knows yet.
fn sign(label: &[u8], positive: &[Label]) -> Result<Cow<'static, [u8]>, Malformed> {
    let text = checked(label)?;
    if let Some(at) = positive.iter().position(|one| one.is(text)) {
        return Ok(at.to_string().into_bytes().into());
    }
    let is_known = text.parse::<f64>().is_ok() || positive.iter().any(|one| matches!(one, Label::Word(_)));
    let expected = "a number, as the positive labels are: leave these out to have classes";
    if is_known { Ok(OTHER.into()) } else { Err(Malformed::new("label", label, expected)) }
}

/// Returns a label that is a number or the name of a class.
fn checked(label: &[u8]) -> Result<&str, Malformed> {
    let text = std::str::from_utf8(label).ok().filter(|text| !text.is_empty() && !text.contains(':'));
    let is_class = |text: &&str| text.parse().ok().is_none_or(f64::is_finite);
    text.filter(is_class).ok_or_else(|| Malformed::new("label", label, "a number or the name of a class"))
}

/// Returns what is called true or false, as JSON writes it: pandas writes True, R TRUE.
fn truth(label: &[u8]) -> Option<&'static str> {
    ["true", "false"].into_iter().find(|truth| label.eq_ignore_ascii_case(truth.as_bytes()))
}

fn too_many() -> String {
    format!("more than {} labels differ: {ADVICE}", Labels::MOST_CLASSES)
}

/// What to do about too many classes.
const ADVICE: &str =
    "labels are classes here, not numbers to predict; say which ones are positive, or cut them into ranges";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Labels {
        let mut column = Column::default();
        words.iter().for_each(|word| push(&mut column, word.as_bytes(), &[]).unwrap());
        Labels::of_column(column, &Input::from_bytes(b""), &[]).unwrap()
    }

    #[test]
    fn numbers_are_in_their_order_however_they_are_written() {
        let labels = read(&["10", "+1", "2", "1.0", "-0", "0"]);
        assert_eq!(labels.classes, ["0", "1", "2", "10"]);
        assert_eq!(labels.of, [3, 1, 2, 1, 0, 0]);
        assert_eq!(labels.numbers().unwrap(), [10.0, 1.0, 2.0, 1.0, 0.0, 0.0]);
        assert_eq!(Labels::of_numbers(&labels.numbers().unwrap()).unwrap(), labels);
    }

    #[test]
    fn one_word_makes_all_labels_words() {
        let labels = read(&["sports", "10", "9", "sports"]);
        assert_eq!((labels.classes.join(" "), labels.of.clone()), ("10 9 sports".to_owned(), vec![2, 0, 1, 2]));
        assert_eq!(labels.numbers(), Err("sports"));
    }

    #[test]
    fn whole_numbers_too_large_for_a_float_stay_apart() {
        let labels = read(&["9007199254740993", "9007199254740992", "3"]);
        assert_eq!(labels.classes, ["3", "9007199254740992", "9007199254740993"]);
        assert_eq!(labels.of, [2, 1, 0]);
        let large = Labels::of_numbers(&[1e20, 3.0, 2e20]).unwrap();
        assert_eq!(Labels::of_numbers(&large.numbers().unwrap()).unwrap(), large);
    }

    #[test]
    fn appended_labels_are_those_of_one_text() {
        for (old, new) in [(&["2", "10"][..], &["10", "+2"][..]), (&["10"], &["2", "3"]), (&["2", "10"], &["b", "2"])] {
            assert_eq!(read(old).append(&read(new)), read(&[old, new].concat()), "{old:?} {new:?}");
        }
        // A word makes names of all labels.
        let labels = read(&["1.0", "2"]).append(&read(&["1.0", "spam"]));
        assert_eq!((labels.classes.join(" "), labels.of), ("1 2 spam".to_owned(), vec![0, 1, 0, 2]));
        // Two names of one class.
        let labels = read(&["1", "-1"]).append(&read(&["0", "1"]));
        assert_eq!((labels.classes.join(" "), labels.of), ("-1 1".to_owned(), vec![1, 0, 0, 1]));
        // Where both are there, they are two classes, as in one text.
        for old in [["1", "-1"], ["1", "0"]] {
            let new = ["0", "1", "-1"];
            assert_eq!(read(&old).append(&read(&new)), read(&[&old[..], &new].concat()), "{old:?}");
        }
    }

    #[test]
    fn labels_that_are_named_become_1() {
        let positive = ["2", "spam"].map(|text| text.parse::<Label>().unwrap());
        let mut column = Column::default();
        for label in ["2.0", "spam", "ham", "+2", "20"] {
            push(&mut column, label.as_bytes(), &positive).unwrap();
        }
        let labels = Labels::of_column(column, &Input::from_bytes(b""), &positive).unwrap();
        assert_eq!((labels.classes.join(" "), labels.of), ("-1 1".to_owned(), vec![1, 1, 0, 1, 0]));
        for (label, written) in positive.iter().zip(["2.0", "\"spam\""]) {
            assert_eq!(serde_json::to_string(label).unwrap(), written);
            assert_eq!(serde_json::from_str::<Label>(written).unwrap(), *label);
        }
    }

    #[test]
    fn what_is_no_class_is_refused() {
        for (bad, positive) in ["", "1:2", "nan", "inf", "1e999"]
            .into_iter()
            .flat_map(|bad| [(bad, &[][..]), (bad, &[Label::Number(1.0)])])
        {
            assert!(push(&mut Column::default(), bad.as_bytes(), positive).is_err(), "{bad}");
        }
        let mut column = Column::default();
        let refused = (0..2000).find(|number| push(&mut column, format!("{number}.5").as_bytes(), &[]).is_err());
        assert_eq!(refused, Some(Labels::MOST_CLASSES));
        assert!(Labels::of_numbers(&(0..2000).map(|number| number as f32).collect::<Vec<_>>()).is_err());
    }

    #[test]
    fn truth_is_written_in_several_ways() {
        let labels = read(&["True", "false", "TRUE", "true", "no"]);
        assert_eq!((labels.classes.join(" "), labels.of), ("false no true".to_owned(), vec![2, 0, 2, 2, 1]));
        let positive = ["True".parse::<Label>().unwrap()];
        let mut column = Column::default();
        for label in ["TRUE", "false", "true"] {
            push(&mut column, label.as_bytes(), &positive).unwrap();
        }
        assert_eq!(Labels::of_column(column, &Input::from_bytes(b""), &positive).unwrap().of, [1, 0, 1]);
        // Those of a model that called them otherwise.
        let known = ["False", "True"].map(str::to_owned);
        assert_eq!(read(&["True", "false"]).among(&known).unwrap(), [1, 0]);
    }

    #[test]
    fn two_classes_have_two_ways_to_call_the_first() {
        let classes = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        assert_eq!(read(&["0", "1"]).among(&classes(["-1", "1"])).unwrap(), [0, 1]);
        assert_eq!(read(&["1", "-1"]).among(&classes(["0", "1"])).unwrap(), [1, 0]);
        assert_eq!(read(&["0", "2"]).among(&classes(["0", "1"])), Err("2"));
        assert_eq!(read(&["0", "1", "-1"]).among(&classes(["-1", "1"])), Err("0"));
    }
}
