//! Directed graphs without hubs, as roads are: a lattice of which some links are missing. Neighbours have ids near each other.

use megagrid_partition::{EdgeList, SplitMix};

use super::check;
use crate::Error;

/// What lattice to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatticeSettings {
    /// Rows of vertices.
    pub rows: usize,
    /// Vertices of a row, numbered one after the other.
    pub columns: usize,
    /// The chance that a link is there: each vertex may have one to each of those beside, above and below it.
    pub kept: f64,
    /// Picks one of the graphs of these settings.
    pub seed: u64,
}

impl Default for LatticeSettings {
    /// 256 by 256 vertices, 7 of 10 links; seed 1.
    fn default() -> Self {
        Self { rows: 256, columns: 256, kept: 0.7, seed: 1 }
    }
}

impl LatticeSettings {
    /// Makes the graph, which is square. Its links are in order of their left, then of their right ends.
    ///
    /// # Errors
    /// Where a setting is out of range.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::synthetic::LatticeSettings;
    ///
    /// let graph = LatticeSettings { rows: 10, columns: 20, kept: 1.0, seed: 1 }.generate()?;
    /// assert_eq!(graph.num_left, 200);
    /// assert_eq!(graph.num_edges(), 2 * (10 * 19 + 9 * 20));
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn generate(&self) -> Result<EdgeList<()>, Error> {
        let Self { rows, columns, kept, seed } = *self;
        for (name, count) in [("rows", rows), ("columns", columns)] {
            check((1..=1 << 31).contains(&count), name, count as f64, "1 to 2147483648")?;
        }
        let vertices = rows.saturating_mul(columns);
        check(vertices <= 1 << 31, "rows times columns", vertices as f64, "at most 2147483648")?;
        check((0.0..=1.0).contains(&kept), "kept", kept, "a chance, 0 to 1")?;
        let mut graph = EdgeList { num_left: vertices, num_right: vertices, square: true, ..EdgeList::<()>::default() };
        for vertex in 0..vertices {
            let (row, column) = (vertex / columns, vertex % columns);
            let mut random = SplitMix::new(seed, vertex as u64);
            let neighbours = [
                (row > 0).then(|| vertex - columns),
                (column > 0).then(|| vertex - 1),
                (column + 1 < columns).then(|| vertex + 1),
                (row + 1 < rows).then(|| vertex + columns),
            ];
            for to in neighbours.into_iter().flatten().filter(|_| random.unit() < kept) {
                graph.push(vertex as u32, to as u32, ());
            }
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_join_neighbours_and_as_many_are_kept_as_asked() {
        let settings = LatticeSettings { rows: 70, columns: 90, ..LatticeSettings::default() };
        let graph = settings.generate().unwrap();
        let all = 2 * (70 * 89 + 69 * 90);
        assert!((graph.num_edges() as f64 / f64::from(all) - 0.7).abs() < 0.02, "{}", graph.num_edges());
        for (from, to) in graph.left.iter().zip(&graph.right) {
            let [(row, column), (other_row, other_column)] = [from, to].map(|id| (id / 90, id % 90));
            assert_eq!(row.abs_diff(other_row) + column.abs_diff(other_column), 1, "{from} to {to}");
        }
        assert!(graph.left.iter().zip(&graph.right).is_sorted(), "no link twice, in order");
        assert_eq!(graph, settings.generate().unwrap());
        assert_ne!(graph, LatticeSettings { seed: 2, ..settings }.generate().unwrap());
        assert_eq!(LatticeSettings { kept: 0.0, ..settings }.generate().unwrap().num_edges(), 0);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let refused = |settings: LatticeSettings| settings.generate().unwrap_err().to_string();
        let settings = LatticeSettings::default();
        assert_eq!(
            refused(LatticeSettings { rows: 0, ..settings }),
            "rows 0 is out of range; expected 1 to 2147483648"
        );
        let large = LatticeSettings { rows: 1 << 20, columns: 1 << 20, ..settings };
        assert!(refused(large).starts_with("rows times columns 1099511627776 is out of range"));
        assert_eq!(
            refused(LatticeSettings { kept: 1.5, ..settings }),
            "kept 1.5 is out of range; expected a chance, 0 to 1"
        );
    }
}
