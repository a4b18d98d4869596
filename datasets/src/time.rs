//! Times as they stand in a text: numbers of any unit, or dates.

/// Parses a time. A date is in seconds since 1970, in UTC where it names no other offset; a number is in whatever unit it has.
pub(crate) fn time(text: &[u8]) -> Option<f64> {
    let number = fast_float2::parse::<f64, _>(text).ok().filter(|time| time.is_finite());
    number.or_else(|| date(std::str::from_utf8(text).ok()?))
}

/// Parses `2026-11-25`, with a clock behind it perhaps, `T08:30`, `08:30:15` or `08:30:15.25`, and perhaps an offset, `Z` or `+01:00`.
fn date(text: &str) -> Option<f64> {
    let (day, clock) = text.split_once(['T', ' ']).map_or((text, None), |(day, clock)| (day, Some(clock)));
    let [year, month, day] = parts(day, '-')?;
    let seconds = clock.map_or(Some(0.0), clock_seconds)?;
    let is_day = year.len() == 4 && month.len() == 2 && day.len() == 2;
    let [year, month, day] = [integer(year)?, integer(month)?, integer(day)?];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        _ => 31,
    };
    let is_valid = is_day && (1..=12).contains(&month) && (1..=length).contains(&day);
    is_valid.then(|| days_since_1970(year, month, day) as f64 * 86_400.0 + seconds)
}

/// Counts days (Hinnant, "chrono-compatible low-level date algorithms"): years begin in March, so that the leap day is the last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the seconds of a clock's time since midnight, in UTC.
fn clock_seconds(text: &str) -> Option<f64> {
    let at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (clock, offset) = text.split_at(at);
    let (hour, rest) = clock.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "0"));
    let sexagesimal = |hour: &str, minute: &str| Some(3600 * integer(hour)? + 60 * integer(minute)?);
    let offset = match offset.split_at_checked(1) {
        None | Some(("Z", "")) => 0,
        Some((sign, offset)) => {
            let (hour, minute) = offset.split_once(':').or_else(|| offset.split_at_checked(2)).unwrap_or((offset, "0"));
            let offset = sexagesimal(hour, if minute.is_empty() { "0" } else { minute })?;
            if sign == "-" { -offset } else { offset }
        }
    };
    let second = second.parse::<f64>().ok().filter(|second| (0.0..61.0).contains(second))?;
    let is_valid = integer(hour)? < 24 && integer(minute)? < 60;
    is_valid.then_some((sexagesimal(hour, minute)? - offset) as f64 + second)
}

fn parts(text: &str, separator: char) -> Option<[&str; 3]> {
    let mut parts = text.split(separator);
    let found = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(found)
}

fn integer(text: &str) -> Option<i64> {
    let is_short = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_short.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds_since_1970() {
        for (text, expected) in [
            ("874965758", 874_965_758.0),
            ("-1.5e3", -1500.0),
            ("1970-01-01", 0.0),
            ("1969-12-31", -86_400.0),
            ("2000-02-29", 951_782_400.0),
            ("2001-09-09T01:46:40Z", 1e9),
            ("2001-09-09 03:46:40.5+02:00", 1e9 + 0.5),
            ("2001-09-08T21:46-0400", 1e9 - 40.0),
            ("2033-05-18T03:33:20", 2e9),
        ] {
            assert_eq!(time(text.as_bytes()), Some(expected), "{text}");
        }
        // A day follows each other one, through leap years of all kinds.
        let months = |year: i64| (1..=12).map(move |month| (year, month));
        let days = (1890..2110)
            .flat_map(months)
            .flat_map(|(year, month)| (1..=31).filter_map(move |day| date(&format!("{year:04}-{month:02}-{day:02}"))));
        assert!(days.collect::<Vec<_>>().windows(2).all(|days| days[1] - days[0] == 86_400.0));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "nan",
            "inf",
            "time",
            "2001-02-29",
            "1900-02-29",
            "2001-13-01",
            "2001-1-1",
            "2001-01-00",
            "2001-01-01T",
            "2001-01-01T24:00",
            "2001-01-01T10:60",
            "2001-01-01T10:00:61",
            "2001-01-01T10:00X",
            "01-01-2001",
            "2001-01-01T10:00+x",
        ] {
            assert_eq!(time(text.as_bytes()), None, "{text}");
        }
    }
}
