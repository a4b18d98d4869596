//! A report as a page in Markdown.

use std::fmt::Write;

use super::{Evidence, Ran, Report, Verdict};

/// Returns a report as a page: a table with a line for each row, then what does not hold, what cannot be shown here, and what went wrong.
#[must_use]
pub fn page(report: &Report) -> String {
    let Report { date, commit, machine, rows } = report;
    let mut page = format!("Measured on {date}: {}, {} cores; commit {commit}.\n\n", machine.processor, machine.cores);
    page += "| row | published | verdict | checks | evidence | minutes |\n|---|---|---|---|---|---|\n";
    for ran in rows {
        let evidence: Vec<&str> = ran.evidence().into_iter().map(Evidence::name).collect();
        let (verdict, minutes) = (ran.verdict.name(), ran.seconds / 60.0);
        let Ran { row, published, .. } = ran;
        let (checks, evidence) = (checks(ran), evidence.join(", "));
        writeln!(page, "| {row} | {published} | {verdict} | {checks} | {evidence} | {minutes:.1} |").unwrap();
    }
    page += "\nreal: measured here; counted: exactly; virtual: numbers computed on a virtual cluster, time modelled; modelled: \
             time by a model of exact\nshapes; tested: against oracles.\n";
    list(&mut page, "Does not hold", rows, |ran| found(ran, Some(false)));
    list(&mut page, "Cannot be shown here", rows, |ran| found(ran, None));
    list(&mut page, "Did not run", rows, |ran| ran.errors.clone());
    let holding = rows.iter().filter(|ran| ran.verdict == Verdict::Holds).count();
    writeln!(page, "\n{holding} of {} rows hold.", rows.len()).unwrap();
    page
}

/// Says how many of a row's findings are which: `4 hold, 1 not, 1 open`.
fn checks(ran: &Ran) -> String {
    let counts = [(Some(true), "hold"), (Some(false), "not"), (None, "open")];
    let count = |holds| ran.findings.iter().filter(|finding| finding.holds == holds).count();
    let shown = counts.map(|(holds, name)| (count(holds), name)).into_iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

fn found(ran: &Ran, holds: Option<bool>) -> Vec<String> {
    ran.findings.iter().filter(|finding| finding.holds == holds).map(|finding| finding.what.clone()).collect()
}

fn list(page: &mut String, title: &str, rows: &[Ran], items: impl Fn(&Ran) -> Vec<String>) {
    let items: Vec<String> = rows
        .iter()
        .flat_map(|ran| items(ran).into_iter().map(|item| format!("- {}: {item}\n", ran.row)).collect::<Vec<_>>())
        .collect();
    if !items.is_empty() {
        write!(page, "\n{title}:\n\n{}", items.concat()).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Finding, ROWS};
    use super::*;
    use crate::results::Machine;

    #[test]
    fn a_page_has_a_line_for_each_row_and_names_what_does_not_hold() {
        let finding = |what: &str, holds, evidence| Finding { what: what.to_owned(), holds, evidence };
        let mixed = vec![
            finding("a", Some(true), Evidence::Modelled),
            finding("b", Some(false), Evidence::Counted),
            finding("c", None, Evidence::Real),
        ];
        let rows = vec![
            Ran::new(&ROWS[2], mixed, vec![], 90.0),
            Ran::new(&ROWS[3], vec![], vec!["cargo reenact 4: ended with exit status: 101".to_owned()], 1.0),
        ];
        let machine = Machine { processor: "P".to_owned(), cores: 2 };
        let report = Report { date: "2026-11-26".to_owned(), commit: "abc".to_owned(), machine, rows };
        let page = page(&report);
        let row = "| 3 | TuX² Figures 10 to 12, slack and batch sizes | does not hold | 1 hold, 1 not, 1 open | counted, modelled | 1.5 |";
        let found: Vec<&str> = page.lines().filter(|line| line.starts_with("| 3") || line.starts_with("- ")).collect();
        assert_eq!(found, [row, "- 3: b", "- 3: c", "- 4: cargo reenact 4: ended with exit status: 101"]);
        assert!(page.contains("| 4 | TuX² Figure 13, MF against GAS | did not run |  |  | 0.0 |"));
        assert!(page.ends_with("\n0 of 2 rows hold.\n"));
        assert_eq!(serde_json::from_str::<Report>(&serde_json::to_string(&report).unwrap()).unwrap(), report);
    }
}
