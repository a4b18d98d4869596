//! Directed graphs with skewed degrees: R-MAT, recursive matrices [Chakrabarti, Zhan, Faloutsos: R-MAT: A Recursive
//! Model for Graph Mining, SDM 2004], with the parameters of Graph 500.
//!
//! The adjacency matrix is cut into quarters `scale` times; at each cut, an edge falls into one of the four with chances
//! a (both ends low), b (right end high), c (left end high) and d = 1 - a - b - c.

use std::io::Write;
use std::path::Path;

use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Relabeling, Side, SplitMix};
use rayon::prelude::*;

use super::check;
use super::writer::write_text;
use crate::Error;

/// What graph to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmatSettings {
    /// The graph has `2^scale` vertices; 1 to 31.
    pub scale: u32,
    /// Edges per vertex, duplicates and self loops counted.
    pub edge_factor: usize,
    /// Chance that both ends are low.
    pub a: f64,
    /// Chance that only the right end is high.
    pub b: f64,
    /// Chance that only the left end is high.
    pub c: f64,
    /// Removes duplicates and self loops, and sorts the edges by left, then by right end.
    pub simplify: bool,
    /// Shuffles the ids, which otherwise tell degrees: low ids have most edges.
    pub shuffle_ids: bool,
    /// Picks one of the graphs of these settings.
    pub seed: u64,
}

impl Default for RmatSettings {
    /// 16 edges per vertex, a, b and c of Graph 500 (0.57, 0.19, 0.19), simple, shuffled; scale 16, seed 1.
    fn default() -> Self {
        Self { scale: 16, edge_factor: 16, a: 0.57, b: 0.19, c: 0.19, simplify: true, shuffle_ids: true, seed: 1 }
    }
}

impl RmatSettings {
    /// Makes the graph. It is square.
    ///
    /// Memory: 8 bytes an edge, and 6 more while edges are sorted.
    ///
    /// # Errors
    /// Where a setting is out of range.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::synthetic::RmatSettings;
    ///
    /// let graph = RmatSettings { scale: 8, ..RmatSettings::default() }.generate()?;
    /// assert_eq!(graph.num_left, 256);
    /// assert!(graph.num_edges() > 2000);
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    pub fn generate(&self) -> Result<EdgeList<()>, Error> {
        self.check()?;
        let num_vertices = 1 << self.scale;
        let num_edges = num_vertices * self.edge_factor;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let cuts = self.cuts();
        let edges = (0..num_edges).into_par_iter().map(|edge| self.edge(cuts, edge));
        edges.unzip_into_vecs(&mut left, &mut right);
        if self.shuffle_ids {
            let shuffled = Relabeling::random(num_vertices, !self.seed);
            shuffled.apply(&mut left);
            shuffled.apply(&mut right);
        }
        let data = vec![(); num_edges];
        let edges = EdgeList { num_left: num_vertices, num_right: num_vertices, square: true, left, right, data };
        Ok(if self.simplify { simplified(edges) } else { edges })
    }

    fn check(&self) -> Result<(), Error> {
        check((1..=31).contains(&self.scale), "scale", self.scale.into(), "1 to 31")?;
        check((1..=1 << 20).contains(&self.edge_factor), "edge factor", self.edge_factor as f64, "1 to 1048576")?;
        for (name, chance) in [("a", self.a), ("b", self.b), ("c", self.c)] {
            check((0.0..=1.0).contains(&chance), name, chance, "a chance, 0 to 1")?;
        }
        let sum = self.a + self.b + self.c;
        // Chances that are 1 on paper may be a little more in binary.
        check(sum <= 1.0 + 1e-9, "a + b + c", sum, "at most 1")
    }

    /// Returns where the quarters end, as parts of 2^32.
    fn cuts(&self) -> [u64; 3] {
        [self.a, self.a + self.b, self.a + self.b + self.c].map(|end| (end * (1_u64 << 32) as f64) as u64)
    }

    #[inline]
    fn edge(&self, cuts: [u64; 3], edge: usize) -> (u32, u32) {
        let mut random = SplitMix::new(self.seed, edge as u64);
        let (mut left, mut right) = (0, 0);
        let mut bits = 0;
        for level in 0..self.scale {
            // One draw has bits for two levels.
            bits = if level % 2 == 0 { random.bits() } else { bits >> 32 };
            let draw = bits & 0xffff_ffff;
            let is_past = cuts.map(|cut| draw >= cut);
            left = left << 1 | u32::from(is_past[1]);
            right = right << 1 | u32::from(is_past[0] & !is_past[1] | is_past[2]);
        }
        (left, right)
    }
}

/// Removes duplicates and self loops.
fn simplified(edges: EdgeList<()>) -> EdgeList<()> {
    let num_vertices = edges.num_left;
    let grouped = GroupedEdges::new(edges, &[Side::Left]);
    let mut simple = EdgeList { num_left: num_vertices, num_right: num_vertices, square: true, ..EdgeList::default() };
    let num_edges = grouped.num_edges();
    simple.left.reserve_exact(num_edges);
    simple.right.reserve_exact(num_edges);
    for row in 0..num_vertices {
        let visited = grouped.visit_rows(Side::Left, row..row + 1, &mut |far_ends, _| {
            let distinct = far_ends.chunk_by(|a, b| a == b).map(|same| same[0]);
            simple.right.extend(distinct.filter(|&far| far as usize != row));
            simple.left.resize(simple.right.len(), row as u32);
        });
        debug_assert!(visited.is_ok(), "the edges are in memory, grouped by their left ends");
    }
    simple.data = vec![(); simple.left.len()];
    simple
}

/// Writes the edges as text, `left<TAB>right` a line, ids from 0, after comments that tell their number.
///
/// # Errors
/// Where something is at `path` already or the system refuses.
pub fn write_edges(path: &Path, edges: &EdgeList<()>) -> Result<(), Error> {
    let header = format!("# Nodes: {} Edges: {}\n# FromNodeId\tToNodeId\n", edges.num_left, edges.num_edges());
    write_text(path, &header, edges.num_edges(), |text, edge| {
        writeln!(text, "{}\t{}", edges.left[edge], edges.right[edge])
    })
}

#[cfg(test)]
mod tests {
    use megagrid_partition::{DegreeStats, count_degrees, irregularities, offsets_of};

    use super::*;

    #[test]
    fn quarters_are_hit_as_often_as_asked() {
        let settings = RmatSettings { scale: 10, simplify: false, shuffle_ids: false, ..RmatSettings::default() };
        let graph = settings.generate().unwrap();
        assert_eq!(graph.num_edges(), 16 << 10);
        // At every level, not only the first.
        for level in 0..10 {
            let mut quarters = [0_u32; 4];
            for (left, right) in graph.left.iter().zip(&graph.right) {
                quarters[(2 * (left >> level & 1) + (right >> level & 1)) as usize] += 1;
            }
            let found = quarters.map(|count| f64::from(count) / graph.num_edges() as f64);
            for (found, expected) in found.into_iter().zip([0.57, 0.19, 0.19, 0.05]) {
                assert!((found - expected).abs() < 0.025, "level {level}: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn simple_graphs_are_simple_and_skewed() {
        let graph = RmatSettings { scale: 14, ..RmatSettings::default() }.generate().unwrap();
        let stats = DegreeStats::of(&offsets_of(&count_degrees(&graph.right, graph.num_right)));
        // The most frequent column is expected to get a share (a + c)^14 of the edges: 3800 of 262,144 before duplicates.
        assert!(stats.max > 1000 && stats.max < 3900, "{stats:?}");
        assert!(stats.median < 8 && stats.top_percent_share > 0.2, "{stats:?}");
        let shuffled = graph.right.iter().take(1000).filter(|&&id| id > 1 << 13).count();
        assert!(shuffled > 200);
        let again = GroupedEdges::new(graph.clone(), &[Side::Right]);
        assert_eq!(irregularities(&again, Side::Right).unwrap(), Default::default());
    }

    #[test]
    fn any_number_of_threads_makes_the_same_graph() {
        let settings = RmatSettings { scale: 10, ..RmatSettings::default() };
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| settings.generate().unwrap())
        };
        assert_eq!(on(1), on(3));
        assert_ne!(on(1), RmatSettings { seed: 2, ..settings }.generate().unwrap());
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let with = |change: fn(&mut RmatSettings)| {
            let mut settings = RmatSettings::default();
            change(&mut settings);
            settings.generate().unwrap_err().to_string()
        };
        assert_eq!(with(|s| s.scale = 32), "scale 32 is out of range; expected 1 to 31");
        assert_eq!(with(|s| s.a = f64::NAN), "a NaN is out of range; expected a chance, 0 to 1");
        assert_eq!(with(|s| (s.a, s.b) = (0.5, 0.5)), "a + b + c 1.19 is out of range; expected at most 1");
        assert_eq!(with(|s| s.edge_factor = 0), "edge factor 0 is out of range; expected 1 to 1048576");
    }
}
