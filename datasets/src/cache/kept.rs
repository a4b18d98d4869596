//! Caches that are kept of inputs, so that each is read as text once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use megagrid_partition::parallel;
use xxhash_rust::xxh3::Xxh3;

use super::file::CacheFile;
use super::header::Section;
use crate::Error;
use crate::text::Input;

/// Bytes of a section that one thread checks at a time.
const CHECK_BYTES: u64 = 4 << 20;

/// Returns where the cache of an input is kept in `directory`: its name follows from the input's place, length and time of change,
/// of all files if it is a directory, of the vocabularies beside it, and from `how` it is read. So a cache whose name is found is
/// of this input as it is now.
///
/// # Errors
/// An input that cannot be found.
///
/// # Examples
/// ```no_run
/// use megagrid_datasets::cache::kept_path;
/// let path = kept_path("caches".as_ref(), "links.txt".as_ref(), "graph")?;
/// // caches/links.txt-0123456789abcdef.mgrid, say
/// # Ok::<(), megagrid_datasets::Error>(())
/// ```
pub fn kept_path(directory: &Path, input: &Path, how: &str) -> Result<PathBuf, Error> {
    // Patterns are no places.
    let place = input.canonicalize().or_else(|_| std::path::absolute(input)).map_err(Error::io(input))?;
    let mut hash = Xxh3::new();
    hash.update(how.as_bytes());
    let found = Input::open(&place)?;
    for file in found.files().map(Path::to_path_buf).chain(vocabularies(&place)) {
        let metadata = fs::metadata(&file).map_err(Error::io(&file))?;
        let changed = metadata.modified().map_err(Error::io(&file))?;
        // Times before 1970 are as good as that.
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update(&metadata.len().to_le_bytes());
        hash.update(&changed.as_nanos().to_le_bytes());
    }
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    Ok(directory.join(format!("{name}-{:016x}.mgrid", hash.digest())))
}

/// Returns the files beside an input that a reader of corpora may take for its vocabulary, by name.
fn vocabularies(input: &Path) -> Vec<PathBuf> {
    let beside = input.parent().and_then(|parent| fs::read_dir(parent).ok());
    let files = beside.into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |file: &PathBuf| file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vocab"));
    let mut found: Vec<PathBuf> = files.filter(is_one).collect();
    found.sort_unstable();
    found
}

/// Checks all of a cache, on all threads.
///
/// # Errors
/// The first part that is damaged; a file that cannot be read.
pub fn verify(path: &Path) -> Result<(), Error> {
    let file = CacheFile::open(path)?;
    for section in Section::ALL {
        let bytes = file.header.section_bytes(section);
        let starts: Vec<u64> = (0..bytes).step_by(CHECK_BYTES as usize).collect();
        let check = |at: usize| file.window(section, starts[at]..bytes.min(starts[at] + CHECK_BYTES)).map(drop);
        parallel::map(starts.len(), check).into_iter().collect::<Result<(), Error>>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_inputs_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("links.txt");
        let name = |how: &str| kept_path("caches".as_ref(), &input, how).unwrap();
        assert!(kept_path("caches".as_ref(), &input, "graph").is_err());
        fs::write(&input, "1 2\n").unwrap();
        let first = name("graph");
        assert!(first.to_string_lossy().starts_with("caches/links.txt-"), "{first:?}");
        assert_eq!(name("graph"), first);
        assert_ne!(name("ratings"), first);
        fs::write(&input, "1 2\n2 3\n").unwrap();
        let second = name("graph");
        assert_ne!(second, first);
        fs::write(directory.path().join("vocab.txt"), "tea\n").unwrap();
        assert_ne!(name("graph"), second);
    }

    #[test]
    fn damage_is_found_wherever_it_is() {
        use crate::{Format, Prepared, parse_graph};
        use megagrid_partition::Side;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("links.mgrid");
        let graph = parse_graph(b"1 2\n2 3\n3 1\n", Format::Edges).unwrap();
        Prepared::new(graph, &[Side::Left, Side::Right]).write_cache(&path).unwrap();
        verify(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).filter(|&at| whole[at] != 0) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(verify(&path).is_err(), "byte {at}");
        }
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(verify(&path).is_err());
    }
}
