//! Samples of all rounds, their medians, and the ratios to Megagrid.

use std::fmt;

use megagrid_results::Row;
use serde_json::{Value, json};

/// One system at one thread count: a sample a round, absent where a goal was not reached.
struct Cell {
    system: String,
    threads: u32,
    measure: String,
    samples: Vec<Option<f64>>,
}

/// The measurements of one algorithm on one input.
pub struct Table {
    title: String,
    /// What measures it again.
    command: String,
    /// Rounds whose median a sample is.
    rounds_each: u32,
    notes: Vec<String>,
    cells: Vec<Cell>,
}

/// The system that ratios are taken to.
pub const MEGAGRID: &str = "megagrid";

impl Table {
    pub fn new(title: String, command: String) -> Self {
        Table { title, command, rounds_each: 1, notes: Vec::new(), cells: Vec::new() }
    }

    /// A table whose samples are medians of `rounds` already.
    pub fn of_medians(title: String, command: String, rounds: u32) -> Self {
        Table { rounds_each: rounds, ..Table::new(title, command) }
    }

    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Adds one round's sample; `measure` is a time or a size, so smaller is better.
    pub fn add(&mut self, system: &str, threads: u32, measure: &str, sample: Option<f64>) {
        let same = |cell: &&mut Cell| cell.system == system && cell.threads == threads && cell.measure == measure;
        match self.cells.iter_mut().find(same) {
            Some(cell) => cell.samples.push(sample),
            None => self.cells.push(Cell {
                system: system.to_owned(),
                threads,
                measure: measure.to_owned(),
                samples: vec![sample],
            }),
        }
    }

    /// Megagrid's median of what a cell measures.
    fn ours(&self, cell: &Cell) -> Option<f64> {
        let same = |other: &&Cell| other.threads == cell.threads && other.measure == cell.measure;
        self.cells.iter().filter(same).find(|other| other.system == MEGAGRID)?.median()
    }

    /// How many times as much this cell takes as Megagrid does with as many threads.
    fn ratio(&self, cell: &Cell) -> Option<f64> {
        self.ours(cell).filter(|&ours| ours > 0.0).and_then(|ours| Some(cell.median()? / ours))
    }

    /// Measures in order of first appearance, threads rising, systems as added.
    fn ordered(&self) -> Vec<&Cell> {
        let position = |measure: &str| self.cells.iter().position(|cell| cell.measure == measure);
        let mut cells: Vec<&Cell> = self.cells.iter().collect();
        cells.sort_by_key(|cell| (position(&cell.measure), cell.threads));
        cells
    }

    /// Each cell of a peer beside Megagrid's.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.ordered().into_iter().filter(|cell| cell.system != MEGAGRID).map(|cell| Row {
            table: self.title.clone(),
            what: cell.measure.clone(),
            command: self.command.clone(),
            peer: cell.system.clone(),
            threads: cell.threads,
            rounds: cell.samples.len() as u32 * self.rounds_each,
            ours: self.ours(cell),
            theirs: cell.median(),
            ratio: self.ratio(cell),
        })
    }

    pub fn to_json(&self) -> Value {
        let cell = |cell: &&Cell| {
            json!({ "measure": cell.measure, "threads": cell.threads, "system": cell.system, "median": cell.median(),
                    "min": cell.bound(f64::min), "max": cell.bound(f64::max), "ratio_to_megagrid": self.ratio(cell),
                    "samples": cell.samples })
        };
        json!({ "title": self.title, "notes": self.notes, "rows": self.ordered().iter().map(cell).collect::<Vec<_>>() })
    }
}

impl Cell {
    /// The median over the rounds; absent unless every round has a sample.
    fn median(&self) -> Option<f64> {
        let mut sorted = self.samples.iter().copied().collect::<Option<Vec<f64>>>()?;
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        Some(if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 })
    }

    fn bound(&self, pick: fn(f64, f64) -> f64) -> Option<f64> {
        self.samples.iter().flatten().copied().reduce(pick)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for note in &self.notes {
            writeln!(f, "  {note}")?;
        }
        f.write_str("measure                          threads  system                         median        min        max   ratio\n")?;
        for cell in self.ordered() {
            let show = |value: Option<f64>, digits| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
            let (median, ratio) = (show(cell.median(), 4), show(self.ratio(cell), 2));
            let (min, max) = (show(cell.bound(f64::min), 4), show(cell.bound(f64::max), 4));
            let Cell { measure, threads, system, .. } = cell;
            writeln!(f, "{measure:<32} {threads:>7}  {system:<26} {median:>10} {min:>10} {max:>10} {ratio:>7}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_megagrid_with_as_many_threads() {
        let mut table = Table::new("sums".to_owned(), "run sums".to_owned());
        for sample in [1.0, 9.0, 2.0] {
            table.add(MEGAGRID, 1, "s", Some(sample));
            table.add("peer", 1, "s", Some(3.0 * sample));
            table.add("peer", 2, "s", None);
        }
        assert_eq!(table.ratio(&table.cells[1]), Some(3.0));
        assert_eq!(table.ratio(&table.cells[2]), None);
        let rows: Vec<Row> = table.rows().collect();
        assert_eq!(rows.iter().map(|row| row.threads).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((rows[0].ours, rows[0].theirs, rows[0].ratio, rows[0].rounds), (Some(2.0), Some(6.0), Some(3.0), 3));
    }
}
