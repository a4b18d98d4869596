//! How the records of a table are written, and what its columns are for.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::json_lines::entries;
use crate::labels::{KNOWN, Label};
use crate::missing::is_missing;
use crate::roles::{Place, listed};
use crate::text::{Separator, Text, number, paired};
use crate::texts::names::known as known_text;
use crate::{Role, Roles, Tokenizer};

/// Records that are looked at to tell whether the first one is a header.
const LOOKED_AT: usize = 100;
/// Records that are many, of a class too.
const MANY: usize = 10;

/// What becomes of labels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Labelled<'p> {
    /// Those that count as 1, all others -1; none: each is a class.
    As(&'p [Label]),
    /// They are not looked at, and may be missing.
    No,
    /// They are names of documents, where a column is named for these.
    Documents,
}

/// What tells how a table is read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'r> {
    pub(super) roles: &'r Roles,
    pub(super) is_json: bool,
    pub(super) labelled: Labelled<'r>,
    pub(super) tokenizer: Tokenizer,
}

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Label,
    Weight,
    Text,
    /// A number is the value of a feature, any other text a category.
    Feature,
    /// All are categories.
    Category,
    Nothing,
}

/// How the records of a file are written.
#[derive(Debug)]
pub(super) struct Shape {
    /// Of delimited text.
    pub(super) separator: Separator,
    /// Names of its columns.
    pub(super) names: Vec<String>,
    /// What each of them is for.
    pub(super) uses: Vec<Use>,
    /// Which of them hold labels, weights and texts.
    pub(super) label: Option<usize>,
    pub(super) weight: Option<usize>,
    pub(super) text: Option<usize>,
    /// What a column is for that has no role: nothing, where one has texts or some are named as features.
    pub(super) usual: Use,
    /// Keys of JSON that are not for what others are.
    special: Vec<(String, Use)>,
}

impl Shape {
    /// Returns what a key of JSON is for, which the first object may lack.
    pub(super) fn use_of(&self, key: &str) -> Use {
        let special = self.special.iter().find(|(name, _)| name == key);
        special.map_or(self.usual, |(_, found)| *found)
    }

    /// Tells whether the first record of a text without a header, which has these fields, reads like the names of columns: no field is a number,
    /// and where all others have numbers, or a label that they have again and again, it has something else.
    pub(super) fn is_doubtful(&self, first: &[String], text: &Text<'_>) -> bool {
        let records = text.records().filter(|(_, record)| !record.is_empty()).skip(1).take(LOOKED_AT);
        let others: Vec<_> = records.map(|(_, record)| self.separator.all_fields(record)).collect();
        let is_number = |field: &[u8]| number(field).is_some();
        let are_names = first.iter().all(|field| !is_number(field.as_bytes()));
        let has_numbers = |at: usize| {
            let others = || others.iter().all(|other| other.get(at).is_some_and(|field| is_number(field)));
            !is_missing(first[at].as_bytes()) && others()
        };
        let label = self.label.and_then(|at| Some((at, first.get(at)?)));
        let names_labels = label.is_some_and(|(at, label)| {
            let labels: BTreeSet<_> = others.iter().filter_map(|other| other.get(at)).collect();
            // One class that is rare, beside another, is a class.
            labels.len() > 1
                && labels.len() <= others.len() / MANY
                && labels.iter().all(|other| ***other != *label.as_bytes())
        });
        are_names && others.len() >= MANY && ((0..first.len()).any(has_numbers) || names_labels)
    }
}

/// The first record of delimited text that is not blank.
pub(super) struct First {
    pub(super) separator: Separator,
    /// The lines before and with it.
    lines: usize,
    pub(super) fields: Vec<String>,
}

impl First {
    /// Looks at it, and says in the text what separates its fields.
    pub(super) fn of(text: &mut Text<'_>) -> Self {
        let first = paired(text.head()).find(|line| !line.is_empty());
        // Texts have blanks: a header without another separator is that of one column.
        let separator = match Separator::of(first.into_iter(), usize::MAX) {
            Separator::Space | Separator::Colons => Separator::Byte(b','),
            byte => byte,
        };
        text.separate(separator);
        let first = text.records().find(|(_, record)| !record.is_empty());
        let (lines, fields) = first.map_or((0, Vec::new()), |(at, record)| {
            (at + 1 + memchr::memchr_iter(b'\n', record).count(), separator.all_fields(record))
        });
        let text_of = |field: &Cow<'_, [u8]>| String::from_utf8_lossy(field).into_owned();
        Self { separator, lines, fields: fields.iter().map(text_of).collect() }
    }
}

/// Tells whether a table has no header: the columns of labels and texts are named, and all columns by their numbers.
pub(super) fn is_bare(roles: &Roles) -> bool {
    let is_named = [Role::Label, Role::Text, Role::Document].iter().any(|&role| roles.has(role));
    is_named && roles.only_numbers()
}

impl Reader<'_> {
    /// Returns the first record of a text without a header, if it is doubtful whether it is one.
    pub(super) fn doubtful_first(self, text: &mut Text<'_>) -> Option<String> {
        let fields = First::of(text).fields;
        let shape = self.columns(text).ok()?;
        shape.is_doubtful(&fields, text).then(|| fields.join(", "))
    }

    pub(super) fn are_documents(self) -> bool {
        matches!(self.labelled, Labelled::Documents)
    }

    /// Takes the header off delimited text.
    pub(super) fn columns(self, text: &mut Text<'_>) -> Result<Shape, String> {
        let First { separator, lines, fields } = First::of(text);
        if is_bare(self.roles) {
            // Columns without names are called by their numbers.
            let names = self.numbers(fields.len())?;
            return self.shape(separator, names, &self.roles.by_name());
        }
        text.skip_lines(lines);
        self.named(separator, fields)
    }

    /// Takes the names of columns.
    pub(super) fn named(self, separator: Separator, names: Vec<String>) -> Result<Shape, String> {
        if !self.are_documents() {
            check_names(&names)?;
        }
        self.shape(separator, names, self.roles)
    }

    /// Returns the numbers of `width` columns, as those that a model was trained on have them. Samples to predict may lack those of labels
    /// and weights, all of them.
    fn numbers(self, width: usize) -> Result<Vec<String>, String> {
        let all = self.roles.num_columns().unwrap_or(width);
        let may_lack = |role| self.roles.all(role).next().filter(|_| matches!(self.labelled, Labelled::No));
        let lacking = [(Role::Label, "labels"), (Role::Weight, "weights")];
        let lacking: Vec<_> =
            lacking.into_iter().filter_map(|(role, what)| may_lack(role).map(|at| (at, what))).collect();
        let of = |without: &[(&Place, &str)]| {
            let is_there = |number: &usize| without.iter().all(|(at, _)| **at != Place::Number(*number));
            (1..=all).filter(is_there).map(|number| number.to_string()).collect::<Vec<String>>()
        };
        // One of two could be either.
        let found = [&[], &lacking[..]].map(of).into_iter().find(|names| names.len() == width);
        found.ok_or_else(|| {
            let columns: Vec<String> = lacking.iter().map(|(at, what)| format!("column {at}, the {what}")).collect();
            let least = match &columns[..] {
                [] => String::new(),
                columns => format!(", or {} without {}", all.saturating_sub(columns.len()), columns.join(", and ")),
            };
            format!("{width} columns without names, and the model was trained on {all}; expected as many{least}")
        })
    }

    /// Looks at the keys of the first object.
    pub(super) fn keys(self, text: &Text<'_>) -> Result<Shape, String> {
        if self.roles.width() > 0 {
            return Err(
                "JSON lines have keys, which are not numbered; name them in --columns, text=body say".to_owned()
            );
        }
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        // What is wrong with the line is reported when it is read.
        let names = entries(first).map(|all| all.into_iter().map(|(key, _)| key).collect());
        self.shape(Separator::Space, names.unwrap_or_default(), self.roles)
    }

    fn shape(self, separator: Separator, names: Vec<String>, roles: &Roles) -> Result<Shape, String> {
        let named = |role: Role| match roles.find(role, &names) {
            // Samples whose labels are not known may have none, and no weights.
            Err(_) if role != Role::Text && matches!(self.labelled, Labelled::No) => Ok(None),
            found => found,
        };
        // A column of labels that is named, and not there, is no other one.
        let is_said = roles.has(Role::Label);
        let known = || KNOWN.iter().find_map(|known| names.iter().position(|name| name.eq_ignore_ascii_case(known)));
        let (role, label, text) = match self.labelled {
            Labelled::Documents => {
                let text = named(Role::Text)?.or_else(|| known_text(&names));
                (Role::Document, named(Role::Document)?, text)
            }
            _ => (Role::Label, named(Role::Label)?.or_else(|| known().filter(|_| !is_said)), named(Role::Text)?),
        };
        let weight = named(Role::Weight)?;
        for (one, other) in [
            ((role, label), (Role::Text, text)),
            ((role, label), (Role::Weight, weight)),
            ((Role::Weight, weight), (Role::Text, text)),
        ] {
            if let Some(at) = one.1.filter(|_| one.1 == other.1) {
                let [one, other] = [one.0.name(), other.0.name()];
                return Err(format!("column {} would be both {one} and {other}; name both in --columns", names[at]));
            }
        }
        let usual = if text.is_some() || roles.has(Role::Feature) { Use::Nothing } else { Use::Feature };
        let uses = vec![usual; names.len()];
        let shape = Shape { separator, uses, usual, special: Vec::new(), label, weight, text, names };
        self.with_uses(shape, roles)
    }

    /// Says what the columns are for.
    fn with_uses(self, mut shape: Shape, roles: &Roles) -> Result<Shape, String> {
        let ends = [(shape.label, Use::Label), (shape.weight, Use::Weight), (shape.text, Use::Text)];
        ends.into_iter().for_each(|(at, of)| at.into_iter().for_each(|at| shape.uses[at] = of));
        let mut roled = Vec::new();
        for (role, of) in
            [(Role::Feature, Use::Feature), (Role::Category, Use::Category), (Role::Without, Use::Nothing)]
        {
            for place in roles.all(role) {
                match (place.find(&shape.names, shape.names.len()), place) {
                    (Some(at), _) if [shape.label, shape.weight, shape.text].contains(&Some(at)) => {
                        let (name, role) = (&shape.names[at], role.name());
                        return Err(format!(
                            "column {name} would be {role} and label, weight or text; name it once in --columns"
                        ));
                    }
                    (Some(at), _) if roled.contains(&at) => {
                        let name = &shape.names[at];
                        return Err(format!("column {name} has two roles in --columns; name it once"));
                    }
                    (Some(at), _) => {
                        roled.push(at);
                        shape.uses[at] = of;
                    }
                    (None, Place::Name(key)) if self.is_json => shape.special.push((key.clone(), of)),
                    // What is predicted may lack what does not count.
                    (None, _) if matches!(self.labelled, Labelled::No) => {}
                    (None, _) => {
                        let columns = listed(&shape.names, shape.names.len());
                        return Err(format!("there is no column {place} for {}; {columns}", role.name()));
                    }
                }
            }
        }
        // The first object to predict may lack keys that others have.
        for (role, of) in [(Role::Label, Use::Label), (Role::Weight, Use::Weight)] {
            let absent = roles.all(role).filter(|place| self.is_json && place.find(&shape.names, usize::MAX).is_none());
            shape.special.extend(absent.map(|place| (place.to_string(), of)));
        }
        let named = shape.names.iter().zip(&shape.uses).filter(|(_, of)| **of != shape.usual);
        let named: Vec<_> = named.map(|(name, of)| (name.clone(), *of)).collect();
        shape.special.extend(named);
        Ok(shape)
    }
}

/// Refuses names that two columns have: the values of both would be one feature, their sum.
fn check_names(names: &[String]) -> Result<(), String> {
    let mut seen = rustc_hash::FxHashMap::default();
    for (at, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        if let Some(before) = seen.insert(name, at + 1) {
            return Err(format!("columns {before} and {} are both called {name}; give one another name", at + 1));
        }
    }
    Ok(())
}
