//! Dates and timestamps of Parquet in seconds since 1970, as those of a text are.

use ::parquet::basic::{ConvertedType as Converted, LogicalType, TimeUnit};
use ::parquet::schema::types::ColumnDescriptor;

/// Returns what makes seconds since 1970 of what stands for a date.
pub(super) fn seconds(described: &ColumnDescriptor) -> Option<fn(f64) -> f64> {
    let (days, millis, micros) = (|time| time * 86_400.0, |time| time / 1e3, |time| time / 1e6);
    Some(match (described.logical_type_ref(), described.converted_type()) {
        (Some(LogicalType::Timestamp(time)), _) => match time.unit {
            TimeUnit::MILLIS => millis,
            TimeUnit::MICROS => micros,
            TimeUnit::NANOS => |time| time / 1e9,
        },
        (_, Converted::DATE) => days,
        (_, Converted::TIMESTAMP_MILLIS) => millis,
        (_, Converted::TIMESTAMP_MICROS) => micros,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ::parquet::data_type::{Int32Type, Int64Type};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;

    use crate::load_times_with;

    #[test]
    fn dates_are_in_seconds_whatever_they_are_stored_in() {
        let directory = tempfile::tempdir().unwrap();
        let of_type = |stored: &str, times: [i64; 2]| {
            let path = directory.path().join("times.parquet");
            let message = format!("message m {{ required int64 user; required int64 item; required {stored}; }}");
            let schema = std::sync::Arc::new(parse_message_type(&message).unwrap());
            let mut file =
                SerializedFileWriter::new(fs::File::create(&path).unwrap(), schema, Default::default()).unwrap();
            let mut group = file.next_row_group().unwrap();
            for values in [[5, 7], [1, 2], times] {
                let mut column = group.next_column().unwrap().unwrap();
                if stored.starts_with("int32") && values == times {
                    let values = values.map(|value| value as i32);
                    column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
                } else {
                    column.typed::<Int64Type>().write_batch(&values, None, None).unwrap();
                }
                column.close().unwrap();
            }
            group.close().unwrap();
            file.close().unwrap();
            load_times_with(&path, None, None).unwrap().into_dataset().unwrap().edges.data
        };
        // 2026-11-25, and a quarter of a second past 1970.
        let (day, quarter) = (1_795_564_800, 250);
        for (stored, times, expected) in [
            ("int64 time (TIMESTAMP(MILLIS,true))", [day * 1000, quarter], [day as f64, 0.25]),
            ("int64 time (TIMESTAMP(MICROS,false))", [day * 1_000_000, quarter * 1000], [day as f64, 0.25]),
            ("int64 time (TIMESTAMP(NANOS,false))", [day * 1_000_000_000, quarter * 1_000_000], [day as f64, 0.25]),
            ("int64 time (TIMESTAMP_MICROS)", [day * 1_000_000, quarter * 1000], [day as f64, 0.25]),
            ("int32 time (DATE)", [20_782, -1], [day as f64, -86_400.0]),
            // Numbers are in whatever unit they have.
            ("int64 time", [day * 1000, quarter], [day as f64 * 1000.0, 250.0]),
        ] {
            assert_eq!(of_type(stored, times), expected, "{stored}");
        }
    }
}
