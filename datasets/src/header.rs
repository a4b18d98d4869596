//! Which columns of a delimited text are read: as a user says, as its header does, or the first ones.

use std::borrow::Cow;
use std::path::Path;

use crate::columns::ENDS;
use crate::missing::MISSING;
use crate::records::{Link, Pair, Rating, RatingTime, Record, WeightedLink};
use crate::roles::{Places, listed};
use crate::text::{Malformed, Separator, Text, integer, number, paired};
use crate::warned::is_first;
use crate::{Error, Role, Roles};

/// Records that are looked at for names, and for a header, before the text is read.
pub(crate) const FIRST_RECORDS: usize = 100;

/// Columns that a text without a header may have before it is doubtful what they hold.
const MOST_COLUMNS: usize = 8;

/// How the records of a text are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) separator: Separator,
    pub(crate) columns: Places,
    /// Whether these are the first ones, in order.
    pub(crate) is_usual: bool,
    /// Columns of the header behind the last one that is read, where it tells how many fields a record has at most.
    pub(crate) further: Option<usize>,
}

impl Shape {
    fn new(separator: Separator, columns: Places) -> Self {
        let is_usual = columns.0 == [0, 1] && columns.1.is_none_or(|at| at == 2);
        Self { separator, columns, is_usual, further: None }
    }

    /// Notes how many columns the header has. White space may stand at the end of a line without a field behind it.
    fn with_width(self, width: usize) -> Self {
        let further = self.separator.quotable().and_then(|_| width.checked_sub(self.last() + 1));
        Self { further, ..self }
    }

    /// Returns the last column that is read.
    fn last(&self) -> usize {
        let ([left, right], number) = self.columns;
        left.max(right).max(number.unwrap_or(0))
    }

    /// Tells whether the header has no column for one of the fields that follow those which are picked. Empty ones need none.
    #[inline]
    pub(crate) fn is_exceeded(&self, rest: &[u8]) -> bool {
        let (Some(further), Some(separator)) = (self.further, self.separator.quotable()) else { return false };
        rest.iter().filter(|&&byte| byte == separator).count() >= further
            && self.separator.fields(rest.trim_ascii_end()).skip(further).any(|field| !field.is_empty())
    }

    /// Reports a record that has more fields than the header.
    #[cold]
    pub(crate) fn wider<R: Record>(&self, record: &[u8]) -> Malformed {
        let (width, separator) = (self.last() + 1 + self.further.unwrap_or(0), self.separator.name());
        let expected = format!(
            "{width} fields separated by {separator}, as in the header; a field that has {separator} in it needs quotes"
        );
        Malformed::new(R::NAME, record, expected)
    }

    /// Picks the columns out of a record's fields: those of the ends, and that of the number. Leaves those behind the last one.
    #[inline]
    pub(crate) fn pick<F>(&self, fields: &mut impl Iterator<Item = F>) -> [Option<F>; 3] {
        let ([left, right], number) = self.columns;
        if self.is_usual {
            let ends = [fields.next(), fields.next()];
            let [left, right] = ends;
            return [left, right, number.and_then(|_| fields.next())];
        }
        let mut found = [None, None, None];
        for (at, field) in fields.take(self.last() + 1).enumerate() {
            if at == left {
                found[0] = Some(field);
            } else if at == right {
                found[1] = Some(field);
            } else if Some(at) == number {
                found[2] = Some(field);
            }
        }
        found
    }

    /// Says what a record has to have.
    pub(crate) fn expected<R: Record>(&self) -> String {
        let ([left, right], number) = self.columns;
        let mut parts: Vec<String> = R::FIELDS.iter().map(|&field| article(field)).collect();
        parts.extend(number.map(|_| "a number".to_owned()));
        if !self.is_usual {
            let columns = [Some(left), Some(right), number].into_iter().flatten();
            parts.iter_mut().zip(columns).for_each(|(part, at)| *part += &format!(" in column {}", at + 1));
        }
        let last = parts.pop().unwrap_or_default();
        format!("{} and {last} separated by {}, as in the first line", parts.join(", "), self.separator.name())
    }
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Tells whether a line is a comment, which graphs may have.
pub(crate) fn is_comment<R: Record>(line: &[u8]) -> bool {
    R::SQUARE && matches!(line.first(), Some(b'#' | b'%'))
}

/// The first records of a text, with their fields.
pub(crate) struct First<'t> {
    pub(crate) separator: Separator,
    /// The lines before and with the first record.
    pub(crate) lines: usize,
    pub(crate) records: Vec<&'t [u8]>,
}

impl<'t> First<'t> {
    /// Looks at the first records of a text; `None` if it has none. Says in the text what separates its fields.
    pub(crate) fn of<R: Record>(text: &'t mut Text<'_>, roles: &Roles) -> Option<Self> {
        let is_record = |line: &&[u8]| !line.is_empty() && !is_comment::<R>(line);
        let lines = paired(text.head()).filter(is_record).take(FIRST_RECORDS);
        let separator = Separator::of(lines, R::ROLES.len().max(roles.width()));
        text.separate(separator);
        let records = text.records().filter(|(_, record)| is_record(record)).take(FIRST_RECORDS);
        let records: Vec<(usize, &[u8])> = records.collect();
        let (at, first) = records.first()?;
        let lines = at + 1 + memchr::memchr_iter(b'\n', first).count();
        Some(Self { separator, lines, records: records.into_iter().map(|(_, record)| record).collect() })
    }

    /// Returns the fields of a record; those of a header that is marked as a comment without the mark.
    pub(crate) fn fields(&self, at: usize) -> Vec<Cow<'t, [u8]>> {
        let record = self.records[at];
        let unmarked = record.strip_prefix(b"#").filter(|_| at == 0).map(<[u8]>::trim_ascii_start);
        self.separator.all_fields(unmarked.unwrap_or(record))
    }

    /// Returns what the first record would call the columns.
    fn names(&self) -> Vec<String> {
        self.fields(0).iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// Finds the columns that are read, and whether the first record is a header.
    ///
    /// # Errors
    /// What is wrong with the roles.
    pub(crate) fn columns<R: Record>(&self, roles: &Roles) -> Result<(Places, bool), String> {
        let names = self.names();
        let find = |usual: Places, of: &[String]| roles.columns(R::ROLES, of, names.len(), usual);
        let (in_order, number) = ([0, 1], number_column::<R>(&names));
        let by_name = known::<R>(&names).map(|(ends, _)| ends);
        if roles.name_headers() {
            let by_name = known_beside::<R>(&names, roles).map(|(ends, _)| ends);
            return Ok((find((by_name.unwrap_or(in_order), number), &names)?, true));
        }
        let all =
            by_name.map(|ends| (ends, number.filter(|at| !ends.contains(at)))).into_iter().chain([(in_order, number)]);
        for (ends, number) in all {
            if let Ok(columns) = find((ends, number), &names)
                && self.is_header::<R>(columns)
            {
                return Ok((columns, true));
            }
        }
        // A record that ends too early is reported as such.
        let columns = find((in_order, usual_number::<R>(&names)), &[])?;
        Ok((columns, self.is_header::<R>(columns)))
    }

    /// Says what is wrong with a header: it calls a column that is to hold ids a time, or nothing, or does not name the first.
    fn misnamed<R: Record>(&self, roles: &Roles, (ends, _): Places) -> Option<String> {
        let names = self.names();
        let is_said = |of: usize| R::ROLES.get(of).is_some_and(|role| roles.has(*role));
        let is_time = |&(of, at): &(usize, usize)| !is_said(of) && names.get(at).is_some_and(|name| names_times(name));
        // Pandas and R call the numbers of rows nothing.
        let is_unnamed =
            |&(of, at): &(usize, usize)| !is_said(of) && names.get(at).is_some_and(|name| name.trim().is_empty());
        let find = |is: &dyn Fn(&(usize, usize)) -> bool| ends.into_iter().enumerate().find(is);
        if let Some((at, what)) = find(&is_time)
            .map(|(_, at)| (at, "is called a time"))
            .or(find(&is_unnamed).map(|(_, at)| (at, "has no name")))
        {
            let columns = listed(&names, names.len());
            return Some(format!(
                "column {} would hold ids, and {what}; say with --columns what holds what; {columns}",
                at + 1
            ));
        }
        // R writes the numbers of rows, and calls their column nothing.
        let is_number = |at: usize| {
            let fields = self.fields(at);
            fields.len() == names.len() + 1 && integer(&fields[0]) == Some(at as u64)
        };
        (self.records.len() > 2 && (1..self.records.len()).all(is_number)).then(|| {
            format!(
                "the header names {} columns, and the lines after it have one more, which numbers them; take it out, or give it a name",
                names.len()
            )
        })
    }

    /// Tells whether the first record has no number in it, and all others have one in a column, of three or more.
    fn names_a_number(&self) -> bool {
        let is_number = |at: usize| self.fields(at).iter().map(|field| looks_numeric(field)).collect::<Vec<bool>>();
        let first = is_number(0);
        let may_be = first.len() > 2 && !first.contains(&true);
        let mut all: Vec<bool> = self.fields(0).iter().map(|name| may_be && !is_missing(name)).collect();
        for at in 1..self.records.len() {
            let found = is_number(at);
            all.iter_mut().enumerate().for_each(|(column, all)| *all &= found.get(column) == Some(&true));
        }
        all.contains(&true)
    }

    /// Tells whether the first record is a header. Where records have numbers, it has nothing numeric in their columns, nor where
    /// the number is without a header; otherwise its ends have names that are known, or are no numbers, and those of all others that are
    /// looked at are integers, or one of three columns or more has numbers below it: else, where ids are names, it is an edge.
    fn is_header<R: Record>(&self, ([left, right], number_at): Places) -> bool {
        let has = |at: usize, columns: &[usize], is: fn(&[u8]) -> bool| {
            let fields = self.fields(at);
            columns.iter().all(|&column| fields.get(column).is_some_and(|field| is(field)))
        };
        match number_at {
            Some(number) => {
                let columns = [left, right, number, R::usual_number().unwrap_or(number)];
                has(0, &columns, |field| !looks_numeric(field))
                    && has(0, &[number], |field| R::of_text(field).is_none() && !is_missing(field))
            }
            // Ends that are called so are no ids.
            None if known::<R>(&self.names()).is_some_and(|(ends, _)| ends == [left, right]) => true,
            None => {
                let is_edge = |at| has(at, &[left, right], |end| integer(end).is_some());
                let rest = 1..self.records.len();
                let is_named = has(0, &[left, right], |end| number(end).is_none());
                is_named && !rest.is_empty() && (rest.into_iter().all(is_edge) || self.names_a_number())
            }
        }
    }
}

/// Tells whether a field stands for a value that is not there, however it is written, so that it is no name of a column.
fn is_missing(field: &[u8]) -> bool {
    matches!(field, b"" | b"?") || MISSING.iter().any(|missing| field.eq_ignore_ascii_case(missing.as_bytes()))
}

fn looks_numeric(field: &[u8]) -> bool {
    integer(field).is_some() || fast_float2::parse::<f64, _>(field).is_ok()
}

/// Finds the columns of the ends, and that of the number, by names that are known.
pub(crate) fn known<R: Record>(names: &[String]) -> Option<Places> {
    let ends = ENDS.iter().find_map(|[left, right]| Some([find(names, left)?, find(names, right)?]))?;
    Some((ends, known_number::<R>(names)))
}

/// Finds the same where one of the ends is named otherwise: the other one by itself, which then stands for both.
pub(crate) fn known_beside<R: Record>(names: &[String], roles: &Roles) -> Option<Places> {
    let fits = |left: &str| match R::ROLES[0] {
        Role::From => matches!(left, "source" | "src" | "from" | "left"),
        Role::Document => left == "document",
        _ => left.starts_with("user"),
    };
    let other = || {
        let end = match [0, 1].map(|end| roles.has(R::ROLES[end])) {
            [true, false] => 1,
            [false, true] => 0,
            _ => return None,
        };
        let at = ENDS.iter().filter(|pair| fits(pair[0])).find_map(|pair| find(names, pair[end]))?;
        Some(([at, at], known_number::<R>(names)))
    };
    known::<R>(names).or_else(other)
}

/// Finds the column of the number by names that are known, whatever the ends are called.
pub(crate) fn known_number<R: Record>(names: &[String]) -> Option<usize> {
    R::NUMBER_COLUMNS.iter().find_map(|name| find(names, name)).filter(|_| R::has_number())
}

/// Returns the role of the first column of the ends, where the names of columns tell it. Edges with weights may be meant as ratings.
pub(crate) fn role_of(names: &[String]) -> Option<Role> {
    let [left, _] = ENDS.iter().find(|pair| pair.iter().all(|end| find(names, end).is_some()))?;
    match *left {
        "left" => None,
        "document" => Some(Role::Document),
        "source" | "src" | "from" => known_number::<WeightedLink>(names).is_none().then_some(Role::From),
        _ => Some(Role::User),
    }
}

/// Returns the same of the header of a text, if it has one.
pub(crate) fn role_in(text: &mut Text<'_>) -> Option<Role> {
    let (first, none) = (First::of::<Rating>(text, &Roles::default())?, Roles::default());
    let role = role_of(&first.names())?;
    let found = if role == Role::From { first.columns::<Link>(&none) } else { first.columns::<Pair<Rating>>(&none) };
    found.is_ok_and(|(_, is_header)| is_header).then_some(role)
}

/// Returns the names of columns that are known of ratings, in any case: of users and items, of values, and of times.
#[must_use]
pub fn rating_columns() -> (Vec<[&'static str; 2]>, &'static [&'static str], &'static [&'static str]) {
    let are_users = |ends: &[&str; 2]| role_of(&ends.map(str::to_owned)) == Some(Role::User);
    (ENDS.into_iter().filter(are_users).collect(), Rating::NUMBER_COLUMNS, RatingTime::NUMBER_COLUMNS)
}

/// Finds the column of the number: by names that are known, else the usual one.
pub(crate) fn number_column<R: Record>(names: &[String]) -> Option<usize> {
    known_number::<R>(names).or_else(|| usual_number::<R>(names))
}

/// Returns the usual column of the number, unless its name says that it holds times.
fn usual_number<R: Record>(names: &[String]) -> Option<usize> {
    R::usual_number().filter(|&at| names.get(at).is_none_or(|name| !names_times(name)))
}

fn names_times(name: &str) -> bool {
    RatingTime::NUMBER_COLUMNS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn find(names: &[String], wanted: &str) -> Option<usize> {
    names.iter().position(|name| name.eq_ignore_ascii_case(wanted))
}

/// Says that no column is known to hold the number of a record.
pub(crate) fn unnamed<R: Record>(names: &[String], width: usize) -> String {
    let (role, known) = (R::number_name(), R::NUMBER_COLUMNS.join(", "));
    let none = match role {
        "rating" | "count" => format!(", or {role}=none where each line counts as 1"),
        _ => String::new(),
    };
    let columns = listed(names, width);
    format!("no column is called {known}; say with --columns {role}=COLUMN which holds the {role}{none}; {columns}")
}

/// Says what is read where no column has a name that is known: others may be in another order than those before.
fn warn_of_order<R: Record>(path: &Path, names: &[String], ([left, right], number): Places) {
    let columns = [Some(left), Some(right), number].into_iter().flatten();
    let roles = R::FIELDS.into_iter().chain([R::number_name()]);
    let named = roles.zip(columns).filter_map(|(role, at)| Some(format!("{role} in \"{}\"", names.get(at)?)));
    tracing::warn!(
        "{}: the header has no name that is known, so columns are read in their order: {}; if that is wrong, say with --columns what holds what",
        path.display(),
        named.collect::<Vec<_>>().join(", "),
    );
}

/// Says what is read where there are many columns without names.
fn warn_of_width<R: Record>(path: &Path, width: usize, ([left, right], number): Places) {
    let columns = [Some(left), Some(right), number].into_iter().flatten();
    let roles = R::FIELDS.into_iter().chain([R::number_name()]);
    let read: Vec<String> = roles.zip(columns).map(|(role, at)| format!("{role} in {}", at + 1)).collect();
    tracing::warn!(
        "{}: it has {width} columns and no header, and of them are read: {}; if that is wrong, say with --columns what holds what",
        path.display(),
        read.join(", "),
    );
}

/// Takes the header off a text; returns how its records are written.
pub(crate) fn begin<R: Record>(text: &mut Text<'_>, roles: &Roles) -> Result<Shape, Error> {
    let path = text.path().to_path_buf();
    let Some(first) = First::of::<R>(text, roles) else {
        return Ok(Shape::new(Separator::Space, ([0, 1], R::usual_number())));
    };
    let (columns, is_header) = first.columns::<R>(roles).map_err(|problem| Error::invalid(&path, problem))?;
    if columns.1.is_none() && R::has_number() {
        let names = first.names();
        let are_names = is_header || known::<R>(&names).is_some() || names.iter().any(|name| names_times(name));
        let names = if are_names { names } else { Vec::new() };
        return Err(Error::invalid(&path, unnamed::<R>(&names, first.fields(0).len())));
    }
    if let Some(problem) = is_header.then(|| first.misnamed::<R>(roles, columns)).flatten() {
        return Err(Error::invalid(&path, problem));
    }
    let (shape, lines, names) = (Shape::new(first.separator, columns), first.lines, first.names());
    if is_header {
        // Of two columns all are read, and from left to right.
        let may_be_others = roles.is_empty() && names.len() > 2 && known::<R>(&names).is_none();
        if may_be_others && is_first(&path, "header") {
            warn_of_order::<R>(&path, &names, columns);
        }
        text.skip_lines(lines);
        return Ok(shape.with_width(names.len()));
    }
    if names.len() > MOST_COLUMNS && roles.is_empty() && is_first(&path, "width") {
        warn_of_width::<R>(&path, names.len(), columns);
    }
    Ok(shape)
}
