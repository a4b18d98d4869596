//! The vocabulary beside a corpus, a word a line.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::text::{Input, Malformed, Text, is_pipe};
use crate::{Dictionary, Error};

/// Finds the vocabulary beside a corpus: the one file `vocab.*`, or of several the one named after the corpus.
pub(crate) fn find(corpus: &Path) -> Result<Option<PathBuf>, Error> {
    if is_pipe(corpus) {
        return Ok(None);
    }
    let directory = corpus.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut candidates = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let name = entry.map_err(Error::io(directory))?.file_name();
        if let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("vocab.")) {
            candidates.push((rest.split('.').next().unwrap_or_default().to_string(), directory.join(&name)));
        }
    }
    if candidates.len() < 2 {
        return Ok(candidates.pop().map(|(_, path)| path));
    }
    let of = corpus.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let of = of.strip_prefix("docword.").unwrap_or(of);
    candidates.retain(|(stem, _)| of.starts_with(stem.as_str()));
    let longest = candidates.into_iter().max_by_key(|(stem, _)| stem.len());
    let problem = "several files vocab.* are beside it, none of its name; leave only its own there";
    longest.map(|(_, path)| Some(path)).ok_or_else(|| Error::invalid(corpus, problem))
}

/// Reads a vocabulary: the word of id `i` is on line `i` from 0. Blank lines count, but not at the end; their words are called by them.
pub(crate) fn read(path: &Path) -> Result<Dictionary, Error> {
    let mut words = Vec::new();
    let word = |words: &mut Vec<String>, line: &[u8]| {
        let word = std::str::from_utf8(line).map_err(|_| Malformed::new("word", line, "text in UTF-8"))?;
        words.push(word.to_string());
        Ok(())
    };
    let collect = |mut chunk: Vec<String>| {
        words.append(&mut chunk);
        Ok(ControlFlow::Continue(()))
    };
    let begin = |text: &mut Text<'_>| {
        text.parse_blank_lines();
        Ok(())
    };
    Input::open(path)?.parse(begin, |()| Vec::new(), word, collect)?;
    while words.pop_if(|word| word.is_empty()).is_some() {}
    for (at, word) in words.iter_mut().enumerate().filter(|(_, word)| word.is_empty()) {
        *word = format!("(line {})", at + 1);
    }
    Ok(Dictionary::from_strings(words))
}
