//! Columns of Parquet files, page by page. A damaged file may claim any number of values; the `parquet` crate makes room for all of
//! them before it looks at the first, and skips what it does not know without a look at where the file ends.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ::parquet::basic::Type as Physical;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, Length, RowGroupReader};

use super::thrift::check_description;

/// Rows for which room is made at a time.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Bytes at the end of a file: those of its description as a number of four, and `PAR1`.
const FOOTER: u64 = 8;

/// Opens a column of a row group. A dictionary that cannot lie in its page is an error of the first read.
pub(crate) fn open_column(group: &dyn RowGroupReader, at: usize) -> Result<ColumnReader, ParquetError> {
    let described = group.metadata().column(at).column_descr_ptr();
    let least = match described.physical_type() {
        Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(described.type_length()).unwrap_or(0).max(1),
        // A number, or the length of a text.
        _ => 4,
    };
    let pages = Pages { pages: group.get_column_page_reader(at)?, least };
    Ok(get_column_reader(described, Box::new(pages)))
}

/// Reads up to this many rows of a column, and returns how many there were.
pub(crate) fn read_rows<D: DataType>(
    column: &mut ColumnReaderImpl<D>,
    num_rows: usize,
    mut levels: Option<&mut Vec<i16>>,
    values: &mut Vec<D::T>,
) -> Result<usize, ParquetError> {
    let mut rows = 0;
    while rows < num_rows {
        let wanted = ROWS_AT_ONCE.min(num_rows - rows);
        let (read, ..) = column.read_records(wanted, levels.as_deref_mut(), None, values)?;
        if read == 0 {
            break;
        }
        rows += read;
    }
    Ok(rows)
}

/// A file whose end is an error where more is read. All that is read of a Parquet file lies before its last bytes. It has no position, so that
/// several threads may read it.
pub(crate) struct Finite(Arc<File>);

impl Finite {
    /// Takes a file whose description can be read.
    pub(crate) fn new(file: File) -> Result<Self, ParquetError> {
        let file = Self(Arc::new(file));
        let end = file.len().saturating_sub(FOOTER);
        let mut footer = [0; FOOTER as usize];
        let read = file.0.read_exact_at(&mut footer, end);
        let [a, b, c, d, ..] = footer;
        // One that is not there, or begins before the file, is the crate's to tell.
        if let (Ok(()), Some(start)) = (read, end.checked_sub(u32::from_le_bytes([a, b, c, d]).into())) {
            check_description(file.from(start).take(end - start))?;
        }
        Ok(file)
    }

    fn from(&self, position: u64) -> BufReader<From> {
        BufReader::new(From { file: Arc::clone(&self.0), position })
    }
}

/// A file from a position on.
pub(crate) struct From {
    file: Arc<File>,
    position: u64,
}

impl Read for From {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Length for Finite {
    fn len(&self) -> u64 {
        Length::len(&*self.0)
    }
}

impl ChunkReader for Finite {
    type T = Ending;

    /// Returns the file from the description of a page on, or its last bytes, which say where its own is.
    fn get_read(&self, start: u64) -> Result<Ending, ParquetError> {
        if start.saturating_add(FOOTER) < self.len() {
            check_description(self.from(start))?;
        }
        Ok(Ending(self.from(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        let mut bytes = Vec::new();
        // Room is made for what is there only.
        self.from(start).take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("{} of {length} bytes from {start} on are there", bytes.len())));
        }
        Ok(bytes.into())
    }
}

/// A part of a [`Finite`] file, up to its end.
pub(crate) struct Ending(BufReader<From>);

impl Read for Ending {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 if !into.is_empty() => {
                let problem = "its data go on beyond its end; it is damaged, copy or download it again";
                Err(io::Error::new(ErrorKind::UnexpectedEof, problem))
            }
            read => Ok(read),
        }
    }
}

/// The pages of a column, each checked.
struct Pages {
    pages: Box<dyn PageReader>,
    /// Bytes that a value of a dictionary takes at least.
    least: usize,
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page
            && *num_values as usize > buf.len() / self.least
        {
            let problem = format!("a dictionary of {num_values} values in {} bytes", buf.len());
            return Err(ParquetError::General(problem));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::output::{Column, read_table, write_table};

    /// A field that no reader knows: a list of two billion truth values.
    const MANY: [u8; 7] = [0x59, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07];

    /// Returns a table: the bytes before the end of its description, and how many of them are the description's.
    fn table() -> (Vec<u8>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        write_table(&path, &[("n", Column::U32(vec![3, 9, 3].into()))]).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let footer = bytes.split_off(bytes.len() - 8);
        assert_eq!(bytes.pop(), Some(0));
        (bytes, u32::from_le_bytes(footer[..4].try_into().unwrap()) as usize - 1)
    }

    /// Reads a table whose description has further fields at its end.
    fn read(table: (Vec<u8>, usize), further: &[u8]) -> Result<(), crate::Error> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let length = (table.1 + further.len() + 1) as u32;
        fs::write(&path, [&table.0[..], further, &[0], &length.to_le_bytes(), b"PAR1"].concat()).unwrap();
        read_table(&path).map(drop)
    }

    #[test]
    fn lists_that_would_be_counted_for_ever_are_refused() {
        read(table(), &[]).unwrap();
        let message = read(table(), &MANY).unwrap_err().to_string();
        assert!(message.contains("a list of 2147483647 truth values"), "{message}");
        // In the header of the page with the dictionary, which ends as its inner struct does.
        let (mut bytes, length) = table();
        let inner = bytes.windows(4).position(|four| matches!(four, [0x4c, 0x15, 4, 0x15])).unwrap();
        let end = inner + bytes[inner..].windows(2).position(|two| two == [0, 0]).unwrap();
        bytes.splice(end + 1..end + 1, MANY);
        let message = read((bytes, length), &[]).unwrap_err().to_string();
        assert!(message.contains("a list of 2147483647 truth values"), "{message}");
    }

    /// The bytes 19 and 12 would be a list of one truth value.
    #[test]
    fn the_length_of_a_description_is_not_looked_at_as_one() {
        let table = table();
        let text = 0x1219 - table.1 - 1 - 3;
        let mut further = vec![0x58, text as u8 | 0x80, (text >> 7) as u8];
        further.resize(further.len() + text, b'x');
        read(table, &further).unwrap();
    }
}
