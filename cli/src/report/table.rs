//! A table, as text and as a part of a page.

use super::plot::escape;

/// A table: names of the columns, and rows of cells. A cell has a text and, in a second line, its range.
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells by row.
    pub rows: Vec<Vec<(String, String)>>,
}

impl Table {
    /// Writes the table as a text.
    pub fn text(&self) -> String {
        let head = self.columns.iter().map(|name| (name.clone(), String::new())).collect();
        let rows: Vec<&Vec<(String, String)>> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |at: usize, of: fn(&(String, String)) -> &String| {
            rows.iter().map(|row| of(&row[at]).chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|at| width(at, |cell| &cell.0).max(width(at, |cell| &cell.1))).collect();
        let mut text = String::new();
        for row in &rows {
            for of in [(|cell| &cell.0) as fn(&(String, String)) -> &String, |cell| &cell.1] {
                if row.iter().all(|cell| of(cell).is_empty()) {
                    continue;
                }
                let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
                    0 => format!("{:<width$}", of(cell)),
                    _ => format!("{:>width$}", of(cell)),
                });
                let line = cells.collect::<Vec<_>>().join("  ");
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// Writes the table as HTML.
    pub fn html(&self) -> String {
        let columns: String = self.columns.iter().map(|name| format!("<th>{}", escape(name))).collect();
        let cell = |(value, range): &(String, String)| match range.is_empty() {
            true => format!("<td>{}", escape(value)),
            false => format!("<td>{}<small>{}</small>", escape(value), escape(range)),
        };
        let rows = self.rows.iter().map(|cells| format!("<tr>{}", cells.iter().map(cell).collect::<String>()));
        format!(
            "<div class=wide><table><thead><tr>{columns}</thead><tbody>{}</tbody></table></div>\n",
            rows.collect::<String>()
        )
    }
}
