//! Corpora: UCI bags of words, LDA-C, pairs of a document and a word, and plain text with one document a line; the vocabulary beside
//! the first two.
//!
//! UCI text starts with three lines, the numbers of documents, words and entries, and has an entry `document word
//! count` a line after that, ids from 1. LDA-C has a document a line, `terms term:count ...`, terms from 0. In plain
//! text, words are what a [`Tokenizer`] finds: by default, what white space separates, taken as it stands; a blank line
//! is a document without words, so that documents are numbered as lines.

use megagrid_partition::EdgeList;

use crate::columns::Columns;
use crate::entries::{self, Header, NUM_ENTRIES, index, size};
use crate::loaded::Loaded;
use crate::rows::{self, Holds, Numbered, Rows};
use crate::text::{Input, Malformed, Text, integer, words};
use crate::{Corpus, Dataset, Dictionary, Error, Tokenizer, add_up};

pub(crate) fn read_uci(input: &Input<'_>, vocabulary: Option<Dictionary>) -> Result<Corpus, Error> {
    let header = begin_uci(&mut entries::open(input)?)?;
    check_vocabulary(input, vocabulary.as_ref(), |len| len == header.num_right, header.num_right)?;
    let entry = |columns: &mut Columns<u32>, line: &[u8]| {
        let mut fields = words(line);
        let left = index("document", fields.next().unwrap_or_default(), header.num_left)?;
        let right = index("word", fields.next().unwrap_or_default(), header.num_right)?;
        let count = count(fields.next().unwrap_or_default())?;
        if fields.next().is_some() {
            return Err(Malformed::new("entry", line, "document, word and count"));
        }
        columns.push_ids([left, right], count);
        Ok(())
    };
    let skip = |text: &mut Text<'_>| begin_uci(text).map(drop);
    let mut data = header.read(input, false, usize::MAX, skip, entry)?.into_dataset()?;
    data.right_names = vocabulary.or(data.right_names);
    Ok(Corpus::new(data))
}

fn begin_uci(text: &mut Text<'_>) -> Result<Header, Error> {
    Ok(Header {
        num_left: header_line(text, "number of documents")?,
        num_right: header_line(text, "number of words")?,
        num_entries: header_line(text, NUM_ENTRIES)?,
        symmetric: false,
    })
}

fn header_line(text: &mut Text<'_>, field: &'static str) -> Result<u64, Error> {
    let size = size(field, text.next_line().unwrap_or_default());
    size.map_err(|malformed| text.malformed(malformed))
}

#[inline]
fn count(field: &[u8]) -> Result<u32, Malformed> {
    let count = integer(field).and_then(|count| u32::try_from(count).ok()).filter(|&count| count > 0);
    count.ok_or_else(|| Malformed::new("count", field, "an integer from 1 to 4294967295"))
}

/// Reads LDA-C.
pub(crate) fn read_ldac(input: &Input<'_>, vocabulary: Option<Dictionary>) -> Result<Corpus, Error> {
    let Numbered { data, .. } = rows::read(input, Holds::Terms, |_| (), ldac_document)?;
    let Some(vocabulary) = vocabulary else {
        return Ok(Corpus::new(data));
    };
    with_vocabulary(data, vocabulary, input)
}

fn ldac_document(rows: &mut Rows<u32>, line: &[u8]) -> Result<(), Malformed> {
    let mut fields = words(line);
    let first = fields.next().unwrap_or_default();
    let num_terms = integer(first).ok_or_else(|| Malformed::new("number of terms", first, "an integer"))?;
    let before = rows.data.len();
    for field in fields {
        let colon = memchr::memchr(b':', field).ok_or_else(|| Malformed::new("term", field, "term:count"))?;
        let term = &field[..colon];
        let term = integer(term).filter(|&term| term <= u64::from(u32::MAX));
        let term = term.ok_or_else(|| Malformed::new("term", field, "an integer from 0 to 4294967295"))?;
        rows.push(term, count(&field[colon + 1..])?);
    }
    let found = rows.data.len() - before;
    if num_terms != found as u64 {
        return Err(Malformed::new("number of terms", first, format!("{found}, as many as follow on the line")));
    }
    rows.end();
    Ok(())
}

/// Renumbers words, which are named by their line in the vocabulary, from 0, as their lines.
fn with_vocabulary(mut data: Dataset<u32>, vocabulary: Dictionary, input: &Input<'_>) -> Result<Corpus, Error> {
    let terms = data.right_names().as_integers().unwrap_or_default();
    let largest = terms.last().copied().unwrap_or(0);
    check_vocabulary(input, Some(&vocabulary), |len| len > largest, largest + 1)?;
    let lines: Vec<u32> = terms.iter().map(|&term| term as u32).collect();
    data.edges.right.iter_mut().for_each(|right| *right = lines[*right as usize]);
    data.edges.num_right = vocabulary.len();
    data.right_names = Some(vocabulary);
    Ok(Corpus::new(data))
}

fn check_vocabulary(
    input: &Input<'_>,
    vocabulary: Option<&Dictionary>,
    fits: impl Fn(u64) -> bool,
    num_words: u64,
) -> Result<(), Error> {
    match vocabulary.map(|vocabulary| vocabulary.len() as u64) {
        Some(len) if !fits(len) => Err(Error::invalid(
            input.path(),
            format!("has {num_words} words, but the vocabulary beside it has {len} lines; is it of another corpus?"),
        )),
        _ => Ok(()),
    }
}

/// Counts how often words were read of documents.
pub(crate) fn counted_once(loaded: Loaded<f32>) -> Result<Corpus, Error> {
    let mut data = loaded.into_dataset()?;
    add_up(&mut data.edges);
    Ok(Corpus::new(with_counts(data)))
}

/// Takes numbers of words for counts.
pub(crate) fn with_counts(data: Dataset<f32>) -> Dataset<u32> {
    let Dataset { edges, left_names, right_names } = data;
    let EdgeList { num_left, num_right, square, left, right, data } = edges;
    let data = data.into_iter().map(|count| count as u32).collect();
    Dataset { edges: EdgeList { num_left, num_right, square, left, right, data }, left_names, right_names }
}

/// Reads one document a line, blank ones too.
pub(crate) fn read_text(input: &Input<'_>, tokenizer: Tokenizer) -> Result<Corpus, Error> {
    let Numbered { data, .. } = rows::read(
        input,
        Holds::Words,
        |text| text.parse_blank_lines(),
        |rows, line| {
            tokenizer.each_word(line, |word| rows.add_name("word", word, 1))?;
            rows.end();
            Ok(())
        },
    )?;
    Ok(Corpus::new(data))
}
