//! The names of vertices: what the input called the vertex that the engine numbers `id`.

use std::borrow::Cow;
use std::path::Path;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::Error;
use crate::name_table::NameTable;
use crate::text::integer;

/// The names of the vertices of one side: id -> token of the input.
///
/// Ids of a text file that are all integers stay integers (8 bytes a vertex); otherwise all of them are strings in one
/// arena. The text of an integer is its canonical one, so a name is equal to its token either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dictionary(Names);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    Integers(Vec<u64>),
    /// Name `i` is `text[offsets[i]..offsets[i + 1]]`.
    Strings {
        text: String,
        offsets: Vec<u64>,
    },
}

impl Dictionary {
    /// Makes a dictionary whose id `i` is named `names[i]`.
    #[must_use]
    pub fn from_integers(names: Vec<u64>) -> Self {
        Self(Names::Integers(names))
    }

    /// Makes a dictionary from strings, the first one being the name of id 0.
    pub fn from_strings<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let (mut text, mut offsets) = (String::new(), vec![0]);
        for name in names {
            text.push_str(name.as_ref());
            offsets.push(text.len() as u64);
        }
        Self(Names::Strings { text, offsets })
    }

    /// Makes a dictionary from its arena: name `i` is `text[offsets[i]..offsets[i + 1]]`. Returns `None` unless the
    /// offsets rise from 0 to the length of the text and fall on character boundaries.
    #[must_use]
    pub fn from_arena(text: String, offsets: Vec<u64>) -> Option<Self> {
        let boundary = |&offset: &u64| usize::try_from(offset).is_ok_and(|offset| text.is_char_boundary(offset));
        let whole = offsets.first() == Some(&0) && offsets.last() == Some(&(text.len() as u64));
        (whole && offsets.is_sorted() && offsets.iter().all(boundary)).then_some(Self(Names::Strings { text, offsets }))
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Names::Integers(names) => names.len(),
            Names::Strings { offsets, .. } => offsets.len() - 1,
        }
    }

    /// Tells whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether the names are integers.
    #[must_use]
    pub fn is_integers(&self) -> bool {
        self.as_integers().is_some()
    }

    /// Returns the names if they are integers.
    #[must_use]
    pub fn as_integers(&self) -> Option<&[u64]> {
        match &self.0 {
            Names::Integers(names) => Some(names),
            Names::Strings { .. } => None,
        }
    }

    /// Returns the arena and the offsets of the names if they are strings; see [`Dictionary::from_arena`].
    #[must_use]
    pub fn as_arena(&self) -> Option<(&str, &[u64])> {
        match &self.0 {
            Names::Integers(_) => None,
            Names::Strings { text, offsets } => Some((text, offsets)),
        }
    }

    /// Returns the name of a vertex.
    ///
    /// # Panics
    /// Where `id` is not below [`Dictionary::len`].
    #[must_use]
    pub fn name(&self, id: u32) -> Cow<'_, str> {
        let id = id as usize;
        match &self.0 {
            Names::Integers(names) => Cow::Owned(names[id].to_string()),
            Names::Strings { text, offsets } => Cow::Borrowed(slice(text, offsets, id)),
        }
    }

    /// Returns all names in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        (0..self.len()).map(|id| self.name(id as u32))
    }

    /// Returns the id of a name, the lowest one if several vertices have it.
    ///
    /// # Complexity
    /// Scans all names; to find many, make a [`Dictionary::lookup`].
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        let position = match &self.0 {
            Names::Integers(names) => {
                let wanted = integer(name.as_bytes())?;
                names.iter().position(|&name| name == wanted)
            }
            Names::Strings { text, offsets } => (0..self.len()).find(|&id| slice(text, offsets, id) == name),
        };
        position.map(|id| id as u32)
    }

    /// Returns an index over the names, for many calls of [`Lookup::find`].
    #[must_use]
    pub fn lookup(&self) -> Lookup {
        match &self.0 {
            Names::Integers(names) => {
                let mut ids = HashMap::with_capacity_and_hasher(names.len(), FxBuildHasher);
                for (id, &name) in names.iter().enumerate() {
                    ids.entry(name).or_insert(id as u32);
                }
                Lookup(Index::Integers(ids))
            }
            Names::Strings { text, offsets } => {
                let mut table = NameTable::default();
                let ids = offsets.windows(2).map(|ends| &text.as_bytes()[ends[0] as usize..ends[1] as usize]);
                let ids = ids.enumerate().filter_map(|(id, name)| table.insert(name).then_some(id as u32)).collect();
                Lookup(Index::Strings { table, ids })
            }
        }
    }

    /// Returns, for each name of `self`, its id in `known`, or `None` where it is not there.
    #[must_use]
    pub fn translate(&self, known: &Self) -> Vec<Option<u32>> {
        let lookup = known.lookup();
        match &self.0 {
            Names::Integers(names) => names.iter().map(|&name| lookup.find_integer(name)).collect(),
            Names::Strings { .. } => self.iter().map(|name| lookup.find(&name)).collect(),
        }
    }

    /// Returns the names in another order: the new id `i` is named as `old_of_new[i]` is here.
    ///
    /// # Panics
    /// Where an entry of `old_of_new` is not below [`Dictionary::len`].
    #[must_use]
    pub fn reorder(&self, old_of_new: &[u32]) -> Self {
        match &self.0 {
            Names::Integers(names) => Self::from_integers(old_of_new.iter().map(|&old| names[old as usize]).collect()),
            Names::Strings { text, offsets } => {
                Self::from_strings(old_of_new.iter().map(|&old| slice(text, offsets, old as usize)))
            }
        }
    }
}

fn slice<'a>(text: &'a str, offsets: &[u64], id: usize) -> &'a str {
    &text[offsets[id] as usize..offsets[id + 1] as usize]
}

/// An index over the names of a [`Dictionary`].
#[derive(Debug)]
pub struct Lookup(Index);

#[derive(Debug)]
enum Index {
    Integers(HashMap<u64, u32, FxBuildHasher>),
    /// Entry `i` of the table, which holds no name twice, is the vertex `ids[i]`.
    Strings {
        table: NameTable,
        ids: Vec<u32>,
    },
}

impl Lookup {
    /// Returns the id of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        match &self.0 {
            Index::Integers(ids) => ids.get(&integer(name.as_bytes())?).copied(),
            Index::Strings { table, ids } => table.find(name.as_bytes()).map(|entry| ids[entry as usize]),
        }
    }

    /// Returns the id of a name that is an integer.
    fn find_integer(&self, name: u64) -> Option<u32> {
        match &self.0 {
            Index::Integers(ids) => ids.get(&name).copied(),
            Index::Strings { .. } => self.find(&name.to_string()),
        }
    }
}

/// Makes the dictionary of the names in an arena; see [`Dictionary::from_arena`].
///
/// # Errors
/// Where a name is not UTF-8.
pub(crate) fn dictionary(text: Vec<u8>, offsets: Vec<u64>, path: &Path) -> Result<Dictionary, Error> {
    let dictionary = String::from_utf8(text).ok().and_then(|text| Dictionary::from_arena(text, offsets));
    dictionary.ok_or_else(|| Error::invalid(path, "its ids are not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_named_by_their_digits() {
        let names = Dictionary::from_integers(vec![7, 3, u64::MAX]);
        assert_eq!(names.name(2), "18446744073709551615");
        assert_eq!(names.find("3"), Some(1));
        assert_eq!(names.find("03"), None);
        assert_eq!(names.find("+3"), None);
        assert_eq!(names.lookup().find("7"), Some(0));
        assert_eq!(names.reorder(&[2, 0]).as_integers(), Some(&[u64::MAX, 7][..]));
    }

    #[test]
    fn strings_are_found_and_reordered() {
        let names = Dictionary::from_strings(["zoë", "", "bob", "zoë"]);
        assert_eq!(names.len(), 4);
        assert_eq!((names.find("zoë"), names.find("bob"), names.find("")), (Some(0), Some(2), Some(1)));
        let lookup = names.lookup();
        assert_eq!((lookup.find("zoë"), lookup.find("bob"), lookup.find("eve")), (Some(0), Some(2), None));
        let reordered = names.reorder(&[2, 0]);
        assert_eq!(reordered, Dictionary::from_strings(["bob", "zoë"]));
    }

    #[test]
    fn translation_compares_text() {
        let strings = Dictionary::from_strings(["7", "x", "9"]);
        let integers = Dictionary::from_integers(vec![9, 7, 8]);
        assert_eq!(strings.translate(&integers), [Some(1), None, Some(0)]);
        assert_eq!(integers.translate(&strings), [Some(2), Some(0), None]);
    }

    #[test]
    fn arenas_are_checked() {
        assert!(Dictionary::from_arena("zoë".into(), vec![0, 2, 4]).is_some());
        assert!(Dictionary::from_arena("zoë".into(), vec![0, 3, 4]).is_none(), "inside a character");
        assert!(Dictionary::from_arena("ab".into(), vec![0, 2, 1]).is_none(), "falling");
        assert!(Dictionary::from_arena("ab".into(), vec![0, 1]).is_none(), "text left over");
        assert!(Dictionary::from_arena(String::new(), vec![]).is_none(), "no start");
        assert!(Dictionary::from_arena(String::new(), vec![0]).is_some_and(|names| names.is_empty()));
    }
}
