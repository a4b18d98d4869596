//! A column of a row group, read a few rows at a time: of wide tables no whole column is in memory.

use std::borrow::Cow;

use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{
    AsBytes, BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use ::parquet::errors::ParquetError;

use super::decimals::{integer, scale};
use super::group::Group;
use crate::Error;
use crate::output::{is_unsigned, read_rows};

/// What a row has in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'v> {
    /// Null, or of floating point what is no number.
    Nothing,
    Truth(bool),
    Integer(i128),
    Single(f32),
    Double(f64),
    Text(&'v [u8]),
}

impl<'v> Value<'v> {
    /// Returns it as it would stand in a text; `None` of nothing.
    pub(crate) fn text(self) -> Option<Cow<'v, [u8]>> {
        Some(match self {
            Self::Nothing => return None,
            Self::Truth(truth) => Cow::Borrowed(if truth { b"true" } else { b"false" }),
            Self::Integer(integer) => Cow::Owned(itoa::Buffer::new().format(integer).as_bytes().to_vec()),
            Self::Single(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Double(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Text(text) => Cow::Borrowed(text),
        })
    }
}

/// The values of a column, of some rows at a time.
pub(crate) struct Cells {
    typed: Typed,
    is_unsigned: bool,
    /// Of decimals.
    unit: Option<f64>,
}

enum Typed {
    Truths(Values<BoolType>),
    Narrow(Values<Int32Type>),
    Wide(Values<Int64Type>),
    Singles(Values<FloatType>),
    Doubles(Values<DoubleType>),
    Bytes(Values<ByteArrayType>),
    Decimals(Values<FixedLenByteArrayType>),
}

/// Does the same with the values of each type.
macro_rules! each {
    ($typed:expr, $values:ident => $what:expr) => {
        match $typed {
            Typed::Truths($values) => $what,
            Typed::Narrow($values) => $what,
            Typed::Wide($values) => $what,
            Typed::Singles($values) => $what,
            Typed::Doubles($values) => $what,
            Typed::Bytes($values) => $what,
            Typed::Decimals($values) => $what,
        }
    };
}

impl Group<'_> {
    /// Opens a column of truth values, numbers or texts. `expected` says what it should hold otherwise.
    pub(crate) fn cells(&self, at: usize, expected: &str) -> Result<Cells, Error> {
        let described = self.schema.column(at);
        let most = described.max_def_level();
        let typed = match self.column_reader(at, &described, false, expected)? {
            ColumnReader::BoolColumnReader(reader) => Typed::Truths(Values::new(reader, most)),
            ColumnReader::Int32ColumnReader(reader) => Typed::Narrow(Values::new(reader, most)),
            ColumnReader::Int64ColumnReader(reader) => Typed::Wide(Values::new(reader, most)),
            ColumnReader::FloatColumnReader(reader) => Typed::Singles(Values::new(reader, most)),
            ColumnReader::DoubleColumnReader(reader) => Typed::Doubles(Values::new(reader, most)),
            ColumnReader::ByteArrayColumnReader(reader) => Typed::Bytes(Values::new(reader, most)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Typed::Decimals(Values::new(reader, most)),
            ColumnReader::Int96ColumnReader(_) => return Err(self.wrong_type(&described, expected)),
        };
        let unit = scale(&described).map(|scale| 10_f64.powi(scale));
        Ok(Cells { typed, is_unsigned: is_unsigned(&described), unit })
    }
}

impl Cells {
    /// Tells whether all are texts.
    pub(crate) fn are_texts(&self) -> bool {
        matches!(self.typed, Typed::Bytes(_)) && self.unit.is_none()
    }

    /// Goes on to the next rows, `count` at most; returns how many there are.
    pub(crate) fn read(&mut self, count: usize) -> Result<usize, ParquetError> {
        each!(&mut self.typed, values => values.read(count))
    }

    /// Returns the value of the next of these rows.
    ///
    /// # Errors
    /// A decimal of more than 128 bits.
    pub(crate) fn next(&mut self) -> Result<Value<'_>, &'static str> {
        let (is_unsigned, unit) = (self.is_unsigned, self.unit);
        let of = |integer: i128| match unit {
            Some(unit) => Value::Double(integer as f64 / unit),
            None => Value::Integer(integer),
        };
        let decimal = |bytes: &[u8]| integer(bytes).map(of).ok_or("a decimal of 128 bits at most");
        let narrow = |id: i32| if is_unsigned { i128::from(id as u32) } else { i128::from(id) };
        let wide = |id: i64| if is_unsigned { i128::from(id as u64) } else { i128::from(id) };
        let value = match &mut self.typed {
            Typed::Truths(values) => values.next().map(|&truth| Value::Truth(truth)),
            Typed::Narrow(values) => values.next().map(|&id| of(narrow(id))),
            Typed::Wide(values) => values.next().map(|&id| of(wide(id))),
            Typed::Singles(values) => {
                values.next().filter(|number| !number.is_nan()).map(|&number| Value::Single(number))
            }
            Typed::Doubles(values) => {
                values.next().filter(|number| !number.is_nan()).map(|&number| Value::Double(number))
            }
            Typed::Bytes(values) => {
                let value = values.next().map(|bytes| match unit {
                    Some(_) => decimal(bytes.as_bytes()),
                    None => Ok(Value::Text(bytes.data())),
                });
                value.transpose()?
            }
            Typed::Decimals(values) => values.next().map(|bytes| decimal(bytes.as_bytes())).transpose()?,
        };
        Ok(value.unwrap_or(Value::Nothing))
    }
}

/// The values of some rows, and which rows have none.
struct Values<D: DataType> {
    reader: ColumnReaderImpl<D>,
    /// The level of a row that has a value.
    most: i16,
    values: Vec<D::T>,
    /// None where each row has a value.
    levels: Vec<i16>,
    /// The next row, and the next value.
    next: [usize; 2],
}

impl<D: DataType> Values<D> {
    fn new(reader: ColumnReaderImpl<D>, most: i16) -> Self {
        Self { reader, most, values: Vec::new(), levels: Vec::new(), next: [0; 2] }
    }

    fn read(&mut self, count: usize) -> Result<usize, ParquetError> {
        self.values.clear();
        self.levels.clear();
        self.next = [0; 2];
        read_rows(&mut self.reader, count, Some(&mut self.levels), &mut self.values)
    }

    /// Returns the value of the next row, if it has one.
    fn next(&mut self) -> Option<&D::T> {
        let [row, value] = &mut self.next;
        let is_null = self.levels.get(*row).is_some_and(|&level| level < self.most);
        *row += 1;
        if is_null {
            return None;
        }
        *value += 1;
        self.values.get(*value - 1)
    }
}
