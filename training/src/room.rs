//! Whether there is room for an input, told before it is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use megagrid_datasets::{Format, files};
use megagrid_engine::os::available_memory_bytes;

use crate::Error;
use crate::input::Source;

/// How much of a text is looked at.
const HEAD: u64 = 1 << 20;

/// Refuses a plain text of which not even the edges fit the memory. `processes` read a part each. Compressed files and words are not
/// foreseen; what a plan needs is compared with the memory once there is one.
///
/// # Errors
/// Too large an input, with what it needs; a file that cannot be read.
pub(crate) fn check(source: &Source, processes: usize) -> Result<(), Error> {
    let Some(format) = source.format else { return Ok(()) };
    let (Some(edge), Some(available)) = (Edge::of(format), available_memory_bytes()) else { return Ok(()) };
    let least = edge.least_bytes(&source.input)? / processes.max(1) as u64;
    if least <= available {
        return Ok(());
    }
    let (least, available) = (least >> 20, available >> 20);
    Err(Error::TooLarge {
        path: source.input.clone(),
        problem: format!(
            "its edges need at least {least} MB of memory and {available} MB are available; train in more processes \
             (graphs and ratings stay in parts), or on a larger machine"
        ),
    })
}

/// How edges stand in a text.
#[derive(Clone, Copy)]
struct Edge {
    /// What there is one of for each.
    mark: u8,
    /// The least memory that it takes: the edge as it is read, and in the grid.
    bytes: u64,
}

impl Edge {
    fn of(format: Format) -> Option<Self> {
        let (mark, bytes) = match format {
            Format::Edges => (b'\n', 8 + 2),
            Format::Ratings | Format::MatrixMarket | Format::BagOfWords | Format::Counts => (b'\n', 12 + 6),
            Format::Libsvm | Format::LdaC => (b':', 8 + 6),
            Format::Table | Format::Text | Format::JsonLines | Format::Parquet | Format::Cache => return None,
        };
        Some(Self { mark, bytes })
    }

    /// Estimates the least memory for the edges of an input's files.
    fn least_bytes(self, path: &Path) -> Result<u64, Error> {
        let mut total = 0.0;
        for file in &files(path)? {
            let look = || -> std::io::Result<(Vec<u8>, u64)> {
                let (mut head, opened) = (Vec::new(), File::open(file)?);
                let bytes = opened.metadata()?.len();
                opened.take(HEAD).read_to_end(&mut head)?;
                Ok((head, bytes))
            };
            let (head, bytes) = look().map_err(Error::io(file))?;
            let is_text = head.iter().take(64).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
            let marks = head.iter().filter(|&&byte| byte == self.mark).count();
            if is_text && marks > 0 {
                total += marks as f64 / head.len() as f64 * bytes as f64;
            }
        }
        Ok((total * self.bytes as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file of 4 TiB that takes no room, but for the lines at its beginning.
    fn huge(line: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(line.repeat((HEAD as usize).div_ceil(line.len())).as_bytes()).unwrap();
        file.as_file().set_len(1 << 42).unwrap();
        file
    }

    fn source(file: &tempfile::NamedTempFile, format: Format) -> Source {
        Source { format: Some(format), ..Source::new(file.path()) }
    }

    #[test]
    fn a_text_that_cannot_fit_is_refused_before_it_is_read() {
        for (line, format) in
            [("10 2000\n", Format::Edges), ("1,2,3\n", Format::Ratings), ("1 1:1 7:1\n", Format::Libsvm)]
        {
            let file = huge(line);
            let message = check(&source(&file, format), 1).unwrap_err().to_string();
            assert!(message.contains("MB of memory") && message.contains("available"), "{message}");
            // A million processes have a part each.
            check(&source(&file, format), 1 << 20).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_foreseen_is_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[0x1f, 0x8b, 8, 0]).unwrap();
        file.as_file().set_len(1 << 42).unwrap();
        check(&source(&file, Format::Edges), 1).unwrap();
        check(&source(&huge("words and words\n"), Format::Text), 1).unwrap();
    }

    #[test]
    fn the_estimate_follows_from_lines() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all("10 2000\n".repeat(1000).as_bytes()).unwrap();
        assert_eq!(Edge::of(Format::Edges).unwrap().least_bytes(file.path()).unwrap(), 10_000);
    }
}
