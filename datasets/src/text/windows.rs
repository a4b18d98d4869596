//! One file of text as windows of whole lines, each parsed by all threads.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use megagrid_partition::parallel;
use memchr::{memchr, memchr_iter, memrchr};

use super::open::{Source, lines_before};
use super::pipe::read_full;
use super::quotes::{self, record_end};
use super::{BYTE_ORDER_MARK, CHUNK_BYTES, MAX_LINE_BYTES, Malformed, Separator, too_long};
use crate::Error;

/// Whether to read on.
pub(crate) type Consumed = Result<ControlFlow<()>, Error>;

/// How the lines of a format become what a chunk of text holds.
pub(crate) trait Lines<C>: Sync {
    /// Parses a line, which comes without its end and trailing blanks.
    fn line(&self, chunk: &mut C, line: &[u8]) -> Result<(), Malformed>;

    /// Parses a record that has quotes in it, perhaps with line ends between them; see [`Text::separate`].
    fn quoted(&self, chunk: &mut C, record: &[u8]) -> Result<(), Malformed> {
        self.line(chunk, record)
    }

    /// Parses lines from the beginning of `text` for as long as there is a quicker way than one at a time; returns how many,
    /// and their bytes.
    fn plain(&self, _chunk: &mut C, _text: &[u8]) -> (u64, usize) {
        (0, 0)
    }
}

impl<C, F: Fn(&mut C, &[u8]) -> Result<(), Malformed> + Sync> Lines<C> for F {
    fn line(&self, chunk: &mut C, line: &[u8]) -> Result<(), Malformed> {
        self(chunk, line)
    }
}

/// One file of text, whose first window is in memory.
pub(crate) struct Text<'a> {
    path: PathBuf,
    source: Source<'a>,
    /// What was read; whole lines up to `whole`, then the beginning of the next window's first line.
    window: Vec<u8>,
    whole: usize,
    /// Whether the file ends with the window.
    ended: bool,
    /// Bytes at the beginning of the window that have been skipped.
    skipped: usize,
    /// Lines before the rest of the window.
    num_lines: u64,
    window_bytes: usize,
    parses_blank_lines: bool,
    /// What separates fields that may be quoted.
    separator: Option<u8>,
    /// Where the span begins whose lines these are.
    start: u64,
}

impl<'a> Text<'a> {
    /// Takes the lines of a span of a file that begins at the byte `start`.
    pub(super) fn new(path: PathBuf, source: Source<'a>, start: u64, window_bytes: usize) -> Result<Self, Error> {
        let (window, separator) = (Vec::new(), None);
        let (whole, ended, skipped, num_lines, parses_blank_lines) = (0, false, 0, 0, false);
        let mut text = Self {
            path,
            source,
            window,
            whole,
            ended,
            skipped,
            num_lines,
            window_bytes,
            parses_blank_lines,
            separator,
            start,
        };
        (text.window, text.whole, text.ended) = text.read_window(Vec::new(), &[])?;
        let has_returns = || memchr(b'\r', text.window.trim_ascii_end()).is_some();
        if start == 0 && text.ended && memchr(b'\n', &text.window).is_none() && has_returns() {
            let problem =
                "its lines end with carriage returns only; end them with line feeds, as `tr '\\r' '\\n'` does";
            return Err(Error::invalid(&text.path, problem));
        }
        if start == 0 && text.head().starts_with(BYTE_ORDER_MARK) {
            text.skipped = BYTE_ORDER_MARK.len();
        }
        if start == 0 && names_separator(text.head()) {
            text.skip_lines(1);
        }
        Ok(text)
    }

    /// Returns the file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the whole lines of the first window that have not been skipped.
    pub(crate) fn head(&self) -> &[u8] {
        &self.window[self.skipped..self.whole]
    }

    /// Returns the lines of [`Text::head`], without line ends and trailing blanks.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.head().split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end)
    }

    /// Returns the records of [`Text::head`], and the line of each, from 0: lines, or more where fields may be quoted.
    pub(crate) fn records(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut line = 0;
        quotes::records(self.separator, self.head()).map(move |record| {
            let at = line;
            line += 1 + memchr_iter(b'\n', record).count();
            (at, record.trim_ascii_end())
        })
    }

    /// Says what separates the fields: where they may be quoted, a record may have several lines.
    pub(crate) fn separate(&mut self, separator: Separator) {
        self.separator = separator.quotable();
    }

    /// Takes lines off the first window.
    pub(crate) fn skip_lines(&mut self, lines: usize) {
        for _ in 0..lines {
            self.next_line();
        }
    }

    /// Goes on as the text does that begins the file: takes those lines off the first window that were taken there.
    pub(super) fn follow(&mut self, beginning: &Self) {
        self.parses_blank_lines = beginning.parses_blank_lines;
        self.separator = beginning.separator;
        let taken = beginning.num_lines;
        let before = lines_before(&self.path, self.start, taken);
        self.skip_lines((taken - before) as usize);
    }

    /// Takes the next line off the first window, without its line end and trailing blanks; `None` at the end.
    pub(crate) fn next_line(&mut self) -> Option<&[u8]> {
        let start = self.skipped;
        if start == self.whole {
            return None;
        }
        let end = memchr(b'\n', &self.window[start..self.whole]).map_or(self.whole, |end| start + end);
        self.skipped = self.whole.min(end + 1);
        self.num_lines += 1;
        Some(self.window[start..end].trim_ascii_end())
    }

    /// Reports the line that [`Text::next_line`] returned last.
    pub(crate) fn malformed(&self, malformed: Malformed) -> Error {
        self.error(self.num_lines, malformed)
    }

    fn error(&self, line: u64, Malformed { field, found, expected }: Malformed) -> Error {
        let line = line + lines_before(&self.path, self.start, u64::MAX);
        Error::Malformed { path: self.path.clone(), line, field, found, expected }
    }

    /// Has [`Text::parse`] parse blank lines too.
    pub(crate) fn parse_blank_lines(&mut self) {
        self.parses_blank_lines = true;
    }

    /// Parses the lines that were not skipped, except blank ones. Each chunk is parsed from a fresh `start()`, and
    /// consumed in the order of the file, while those of the next window are parsed.
    pub(crate) fn parse<C: Send>(
        mut self,
        start: impl Fn() -> C + Sync,
        format: &impl Lines<C>,
        consume: &mut (dyn FnMut(C) -> Consumed + Send),
    ) -> Consumed {
        let (mut spare, mut parsed) = (Vec::new(), Vec::new());
        let (blank, separator) = (self.parses_blank_lines, self.separator);
        while !self.window.is_empty() {
            let window = std::mem::take(&mut self.window);
            let (chunks, rest) = self.chunks(&window)?;
            let before = std::mem::take(&mut parsed);
            let (consumed, next);
            ((consumed, next), parsed) = parallel::join(
                || {
                    let consumed = consume_all(before, consume);
                    (consumed, self.read_window(std::mem::take(&mut spare), rest))
                },
                || parallel::map(chunks.len(), |at| parse_chunk(chunks[at], (blank, separator), start(), format)),
            );
            if self.consumed(consumed)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            spare = window;
            (self.window, self.whole, self.ended) = match next {
                Ok(next) => next,
                // It is reported unless something before it ends this.
                Err(error) if self.consumed(consume_all(parsed, consume))?.is_continue() => return Err(error),
                Err(_) => return Ok(ControlFlow::Break(())),
            };
            self.skipped = 0;
        }
        self.consumed(consume_all(parsed, consume))
    }

    /// Cuts what was not skipped of a window into chunks; returns them, and the rest.
    fn chunks<'w>(&self, window: &'w [u8]) -> Result<(Vec<&'w [u8]>, &'w [u8]), Error> {
        let lines = &window[self.skipped..self.whole];
        let quoted = self.separator.filter(|_| memchr(b'"', lines).is_some());
        let Some(separator) = quoted else { return Ok((cut(lines), &window[self.whole..])) };
        let (chunks, whole) = quotes::cut(separator, lines, self.ended);
        let rest = &window[self.skipped + whole..];
        if rest.len() > MAX_LINE_BYTES {
            let problem = format!("a quoted field is longer than {MAX_LINE_BYTES} bytes; is its quote closed?");
            return Err(Error::invalid(&self.path, problem));
        }
        Ok((chunks, rest))
    }

    /// Counts the lines of chunks that were consumed.
    fn consumed(&mut self, (num_lines, outcome): (u64, Result<Consumed, Malformed>)) -> Consumed {
        self.num_lines += num_lines;
        outcome.unwrap_or_else(|malformed| Err(self.malformed(malformed)))
    }

    /// Reads the window that begins with `rest` into `window`; returns it with the length of its whole lines, and
    /// whether the file ends with it. Then all of it counts as whole; an empty window means that there is no more.
    fn read_window(&mut self, mut window: Vec<u8>, rest: &[u8]) -> Result<(Vec<u8>, usize, bool), Error> {
        // A quoted field that fills a window needs several.
        let bytes = self.window_bytes.max(2 * rest.len() + 1);
        if window.is_empty() {
            // Zero pages of the system, touched only as far as the data go.
            window = vec![0; bytes];
        } else {
            window.resize(bytes, 0);
        }
        window[..rest.len()].copy_from_slice(rest);
        let mut filled = rest.len();
        loop {
            let read = read_full(&mut *self.source.reader, &mut window[filled..]);
            let searched = filled;
            filled += read.map_err(|error| self.read_error(error))?;
            if filled < window.len() {
                window.truncate(filled);
                return Ok((window, filled, true));
            }
            if let Some(end) = memrchr(b'\n', &window[searched..]) {
                return Ok((window, searched + end + 1, false));
            }
            if filled > MAX_LINE_BYTES {
                return Err(Error::invalid(&self.path, too_long()));
            }
            window.resize(2 * filled, 0);
        }
    }

    fn read_error(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        match self.source.compression {
            Some(compression) if source.kind() == io::ErrorKind::UnexpectedEof => {
                Error::Truncated { path, compression: compression.name() }
            }
            Some(compression) => {
                Error::invalid(&path, format!("the {} data are damaged ({source})", compression.name()))
            }
            None => Error::Io { path, source },
        }
    }
}

/// What a chunk was parsed to, and its lines up to the first malformed one.
type Parsed<C> = (Result<C, Malformed>, u64);

/// Consumes chunks in order, up to the first malformed line; returns also the lines up to there.
fn consume_all<C>(
    chunks: Vec<Parsed<C>>,
    consume: &mut dyn FnMut(C) -> Consumed,
) -> (u64, Result<Consumed, Malformed>) {
    let mut all_lines = 0;
    for (chunk, num_lines) in chunks {
        all_lines += num_lines;
        match chunk.map(&mut *consume) {
            Ok(Ok(ControlFlow::Continue(()))) => {}
            ended => return (all_lines, ended),
        }
    }
    (all_lines, Ok(Ok(ControlFlow::Continue(()))))
}

/// Cuts whole lines into chunks of whole lines.
fn cut(mut lines: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::with_capacity(lines.len() / CHUNK_BYTES + 1);
    while lines.len() > CHUNK_BYTES {
        let end = memchr(b'\n', &lines[CHUNK_BYTES..]).map_or(lines.len(), |end| CHUNK_BYTES + end + 1);
        let (chunk, rest) = lines.split_at(end);
        chunks.push(chunk);
        lines = rest;
    }
    chunks.push(lines);
    chunks
}

/// Parses the lines of a chunk, those that are `blank` if asked to, up to the first malformed one; returns also how many
/// lines that were, with it. Fields between which `separator` stands may be quoted.
fn parse_chunk<C>(
    mut text: &[u8],
    (blank, separator): (bool, Option<u8>),
    mut chunk: C,
    format: &impl Lines<C>,
) -> Parsed<C> {
    let mut num_lines = 0;
    let next_quote = |text: &[u8]| separator.and_then(|_| memchr(b'"', text)).unwrap_or(usize::MAX);
    let mut quote = next_quote(text);
    loop {
        let plain =
            if quote < text.len() { &text[..memrchr(b'\n', &text[..quote]).map_or(0, |end| end + 1)] } else { text };
        let (lines, bytes) = format.plain(&mut chunk, plain);
        (num_lines, text, quote) = (num_lines + lines, &text[bytes..], quote - bytes);
        if text.is_empty() {
            return (Ok(chunk), num_lines);
        }
        let mut end = memchr(b'\n', text).unwrap_or(text.len());
        let is_quoted = quote < end;
        if is_quoted && let Some(separator) = separator {
            end = record_end(separator, text);
        }
        let content = text[..end].trim_ascii_end();
        num_lines += 1;
        let parsed = match () {
            () if content.is_empty() && !blank => Ok(()),
            () if is_quoted => format.quoted(&mut chunk, content),
            () => format.line(&mut chunk, content),
        };
        if let Err(malformed) = parsed {
            return (Err(malformed), num_lines);
        }
        let next = text.len().min(end + 1);
        if is_quoted {
            num_lines += memchr_iter(b'\n', &text[..end]).count() as u64;
            quote = next_quote(&text[next..]);
        } else {
            quote -= next;
        }
        text = &text[next..];
    }
}

/// Tells whether the first line says what separates fields, as that of Excel does: `sep=;`.
fn names_separator(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"sep=").and_then(<[u8]>::split_first);
    rest.is_some_and(|(separator, rest)| {
        !separator.is_ascii_alphanumeric() && (rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
    })
}
