//! What describes a Parquet file and its pages, looked at before the `parquet` crate reads it.
//!
//! Descriptions are structs of Thrift's compact protocol
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>). The crate takes a truth value in a list
//! that it does not know for one of no bytes, and so counts to two billion for six bytes of a damaged file.

use std::io::{self, ErrorKind, Read};

use ::parquet::errors::ParquetError;

/// Structs and lists within each other that are followed; the crate follows no more either.
const DEPTH: u8 = 64;

/// The types of the protocol, as fields and elements have them.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Refuses a description with a list of truth values, which no description of Parquet has.
///
/// Whatever else is wrong with it is the crate's to tell, which finds it too.
pub(super) fn check_description(description: impl Read) -> Result<(), ParquetError> {
    match Struct(description).skip(STRUCT, DEPTH) {
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(ParquetError::General(error.to_string())),
        _ => Ok(()),
    }
}

/// A struct whose bytes are read.
struct Struct<R>(R);

impl<R: Read> Struct<R> {
    fn skip(&mut self, kind: u8, depth: u8) -> io::Result<()> {
        let Some(depth) = depth.checked_sub(1) else { return Err(ErrorKind::Unsupported.into()) };
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.skip_bytes(1),
            I16..=I64 => self.number().map(drop),
            DOUBLE => self.skip_bytes(8),
            BINARY => self.number().and_then(|bytes| self.skip_bytes(bytes)),
            LIST | SET => {
                let header = self.byte()?;
                let size = if header >> 4 == 15 { self.number()? } else { u64::from(header >> 4) };
                self.skip_elements(size, &[header & 15], depth)
            }
            MAP => match self.number()? {
                0 => Ok(()),
                size => {
                    let kinds = self.byte()?;
                    self.skip_elements(size, &[kinds >> 4, kinds & 15], depth)
                }
            },
            STRUCT => self.skip_fields(depth),
            UUID => self.skip_bytes(16),
            _ => Err(ErrorKind::Unsupported.into()),
        }
    }

    fn skip_fields(&mut self, depth: u8) -> io::Result<()> {
        loop {
            let header = self.byte()?;
            if header & 15 == 0 {
                return Ok(());
            }
            // Its number follows where it is not told by how far it is from the last one.
            if header >> 4 == 0 {
                self.number()?;
            }
            self.skip(header & 15, depth)?;
        }
    }

    fn skip_elements(&mut self, size: u64, kinds: &[u8], depth: u8) -> io::Result<()> {
        if size > 0 && kinds.iter().any(|kind| [TRUE, FALSE].contains(kind)) {
            let problem =
                format!("a list of {size} truth values describes it; it is damaged, copy or download it again");
            return Err(io::Error::new(ErrorKind::InvalidData, problem));
        }
        // Every other element takes a byte at least, so that the end of the source ends this.
        for _ in 0..size {
            for &kind in kinds {
                self.skip(kind, depth)?;
            }
        }
        Ok(())
    }

    /// Reads an unsigned number of seven bits a byte, the lowest first.
    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(ErrorKind::Unsupported.into())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn skip_bytes(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.0.by_ref().take(bytes), &mut io::sink())?;
        if skipped == bytes { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(mut bytes: &[u8]) -> Result<usize, ErrorKind> {
        Struct(&mut bytes).skip(STRUCT, DEPTH).map_err(|error| error.kind())?;
        Ok(bytes.len())
    }

    #[test]
    fn a_struct_is_read_up_to_its_end() {
        // A number, a text, a list of two structs, a map, a field whose number is written, a double, a truth value.
        let fields: [&[u8]; 7] = [
            &[0x15, 0x80, 0x01],
            &[0x18, 3, b'a', b'b', b'c'],
            &[0x19, 0x2C, 0x15, 2, 0, 0],
            &[0x1B, 1, 0x85, 1, b'x', 9],
            &[0x06, 0x80, 0x02, 7],
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x11],
        ];
        let mut bytes = fields.concat();
        bytes.push(0);
        for cut in 0..bytes.len() {
            assert_eq!(skip(&bytes[..cut]), Err(ErrorKind::UnexpectedEof), "{cut}");
        }
        bytes.extend([0x19, 0xFF]);
        assert_eq!(skip(&bytes), Ok(2));
    }

    #[test]
    fn lists_of_truth_values_are_refused() {
        let lists: [&[u8]; 4] = [
            &[0x19, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07],
            &[0x1A, 0x12],
            &[0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0x11],
            &[0x1C, 0x19, 0x19, 0x22],
        ];
        for list in lists {
            assert!(check_description(list).is_err(), "{list:?}");
        }
        assert_eq!(skip(&[0x19, 0x01, 0x1B, 0, 0]), Ok(0));
    }

    #[test]
    fn what_is_no_struct_is_an_error() {
        assert_eq!(skip(&[0x1E]), Err(ErrorKind::Unsupported));
        assert_eq!(skip(&[0x1C; 100]), Err(ErrorKind::Unsupported));
        assert_eq!(skip(&[&[0x15][..], &[0xFF; 20]].concat()), Err(ErrorKind::Unsupported));
    }
}
