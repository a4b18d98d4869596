//! Re-enacts all published results, and says of each whether it holds here.
//!
//!     cargo published [--rows 1,3,20] [--json FILE]
//!     cargo published --list
//!
//! The rows are those of "Published results and their commands" in docs/benchmarks.md. A row that fails does not end the run. The table is
//! printed, in Markdown; everything is written to FILE after each row [target/published.json]. What the commands print goes to
//! standard error. The exit code is 1 where a row does not hold or did not run.
#![forbid(unsafe_code)]

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use megagrid_results::published::{Cargo, ROWS, Report, Row, Verdict, page, root, run};

/// What is asked for.
#[derive(Debug)]
struct Arguments {
    rows: Vec<&'static Row>,
    json: PathBuf,
    list: bool,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let json = root().join("target/published.json");
        let mut arguments = Self { rows: ROWS.iter().collect(), json, list: false };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--list" => arguments.list = true,
                "--rows" => arguments.rows = rows(&value()?)?,
                "--json" => arguments.json = value()?.into(),
                _ => return Err(format!("{word}: expected --rows 1,3,20, --json FILE or --list")),
            }
        }
        Ok(arguments)
    }
}

/// Returns the rows of a list of numbers, in the order of the table.
fn rows(list: &str) -> Result<Vec<&'static Row>, String> {
    let known = |number: u32| ROWS.iter().any(|row| row.number == number);
    let number = |text: &str| {
        let number = text.trim().parse().ok().filter(|number| known(*number));
        number.ok_or_else(|| {
            format!("--rows {list}: there is no row {text:?}; expected numbers from 1 to {}", ROWS.len())
        })
    };
    let numbers: Vec<u32> = list.split(',').map(number).collect::<Result<_, _>>()?;
    Ok(ROWS.iter().filter(|row| numbers.contains(&row.number)).collect())
}

fn main() -> io::Result<ExitCode> {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(2));
        }
    };
    if arguments.list {
        for row in &arguments.rows {
            let commands: Vec<String> = row.steps.iter().map(|step| step.command()).collect();
            println!("{:>2}  {}: {}", row.number, row.published, commands.join("; "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let root = root().canonicalize()?;
    let mut report = Report::begin(&root);
    let cargo = Cargo { scratch: root.join("target/published"), root };
    run(
        &arguments.rows,
        |step| cargo.execute(step),
        |ran| {
            eprintln!("\n== row {}: {}", ran.row, ran.verdict.name());
            report.rows.push(ran);
            report.write(&arguments.json)
        },
    )?;
    println!("{}", page(&report));
    println!("{}", arguments.json.display());
    let holds = report.rows.iter().all(|ran| matches!(ran.verdict, Verdict::Holds | Verdict::CannotBeShown));
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Vec<u32>, String> {
        let arguments = Arguments::read(words.iter().map(|&word| word.to_owned()))?;
        Ok(arguments.rows.iter().map(|row| row.number).collect())
    }

    #[test]
    fn rows_are_chosen_by_number() {
        assert_eq!(read(&["--rows", "20,1, 3"]).unwrap(), [1, 3, 20]);
        assert_eq!(read(&[]).unwrap().len(), 26);
        assert_eq!(read(&["--list"]).unwrap().len(), 26);
    }

    #[test]
    fn a_wrong_row_or_option_is_named() {
        assert!(read(&["--rows", "1,27"]).unwrap_err().contains("no row \"27\"; expected numbers from 1 to 26"));
        assert!(read(&["--row", "1"]).unwrap_err().starts_with("--row: expected"));
        assert_eq!(read(&["--rows"]).unwrap_err(), "--rows needs a value");
    }
}
