//! Files of vertices at which the surfer restarts: one a line, with a weight or without.

use std::fs;
use std::path::Path;

use megagrid_algorithms::pagerank::Restart;
use megagrid_datasets::{Lookup, Names};
use megagrid_partition::Side;

use crate::Error;

/// Reads where the surfer restarts: lines `id` or `id weight`. An id may have blanks in it: where all of a line is the name of a vertex,
/// it has no weight.
///
/// # Errors
/// A file that cannot be read, or holds no vertex; a line whose vertex is not there, or whose weight is below 0 or no number.
pub(super) fn read(path: &Path, names: &Names) -> Result<Restart, Error> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    let names = names.get(Side::Left)?;
    let lookup = names.lookup();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            found.push(vertex(line, &lookup).map_err(|wrong| wrong.at(path, number))?);
        }
    }
    if found.is_empty() {
        let problem = "no vertices in it; expected one a line, by its id, or its id and a weight";
        return Err(Error::invalid(path, problem));
    }
    Restart::new(names.len(), &found).map_err(|error| Error::invalid(path, error.to_string()))
}

/// Reads several sets of vertices to restart at, one a line: ids, each with or without `:weight`, separated by tabs, else by commas, semicolons
/// or blanks.
///
/// # Errors
/// As [`read`].
pub(super) fn read_sets(path: &Path, names: &Names) -> Result<Vec<Restart>, Error> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    let names = names.get(Side::Left)?;
    let lookup = names.lookup();
    let mut sets = Vec::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let separator = ['\t', ',', ';'].into_iter().find(|&separator| line.contains(separator)).unwrap_or(' ');
        let members = line.split(separator).map(str::trim).filter(|member| !member.is_empty());
        let found = members.map(|member| weighted(member, &lookup)).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|wrong| wrong.at(path, number))?;
        let restart = Restart::new(names.len(), &found);
        sets.push(restart.map_err(|error| Error::invalid(path, format!("line {number}: {error}")))?);
    }
    if sets.is_empty() {
        return Err(Error::invalid(
            path,
            "no sets in it; expected one a line: ids separated by tabs, commas or blanks",
        ));
    }
    Ok(sets)
}

/// What is wrong with a line: which part, what it is, what it should be.
struct Wrong<'l>(&'static str, &'l str, &'static str);

impl Wrong<'_> {
    fn at(self, path: &Path, line: u64) -> Error {
        let Self(field, found, expected) = self;
        let (found, expected) = (found.to_owned(), expected.to_owned());
        megagrid_datasets::Error::Malformed { path: path.to_owned(), line, field, found, expected }.into()
    }
}

fn unknown(id: &str) -> Wrong<'_> {
    Wrong("vertex to restart at", id, "a vertex of the graph, by its id in the input")
}

/// Returns the vertex and the weight of a member of a set: `id` or `id:weight`. An id may have colons in it.
fn weighted<'l>(member: &'l str, lookup: &Lookup) -> Result<(usize, f64), Wrong<'l>> {
    if let Some(page) = lookup.find(member) {
        return Ok((page as usize, 1.0));
    }
    let (id, weight) = member.rsplit_once(':').ok_or_else(|| unknown(member))?;
    with_weight(lookup.find(id.trim_end()), weight.trim_start()).unwrap_or_else(|| Err(unknown(member)))
}

/// Returns a vertex with its weight; `None`: neither is one.
fn with_weight(page: Option<u32>, weight: &str) -> Option<Result<(usize, f64), Wrong<'_>>> {
    let number = weight.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let wrong = || Wrong("weight", weight, "a finite number, 0 or above");
    page.map(|page| number.map(|weight| (page as usize, weight)).ok_or_else(wrong))
}

/// Returns the vertex and the weight of a line.
fn vertex<'l>(line: &'l str, lookup: &Lookup) -> Result<(usize, f64), Wrong<'l>> {
    if let Some(page) = lookup.find(line) {
        return Ok((page as usize, 1.0));
    }
    let (id, weight) = line.rsplit_once([' ', '\t', ',', ';']).ok_or_else(|| unknown(line))?;
    // The weight may follow a comma and a blank.
    let id = id.trim_end();
    let id = id.strip_suffix([',', ';']).map_or(id, str::trim_end);
    let is_number = weight.parse::<f64>().is_ok();
    with_weight(lookup.find(id), weight).unwrap_or_else(|| Err(unknown(if is_number { id } else { line })))
}

#[cfg(test)]
mod tests {
    use megagrid_datasets::Dictionary;

    use super::*;

    fn of(text: &str, names: &[&str]) -> Result<Vec<f32>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let names = Dictionary::from_strings(names);
        let read = read(file.path(), &Names::new(names, None));
        let path = file.path().display().to_string();
        read.map(|restart| restart.chances().to_vec()).map_err(|error| error.to_string().replace(&path, "file"))
    }

    #[test]
    fn lines_are_ids_with_or_without_weights() {
        let names = ["a", "b", "new york", "new york 2"];
        for (text, expected) in [
            ("a\n", [1.0, 0.0, 0.0, 0.0]),
            ("\u{feff}# where\r\na\r\n\r\nb 3\r\n", [0.25, 0.75, 0.0, 0.0]),
            ("a\t1\nb,2\na;1", [0.5, 0.5, 0.0, 0.0]),
            // What is an id as it stands has no weight.
            ("new york 3\nnew york 2\n", [0.0, 0.0, 0.75, 0.25]),
            ("new york, 5e-1\na 0\n", [0.0, 0.0, 1.0, 0.0]),
        ] {
            assert_eq!(of(text, &names).as_deref(), Ok(&expected[..]), "{text:?}");
        }
    }

    fn sets_of(text: &str, names: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let read = read_sets(file.path(), &Names::new(Dictionary::from_strings(names), None));
        let path = file.path().display().to_string();
        let chances = |sets: Vec<Restart>| sets.iter().map(|set| set.chances().to_vec()).collect();
        read.map(chances).map_err(|error| error.to_string().replace(&path, "file"))
    }

    #[test]
    fn each_line_is_a_set() {
        let names = ["a", "b", "new york", "http://c:80"];
        let text = "# sets\na\n\nb a:3\n\tnew york\ta:1 \r\nb:0.5, http://c:80\nhttp://c:80:2;b:2\n";
        assert_eq!(
            sets_of(text, &names).unwrap(),
            [
                [1.0, 0.0, 0.0, 0.0],
                [0.75, 0.25, 0.0, 0.0],
                [0.5, 0.0, 0.5, 0.0],
                [0.0, 1.0 / 3.0, 0.0, 2.0 / 3.0],
                [0.0, 0.5, 0.0, 0.5],
            ]
        );
        for (text, expected) in [
            ("a\nb x\n", "file:2: vertex to restart at: found \"x\""),
            ("a:-1\n", "file:1: weight: found \"-1\", expected a finite number, 0 or above"),
            ("a:b\n", "file:1: weight: found \"b\""),
            ("a\n\nb:0\n", "file: line 3: sum of the weights of restarts is 0"),
            ("#\n", "file: no sets in it; expected one a line"),
        ] {
            let said = sets_of(text, &names).unwrap_err();
            assert!(said.starts_with(expected), "{text:?}: {said}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_file_line_and_id() {
        for (text, expected) in [
            ("a\nx\n", "file:2: vertex to restart at: found \"x\", expected a vertex of the graph"),
            ("x 2\n", "file:1: vertex to restart at: found \"x\", expected"),
            ("a\n\nx y\n", "file:3: vertex to restart at: found \"x y\", expected"),
            ("a -1\n", "file:1: weight: found \"-1\", expected a finite number, 0 or above"),
            ("a nan\n", "file:1: weight: found \"nan\""),
            ("a much\n", "file:1: weight: found \"much\""),
            ("", "file: no vertices in it"),
            ("# nobody\n\n", "file: no vertices in it"),
            ("a 0\nb 0\n", "file: sum of the weights of restarts is 0"),
        ] {
            let said = of(text, &["a", "b"]).unwrap_err();
            assert!(said.starts_with(expected), "{text:?}: {said}");
        }
    }
}
