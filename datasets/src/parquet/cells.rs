//! A column of a row group, read a few rows at a time: of wide tables no whole column is in memory.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{
    AsBytes, BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::schema::types::ColumnDescriptor;

use super::decimals::{integer, scale};
use crate::output::{is_unsigned, read_rows};

/// What a row has in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'v> {
    /// Null.
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

    /// Returns the number that it is.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Integer(integer) => Some(integer as f64),
            Self::Single(number) => Some(number.into()),
            Self::Double(number) => Some(number),
            Self::Nothing | Self::Truth(_) | Self::Text(_) => None,
        }
    }

    /// Takes what is no number for nothing.
    fn known(self) -> Self {
        if self.number().is_some_and(f64::is_nan) { Self::Nothing } else { self }
    }
}

/// The values of a column, of some rows at a time.
pub(crate) struct Cells {
    name: String,
    typed: Typed,
    is_unsigned: bool,
    are_decimals: bool,
    /// What the whole numbers of decimals with digits behind the point are divided by.
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

impl Cells {
    /// Takes the reader of a column; `None` where it holds neither truth values nor numbers nor texts.
    pub(super) fn new(reader: ColumnReader, described: &ColumnDescriptor) -> Option<Self> {
        let most = described.max_def_level();
        let typed = match reader {
            ColumnReader::BoolColumnReader(reader) => Typed::Truths(Values::new(reader, most)),
            ColumnReader::Int32ColumnReader(reader) => Typed::Narrow(Values::new(reader, most)),
            ColumnReader::Int64ColumnReader(reader) => Typed::Wide(Values::new(reader, most)),
            ColumnReader::FloatColumnReader(reader) => Typed::Singles(Values::new(reader, most)),
            ColumnReader::DoubleColumnReader(reader) => Typed::Doubles(Values::new(reader, most)),
            ColumnReader::ByteArrayColumnReader(reader) => Typed::Bytes(Values::new(reader, most)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Typed::Decimals(Values::new(reader, most)),
            ColumnReader::Int96ColumnReader(_) => return None,
        };
        let scale = scale(described);
        let unit = scale.filter(|&digits| digits != 0).map(|digits| 10_f64.powi(digits));
        let name = described.name().to_owned();
        Some(Self { name, typed, is_unsigned: is_unsigned(described), are_decimals: scale.is_some(), unit })
    }

    /// Returns what the column is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Tells whether all are texts.
    pub(crate) fn are_texts(&self) -> bool {
        matches!(self.typed, Typed::Bytes(_)) && !self.are_decimals
    }

    /// Tells whether all are whole numbers.
    pub(super) fn are_whole(&self) -> bool {
        let may_be = matches!(self.typed, Typed::Narrow(_) | Typed::Wide(_)) || self.are_decimals;
        may_be && self.unit.is_none()
    }

    /// Tells whether all are numbers.
    pub(super) fn are_numbers(&self) -> bool {
        self.are_decimals || !matches!(self.typed, Typed::Truths(_) | Typed::Bytes(_))
    }

    /// Goes on to the next rows, `count` at most; returns how many there are.
    pub(crate) fn read(&mut self, count: usize) -> Result<usize, ParquetError> {
        each!(&mut self.typed, values => values.read(count))
    }

    /// Returns the first of these rows without a value.
    pub(super) fn null(&self) -> Option<usize> {
        each!(&self.typed, values => values.null())
    }

    /// Returns the value of the next of these rows; nothing where it is no number of floating point.
    ///
    /// # Errors
    /// A decimal of more than 128 bits.
    pub(crate) fn next(&mut self) -> Result<Value<'_>, &'static str> {
        match each!(&mut self.typed, values => values.next()) {
            Some(at) => Ok(self.value(at)?.known()),
            None => Ok(Value::Nothing),
        }
    }

    /// Returns one of the values of these rows, of which there are fewer where rows have none.
    ///
    /// # Errors
    /// A decimal of more than 128 bits.
    #[inline]
    pub(super) fn value(&self, at: usize) -> Result<Value<'_>, &'static str> {
        let of = |integer: i128| match self.unit {
            Some(unit) => Value::Double(integer as f64 / unit),
            None => Value::Integer(integer),
        };
        let decimal = |bytes: &[u8]| integer(bytes).map(of).ok_or("a decimal of 128 bits at most");
        let narrow = |id: i32| if self.is_unsigned { i128::from(id as u32) } else { i128::from(id) };
        let wide = |id: i64| if self.is_unsigned { i128::from(id as u64) } else { i128::from(id) };
        Ok(match &self.typed {
            Typed::Truths(truths) => Value::Truth(truths.values[at]),
            Typed::Narrow(numbers) => of(narrow(numbers.values[at])),
            Typed::Wide(numbers) => of(wide(numbers.values[at])),
            Typed::Singles(numbers) => Value::Single(numbers.values[at]),
            Typed::Doubles(numbers) => Value::Double(numbers.values[at]),
            Typed::Bytes(bytes) if self.are_decimals => decimal(bytes.values[at].as_bytes())?,
            Typed::Bytes(texts) => Value::Text(texts.values[at].data()),
            Typed::Decimals(bytes) => decimal(bytes.values[at].as_bytes())?,
        })
    }
}

/// The values of some rows, and which rows have none.
struct Values<D: DataType> {
    /// Nobody waits for it: threads share the values, not the reader.
    reader: Mutex<ColumnReaderImpl<D>>,
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
        Self { reader: Mutex::new(reader), most, values: Vec::new(), levels: Vec::new(), next: [0; 2] }
    }

    fn read(&mut self, count: usize) -> Result<usize, ParquetError> {
        self.values.clear();
        self.levels.clear();
        self.next = [0; 2];
        let reader = self.reader.get_mut().unwrap_or_else(PoisonError::into_inner);
        read_rows(reader, count, Some(&mut self.levels), &mut self.values)
    }

    fn null(&self) -> Option<usize> {
        self.levels.iter().position(|&level| level < self.most)
    }

    /// Returns where the value of the next row is, if it has one.
    fn next(&mut self) -> Option<usize> {
        let [row, value] = &mut self.next;
        let is_null = self.levels.get(*row).is_some_and(|&level| level < self.most);
        *row += 1;
        if is_null || *value == self.values.len() {
            return None;
        }
        *value += 1;
        Some(*value - 1)
    }
}
