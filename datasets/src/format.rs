//! The formats of input files, and how one is told from a file's name and first lines.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::Error;
use crate::header::{is_comment, known};
use crate::labels::is_label_named;
use crate::libsvm::has_features;
use crate::records::{Link, Rating};
use crate::text::{Input, Separator, number, paired};
use crate::time::time;

/// The format of an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Two ids a line, as SNAP has it; `#` or `%` starts a comment line.
    Edges,
    /// Matrix Market coordinate.
    MatrixMarket,
    /// User, item and value a line.
    Ratings,
    /// `label index:value ...` a line.
    Libsvm,
    /// UCI bag of words: three header lines, then `document word count`.
    BagOfWords,
    /// LDA-C: `terms term:count ...`, one document a line.
    LdaC,
    /// Document, word and how often it occurs there, a line.
    Counts,
    /// A sample a record of delimited text, with a header: a column of labels, and others of features or of a text.
    Table,
    /// Words separated by white space, one document a line.
    Text,
    /// An object of JSON a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// The memory-mapped cache, `.mgrid`.
    Cache,
}

/// Lines looked at to tell a format.
const SAMPLE_LINES: usize = 32;

impl Format {
    /// The names of the formats, as [`Format::from_str`] takes them.
    pub const NAMES: [&'static str; 12] =
        ["edges", "mtx", "ratings", "libsvm", "bow", "lda-c", "counts", "table", "text", "jsonl", "parquet", "mgrid"];

    const ALL: [Self; 12] = [
        Self::Edges,
        Self::MatrixMarket,
        Self::Ratings,
        Self::Libsvm,
        Self::BagOfWords,
        Self::LdaC,
        Self::Counts,
        Self::Table,
        Self::Text,
        Self::JsonLines,
        Self::Parquet,
        Self::Cache,
    ];

    /// Returns the format's name, one of [`Format::NAMES`].
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Tells the format of a file, or of the first part in a directory, from its name where that is decisive, else
    /// from its first lines. A text of two ids a line is `Edges`, of three fields the last of which is a number
    /// `Ratings`; words are `Text`.
    ///
    /// # Errors
    /// Where the file cannot be read or fits no format.
    pub fn detect(path: &Path) -> Result<Self, Error> {
        let input = Input::open(path)?;
        if let Some(format) = input.first_name().and_then(Self::from_name) {
            let name = |file: &Path| file.file_name().and_then(|name| Self::from_name(name.to_str()?));
            let other = input.files().find_map(|file| Some((file, name(file).filter(|&other| other != format)?)));
            return other.map_or(Ok(format), |(file, other)| {
                let problem = format!("{} is of the format {other}, others are {format}", file.display());
                Err(Error::invalid(path, format!("{problem}; name files of one format")))
            });
        }
        let text = input.head()?;
        Self::from_content(text.head()).ok_or_else(|| Error::UnknownFormat(path.to_path_buf()))
    }

    /// Tells samples of a table by their header, those of JSON lines by the first object and those of Parquet by their beginning, whatever
    /// [`Format::detect`] takes them for; or by a file name of these. `None`: they are none.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn of_samples(path: &Path) -> Result<Option<Self>, Error> {
        let input = Input::open(path)?;
        if let Some(format) = input.first_name().and_then(Self::from_name) {
            return Ok(Some(format).filter(|format| matches!(format, Self::JsonLines | Self::Parquet)));
        }
        Ok(of_first_samples(input.head()?.head()))
    }

    /// Tells the format from a file name whose ending or beginning only one format uses.
    fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let plain = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
        if plain.starts_with("docword.") {
            return Some(Self::BagOfWords);
        }
        match plain.rsplit_once('.')?.1 {
            "mgrid" => Some(Self::Cache),
            "parquet" => Some(Self::Parquet),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "mtx" => Some(Self::MatrixMarket),
            "edges" | "el" => Some(Self::Edges),
            "ratings" => Some(Self::Ratings),
            "libsvm" | "svmlight" | "svm" | "libfm" => Some(Self::Libsvm),
            "ldac" => Some(Self::LdaC),
            _ => None,
        }
    }

    /// Tells the format from the first lines of a file.
    pub(crate) fn from_content(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"%%MatrixMarket") {
            return Some(Self::MatrixMarket);
        }
        if head.starts_with(b"PAR1") {
            return Some(Self::Parquet);
        }
        let lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).take(SAMPLE_LINES).collect();
        if lines.first().is_some_and(|line| matches!(line[0], b'#' | b'%')) {
            let of_table = unmarked(head, &lines).and_then(|table| from_fields(table, &lines));
            let is_table = of_table == Some(Self::Ratings);
            return Some(if is_table { Self::Ratings } else { after_comments(head) });
        }
        if !lines.is_empty() && lines.iter().all(|line| line.starts_with(b"{\"") || line.starts_with(b"{ ")) {
            return Some(Self::JsonLines);
        }
        if is_bag_of_words(&lines) {
            return Some(Self::BagOfWords);
        }
        let has_pair = lines.iter().any(|line| line.contains(&b':'));
        if has_pair && lines.iter().all(|line| is_pairs(line)) {
            let counted = lines.iter().all(|line| starts_with_its_length(line));
            return Some(if counted { Self::LdaC } else { Self::Libsvm });
        }
        from_fields(head, &lines)
    }
}

/// A table where the first line has several fields, of which one is called as labels are or none is a number, and is none of LIBSVM, nor is
/// the next.
fn of_first_samples(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    let first = paired(head).find(|line| !line.is_empty())?;
    if first.starts_with(b"{") {
        return Some(Format::JsonLines);
    }
    let separator = Separator::of(std::iter::once(first), usize::MAX);
    let is_text = std::str::from_utf8(first).is_ok_and(|text| !text.contains('\0')) && !matches!(first[0], b'#' | b'%');
    if !is_text || !matches!(separator, Separator::Byte(_)) {
        return None;
    }
    let mut records = separator.records(head).take(2);
    let names = separator.all_fields(records.next()?);
    let are_names = is_label_named(&names) || names.iter().all(|name| number(name).is_none());
    let is_header = names.len() > 1 && are_names && !has_features(first);
    (is_header && !records.any(has_features)).then_some(Format::Table)
}

/// Three lines of one number, then lines of three numbers.
fn is_bag_of_words(lines: &[&[u8]]) -> bool {
    let widths = lines.iter().map(|line| {
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let numbers = fields.clone().all(|field| field.iter().all(u8::is_ascii_digit));
        if numbers { fields.by_ref().count() } else { 0 }
    });
    lines.len() > 3 && widths.eq([1, 1, 1].into_iter().chain(std::iter::repeat_n(3, lines.len() - 3)))
}

/// A number, then nothing but `number:number`. A label by itself is a sample without features; `#` starts a comment.
fn is_pairs(line: &[u8]) -> bool {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let pair = |field: &[u8]| {
        let colon = memchr::memchr(b':', field);
        colon.is_some_and(|at| field[..at].iter().all(u8::is_ascii_digit) && number(&field[at + 1..]).is_some())
    };
    fields.next().is_some_and(|label| number(label).is_some()) && fields.take_while(|field| field[0] != b'#').all(pair)
}

/// Whether the number before the pairs is how many they are.
fn starts_with_its_length(line: &[u8]) -> bool {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let first = fields.next().and_then(number);
    first == Some(fields.count() as f32)
}

/// Returns a text without the `#` before a header: of as many fields as the line below, which is none of further comments. Where white
/// space separates fields, a comment could be one: its names have to be known.
fn unmarked<'h>(head: &'h [u8], lines: &[&[u8]]) -> Option<&'h [u8]> {
    let [first, second, ..] = lines else { return None };
    let separator = Separator::of(lines[1..].iter().copied(), 2);
    let header = separator.all_fields(first.strip_prefix(b"#")?.trim_ascii_start());
    let names: Vec<String> = header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let is_header = !matches!(second[0], b'#' | b'%')
        && names.len() == separator.all_fields(second).len()
        && (separator != Separator::Space || known::<Rating>(&names).is_some());
    is_header.then(|| head.trim_ascii_start()[1..].trim_ascii_start())
}

/// Edges, ratings or text, by the fields of the lines. The first line may be a header.
fn from_fields(head: &[u8], lines: &[&[u8]]) -> Option<Format> {
    // The first line may be a header, and a comment besides.
    let samples = paired(head).filter(|line| !line.is_empty()).skip(usize::from(lines.len() > 1)).take(SAMPLE_LINES);
    let separator = Separator::of(samples, 2);
    let records: Vec<Fields<'_>> =
        separator.records(head).take(SAMPLE_LINES).map(|line| separator.all_fields(line)).collect();
    let names: Vec<String> = records.first()?.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let known = known::<Rating>(&names);
    let number_at = known.and_then(|(_, number)| number).unwrap_or(2);
    let has_rating = |fields: &Fields<'_>| fields.get(number_at).is_some_and(|field| number(field).is_some());
    if body(&records).iter().all(has_rating) && (known.is_some() || are_alike(separator, &records)) {
        return Some(Format::Ratings);
    }
    if records.iter().all(|fields| fields.len() == 2) {
        return Some(Format::Edges);
    }
    are_words(lines).then_some(Format::Text)
}

/// Edges, unless the lines that are no comments are words without the fields of edges: then the first line is a word like `#this`.
fn after_comments(head: &[u8]) -> Format {
    let is_record = |line: &&[u8]| !line.is_empty() && !is_comment::<Link>(line);
    let separator = Separator::of(paired(head).filter(is_record).take(SAMPLE_LINES), 2);
    let lines: Vec<&[u8]> = separator.records(head).filter(is_record).take(SAMPLE_LINES).collect();
    let records: Vec<Fields<'_>> = lines.iter().map(|line| separator.all_fields(line)).collect();
    let has_ends = |fields: &Fields<'_>| fields.len() > 1;
    let has_numbers = |fields: &Fields<'_>| fields.iter().take(2).all(|end| number(end).is_some());
    let are_edges =
        records.iter().all(has_ends) && (body(&records).iter().all(has_numbers) || are_alike(separator, &records));
    if are_edges || !are_words(&lines) { Format::Edges } else { Format::Text }
}

/// The fields of a record.
type Fields<'h> = Vec<Cow<'h, [u8]>>;

/// Returns the records after the first one, which may be a header, or that one where there is no other.
fn body<T>(records: &[T]) -> &[T] {
    if records.len() > 1 { &records[1..] } else { records }
}

/// Whether records are no lines of words: their fields are as many in each, empty ones at the end aside, and between blanks there is
/// nothing but numbers and times behind two ids. Words have neither tabs nor `::` between them.
fn are_alike(separator: Separator, records: &[Fields<'_>]) -> bool {
    if matches!(separator, Separator::Byte(b'\t') | Separator::Colons) {
        return true;
    }
    let used = |fields: &Fields<'_>| fields.iter().rposition(|field| !field.is_empty()).map_or(0, |last| last + 1);
    let widest = records.iter().map(used).max().unwrap_or(0);
    let has_numbers = |fields: &Fields<'_>| fields.iter().skip(2).all(|field| time(field).is_some());
    records.iter().all(|fields| fields.len() >= widest)
        && (separator != Separator::Space || body(records).iter().all(has_numbers))
}

/// Whether all lines are text with a letter, of any script.
fn are_words(lines: &[&[u8]]) -> bool {
    lines.iter().all(|line| std::str::from_utf8(line).is_ok_and(|line| line.contains(char::is_alphabetic)))
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let known = Self::NAMES.iter().position(|&known| known == name);
        let unknown = || Error::UnknownFormatName { found: name.to_string(), known: &Self::NAMES };
        known.map(|at| Self::ALL[at]).ok_or_else(unknown)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_objects_of_samples_are_told_from_libsvm() {
        for text in
            ["label,age\n1,3\n", "0,1,Y\n1,3,0\n", "a;b;\"c\n:1\"\n1;2;3\n", "ham\tsee you at 12:30\n", "age,city"]
        {
            assert_eq!(of_first_samples(text.as_bytes()), Some(Format::Table), "{text}");
        }
        for text in
            ["", "1 1:1\n", "a,b 1:1\n", "a,b\nc,d 1:1\n", "1,2,3\n", "age\n41\n", "# a,b\n1:1\n", "spam 1:1 # a, b"]
        {
            assert_eq!(of_first_samples(text.as_bytes()), None, "{text}");
        }
        assert_eq!(of_first_samples(b"\n{}\n"), Some(Format::JsonLines));
    }
}
