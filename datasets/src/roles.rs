//! Which columns of a table hold what, as a user says it: `user=2,item=1,rating=stars`.

use std::fmt;
use std::str::FromStr;

/// The columns that are read of each record, from 0: those of its ends, and that of its number if it has one.
pub(crate) type Places = ([usize; 2], Option<usize>);

/// What a column says of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Who rated.
    User,
    /// What was rated.
    Item,
    /// How it was rated.
    Rating,
    /// When it was rated.
    Time,
    /// Where an edge begins.
    From,
    /// Where it ends.
    To,
    /// What it weighs; a sample may have one too.
    Weight,
    /// The document that a word occurs in.
    Document,
    /// The word.
    Word,
    /// How often it occurs there.
    Count,
    /// What a sample is labelled with.
    Label,
    /// A text whose words are the features of a sample, or those of a document.
    Text,
    /// Nothing of a sample: it is left out.
    Without,
    /// Categories of a sample, also where they are numbers.
    Category,
    /// A feature of a sample, also beside a text.
    Feature,
}

impl Role {
    const ALL: [(&'static str, Self); 15] = [
        ("user", Self::User),
        ("item", Self::Item),
        ("rating", Self::Rating),
        ("time", Self::Time),
        ("from", Self::From),
        ("to", Self::To),
        ("weight", Self::Weight),
        ("document", Self::Document),
        ("word", Self::Word),
        ("count", Self::Count),
        ("label", Self::Label),
        ("text", Self::Text),
        ("without", Self::Without),
        ("category", Self::Category),
        ("feature", Self::Feature),
    ];

    /// Returns the word for it, as a user says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Tells whether several columns may have it.
    fn may_be_of_several(self) -> bool {
        matches!(self, Self::Without | Self::Category | Self::Feature)
    }
}

/// A column of a table, or a key of JSON lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its number, from 1.
    Number(usize),
    /// Its name, in the header or the schema.
    Name(String),
    /// There is none.
    Nowhere,
}

impl Place {
    /// Finds the column, from 0. A name is compared as it stands, else in any case if only one column has it.
    pub(crate) fn find(&self, names: &[String], width: usize) -> Option<usize> {
        match self {
            Self::Number(number) => Some(number - 1).filter(|&at| at < width),
            Self::Name(name) => names.iter().position(|known| known == name).or_else(|| {
                let mut alike = (0..names.len()).filter(|&at| names[at].eq_ignore_ascii_case(name));
                alike.next().filter(|_| alike.next().is_none())
            }),
            Self::Nowhere => None,
        }
    }
}

/// Which columns of a table have which roles. Those that are not named have theirs by header or order.
///
/// # Examples
/// ```
/// use megagrid_datasets::Roles;
/// let roles: Roles = "user=2,item=1,rating=stars".parse()?;
/// assert_eq!(roles.to_string(), "user=2,item=1,rating=stars");
/// assert!("user=0".parse::<Roles>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    of: Vec<(Role, Place)>,
    /// The columns of a table of samples without a header that a model was trained on.
    num_columns: Option<usize>,
}

impl From<Vec<(Role, Place)>> for Roles {
    fn from(of: Vec<(Role, Place)>) -> Self {
        Self { of, num_columns: None }
    }
}

impl Roles {
    /// Says that records are pairs of a user and an item, without a rating: `rating=none`.
    #[must_use]
    pub fn of_pairs() -> Self {
        vec![(Role::Rating, Place::Nowhere)].into()
    }

    /// Says that records are pairs of a user and an item, where these say, whatever else stands beside them.
    #[must_use]
    pub fn only_pairs(self) -> Self {
        let ends = self.of.into_iter().filter(|(role, _)| matches!(role, Role::User | Role::Item));
        ends.chain(Self::of_pairs().of).collect::<Vec<_>>().into()
    }

    /// Says that records are words of documents, each of which counts as 1: `count=none`.
    pub(crate) fn of_words() -> Self {
        vec![(Role::Count, Place::Nowhere)].into()
    }

    /// Names a column that has a further role.
    pub(crate) fn with(mut self, role: Role, column: &str) -> Self {
        self.of.push((role, Place::Name(column.to_owned())));
        self
    }

    /// Says how many columns a table of samples without a header has, as that which a model was trained on.
    #[must_use]
    pub fn with_num_columns(self, num_columns: Option<usize>) -> Self {
        Self { num_columns, ..self }
    }

    /// Returns what [`Roles::with_num_columns`] said.
    pub(crate) fn num_columns(&self) -> Option<usize> {
        self.num_columns
    }

    /// Returns the same where columns are called by their numbers, of which some may be missing.
    pub(crate) fn by_name(&self) -> Self {
        let of = |(role, place): &(Role, Place)| (*role, Place::Name(place.to_string()));
        self.of.iter().map(of).collect::<Vec<_>>().into()
    }

    /// Returns the columns that have a role.
    pub(crate) fn all(&self, role: Role) -> impl Iterator<Item = &Place> {
        self.of.iter().filter(move |(named, _)| *named == role).map(|(_, place)| place)
    }

    /// Tells whether no column is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns the first role that is named: all belong to data of one kind. Edges and samples have weights: another role says more.
    #[must_use]
    pub fn first(&self) -> Option<Role> {
        let mut all = self.of.iter().map(|(role, _)| *role);
        let first = all.next()?;
        if first == Role::Weight { all.next().or(Some(first)) } else { Some(first) }
    }

    /// Tells whether the columns that are named leave open of what kind the data are: none is, or only one of weights.
    #[must_use]
    pub fn name_no_kind(&self) -> bool {
        self.first().is_none_or(|role| role == Role::Weight)
    }

    /// Tells whether a role is named.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        self.of.iter().any(|(named, _)| *named == role)
    }

    /// Tells whether no column is to have a role.
    pub(crate) fn lacks(&self, role: Role) -> bool {
        self.of.iter().any(|(named, place)| *named == role && *place == Place::Nowhere)
    }

    /// Returns the largest number of a column that is named by its number.
    pub(crate) fn width(&self) -> usize {
        let number = |(_, place): &(Role, Place)| if let Place::Number(number) = place { Some(*number) } else { None };
        self.of.iter().filter_map(number).max().unwrap_or(0)
    }

    /// Tells whether columns are named, and all by their numbers.
    pub(crate) fn only_numbers(&self) -> bool {
        !self.is_empty() && !self.name_headers()
    }

    /// Finds the column of a role, from 0, if it is named.
    ///
    /// # Errors
    /// That there is no such column, and which there are.
    pub(crate) fn find(&self, role: Role, names: &[String]) -> Result<Option<usize>, String> {
        let Some((_, place)) = self.of.iter().find(|(named, _)| *named == role) else { return Ok(None) };
        let missing = || format!("there is no column {place} for {}; {}", role.name(), listed(names, names.len()));
        place.find(names, names.len()).map(Some).ok_or_else(missing)
    }

    /// Tells whether a column is named by what its header says.
    pub(crate) fn name_headers(&self) -> bool {
        self.of.iter().any(|(_, place)| matches!(place, Place::Name(_)))
    }

    /// Finds the columns of the `wanted` roles, those of two ends and perhaps a number: those that are named, and for the others
    /// the `usual` ones. Columns are counted from 0; `names` are what they are called, if they are, and `width` is how many
    /// there are.
    ///
    /// # Errors
    /// What is wrong with the roles: a column that there is not, one with two roles, one that is of no use.
    pub(crate) fn columns(
        &self,
        wanted: &[Role],
        names: &[String],
        width: usize,
        ([left, right], number): Places,
    ) -> Result<Places, String> {
        let (mut found, mut others) = ([Some(left), Some(right), number], Vec::new());
        for (role, place) in self.of.iter().filter(|(_, place)| *place != Place::Nowhere) {
            let at = place.find(names, width);
            let at =
                at.ok_or_else(|| format!("there is no column {place} for {}; {}", role.name(), listed(names, width)))?;
            match wanted.iter().position(|known| known == role) {
                Some(of) => found[of] = Some(at),
                None => others.push((role, at)),
            }
        }
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            if let (Some(at), Some(same)) = (found[one], found[other])
                && at == same
            {
                let [one, other] = [one, other].map(|of| wanted.get(of).map_or("the number", |role| role.name()));
                let columns = listed(names, width);
                return Err(format!(
                    "column {} would be both {one} and {other}; name both in --columns; {columns}",
                    at + 1
                ));
            }
        }
        // Of no use here, but what is read cannot be it.
        let taken = |at: usize| (0..3).find(|&of| found[of] == Some(at)).and_then(|of| wanted.get(of));
        if let Some((role, at, same)) = others.iter().find_map(|&(role, at)| Some((role, at, taken(at)?))) {
            let [role, same] = [role, same].map(|role| role.name());
            let columns = listed(names, width);
            return Err(format!(
                "column {} would be both {same} and {role}; name both in --columns; {columns}",
                at + 1
            ));
        }
        Ok(([found[0].unwrap_or(left), found[1].unwrap_or(right)], found[2]))
    }

    /// Refuses roles that data of another kind have.
    pub(crate) fn check(&self, wanted: &[Role]) -> Result<(), String> {
        let other = self.of.iter().find(|(role, _)| !wanted.contains(role));
        other.map_or(Ok(()), |(role, _)| {
            let wanted: Vec<&str> = wanted.iter().map(|role| role.name()).collect();
            if wanted.is_empty() {
                return Err("--columns is for tables of edges, ratings or words, which this is not".to_owned());
            }
            Err(format!("--columns says which is {}, but what is read has {}", role.name(), wanted.join(", ")))
        })
    }
}

/// Says which columns there are.
pub(crate) fn listed(names: &[String], width: usize) -> String {
    if names.is_empty() {
        return format!("it has {width} columns without names");
    }
    let names: Vec<String> = names.iter().enumerate().map(|(at, name)| format!("{} {name}", at + 1)).collect();
    format!("its columns are {}", names.join(", "))
}

impl FromStr for Roles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut roles: Vec<(Role, Place)> = Vec::new();
        for part in text.split(',') {
            let names = || Role::ALL.map(|(name, _)| name).join(", ");
            let (name, place) = part.split_once('=').filter(|(_, place)| !place.is_empty()).ok_or_else(|| {
                format!("\"{part}\" names no column; expected role=column, user=2 or rating=stars say")
            })?;
            let known = Role::ALL.iter().find(|(known, _)| *known == name);
            let &(_, role) =
                known.ok_or_else(|| format!("there is no role \"{name}\"; expected one of {}", names()))?;
            if !role.may_be_of_several() && roles.iter().any(|(other, _)| *other == role) {
                return Err(format!("{name} is named twice"));
            }
            let place = match place.parse() {
                Ok(0) => return Err(format!("{name}=0: columns are counted from 1")),
                Ok(number) => Place::Number(number),
                Err(_) if place == "none" && matches!(role, Role::Rating | Role::Count) => Place::Nowhere,
                Err(_) => Place::Name(place.to_owned()),
            };
            roles.push((role, place));
        }
        Ok(roles.into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Nowhere => f.write_str("none"),
        }
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (role, place)) in self.of.iter().enumerate() {
            write!(f, "{}{}={place}", if at == 0 { "" } else { "," }, role.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [Role; 3] = [Role::User, Role::Item, Role::Rating];

    fn columns(roles: &str, names: &[&str], width: usize) -> Result<Places, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        roles.parse::<Roles>()?.columns(&WANTED, &names, width, ([0, 1], Some(2)))
    }

    #[test]
    fn columns_are_found_by_number_and_name() {
        assert_eq!(columns("user=2,item=1", &[], 4).unwrap(), ([1, 0], Some(2)));
        assert_eq!(columns("rating=stars", &["who", "what", "when", "Stars"], 4).unwrap(), ([0, 1], Some(3)));
        assert_eq!(columns("user=a,item=A,rating=1", &["r", "A", "a"], 3).unwrap(), ([2, 1], Some(0)));
    }

    #[test]
    fn there_may_be_no_rating() {
        let roles: Roles = "item=1,user=2,rating=none".parse().unwrap();
        assert!(roles.lacks(Role::Rating) && !roles.lacks(Role::User));
        assert_eq!(roles.to_string(), "item=1,user=2,rating=none");
        let names: Vec<String> = ["what", "who", "rating"].map(str::to_owned).to_vec();
        assert_eq!(roles.columns(&WANTED[..2], &names, 3, ([0, 1], None)).unwrap(), ([1, 0], None));
        assert_eq!("count=none".parse::<Roles>().unwrap(), Roles::of_words());
    }

    #[test]
    fn what_cannot_be_is_told_with_the_columns_that_there_are() {
        for (roles, names, expected) in [
            (
                "rating=stars",
                &["who", "what", "mark"][..],
                "no column stars for rating; its columns are 1 who, 2 what, 3 mark",
            ),
            ("rating=4", &[], "no column 4 for rating; it has 3 columns without names"),
            ("user=3", &[], "column 3 would be both user and rating"),
            ("user=a", &["A", "A", "b"], "no column a"),
            ("user", &[], "\"user\" names no column"),
            ("user=", &[], "\"user=\" names no column"),
            ("user=1,user=2", &[], "user is named twice"),
            ("owner=1", &[], "there is no role \"owner\"; expected one of user, item, rating"),
            ("item=0", &[], "counted from 1"),
        ] {
            let said = columns(roles, names, 3).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
