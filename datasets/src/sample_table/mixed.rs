//! Columns whose texts may not be meant as categories: `1,000` among numbers, or texts that nearly all differ.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::text::{Input, number};
use crate::{Dataset, Role};

/// Columns that a warning names.
const NAMED: usize = 3;
/// Characters of a text that it shows.
const SHOWN: usize = 40;
/// So many texts may all differ.
const FEW: usize = 20;

/// A column that has texts.
#[derive(Debug, PartialEq, Eq)]
struct Texts<'d> {
    column: Cow<'d, str>,
    has_numbers: bool,
    /// Samples that have a text.
    samples: usize,
    different: usize,
    first: String,
}

impl Texts<'_> {
    /// Tells whether there are numbers beside the texts, or most of these are different ones.
    fn is_doubtful(&self) -> bool {
        self.has_numbers || self.different > FEW.max(self.samples / 2)
    }

    /// Says what is doubtful, of so many samples, and what to do where these are no categories.
    fn finding(&self, all: usize) -> String {
        let Self { column, samples, different, first, .. } = self;
        let shown: String = first.chars().take(SHOWN).collect();
        let found = match self.has_numbers {
            true => format!("{samples} of {all} values are no numbers, the first \"{shown}\""),
            false => format!("{different} different texts in {samples} samples, the first \"{shown}\""),
        };
        format!("{column}: {found} ({})", self.advice())
    }

    fn advice(&self) -> String {
        let Self { column, first, .. } = self;
        let is_number = |text: &str| number(text.as_bytes()).is_some();
        let is_sign = |c: char| c == '%' || "$€£¥".contains(c) || c.is_whitespace();
        let digits: String = first.trim_matches(is_sign).chars().filter(|c| !",' _".contains(*c)).collect();
        if is_number(&digits) {
            return "write numbers as digits, with a decimal point".to_owned();
        }
        if self.has_numbers {
            return "write NA for missing ones".to_owned();
        }
        match first.split(' ').filter(|word| word.chars().all(char::is_alphabetic)).count() {
            0 | 1 => format!("--columns without={column} leaves it out"),
            _ => format!("--columns text={column} counts words, without={column} leaves it out"),
        }
    }
}

/// Warns of columns whose texts may not be meant as categories, but of those that are said to hold some.
pub(super) fn warn(input: &Input<'_>, data: &Dataset<f32>) {
    let are_meant = |column: &str| input.roles().all(Role::Category).any(|place| place.to_string() == column);
    let found: Vec<Texts<'_>> = find(data).into_iter().filter(|texts| !are_meant(&texts.column)).collect();
    if !found.is_empty() {
        let named: Vec<String> = found.iter().take(NAMED).map(|texts| texts.finding(data.edges.num_left)).collect();
        tracing::warn!(
            "{}: {}; they are categories, which --columns category=COLUMN says",
            input.path().display(),
            named.join("; ")
        );
    }
}

/// Finds them by the names of features, `column` of its numbers and `column=text`, the one with the most texts first.
fn find(data: &Dataset<f32>) -> Vec<Texts<'_>> {
    let names = data.right_names();
    let mut columns: FxHashMap<&str, Texts<'_>> = FxHashMap::default();
    let all: Vec<Cow<'_, str>> = names.iter().collect();
    if all.iter().all(|name| !name.contains('=')) {
        return Vec::new();
    }
    let mut counts = vec![0_usize; all.len()];
    data.edges.right.iter().for_each(|&feature| counts[feature as usize] += 1);
    // Names are in the order in which they appear.
    for (name, count) in all.iter().zip(counts) {
        let (column, text) = name.split_once('=').unzip();
        let name = column.unwrap_or(name);
        let none = || Texts {
            column: name.to_owned().into(),
            has_numbers: false,
            samples: 0,
            different: 0,
            first: String::new(),
        };
        let found = columns.entry(name).or_insert_with(none);
        match text {
            None => found.has_numbers = true,
            Some(text) => {
                if found.different == 0 {
                    found.first = text.to_owned();
                }
                found.samples += count;
                found.different += 1;
            }
        }
    }
    let mut found: Vec<Texts<'_>> =
        columns.into_values().filter(|texts| texts.different > 0 && texts.is_doubtful()).collect();
    found.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.column.cmp(&b.column)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse_samples};

    fn found(csv: &str) -> Vec<(String, usize, usize, String)> {
        let samples = parse_samples(csv.as_bytes(), Format::Table, &[]).unwrap();
        let of = |texts: Texts<'_>| (texts.column.into_owned(), texts.samples, texts.different, texts.first);
        find(&samples.data).into_iter().map(of).collect()
    }

    fn texts(column: &str, samples: usize, different: usize, first: &str) -> (String, usize, usize, String) {
        (column.to_owned(), samples, different, first.to_owned())
    }

    #[test]
    fn texts_in_columns_of_numbers_are_found() {
        let csv = "label,age,city,n\n1,40,3,1\n0,\"1,000\",Oslo,x\n1,0,Rome,2\n0,7,4,?\n1,8,Rome,3\n";
        assert_eq!(found(csv), [texts("city", 3, 2, "Oslo"), texts("n", 2, 2, "x"), texts("age", 1, 1, "1,000")]);
        assert_eq!(found("label,age,city\n1,40,Oslo\n0,30,Rome\n"), []);
    }

    #[test]
    fn columns_whose_texts_all_differ_are_found() {
        let lines: String = (0..30).map(|at| format!("{},\"{at},5\",{}\n", at % 2, ["Oslo", "Rome"][at % 2])).collect();
        assert_eq!(found(&format!("label,income,city\n{lines}")), [texts("income", 30, 30, "0,5")]);
        let advice = |first: &str, has_numbers| {
            Texts { column: "x".into(), has_numbers, samples: 1, different: 1, first: first.to_owned() }.advice()
        };
        for number in ["46748,77", "46,748.77", "$12", "12 %", "1'000", "12 €"] {
            assert_eq!(advice(number, false), "write numbers as digits, with a decimal point", "{number}");
        }
        assert_eq!(advice("unknown", true), "write NA for missing ones");
        assert_eq!(advice("a good film", false), "--columns text=x counts words, without=x leaves it out");
        for other in ["C85", "2024-05-01 12:00:00", "<5", "user 7"] {
            assert_eq!(advice(other, false), "--columns without=x leaves it out", "{other}");
        }
    }
}
