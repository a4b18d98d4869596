//! Documents that a model is asked about, and how they are laid out.

use std::path::Path;

use megagrid_datasets::{Corpus, Dictionary, Format, Layout, Roles, Tokenizer, is_pipe, read_corpus_with};
use serde_json::Value;

use crate::Error;

/// Documents in the numbering of a model's words.
#[derive(Clone, Debug)]
pub struct NewDocuments {
    /// Names of the documents.
    pub names: Dictionary,
    /// Words of each document, and how often they occur.
    pub words: Vec<Vec<(u32, u32)>>,
    /// Pairs of a document and a word.
    pub num_edges: usize,
    /// Tokens of words that the model knows.
    pub tokens: u64,
    /// Tokens of words that it does not know.
    pub unknown: u64,
}

impl NewDocuments {
    /// Groups a corpus, whose words are numbered as the model's, by documents.
    #[must_use]
    pub fn new(corpus: Corpus, unknown: u64) -> Self {
        let Corpus { data, num_tokens } = corpus;
        let edges = &data.edges;
        let mut words = vec![Vec::new(); edges.num_left];
        for ((&document, &word), &count) in edges.left.iter().zip(&edges.right).zip(&edges.data) {
            words[document as usize].push((word, count));
        }
        Self { names: data.left_names, words, num_edges: edges.num_edges(), tokens: num_tokens, unknown }
    }

    /// Reads documents, and finds their words by name.
    ///
    /// # Errors
    /// A cache; documents that cannot be read, or have no word of the model.
    pub fn read(
        path: &Path,
        layout: impl Into<Layout>,
        tokenizer: Tokenizer,
        known: &Dictionary,
        advice: &str,
    ) -> Result<Self, Error> {
        let layout = layout.into().of_corpus(path)?;
        if layout.find(path)? == Format::Cache {
            return Err(Error::option("documents are taken as text, and this is a .mgrid cache"));
        }
        let (corpus, unknown) = read_corpus_with(path, layout, tokenizer, None)?.with_words(known);
        let documents = Self::new(corpus, unknown);
        if documents.tokens == 0 {
            return Err(Error::invalid(path, format!("{advice}; is it in the same language?")));
        }
        Ok(documents)
    }
}

/// Returns the format of new documents where nothing is said: plain text where a model's documents were, unless the file says itself
/// what it is. `None`: it is told by name and content.
#[must_use]
pub fn format_of_new(trained: Option<Format>, path: &Path) -> Option<Format> {
    use Format::{BagOfWords, Cache, JsonLines, LdaC, MatrixMarket, Parquet};
    let says = |format| matches!(format, BagOfWords | Cache | JsonLines | LdaC | MatrixMarket | Parquet);
    let is_text = trained == Some(Format::Text) && !Format::detect(path).is_ok_and(says);
    is_text.then_some(Format::Text)
}

/// Returns how new documents are laid out, as far as that is not stated: as those of the run with this configuration were, unless the file
/// says itself what it is.
#[must_use]
pub fn layout_of_new(config: &Value, path: &Path, stated: Layout) -> Layout {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    // Text has no columns: what has some to name is a table.
    let as_trained = || format_of_new(text("format").parse().ok(), path).filter(|_| stated.roles.is_empty());
    let format = stated.format.or_else(as_trained);
    let trained: Roles = text("columns").parse().unwrap_or_default();
    if !stated.roles.is_empty() || trained.is_empty() {
        return Layout { format, ..stated };
    }
    // What a pipe has is not looked at twice.
    let found = format.or_else(|| if is_pipe(path) { None } else { Format::detect(path).ok() });
    let has_columns = match found {
        // Keys have no numbers.
        Some(Format::JsonLines) => !has_numbers(&trained),
        Some(Format::BagOfWords | Format::Cache | Format::LdaC | Format::MatrixMarket) => false,
        Some(Format::Counts | Format::Parquet) => true,
        // Text of any look is a table where columns are named.
        _ => format.is_none(),
    };
    let roles = if has_columns { trained } else { stated.roles };
    Layout { format, roles, ..stated }
}

/// Tells whether a column is called by its number.
fn has_numbers(roles: &Roles) -> bool {
    roles.to_string().split(',').any(|one| one.rsplit('=').next().is_some_and(|column| column.parse::<usize>().is_ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use megagrid_datasets::Role;
    use serde_json::json;

    use super::*;

    /// A table is read by the columns of the corpus; what says itself what it is, and what is stated, is read as that.
    #[test]
    fn new_documents_are_laid_out_as_the_corpus_unless_they_say_how() {
        let place = tempfile::tempdir().unwrap();
        let files = [
            ("new.csv", "2,sea,d1\n1,ship,d2\n"),
            ("new.jsonl", "{\"text\": \"sea ship\"}\n"),
            ("docword.new.txt", "1\n2\n1\n1 1 3\n"),
            ("new.ldac", "1 0:2\n"),
            ("new.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1\n"),
            ("new.txt", "sea ship\n"),
        ];
        files.iter().for_each(|(name, text)| fs::write(place.path().join(name), text).unwrap());
        let layout = |config: &Value, name: &str, stated| layout_of_new(config, &place.path().join(name), stated);
        let columns: Roles = "document=3,word=2,count=1".parse().unwrap();
        let counts = json!({ "format": "counts", "columns": columns.to_string() });
        for (name, has_columns) in [
            ("new.csv", true),
            ("new.jsonl", false),
            ("docword.new.txt", false),
            ("new.ldac", false),
            ("new.mtx", false),
        ] {
            let found = layout(&counts, name, Layout::default());
            let roles = if has_columns { columns.clone() } else { Roles::default() };
            assert_eq!((found.format, found.roles), (None, roles), "{name}");
        }
        let keys = json!({ "format": "jsonl", "columns": "document=page,word=term" });
        assert!(["new.csv", "new.jsonl"].iter().all(|name| !layout(&keys, name, Layout::default()).roles.is_empty()));
        let others: Roles = "word=1".parse().unwrap();
        let stated = Layout { roles: others.clone(), ..Layout::default() };
        assert_eq!(layout(&counts, "new.csv", stated).roles, others);
        let stated = Layout { roles: others.clone(), ..Layout::default() };
        let table = layout(&json!({ "format": "text" }), "new.csv", stated);
        assert_eq!((table.format, table.roles), (None, others), "columns are those of a table");
        let text = layout(&counts, "new.txt", Some(Format::Text).into());
        assert_eq!((text.format, text.roles), (Some(Format::Text), Roles::default()));
        let bodies = json!({ "format": "table", "columns": "text=body" });
        assert!(
            ["new.csv", "new.jsonl"].iter().all(|name| layout(&bodies, name, Layout::default()).roles.has(Role::Text))
        );
        let posts = json!({ "format": "text" });
        assert_eq!(layout(&posts, "new.txt", Layout::default()).format, Some(Format::Text));
        assert_eq!(layout(&posts, "new.jsonl", Layout::default()).format, None);
    }
}
