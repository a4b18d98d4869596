//! Tables as text: records with an id in each of two columns, in any syntax.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_partition::Side;

use crate::Error;
use crate::columns::{Columns, Named, Pass};
use crate::gather::Gathered;
use crate::header::FIRST_RECORDS;
use crate::loaded::Loaded;
use crate::records::Record;
use crate::text::{Input, Lines, Malformed, Text};

/// How records are written.
pub(crate) trait Syntax<R: Record>: Sync {
    /// What is known of a file from its beginning.
    type Shape: Send + Sync;

    /// Skips a header; returns what it says.
    fn begin(&self, text: &mut Text<'_>) -> Result<Self::Shape, Error>;

    /// Adds the edge of a line.
    fn line(&self, shape: &Self::Shape, columns: &mut Columns<R::Data>, line: &[u8]) -> Result<(), Malformed>;

    /// Adds the edge of a record with quotes.
    fn quoted(&self, shape: &Self::Shape, columns: &mut Columns<R::Data>, record: &[u8]) -> Result<(), Malformed> {
        self.line(shape, columns, record)
    }

    /// Reads what follows the two ids of a line, if it has the plainest form: `Lines::plain`.
    fn plain(&self, _shape: &Self::Shape, _columns: &mut Columns<R::Data>, _text: &[u8]) -> (u64, usize) {
        (0, 0)
    }
}

/// The edges of a chunk, and how its lines are written.
struct Chunk<S, T> {
    shape: Arc<S>,
    columns: Columns<T>,
    /// Quotes go over line ends where other processes read the rest of the file.
    is_torn: bool,
}

/// The lines of a syntax.
struct LinesOf<'s, R, S> {
    syntax: &'s S,
    /// Whether other processes read the rest of a file.
    is_cut: bool,
    of: PhantomData<fn(R)>,
}

impl<R: Record, S: Syntax<R>> Lines<Chunk<S::Shape, R::Data>> for LinesOf<'_, R, S> {
    fn line(&self, chunk: &mut Chunk<S::Shape, R::Data>, line: &[u8]) -> Result<(), Malformed> {
        self.syntax.line(&chunk.shape, &mut chunk.columns, line)
    }

    fn quoted(&self, chunk: &mut Chunk<S::Shape, R::Data>, record: &[u8]) -> Result<(), Malformed> {
        let read = self.syntax.quoted(&chunk.shape, &mut chunk.columns, record);
        if self.is_cut && (read.is_err() || memchr::memchr(b'\n', record).is_some()) {
            // Where the field is not closed, it may be in the part of the next process.
            chunk.is_torn = true;
            return Ok(());
        }
        read
    }

    fn plain(&self, chunk: &mut Chunk<S::Shape, R::Data>, text: &[u8]) -> (u64, usize) {
        if chunk.columns.named != Named::default() || chunk.columns.names_in.is_some() {
            return (0, 0);
        }
        self.syntax.plain(&chunk.shape, &mut chunk.columns, text)
    }
}

/// Reads lines with an id in each of two columns. A column is taken for integers unless the first lines tell otherwise;
/// where a name turns up in it later, the text is read again. Edges that take more than `room` bytes are set aside in a file.
pub(crate) fn read<R: Record>(
    input: &Input<'_>,
    room: usize,
    syntax: &impl Syntax<R>,
) -> Result<Loaded<R::Data>, Error> {
    let (whole, mut input) = (std::cell::OnceCell::new(), input);
    let mut named = first_names(input, syntax);
    loop {
        let mut all = Gathered::new(R::SQUARE, named, None, room, input.readers());
        let pass = read_once(input, named, syntax, &mut all);
        match Pass::agree(pass, input.readers(), input.path())? {
            Pass::Done => return all.finish(input.path(), R::NAMES),
            Pass::Name(side) => named.note(side, R::SQUARE),
            Pass::Quotes => {
                let again = input.in_whole_files()?;
                input = whole.get_or_init(|| again);
            }
        }
    }
}

fn read_once<'a, R: Record>(
    input: &Input<'a>,
    named: Named,
    syntax: &impl Syntax<R>,
    all: &mut Gathered<R::Data>,
) -> Result<Pass, Error> {
    let mut pass = Pass::Done;
    input.parse(
        |text| syntax.begin(text).map(Arc::new),
        |shape| Chunk { shape: Arc::clone(shape), columns: Columns::new(R::SQUARE, named), is_torn: false },
        LinesOf { syntax, is_cut: input.is_cut(), of: PhantomData },
        |chunk| {
            match (chunk.is_torn, chunk.columns.names_in) {
                (true, _) => pass = Pass::Quotes,
                (false, Some(side)) => pass = Pass::Name(side),
                (false, None) => {
                    all.append(chunk.columns, input.path())?;
                    return Ok(ControlFlow::Continue(()));
                }
            }
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(pass)
}

/// Returns the columns that hold names in the first records. Whatever is wrong with them is reported when they are read for good.
fn first_names<R: Record>(input: &Input<'_>, syntax: &impl Syntax<R>) -> Named {
    let mut named = Named::default();
    if let Ok(mut head) = input.head()
        && let Ok(shape) = syntax.begin(&mut head)
    {
        while let Some(side) = first_name(&head, &shape, named, syntax) {
            named.note(side, R::SQUARE);
        }
    }
    named
}

/// Returns the column that holds a name in the first records although it was taken for integers.
fn first_name<R: Record, S: Syntax<R>>(head: &Text<'_>, shape: &S::Shape, named: Named, syntax: &S) -> Option<Side> {
    let mut columns = Columns::new(R::SQUARE, named);
    for (_, record) in head.records().take(FIRST_RECORDS).filter(|(_, record)| !record.is_empty()) {
        let is_quoted = memchr::memchr(b'"', record).is_some();
        let read = if is_quoted { S::quoted } else { S::line };
        read(syntax, shape, &mut columns, record).ok()?;
    }
    columns.names_in
}
