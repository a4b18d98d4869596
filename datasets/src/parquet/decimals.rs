//! Decimals of Parquet: whole numbers of 32 or 64 bits, or of as many bytes as there are, the highest first, over a power of ten.

use ::parquet::basic::{ConvertedType as Converted, LogicalType};
use ::parquet::schema::types::ColumnDescriptor;

/// Returns the digits behind the point of a column of decimals.
pub(super) fn scale(described: &ColumnDescriptor) -> Option<i32> {
    let is_decimal = described.converted_type() == Converted::DECIMAL
        || matches!(described.logical_type_ref(), Some(LogicalType::Decimal(_)));
    is_decimal.then(|| described.type_scale())
}

/// Returns the whole number that bytes are; nothing where it has more than 128 bits.
pub(super) fn integer(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let sign = if first >= 128 { 255 } else { 0 };
    let leading = bytes.len().saturating_sub(16);
    let (above, bytes) = bytes.split_at(leading);
    let mut all = [sign; 16];
    all[16 - bytes.len()..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(all);
    (above.iter().all(|&byte| byte == sign) && (number < 0) == (first >= 128)).then_some(number)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use ::parquet::data_type::{ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::{Format, parse_ratings, read_ratings};

    #[test]
    fn bytes_are_a_whole_number() {
        for number in [0, 1, -1, 127, 128, -128, -129, i128::MAX, i128::MIN, 10_i128.pow(37)] {
            let bytes = number.to_be_bytes();
            assert_eq!(integer(&bytes), Some(number));
            let sign = if number < 0 { 255 } else { 0 };
            assert_eq!(integer(&[&[sign; 4][..], &bytes].concat()), Some(number));
            let short: Vec<u8> = bytes.into_iter().skip_while(|&byte| byte == sign).collect();
            assert_eq!(integer(&[&[sign][..], &short].concat()), Some(number));
        }
        assert_eq!((integer(&[]), integer(&[1; 17]), integer(&[&[0; 1][..], &[200; 16]].concat())), (None, None, None));
    }

    /// Writes ids as decimals of 16 bytes and of 64 bits, and ratings as such of 32.
    fn write(path: &std::path::Path, users: [i128; 3], user_scale: u32) {
        let message = format!(
            "message m {{ required fixed_len_byte_array(16) user (DECIMAL(38,{user_scale})); required int64 item (DECIMAL(18,0));
             required int32 rating (DECIMAL(4,2)); }}"
        );
        let schema = Arc::new(parse_message_type(&message).unwrap());
        let mut file = SerializedFileWriter::new(fs::File::create(path).unwrap(), schema, Default::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let of = |user: i128| FixedLenByteArray::from(ByteArray::from(user.to_be_bytes().to_vec()));
        column.typed::<FixedLenByteArrayType>().write_batch(&users.map(of), None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[7, 8, 7], None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[450, 25, -100], None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        file.close().unwrap();
    }

    /// Other programs write them so: a value of the dictionary is one byte.
    #[test]
    fn short_decimals_of_a_dictionary_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("d.parquet");
        let message = "message m { required int64 user; required int64 item; required fixed_len_byte_array(1) rating (DECIMAL(2,1)); }";
        let schema = Arc::new(parse_message_type(message).unwrap());
        let mut file = SerializedFileWriter::new(fs::File::create(&path).unwrap(), schema, Default::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        for ids in [[1, 2, 3], [7, 8, 7]] {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        let ratings = [45_i8, 5, -10].map(|tenths| FixedLenByteArray::from(vec![tenths as u8]));
        column.typed::<FixedLenByteArrayType>().write_batch(&ratings, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        let written = file.close().unwrap();
        assert!(written.row_group(0).column(2).dictionary_page_offset().is_some());
        let expected = parse_ratings(b"1 7 4.5\n2 8 0.5\n3 7 -1\n", Format::Ratings).unwrap();
        assert_eq!(read_ratings(&path, None).unwrap(), expected);
    }

    #[test]
    fn ratings_and_ids_are_those_of_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("d.parquet");
        write(&path, [30, 0, u64::MAX.into()], 0);
        let expected = parse_ratings(b"30 7 4.5\n0 8 0.25\n18446744073709551615 7 -1\n", Format::Ratings).unwrap();
        assert_eq!(read_ratings(&path, None).unwrap(), expected);
        write(&path, [30, -5, 2], 0);
        let said = read_ratings(&path, None).unwrap_err().to_string();
        assert!(said.contains("d.parquet:2: user: found \"-5\""), "{said}");
        write(&path, [30, 5, 2], 1);
        let said = read_ratings(&path, None).unwrap_err().to_string();
        assert!(said.contains("column user holds FIXED_LEN_BYTE_ARRAY (DECIMAL), expected integers or text"), "{said}");
    }
}
