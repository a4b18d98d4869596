//! From a strategy and degrees to columns of processes: what a cut would cost, and which costs least.

use std::ops::Range;

use megagrid_stages::Side;
use megagrid_stages::mode::Mode;

use super::outline::{StageInfo, StageKind};
use super::placement::Columns;
use super::strategy::Strategy;
use crate::Error;

/// Finds the stage that needs all edges of a vertex in one process, or the edges' data in two: it changes an end in place, or visits
/// vertices with all their edges.
pub fn needs_whole_vertices(stages: &[StageInfo]) -> Option<&StageInfo> {
    stages.iter().find(|stage| match stage.kind {
        StageKind::Exchange(left, right) => left == Mode::Update || right == Mode::Update,
        StageKind::Incident(_) => true,
        _ => false,
    })
}

/// What the choice depends on.
pub struct Choice<'c> {
    pub stages: &'c [StageInfo],
    pub processes: usize,
    /// Worker threads of each process.
    pub threads: usize,
    pub rows: [usize; 2],
    pub degrees: [&'c dyn Fn(usize) -> u64; 2],
    /// The right rows of each batch.
    pub batches: Vec<Range<usize>>,
    /// How often an iteration goes over all batches: batches of left vertices, and of random edges.
    pub rounds: usize,
    /// Bytes of a vertex's synced data and of its delta, left and right.
    pub bytes: [[u64; 2]; 2],
    pub square: bool,
}

/// A cut: columns for right vertices of low and of high degree, and the largest low degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnCut {
    of: [usize; 2],
    most: u64,
}

/// Seconds of a step that all processes wait for (measured: an empty clock).
const STEP_SECONDS: f64 = 1e-4;
/// Bytes a second that a process sends: 10 Gbit/s.
const BYTES_PER_SECOND: f64 = 1.25e9;
/// Seconds of an edge (measured on PageRank).
const EDGE_SECONDS: f64 = 5e-10;

/// What a cut would cost in an iteration, as degrees tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Steps that all processes wait for.
    pub steps: usize,
    /// Bytes that all processes send.
    pub bytes: f64,
    /// Edges of the busiest worker, batch by batch.
    pub edges: f64,
}

impl Price {
    fn seconds(self, processes: usize) -> f64 {
        self.steps as f64 * STEP_SECONDS
            + self.bytes / (processes as f64 * BYTES_PER_SECOND)
            + self.edges * EDGE_SECONDS
    }
}

impl Choice<'_> {
    /// Returns the columns of a strategy; `None`: a side's vertices stay whole, as the stages want it.
    ///
    /// # Errors
    /// A stage that needs whole vertices.
    pub fn columns(&self, strategy: Strategy) -> Result<Option<Columns>, Error> {
        if self.processes == 1 || strategy == Strategy::BiCut {
            return Ok(None);
        }
        if let Some(stage) = needs_whole_vertices(self.stages) {
            return match strategy {
                Strategy::Auto => Ok(None),
                _ => Err(Error::Strategy { stage: stage.name.clone(), strategy: strategy.name() }),
            };
        }
        let (graph, bytes) = (Graph::of(self), |price: Price| price.bytes);
        let cut = match strategy {
            Strategy::BiCut => return Ok(None),
            Strategy::Grid => ColumnCut { of: [self.near_root(); 2], most: u64::MAX },
            Strategy::Hybrid => self.best(&graph, graph.thresholds().map(|most| self.above(most, 1)), bytes),
            Strategy::Mixed => self.best(&graph, self.mixed(&graph), bytes),
            Strategy::Auto => {
                let uniform = self.divisors().map(|count| ColumnCut { of: [count; 2], most: u64::MAX });
                let cut = self.best(&graph, uniform.chain(self.mixed(&graph)), |price| price.seconds(self.processes));
                // Where stages and degrees agree nothing changes.
                let whole = Columns::whole(self.stages, self.processes).of;
                if cut.of == whole { return Ok(None) } else { cut }
            }
        };
        let is_heavy = |row| (self.degrees[1])(row) > cut.most;
        let heavy = if cut.most == u64::MAX { Box::default() } else { (0..self.rows[1]).map(is_heavy).collect() };
        Ok(Some(Columns { strategy, processes: self.processes, of: cut.of, most: cut.most, heavy, doubled: false }))
    }

    fn divisors(&self) -> impl Iterator<Item = usize> + use<> {
        let processes = self.processes;
        (1..=processes).filter(move |count| processes.is_multiple_of(*count))
    }

    /// Returns the number of columns near the root of that of processes; the side with more vertices gets the fewer replicas.
    fn near_root(&self) -> usize {
        let short = self.divisors().filter(|count| count * count <= self.processes).max().unwrap_or(1);
        if self.rows[0] >= self.rows[1] { short } else { self.processes / short }
    }

    fn above(&self, most: u64, columns: usize) -> ColumnCut {
        ColumnCut { of: [self.processes, columns], most }
    }

    fn mixed<'c>(&'c self, graph: &'c Graph) -> impl Iterator<Item = ColumnCut> + 'c {
        let below = move || self.divisors().filter(|&count| count < self.processes);
        graph.thresholds().flat_map(move |most| below().map(move |columns| self.above(most, columns)))
    }

    /// Returns the cut that is least by some measure of its price.
    fn best(&self, graph: &Graph, cuts: impl Iterator<Item = ColumnCut>, measure: impl Fn(Price) -> f64) -> ColumnCut {
        let priced = cuts.map(|cut| (measure(self.price(graph, cut)), cut));
        let best = priced.min_by(|(a, _), (b, _)| a.total_cmp(b));
        best.map(|(_, cut)| cut).unwrap_or(ColumnCut { of: [self.processes; 2], most: u64::MAX })
    }

    /// Tells whether an Exchange adds to a side, and whether others see its rows change.
    fn moves(&self, side: Side) -> [bool; 2] {
        let any = |of: &dyn Fn(StageKind) -> bool| self.stages.iter().any(|stage| of(stage.kind));
        let adds = any(&|kind| kind.mode(side) == Some(Mode::Add));
        [any(&|kind| kind == StageKind::Apply(side) || self.square && matches!(kind, StageKind::Apply(_))), adds]
    }

    /// Returns what a cut would cost.
    fn price(&self, graph: &Graph, ColumnCut { of: [light, heavy], most }: ColumnCut) -> Price {
        let processes = self.processes as f64;
        let share = graph.share_above(most);
        let (small, large) = (light.min(heavy) as f64, light.max(heavy) as f64);
        let of_large = if light > heavy { 1.0 - share } else { share };
        let seen = |rate: f64| 1.0 - (-rate).exp();
        // Each process of the smaller group has a part of both kinds of edges, the others of the larger one's only.
        let left = |degree: f64| {
            let beyond = degree * of_large / large;
            (small - 1.0) * seen(beyond + degree * (1.0 - of_large) / small) + (large - small) * seen(beyond)
        };
        let right = |degree: f64| {
            let columns = if degree > most as f64 { heavy } else { light } as f64;
            (processes / columns - 1.0) * seen(degree * columns / processes)
        };
        let mirrors = [graph.sum(Side::Left, &left), graph.sum(Side::Right, &right)];
        let bytes = [Side::Left, Side::Right].map(|side| {
            let moved = self.moves(side).into_iter().zip(self.bytes[side as usize]);
            moved.filter(|(moves, _)| *moves).map(|(_, bytes)| bytes as f64).sum::<f64>() * mirrors[side as usize]
        });
        let [_, adds_left] = self.moves(Side::Left);
        let [_, adds_right] = self.moves(Side::Right);
        let mut price = Price { bytes: bytes.iter().sum::<f64>() * self.rounds as f64, ..Price::default() };
        for batch in &graph.batches {
            let has_heavy = batch.most > most;
            let cuts_right = if has_heavy { light.min(heavy) } else { light } < self.processes;
            let delivers = adds_right && cuts_right || adds_left && large > 1.0;
            price.steps += self.rounds * (1 + usize::from(delivers));
            // Who runs a hub's edges keeps the others waiting, unless threads share them.
            let threads = if cuts_right { self.threads as f64 } else { 1.0 };
            let hub = batch.most as f64 * if has_heavy { heavy } else { light } as f64 / processes / threads;
            let low = if has_heavy { batch.most_at_most(most) as f64 * light as f64 / processes } else { 0.0 };
            let mean = batch.edges as f64 / (processes * self.threads as f64);
            price.edges += mean.max(hub).max(low);
        }
        price
    }
}

/// Degrees of a graph, counted.
struct Graph {
    /// Degrees of each side with how many vertices have them, ascending.
    counts: [Vec<(u64, u64)>; 2],
    batches: Vec<Batch>,
}

/// The right vertices of a batch.
struct Batch {
    edges: u64,
    most: u64,
    /// The largest degree that has this many bits.
    by_bits: [u64; 65],
}

impl Batch {
    /// Returns the largest degree that is not above a power of two less 1.
    fn most_at_most(&self, most: u64) -> u64 {
        let bits = (u64::BITS - most.leading_zeros()) as usize;
        self.by_bits[..=bits].iter().copied().max().unwrap_or(0)
    }
}

impl Graph {
    fn of(choice: &Choice<'_>) -> Self {
        let counts = [0, 1].map(|side| {
            let mut degrees: Vec<u64> = (0..choice.rows[side]).map(choice.degrees[side]).collect();
            degrees.sort_unstable();
            degrees.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
        });
        let batch = |rows: &Range<usize>| {
            let mut batch = Batch { edges: 0, most: 0, by_bits: [0; 65] };
            for degree in rows.clone().map(choice.degrees[1]) {
                let of_bits = &mut batch.by_bits[(u64::BITS - degree.leading_zeros()) as usize];
                *of_bits = degree.max(*of_bits);
                batch.edges += degree;
                batch.most = degree.max(batch.most);
            }
            batch
        };
        Self { counts, batches: choice.batches.iter().map(batch).collect() }
    }

    /// Lists the degrees above which a right vertex can count as a hub: all ones in binary, below the largest.
    fn thresholds(&self) -> impl Iterator<Item = u64> + use<> {
        let largest = self.counts[1].last().map_or(0, |(degree, _)| *degree);
        (0..63).map(|bits| (1_u64 << bits) - 1).take_while(move |&most| most < largest)
    }

    /// Returns the share of edges whose right end has a degree above one.
    fn share_above(&self, most: u64) -> f64 {
        let edges = |counts: &[(u64, u64)]| counts.iter().map(|(degree, count)| degree * count).sum::<u64>() as f64;
        let all = &self.counts[1];
        let above = &all[all.partition_point(|(degree, _)| *degree <= most)..];
        edges(above) / edges(all).max(1.0)
    }

    /// Sums a function of degrees over the vertices of a side.
    fn sum(&self, side: Side, of: &dyn Fn(f64) -> f64) -> f64 {
        self.counts[side as usize].iter().map(|(degree, count)| *count as f64 * of(*degree as f64)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: StageKind = StageKind::Exchange(Mode::Read, Mode::Add);

    /// Chooses for a square graph with these degrees, in one batch.
    fn columns(
        degrees: [&dyn Fn(usize) -> u64; 2],
        rows: usize,
        processes: usize,
        strategy: Strategy,
    ) -> Option<Columns> {
        let info = |kind| StageInfo { grouped: true, ..StageInfo::new("Follow", kind) };
        let stages = [info(LINKS), info(StageKind::Apply(Side::Right))];
        let choice = Choice {
            stages: &stages,
            processes,
            threads: 1,
            rows: [rows; 2],
            degrees,
            batches: std::iter::once(0..rows).collect(),
            rounds: 1,
            bytes: [[4, 4]; 2],
            square: true,
        };
        choice.columns(strategy).unwrap()
    }

    #[test]
    fn links_of_a_large_hub_are_spread_and_those_of_a_small_one_are_not_worth_a_step() {
        for leaves in [1_000_000_u64, 10_000] {
            let (out, into) = (|row| u64::from(row > 0), |row| if row == 0 { leaves } else { 0 });
            let rows = leaves as usize + 1;
            let found = columns([&out, &into], rows, 16, Strategy::Auto).map(|columns| columns.of);
            assert_eq!(found, (leaves == 1_000_000).then_some([1; 2]));
            let hybrid = columns([&out, &into], rows, 16, Strategy::Hybrid).unwrap();
            assert_eq!((hybrid.of, hybrid.heavy.iter().filter(|&&heavy| heavy).count()), ([16, 1], 1));
        }
    }

    #[test]
    fn vertices_of_an_even_graph_stay_whole() {
        let eight = |_: usize| 8;
        assert_eq!(columns([&eight, &eight], 10_000, 16, Strategy::Auto), None);
        let grid = |processes| columns([&eight, &eight], 10_000, processes, Strategy::Grid).map(|columns| columns.of);
        assert_eq!([16, 12, 7].map(grid), [Some([4; 2]), Some([3; 2]), Some([1; 2])]);
        assert_eq!(columns([&eight, &eight], 10_000, 1, Strategy::Grid), None);
    }

    #[test]
    fn cuts_that_are_foreseen_to_copy_less_do() {
        // Degrees as of the web: few vertices have most links.
        let degree = |row: usize| (200_000 / (row as u64 + 1)).max(4);
        let of = |strategy| columns([&degree, &degree], 50_000, 64, strategy).unwrap();
        let (mixed, hybrid) = (of(Strategy::Mixed), of(Strategy::Hybrid));
        assert!(mixed.of[0] == 64 && mixed.of[1] < 64 && mixed.most <= degree(0), "{mixed:?}");
        assert!(mixed.heavy.iter().any(|&heavy| heavy) && hybrid.of == [64, 1]);
    }
}
