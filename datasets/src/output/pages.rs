//! Columns of Parquet files, page by page. A damaged file may claim any number of values; the `parquet` crate makes room for all of
//! them before it looks at the first, and skips what it does not know without a look at where the file ends.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};

use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, Length, RowGroupReader};

/// Rows for which room is made at a time.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Opens a column of a row group. A dictionary that cannot lie in its page is an error of the first read.
pub(crate) fn open_column(group: &dyn RowGroupReader, at: usize) -> Result<ColumnReader, ParquetError> {
    let pages = Pages(group.get_column_page_reader(at)?);
    Ok(get_column_reader(group.metadata().column(at).column_descr_ptr(), Box::new(pages)))
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

/// A file whose end is an error where more is read. All that is read of a Parquet file lies before its last bytes.
pub(crate) struct Finite(pub(crate) File);

impl Length for Finite {
    fn len(&self) -> u64 {
        Length::len(&self.0)
    }
}

impl ChunkReader for Finite {
    type T = Ending;

    fn get_read(&self, start: u64) -> Result<Ending, ParquetError> {
        Ok(Ending(self.0.get_read(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

/// A part of a [`Finite`] file, up to its end.
pub(crate) struct Ending(BufReader<File>);

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
struct Pages(Box<dyn PageReader>);

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.0.get_next_page()?;
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page {
            // A value of a dictionary takes four bytes at least: a number, or the length of a text.
            if *num_values as usize > buf.len() / 4 {
                let problem = format!("a dictionary of {num_values} values in {} bytes", buf.len());
                return Err(ParquetError::General(problem));
            }
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.0.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
