//! An input: files, what comes through a pipe, or bytes in memory.

use std::fs;
use std::io::Cursor;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use megagrid_partition::parallel;

use super::division::divide;
use super::files::files;
use super::open::{self, Compression, Source, WHOLE};
use super::pipe::{self, Pipe, is_pipe};
use super::translated::Utf8;
use super::windows::Consumed;
use super::{Lines, Text, WINDOW_BYTES};
use crate::{Error, Readers, Roles};

/// Text to parse: a file, several in the order of their names, what comes through a pipe, or bytes in memory.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// What the user named.
    path: PathBuf,
    /// All of it.
    whole: Vec<Part<'a>>,
    /// What this process reads.
    parts: Vec<Part<'a>>,
    window_bytes: usize,
    /// The processes that read the other parts, if there are some.
    readers: Option<Arc<dyn Readers>>,
    /// Whether several of them may read parts of one file.
    is_cut: bool,
    /// Which columns hold what, in a table.
    roles: Roles,
    /// Whether each line of a graph is an edge both ways.
    is_undirected: bool,
}

#[derive(Clone, Debug)]
enum Part<'a> {
    /// The lines of a span of a file.
    File(PathBuf, Range<u64>),
    /// What came through a pipe.
    Pipe(Arc<Pipe>),
    Bytes(&'a [u8]),
}

impl Part<'_> {
    /// Tells whether it is read by itself, on all threads: what is read beside others is kept until it is its turn, and a large part would
    /// take much memory. A compressed file is decoded by one thread, so that others go on beside it.
    fn is_large(&self) -> bool {
        let Self::File(path, _) = self else { return false };
        self.bytes().is_some_and(|bytes| bytes > LARGE_BYTES)
            && fs::File::open(path).is_ok_and(|mut file| matches!(Compression::of(&mut file), Ok(None)))
    }

    /// Returns how many bytes a part of a file has, compressed if it is.
    fn bytes(&self) -> Option<u64> {
        let Self::File(path, span) = self else { return None };
        fs::metadata(path).ok().map(|file| file.len().min(span.end).saturating_sub(span.start))
    }
}

/// The least window of a part when many are read at once.
const MIN_WINDOW_BYTES: usize = 1 << 20;
/// Bytes of a plain part that is large: threads that share it lose nothing by that.
const LARGE_BYTES: u64 = 32 << 20;

impl Input<'static> {
    /// Opens the files that a path names (see [`files`]), or what comes through a pipe.
    ///
    /// # Errors
    /// As [`files`]; a pipe that cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let whole: Vec<Part<'_>> = match is_pipe(path) {
            true => vec![Part::Pipe(pipe::look(path)?)],
            false => files(path)?.into_iter().map(|file| Part::File(file, WHOLE)).collect(),
        };
        let (path, window_bytes, parts) = (path.to_path_buf(), WINDOW_BYTES, whole.clone());
        let roles = Roles::default();
        Ok(Self { path, whole, parts, window_bytes, readers: None, is_cut: false, roles, is_undirected: false })
    }

    /// Opens an input to read it for good: what comes through a pipe is gone afterwards.
    ///
    /// # Errors
    /// As [`Input::open_with`].
    pub(crate) fn take(path: &Path, readers: Option<&Arc<dyn Readers>>) -> Result<Self, Error> {
        let opened = Self::open_with(path, readers)?;
        if is_pipe(path) {
            pipe::forget(path);
        }
        Ok(opened)
    }

    /// Opens what this process is to read of an input that several read together: about equally many bytes for each, in the order
    /// of the files. A file that cannot be cut is read by one.
    ///
    /// # Errors
    /// As [`Input::open`]; other files than the other processes have.
    pub fn open_with(path: &Path, readers: Option<&Arc<dyn Readers>>) -> Result<Self, Error> {
        if readers.is_some() && is_pipe(path) {
            return Err(Error::of_one_process(path));
        }
        let whole = Self::open(path)?;
        let Some(readers) = readers else { return Ok(whole) };
        let parts = whole.divided(readers, true)?;
        Ok(Self { parts, readers: Some(Arc::clone(readers)), is_cut: true, ..whole })
    }
}

impl<'a> Input<'a> {
    /// Takes the bytes of a file that is in memory; messages call it `<bytes>`. They are not decompressed.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        let window_bytes = WINDOW_BYTES.min(bytes.len() + 1);
        let (path, parts) = (PathBuf::from("<bytes>"), vec![Part::Bytes(bytes)]);
        let (whole, roles) = (parts.clone(), Roles::default());
        Self { path, whole, parts, window_bytes, readers: None, is_cut: false, roles, is_undirected: false }
    }

    /// Says which columns hold what.
    #[must_use]
    pub fn with_roles(mut self, roles: &Roles) -> Self {
        self.roles = roles.clone();
        self
    }

    /// Says whether each line of a graph is an edge both ways.
    #[must_use]
    pub fn undirected(self, is_undirected: bool) -> Self {
        Self { is_undirected, ..self }
    }

    /// Tells whether each line of a graph is an edge both ways.
    pub(crate) fn is_undirected(&self) -> bool {
        self.is_undirected
    }

    /// Returns which columns hold what.
    pub(crate) fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Tells whether processes may read parts of one file.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Divides the input anew so that each file is read by one process. All processes call it.
    ///
    /// # Errors
    /// As [`Input::open_with`].
    pub(crate) fn in_whole_files(&self) -> Result<Self, Error> {
        let parts = self.readers.as_ref().map(|readers| self.divided(readers, false)).transpose()?;
        Ok(Self { parts: parts.unwrap_or_else(|| self.whole.clone()), is_cut: false, ..self.clone() })
    }

    /// Returns what this process is to read.
    fn divided(&self, readers: &Arc<dyn Readers>, cuts_files: bool) -> Result<Vec<Part<'a>>, Error> {
        let files: Vec<PathBuf> = self.files().map(Path::to_path_buf).collect();
        let spans = divide(&self.path, &files, readers, cuts_files)?;
        Ok(spans.into_iter().map(|(file, span)| Part::File(file, span)).collect())
    }

    /// Sets the bytes of text that are parsed at a time.
    #[cfg(test)]
    pub(crate) fn with_window(mut self, window_bytes: usize) -> Self {
        self.window_bytes = window_bytes;
        self
    }

    /// Returns what the user named: the file or the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the first part, if it is a file with a name in UTF-8.
    pub(crate) fn first_name(&self) -> Option<&str> {
        self.files().next()?.file_name()?.to_str()
    }

    /// Returns the files, none for a pipe or bytes in memory.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.whole.iter().filter_map(|part| match part {
            Part::File(path, _) => Some(path.as_path()),
            Part::Pipe(_) | Part::Bytes(_) => None,
        })
    }

    /// Returns how many bytes they are, compressed as they may be.
    fn bytes(&self) -> Result<u64, Error> {
        let of = |part: &Part<'_>| match part {
            Part::File(file, _) => fs::metadata(file).map(|metadata| metadata.len()).map_err(Error::io(file)),
            Part::Pipe(pipe) => Ok(pipe.bytes),
            Part::Bytes(bytes) => Ok(bytes.len() as u64),
        };
        self.whole.iter().map(of).sum()
    }

    /// Returns the processes that read the other parts, if there are some.
    pub(crate) fn readers(&self) -> Option<&Arc<dyn Readers>> {
        self.readers.as_ref()
    }

    /// Returns the beginning of the only file.
    ///
    /// # Errors
    /// Where there are several, for formats whose header counts what follows.
    pub(crate) fn single(&self) -> Result<Text<'a>, Error> {
        match &self.whole[..] {
            [part] => self.beginning(part),
            parts => Err(Error::invalid(
                &self.path,
                format!("{} files, but this format is one file; name the file", parts.len()),
            )),
        }
    }

    /// Returns the beginning of the first file that is not empty.
    pub(crate) fn head(&self) -> Result<Text<'a>, Error> {
        for part in &self.whole {
            let text = self.beginning(part)?;
            if !text.head().is_empty() {
                return Ok(text);
            }
        }
        Err(Error::Empty { path: self.path.clone(), records: "lines" })
    }

    /// Parses all parts, several files at a time, and consumes the outcomes in their order until `consume` breaks off.
    /// `begin` sees the first lines of each part, may take some, and returns what the chunks start from.
    pub(crate) fn parse<H: Sync, C: Send>(
        &self,
        begin: impl Fn(&mut Text<'a>) -> Result<H, Error> + Sync,
        start: impl Fn(&H) -> C + Sync,
        format: impl Lines<C>,
        mut consume: impl FnMut(C) -> Consumed + Send,
    ) -> Result<(), Error> {
        let read = |part, window_bytes, consume: &mut (dyn FnMut(C) -> Consumed + Send)| {
            let mut text = self.text(part, window_bytes)?;
            let header = match part {
                Part::File(_, span) if *span != WHOLE => {
                    let mut beginning = self.beginning(part)?;
                    let header = begin(&mut beginning)?;
                    text.follow(&beginning);
                    header
                }
                _ => begin(&mut text)?,
            };
            text.parse(|| start(&header), &format, consume)
        };
        let mut rest = &self.parts[..];
        while !rest.is_empty() {
            let small = rest.iter().take(rayon::current_num_threads()).take_while(|part| !part.is_large()).count();
            let (group, others) = rest.split_at(small.max(1));
            rest = others;
            if let [part] = group {
                if read(part, self.window_bytes, &mut consume)?.is_break() {
                    return Ok(());
                }
                continue;
            }
            let window_bytes = (self.window_bytes / group.len()).max(self.window_bytes.min(MIN_WINDOW_BYTES));
            let read_all = |part| {
                let mut chunks = Vec::new();
                let read = read(part, window_bytes, &mut |chunk| {
                    chunks.push(chunk);
                    Ok(ControlFlow::Continue(()))
                });
                (chunks, read)
            };
            let parts = parallel::map(group.len(), |at| read_all(&group[at]));
            for (chunks, read) in parts {
                // What comes before a line that is wrong may end the pass, as in a file by itself.
                for chunk in chunks {
                    if consume(chunk)?.is_break() {
                        return Ok(());
                    }
                }
                let _ = read?;
            }
        }
        Ok(())
    }

    /// Returns the beginning of a part's file.
    fn beginning(&self, part: &Part<'a>) -> Result<Text<'a>, Error> {
        match part {
            Part::File(path, _) => self.text(&Part::File(path.clone(), WHOLE), MIN_WINDOW_BYTES),
            Part::Pipe(_) | Part::Bytes(_) => self.text(part, MIN_WINDOW_BYTES),
        }
    }

    fn text(&self, part: &Part<'a>, window_bytes: usize) -> Result<Text<'a>, Error> {
        match part {
            Part::File(path, span) => {
                let source = open::open(path, span, self.readers.as_ref())?;
                // To clear a window takes longer than to read a small file. One more byte, so that its end shows; compressed text is longer.
                let most = part.bytes().map(|bytes| if source.compression.is_some() { 16 * bytes } else { bytes + 1 });
                let window_bytes = most.map_or(window_bytes, |most| window_bytes.min(most.max(1 << 12) as usize));
                Text::new(path.clone(), source, span.start, window_bytes)
            }
            Part::Pipe(pipe) => {
                let source = open::open_pipe(pipe).map_err(Error::io(&self.path))?;
                Text::new(self.path.clone(), source, 0, window_bytes)
            }
            Part::Bytes(bytes) => {
                let reader = Box::new(Utf8::new(Cursor::new(*bytes)));
                let source = Source { reader, compression: None };
                Text::new(self.path.clone(), source, 0, window_bytes)
            }
        }
    }
}

/// Returns how many bytes an input has, as it is compressed; see [`files`].
///
/// # Errors
/// A path that is not there, or a pattern that nothing fits.
pub fn input_bytes(path: &Path) -> Result<u64, Error> {
    Input::open(path)?.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Link;
    use crate::{Dataset, delimited};

    fn read(input: &Input<'_>) -> Result<Dataset<()>, Error> {
        delimited::read::<Link>(input, usize::MAX)?.into_dataset()
    }

    #[test]
    fn windows_do_not_change_what_is_read() {
        let text: String = (0..500).map(|i| format!("n{} n{}\r\n", i * 7919 % 97, i * 104_729 % 89)).collect();
        let whole = read(&Input::from_bytes(text.as_bytes())).unwrap();
        for window_bytes in [1, 2, 13, 100, 4096] {
            let read = read(&Input::from_bytes(text.as_bytes()).with_window(window_bytes)).unwrap();
            assert_eq!(read, whole, "window of {window_bytes} bytes");
        }
    }

    #[test]
    fn lines_are_counted_over_windows() {
        let text = "\n1 2\n\n3 4\r\n5\n6 7";
        for window_bytes in [1, 5, 100] {
            let input = Input::from_bytes(text.as_bytes()).with_window(window_bytes);
            let error = read(&input).unwrap_err().to_string();
            assert!(error.starts_with("<bytes>:5: edge: found \"5\""), "window of {window_bytes} bytes: {error}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let read = read(&Input::from_bytes(b"\xef\xbb\xbf1 2\n")).unwrap();
        assert_eq!(read.left_names.as_integers(), Some(&[1, 2][..]));
    }
}
