//! The files that a path names: itself, those in a directory, or those that fit a pattern.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::pipe::is_pipe;
use crate::Error;

/// Returns the files that an input consists of, in the order of their names: itself, or the files in it if it is a directory, except
/// hidden ones and those whose name starts with `_` (`_SUCCESS` and its like), or those that fit a pattern, `day-*.csv` say, where
/// there is no file of this name. Standard input and pipes have none.
///
/// # Errors
/// Where the path does not exist or the directory cannot be read or holds no file.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if is_pipe(path) {
        return Ok(Vec::new());
    }
    let files = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => files_of(path)?,
        Ok(_) => vec![path.to_path_buf()],
        Err(error) if error.kind() == io::ErrorKind::NotFound => match pattern_of(path) {
            Some(pattern) => matches(path, pattern)?,
            None => return Err(Error::io(path)(error)),
        },
        Err(error) => return Err(Error::io(path)(error)),
    };
    if files.is_empty() {
        return Err(Error::Empty { path: path.to_path_buf(), records: "files" });
    }
    Ok(files)
}

fn pattern_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.contains(['*', '?', '[']))
}

fn matches(path: &Path, pattern: &str) -> Result<Vec<PathBuf>, Error> {
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::default() };
    let found = glob::glob_with(pattern, options);
    let found = found.map_err(|error| Error::invalid(path, format!("is no file, and no pattern: {error}")))?;
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>().map_err(|error| Error::io(path)(error.into()))?;
    if found.is_empty() {
        return Err(Error::invalid(path, "no file fits this pattern"));
    }
    let mut files: Vec<PathBuf> = found.into_iter().filter(|file| file.is_file()).collect();
    files.sort_unstable();
    Ok(files)
}

fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let entry = entry.map_err(Error::io(directory))?;
        let path = entry.path();
        let skipped = matches!(entry.file_name().as_encoded_bytes().first(), Some(b'.' | b'_'));
        // Follows links, unlike the entry's own type.
        if !skipped && fs::metadata(&path).map_err(Error::io(&path))?.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["b-2.csv", "b-1.csv", "a-1.csv", ".b-0.csv", "b-3.txt", "[x].csv"] {
            fs::write(path(name), "1 2\n").unwrap();
        }
        fs::create_dir(path("b-0.csv")).unwrap();
        assert_eq!(files(&path("b-*.csv")).unwrap(), [path("b-1.csv"), path("b-2.csv")]);
        assert_eq!(files(&path("*-1.csv")).unwrap(), [path("a-1.csv"), path("b-1.csv")]);
        assert_eq!(files(&path("[x].csv")).unwrap(), [path("[x].csv")], "a file of this name is that file");
        let none = files(&path("c-*.csv")).unwrap_err().to_string();
        assert!(none.ends_with("c-*.csv: no file fits this pattern"), "{none}");
        assert!(files(&path("***")).unwrap_err().to_string().contains("no pattern"));
        assert!(matches!(files(&path("c.csv")), Err(Error::Io { .. })));
    }
}
