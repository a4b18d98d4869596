//! Placement: in which process each edge runs, and so which processes use which rows.
//!
//! Every row has a home, the process of its master. Processes lie in a grid of c columns: process p is in row p / c and column
//! p mod c. An edge runs in the row of its left end's home and in the column of its right end's home. So all edges of a left vertex
//! are in c processes and those of a right vertex in P / c, the homes among them. With c = 1 a left vertex has all its edges at home,
//! with c = P a right one; in between both sides are cut. Edges of right vertices of high degree may have another c than the rest: what
//! goes into a hub is then spread over many processes, and other vertices stay whole.

use std::fmt;

use megagrid_stages::Side;
use megagrid_stages::mode::Mode;
use roaring::RoaringBitmap;

use super::outline::{StageInfo, StageKind};
use super::shape::SideShape;
use super::strategy::Strategy;

/// In how many columns processes lie, for the edges of each right vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// What chose them.
    pub strategy: Strategy,
    /// Processes.
    pub processes: usize,
    /// For right vertices of low, and of high degree. Both divide the number of processes.
    pub of: [usize; 2],
    /// The largest low degree.
    pub most: u64,
    /// By right row, whether its degree is high; nothing where none is.
    pub heavy: Box<[bool]>,
    /// Whether edges are in one column and in as many as there are processes at once: in the processes of both their ends.
    pub doubled: bool,
}

impl Columns {
    /// Keeps left vertices with all their edges in one process, unless right ones are every stage's choice.
    pub fn whole(stages: &[StageInfo], processes: usize) -> Self {
        let right_only = |stage: &StageInfo| match stage.kind {
            StageKind::Exchange(left, right) => left == Mode::Read && right != Mode::Read,
            _ => true,
        };
        let count = if stages.iter().all(right_only) { processes } else { 1 };
        let (of, most, heavy) = ([count; 2], u64::MAX, Box::default());
        Self { strategy: Strategy::BiCut, processes, of, most, heavy, doubled: false }
    }

    /// Tells whether every vertex of a side has all its edges in one process.
    pub fn are_whole(&self, side: Side) -> bool {
        self.of == [if side == Side::Left { 1 } else { self.processes }; 2]
    }

    /// Keeps the vertices of those sides whole whose owners run edges, left and right: of both, where there are such stages.
    pub fn follow(&mut self, [left, right]: [bool; 2]) {
        self.of = [if left { 1 } else { self.processes }; 2];
        self.doubled = left && right && self.processes > 1;
    }

    /// Returns, in 1/1024, how much an edge adds to the work of the home of its left and of its right end, by the columns that processes
    /// lie in: nothing where the edge runs in the same process whatever that home is.
    fn pull(&self, columns: usize) -> [u64; 2] {
        let (left, right) = (self.processes / columns - 1, columns - 1);
        [left, right].map(|part| (1024 * part / (left + right).max(1)) as u64)
    }

    /// Returns the work that homes of rows are to share out evenly, left and right: edges as far as they follow them. On a square graph
    /// a row is both. `degrees` are by row.
    pub fn work(&self, degrees: [&dyn Fn(usize) -> u64; 2], rows: [usize; 2], square: bool) -> [Vec<u64>; 2] {
        let pulls = self.of.map(|columns| self.pull(columns));
        let kind = |row: usize| usize::from(self.is_heavy(row));
        let mut edges = [0_u64; 2];
        (0..rows[1]).for_each(|row| edges[kind(row)] += degrees[1](row));
        let all = (edges[0] + edges[1]).max(1);
        let of_left = (u128::from(edges[0]) * u128::from(pulls[0][0]) + u128::from(edges[1]) * u128::from(pulls[1][0]))
            / u128::from(all);
        let left = |row: usize| degrees[0](row) * of_left as u64 / 1024;
        let right = |row: usize| degrees[1](row) * pulls[kind(row)][1] / 1024;
        if square {
            let both: Vec<u64> = (0..rows[1]).map(|row| left(row) + right(row)).collect();
            return [both.clone(), both];
        }
        [(0..rows[0]).map(left).collect(), (0..rows[1]).map(right).collect()]
    }

    fn is_heavy(&self, right: usize) -> bool {
        self.heavy.get(right).is_some_and(|&heavy| heavy)
    }

    fn of(&self, right: usize) -> usize {
        self.of[usize::from(self.is_heavy(right))]
    }
}

/// Where edges run.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    columns: Columns,
    /// Worker threads of a process.
    threads: usize,
    /// By row the process of its master, left and right; nothing where edges do not depend on it.
    homes: [Box<[u16]>; 2],
    /// By shard the processes that use some of its rows, left and right; nothing with one process.
    users: [Box<[RoaringBitmap]>; 2],
    /// On a square graph whose left ends are added to, by right shard the processes that use its rows as left ends.
    left_users: Box<[RoaringBitmap]>,
}

impl Placement {
    /// Places edges by the owners of shards; those of a square graph's vertices own right shards. Of a square graph it is told whether
    /// stages add to left ends.
    pub(super) fn new(columns: Columns, shapes: [&SideShape; 2], threads: usize, square: Option<bool>) -> Self {
        let mut placement =
            Self { columns, threads, homes: Default::default(), users: Default::default(), left_users: Box::default() };
        if placement.processes() > 1 {
            placement.homes = [Side::Left, Side::Right].map(|side| {
                let shape = if square.is_some() { shapes[1] } else { shapes[side as usize] };
                let shards = if placement.follows(side) { shape.num_shards() } else { 0 };
                let homes = |shard| shape.rows(shard).map(move |_| (shape.owners[shard] / threads) as u16);
                (0..shards).flat_map(homes).collect()
            });
            let users = |side: Side, shape: &SideShape| {
                (0..shape.num_shards()).map(|shard| placement.users_of(side, shape.rows(shard))).collect()
            };
            let of_sides = [users(Side::Left, shapes[0]), users(Side::Right, shapes[1])];
            let left_users = if square == Some(true) { users(Side::Left, shapes[1]) } else { Box::default() };
            (placement.users, placement.left_users) = (of_sides, left_users);
        }
        placement
    }

    /// Returns the processes that some rows have edges in.
    fn users_of(&self, side: Side, rows: std::ops::Range<usize>) -> RoaringBitmap {
        let (mut users, mut last) = (RoaringBitmap::new(), None);
        let Columns { processes, of: [light, heavy], heavy: ref rows_of_heavy, doubled, .. } = self.columns;
        if doubled {
            users.insert_range(0..processes as u32);
        }
        for row in rows {
            let home = self.home(side, row);
            let all = match side {
                Side::Left if !rows_of_heavy.is_empty() => [light, heavy],
                Side::Left => [light; 2],
                Side::Right => [self.columns.of(row); 2],
            };
            if last.replace((home, all)) != Some((home, all)) {
                let is_user = |process: &usize| match side {
                    Side::Left => all.iter().any(|c| process / c == home / c),
                    Side::Right => process % all[0] == home % all[0],
                };
                users.extend((0..processes).filter(is_user).map(|process| process as u32));
            }
        }
        users
    }

    /// Returns the number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.columns.processes
    }

    /// Returns the worker threads of a process.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Tells whether edges are in the processes of both their ends.
    #[must_use]
    pub fn is_doubled(&self) -> bool {
        self.columns.doubled
    }

    /// Tells whether where an edge runs depends on its end on this side.
    pub(super) fn follows(&self, side: Side) -> bool {
        self.is_doubled() || !self.columns.are_whole(side.other())
    }

    fn home(&self, side: Side, row: usize) -> usize {
        self.homes[side as usize].get(row).map_or(0, |&home| usize::from(home))
    }

    /// Returns the processes in which the edges between two rows, left and right, are.
    #[must_use]
    pub fn holders(&self, (left, right): (usize, usize)) -> [Option<u16>; 2] {
        let homes = [self.home(Side::Left, left), self.home(Side::Right, right)];
        let process = |process: usize| Some(process as u16);
        if self.is_doubled() {
            return [process(homes[0]), process(homes[1]).filter(|_| homes[0] != homes[1])];
        }
        // Asked for every edge: where one end decides nothing is divided.
        let holder = match self.columns.of(right) {
            1 => homes[0],
            columns if columns == self.processes() => homes[1],
            columns => homes[0] / columns * columns + homes[1] % columns,
        };
        [process(holder), None]
    }

    /// Tells whether the edges between two rows, left and right, are in a process.
    #[must_use]
    pub fn holds(&self, process: usize, rows: (usize, usize)) -> bool {
        self.holders(rows).contains(&Some(process as u16))
    }

    /// Tells whether a process may add to masters in a shard of a side.
    #[must_use]
    pub fn adds_to(&self, process: usize, side: Side, shard: usize) -> bool {
        self.uses(process, side, shard)
            || side == Side::Right && self.left_users.get(shard).is_some_and(|users| users.contains(process as u32))
    }

    /// Tells whether a process may have edges of a shard of a side.
    #[must_use]
    pub fn uses(&self, process: usize, side: Side, shard: usize) -> bool {
        self.users[side as usize].get(shard).is_none_or(|users| users.contains(process as u32))
    }

    /// Tells whether a worker runs the edges of a shard, whose owner is given too, where workers share out the shards of its side: in
    /// each process that has some of them one does.
    pub(super) fn works_on(&self, worker: usize, side: Side, (shard, owner): (usize, usize)) -> bool {
        let (process, threads) = (worker / self.threads, self.threads);
        let here = if self.is_doubled() { owner / threads == process } else { self.uses(process, side, shard) };
        here && owner % threads == worker % threads
    }

    /// Tells whether vertices of a side have edges in several processes in a stage whose workers share out the shards of the side
    /// `home`.
    pub(super) fn cuts(&self, side: Side, home: Side) -> bool {
        self.processes() > 1 && if self.is_doubled() { side != home } else { !self.columns.are_whole(side) }
    }

    /// Returns the edges of the process with most of them, given the degree of a vertex by side and row; `None` with one process.
    /// Edges that are in two processes count twice.
    pub(super) fn most_edges(&self, degree: &dyn Fn(Side, usize) -> u64) -> Option<u64> {
        let (processes, columns) = (self.processes(), &self.columns);
        let mut edges = vec![0; processes];
        if self.is_doubled() || [Side::Left, Side::Right].iter().any(|&side| columns.are_whole(side)) {
            for side in [Side::Left, Side::Right] {
                for (row, &home) in self.homes[side as usize].iter().enumerate() {
                    edges[usize::from(home)] += degree(side, row);
                }
            }
        } else {
            // The processes of a column share its right vertices' edges.
            let mut shares = columns.of.map(|columns| vec![0; columns]);
            for (row, &home) in self.homes[1].iter().enumerate() {
                let kind = usize::from(columns.is_heavy(row));
                shares[kind][usize::from(home) % columns.of[kind]] += degree(Side::Right, row);
            }
            for (process, edges) in edges.iter_mut().enumerate() {
                let share = |(share, columns): (&Vec<u64>, usize)| share[process % columns] * columns as u64;
                *edges = shares.iter().zip(columns.of).map(share).sum::<u64>() / processes as u64;
            }
        }
        edges.into_iter().max().filter(|_| processes > 1)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Columns { strategy, of: [light, heavy], most, heavy: rows, .. } = &self.columns;
        if *strategy == Strategy::BiCut {
            let sides = [Side::Left, Side::Right].into_iter().filter(|&side| self.follows(side));
            let whole = sides.map(|side| side.to_string()).collect::<Vec<_>>().join(" and ");
            return write!(f, "bicut, {whole} vertices whole");
        }
        let columns = |count: usize| if count == 1 { "one column".to_owned() } else { format!("{count} columns") };
        write!(f, "{strategy}, processes in {}", columns(*light))?;
        let hubs = rows.iter().filter(|&&heavy| heavy).count();
        if hubs > 0 {
            write!(f, ", for the edges of {hubs} right vertices with more than {most} in {}", columns(*heavy))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};
    use proptest::strategy::Strategy as _;

    use super::*;

    /// Columns, the homes of rows left and right, and threads.
    fn case() -> impl proptest::strategy::Strategy<Value = (Columns, [Vec<usize>; 2], usize)> {
        let processes = prop::sample::select(vec![2, 3, 4, 6, 8, 12, 16]);
        (processes, 1..4_usize).prop_flat_map(|(processes, threads)| {
            let divisors: Vec<usize> = (1..=processes).filter(|&count| processes % count == 0).collect();
            let columns = (prop::sample::select(divisors.clone()), prop::sample::select(divisors));
            let homes = || prop::collection::vec(0..processes, 1..20);
            let heavy = prop::collection::vec(any::<bool>(), 20);
            (columns, homes(), homes(), heavy, any::<bool>()).prop_map(
                move |((light, heavy), left, right, rows, is_mixed)| {
                    let columns = Columns {
                        strategy: Strategy::Mixed,
                        processes,
                        of: if is_mixed { [processes, heavy] } else { [light; 2] },
                        most: 9,
                        heavy: if is_mixed { rows[..right.len()].into() } else { Box::default() },
                        doubled: false,
                    };
                    (columns, [left, right], threads)
                },
            )
        })
    }

    /// Each row is a shard, of some thread of its home.
    fn shape(homes: &[usize], threads: usize) -> SideShape {
        let owners = homes.iter().enumerate().map(|(row, home)| home * threads + row % threads).collect();
        SideShape { bounds: (0..=homes.len()).collect(), owners }
    }

    proptest! {
        #[test]
        fn an_edge_has_one_holder_among_the_replicas_of_its_ends((columns, homes, threads) in case()) {
            let shapes = [shape(&homes[0], threads), shape(&homes[1], threads)];
            let placement = Placement::new(columns.clone(), [&shapes[0], &shapes[1]], threads, None);
            let processes = columns.processes;
            for (left, right) in (0..homes[0].len()).flat_map(|left| (0..homes[1].len()).map(move |right| (left, right))) {
                let [holder, second] = placement.holders((left, right));
                let holder = usize::from(holder.unwrap());
                prop_assert_eq!(second, None);
                prop_assert_eq!((0..processes).filter(|&one| placement.holds(one, (left, right))).count(), 1);
                prop_assert!(placement.uses(holder, Side::Left, left) && placement.uses(holder, Side::Right, right));
                // One worker of it runs the edge, whichever side's shards workers share out.
                for (side, shard) in [(Side::Left, left), (Side::Right, right)] {
                    let owner = shapes[side as usize].owners[shard];
                    let workers = holder * threads..(holder + 1) * threads;
                    let runs = workers.filter(|&worker| placement.works_on(worker, side, (shard, owner))).count();
                    prop_assert_eq!(runs, 1);
                }
                if columns.are_whole(Side::Left) {
                    prop_assert_eq!(holder, homes[0][left]);
                }
                if columns.are_whole(Side::Right) {
                    prop_assert_eq!(holder, homes[1][right]);
                }
            }
            for (side, rows) in [Side::Left, Side::Right].into_iter().zip(&homes) {
                for (row, &home) in rows.iter().enumerate() {
                    // The master is a replica.
                    let users = (0..processes).filter(|&one| placement.uses(one, side, row)).count();
                    prop_assert!(placement.uses(home, side, row));
                    let least = columns.of.into_iter().min().unwrap();
                    let most = match side {
                        Side::Left => columns.of.into_iter().max().unwrap(),
                        Side::Right => processes / least,
                    };
                    prop_assert!(users <= most, "{users} of {most}");
                    prop_assert!(placement.cuts(side, side) || users == 1);
                }
            }
        }

        /// With all in one column left vertices are whole, with a column for each process right ones: what any program runs under.
        #[test]
        fn one_side_is_whole_or_both_are_double((mut columns, homes, threads) in case(), both in any::<bool>()) {
            let shapes = [shape(&homes[0], threads), shape(&homes[1], threads)];
            columns = Columns { of: [1; 2], heavy: Box::default(), doubled: both, ..columns };
            let placement = Placement::new(columns, [&shapes[0], &shapes[1]], threads, None);
            for (left, right) in (0..homes[0].len()).flat_map(|left| (0..homes[1].len()).map(move |right| (left, right))) {
                let mut holders: Vec<usize> =
                    placement.holders((left, right)).into_iter().flatten().map(usize::from).collect();
                let mut expected = if both { vec![homes[0][left], homes[1][right]] } else { vec![homes[0][left]] };
                [&mut holders, &mut expected].into_iter().for_each(|all| {
                    all.sort_unstable();
                    all.dedup();
                });
                prop_assert_eq!(holders, expected);
            }
        }
    }
}
