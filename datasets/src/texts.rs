//! Documents as texts in a column of a table, a document a record: delimited text with a header, JSON lines, or Parquet.
//!
//! Another column may have names of the documents; those of one name are one. Otherwise they are numbered as records, from 1.

pub(crate) mod names;

use std::path::Path;

use crate::bag_of_words::with_counts;
use crate::column::Column;
use crate::header::{FIRST_RECORDS, role_of};
use crate::json_lines::entries;
use crate::name_table::NameTable;
use crate::roles::listed;
use crate::text::{Input, Separator, Text, integer, number, paired};
use crate::texts::names::{called, known};
use crate::warned::is_first;
use crate::{Corpus, Dataset, Error, Format, Layout, Role, Roles, Tokenizer, add_up, parquet, sample_table};

/// The roles of columns of corpora.
pub(crate) const OF_CORPORA: &[Role] = &[Role::Document, Role::Word, Role::Count, Role::Text];

/// Reads documents; `tokenizer` finds their words.
pub(crate) fn read(input: &Input<'_>, format: Format, tokenizer: Tokenizer) -> Result<Corpus, Error> {
    let roles = input.roles();
    if roles.has(Role::Word) || roles.has(Role::Count) {
        let problem = "a text has its words in it, and is counted; leave word and count out of --columns";
        return Err(Error::invalid(input.path(), problem));
    }
    let (data, names) = sample_table::read_documents(input, format, tokenizer)?;
    let data = if names.ids.len() == 0 { data } else { named(data, names, input.path())? };
    Ok(Corpus::new(with_counts(data)))
}

/// Gives documents their names: integers are put in order, as ids are elsewhere.
fn named(data: Dataset<f32>, names: Column, path: &Path) -> Result<Dataset<f32>, Error> {
    let numbers: Option<Vec<u64>> = names.names.iter().map(integer).collect();
    let names = match numbers {
        None => names,
        Some(numbers) => {
            let mut ids = crate::ids::Ids::default();
            names.ids.into_entries().into_iter().for_each(|entry| ids.push(numbers[entry as usize]));
            Column { ids, names: NameTable::default() }
        }
    };
    let (documents, left_names) = names.finish(path)?;
    let Dataset { mut edges, right_names, .. } = data;
    edges.left.iter_mut().for_each(|left| *left = documents[*left as usize]);
    edges.num_left = left_names.len();
    add_up(&mut edges);
    Ok(Dataset { edges, left_names, right_names })
}

impl Layout {
    /// Returns how a corpus is laid out, with roles of columns that have names which are known: one of texts, beside none of words or
    /// counts, and one called document; or those of documents and words where there are no others, which then count as 1. Warns of text
    /// that looks like a table without such names.
    ///
    /// # Errors
    /// An input that cannot be read; keys of JSON lines of which none is known.
    pub fn of_corpus(self, path: &Path) -> Result<Self, Error> {
        let says_more = [Role::Text, Role::Word, Role::Count].iter().any(|&role| self.roles.has(role));
        if says_more || self.roles.first().is_some_and(|role| role != Role::Document) {
            return Ok(self);
        }
        let found = match self.format.map_or_else(|| Format::detect(path), Ok) {
            Err(Error::UnknownFormat(_)) => Format::Text,
            found => found?,
        };
        let roles = match found {
            Format::Text | Format::Edges | Format::Ratings if self.format.is_none() => {
                let head = Input::open(path)?.head()?;
                Head::of(head).and_then(|head| head.told(path, found, &self.roles))
            }
            Format::Table => Head::of(Input::open(path)?.head()?).and_then(|head| told(&head.names, &self.roles)),
            Format::JsonLines => match keys(&Input::open(path)?.head()?) {
                Some(keys) => told_by_keys(&keys, &self.roles).map_err(|problem| Error::invalid(path, problem))?,
                None => None,
            },
            Format::Parquet => parquet::column_names(&Input::open(path)?).and_then(|names| told(&names, &self.roles)),
            _ => None,
        };
        Ok(Self { roles: roles.unwrap_or_else(|| self.roles.clone()), ..self })
    }
}

/// Returns the roles of columns with these names, beside the one of the document where that is said.
fn told(names: &[String], said: &Roles) -> Option<Roles> {
    if role_of(names) == Some(Role::Document) {
        let are_pairs = names.len() == 2 && said.is_empty();
        return are_pairs.then(Roles::of_words);
    }
    if called(names, "word").is_some() || called(names, "count").is_some() {
        return None;
    }
    let roles = Roles::default().with(Role::Text, &names[known(names)?]);
    Some(match (said.is_empty(), called(names, "document")) {
        (false, _) => said.clone().with(Role::Text, &names[known(names)?]),
        (true, Some(at)) => roles.with(Role::Document, &names[at]),
        (true, None) => roles,
    })
}

/// Returns the keys of the first object, if the first line is one.
fn keys(text: &Text<'_>) -> Option<Vec<String>> {
    let first = text.lines().find(|line| !line.is_empty())?;
    Some(entries(first).ok()?.into_iter().map(|(key, _)| key).collect())
}

fn told_by_keys(keys: &[String], said: &Roles) -> Result<Option<Roles>, String> {
    let are_known = role_of(keys) == Some(Role::Document);
    match told(keys, said) {
        None if !are_known && !keys.is_empty() => Err(format!(
            "none of its keys is known to hold texts, or words of documents: {}; name it with --columns text=KEY, or \
             document=KEY,word=KEY,count=KEY",
            keys.join(", ")
        )),
        roles => Ok(roles),
    }
}

/// The beginning of a delimited text.
struct Head {
    separator: Separator,
    names: Vec<String>,
    /// The fields of the records below.
    records: Vec<Vec<String>>,
    has_quotes: bool,
}

impl Head {
    /// Looks at the first records; `None` where nothing separates fields.
    fn of(mut text: Text<'_>) -> Option<Self> {
        let separator = Separator::of(paired(text.head()).find(|line| !line.is_empty()).into_iter(), usize::MAX);
        separator.quotable()?;
        text.separate(separator);
        let records: Vec<&[u8]> =
            text.records().map(|(_, record)| record).filter(|record| !record.is_empty()).take(FIRST_RECORDS).collect();
        let has_quotes = records.iter().any(|record| memchr::memchr(b'"', record).is_some());
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let fields = |record: &&[u8]| separator.all_fields(record).iter().map(|field| text(field)).collect();
        let mut records = records.iter().map(fields);
        Some(Self { separator, names: records.next()?, records: records.collect(), has_quotes })
    }

    /// Tells whether the first record may be a header of several columns.
    fn may_have_names(&self) -> bool {
        let is_name = |(at, name): (usize, &String)| !name.is_empty() && !self.names[..at].contains(name);
        self.names.len() > 1
            && self.names.iter().enumerate().all(is_name)
            && self.records.iter().any(|fields| fields.len() >= self.names.len())
    }

    /// Tells whether it looks like one: its names are words, and below are numbers and texts.
    fn has_names(&self) -> bool {
        let is_word = |name: &String| number(name.as_bytes()).is_none() && !name.contains(char::is_whitespace);
        let is_other = |field: &String| number(field.as_bytes()).is_some() || field.contains(char::is_whitespace);
        self.may_have_names() && self.names.iter().all(is_word) && self.records.iter().flatten().any(is_other)
    }

    /// Returns the roles that the header of a text tells, if it has one; warns where it tells none.
    fn told(&self, path: &Path, found: Format, said: &Roles) -> Option<Roles> {
        let roles = if self.may_have_names() { told(&self.names, said) } else { None };
        let is_table = || !self.records.is_empty() && self.records.iter().all(|all| all.len() == self.names.len());
        if roles.is_none() && found == Format::Text && said.is_empty() && self.names.len() > 1 && is_table() {
            self.warn(path);
        }
        roles
    }

    fn warn(&self, path: &Path) {
        let has_names = self.has_names();
        if (self.has_quotes || has_names) && is_first(path, "texts") {
            let (width, separator) = (self.names.len(), self.separator.name());
            let column = if has_names { "NAME" } else { "NUMBER" };
            let columns = if has_names { format!("; {}", listed(&self.names, width)) } else { String::new() };
            tracing::warn!(
                "{}: it looks like a table of {width} fields separated by {separator}, and each whole line is read as a document; say with \
                 --columns text={column} which column holds the texts, or --format text if that is right{columns}",
                path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_corpus, read_corpus};

    fn written(text: &str, ending: &str) -> tempfile::NamedTempFile {
        let file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    /// Returns the roles that are told, nothing where it is read as before.
    fn roles(text: &str, ending: &str, said: &str) -> String {
        let said = if said.is_empty() { Roles::default() } else { said.parse().unwrap() };
        let layout = Layout { roles: said, ..Layout::default() };
        match layout.of_corpus(written(text, ending).path()) {
            Ok(layout) => layout.roles.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_tell_which_column_holds_texts() {
        for (text, ending, said, expected) in [
            ("id,Body\n1,\"a, b\"\n", ".csv", "", "text=Body"),
            ("body\tdocument\na b\tx\n", ".txt", "", "text=body,document=document"),
            ("id,review,rating\n1,a b,5\n", ".csv", "", "text=review"),
            ("id,body,count\n1,a,5\n", ".csv", "", ""),
            ("id,body,more\n1,a,b\n", ".csv", "document=id", "document=id,text=body"),
            ("text, they say\nmessage\n", ".txt", "", ""),
            ("text body review\na b c\n", ".txt", "", ""),
            ("document,word\na,b\n", ".csv", "", "count=none"),
            ("document,word,count\na,b,2\n", ".csv", "", ""),
            ("{\"id\": 1, \"text\": \"a\"}\n", ".jsonl", "", "text=text"),
            ("{\"document\": 1, \"word\": \"a\"}\n", ".jsonl", "", "count=none"),
            ("{\"document\": 1, \"word\": \"a\", \"count\": 2}\n", ".jsonl", "", ""),
        ] {
            assert_eq!(roles(text, ending, said), expected, "{text}");
        }
        let unknown = roles("{\"id\": 1, \"what\": \"a\"}\n", ".jsonl", "");
        assert!(unknown.contains("id, what; name it with --columns text=KEY"), "{unknown}");
    }

    #[test]
    fn texts_of_one_name_are_one_document() {
        let table = "id,text\n9,sea ship\n2,rye\n9,\"sea\nsalt\"\n2,\n";
        let layout = Layout { roles: "document=id,text=text".parse().unwrap(), ..Layout::default() };
        let corpus = read_corpus(written(table, ".csv").path(), layout).unwrap();
        let counts = b"9,sea,2\n9,ship,1\n2,rye,1\n9,salt,1\n";
        let expected = parse_corpus(counts, Format::Counts, None).unwrap();
        let entries = |corpus: &Corpus| {
            let Dataset { edges, left_names, .. } = &corpus.data;
            let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
            let name = |(document, word)| {
                (left_names.name(document).into_owned(), corpus.data.right_names().name(word).into_owned())
            };
            let mut all: Vec<_> = ends.map(|((&left, &right), &count)| (name((left, right)), count)).collect();
            all.sort();
            all
        };
        assert_eq!(entries(&corpus), entries(&expected));
        assert_eq!(corpus.data.left_names.as_integers(), Some(&[2, 9][..]));
        let numbered = parse_corpus(table.as_bytes(), Format::Table, None).unwrap();
        assert_eq!((numbered.data.edges.num_left, numbered.num_tokens), (4, 5));
        let nameless = read_corpus(
            written("id,text\n,sea\n", ".csv").path(),
            Layout { roles: "document=id,text=text".parse().unwrap(), ..Layout::default() },
        );
        assert!(nameless.unwrap_err().to_string().contains(":2: document: found \"\""));
    }
}
