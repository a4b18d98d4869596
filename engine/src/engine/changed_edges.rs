//! The edges of an engine, without those that go and with those that come: what its next grid is made of.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use bytemuck::Zeroable;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Holders, Side, offsets_of};
use megagrid_stages::{Item, Program};

use crate::Error;
use crate::grid::{Change, Counts, Grid, Listing, count, count_items, find};
use crate::plan::Plan;
use crate::run::{Peers, Run, all_gather, put, take};

/// Edges that come, as far as a process has them.
pub(super) struct More<'m, P: Program> {
    /// Where the edges of each vertex begin among those of all processes, left and right.
    pub offsets: [&'m [u64]; 2],
    /// Items of the data of all of them.
    pub items: u64,
    /// Brings them to those who hold them, and appends those that this process can then visit.
    pub bring: &'m Bring<'m, P>,
}

type Bring<'m, P> = dyn Fn(Holders<'_>, &mut Listing<P>) -> io::Result<()> + Sync + 'm;

/// What becomes of a listing when it is grouped: something for each edge that tells what it carries.
type Mark<P, E> = fn(&mut Listing<P>) -> Vec<E>;

/// What an edge carries, where that is one item.
#[derive(Clone, Copy)]
pub(super) struct One<I>(pub I);

impl<I: Item> Default for One<I> {
    fn default() -> Self {
        Self(I::zeroed())
    }
}

/// Edges that go.
#[derive(Default)]
pub(super) struct Gone {
    /// Their ends by id, right ones in the upper halves, ascending, and how many edges join them.
    ends: Vec<u64>,
    counts: Vec<Counts>,
}

impl Gone {
    /// Finds the edges between such ends, for which this process answers.
    pub fn find<P: Program>(grid: &Grid<P>, plan: &Plan, ends: Vec<u64>) -> Result<Self, Error> {
        let counts = find(grid, plan, &ends);
        match counts.iter().position(|counts| counts.edges == 0) {
            Some(at) => Err(Error::NoEdge { left: ends[at] as u32, right: (ends[at] >> 32) as u32 }),
            None => Ok(Self { ends, counts }),
        }
    }

    /// Returns edges without those that go.
    fn without<P: Program>(&self, listing: Listing<P>) -> Listing<P> {
        let Some(last) = self.ends.last() else { return listing };
        // Few vertices lose an edge: others' edges are not looked up.
        let mut loses = vec![false; (last >> 32) as usize + 1];
        self.ends.iter().for_each(|&ends| loses[(ends >> 32) as usize] = true);
        let (mut left, mut begin) = (Listing::default(), 0);
        for (edge, (&from, &to)) in listing.left.iter().zip(&listing.right).enumerate() {
            let loses = loses.get(to as usize).is_some_and(|&loses| loses);
            if loses && self.ends.binary_search(&(u64::from(to) << 32 | u64::from(from))).is_ok() {
                left.extend(&listing, begin..edge);
                begin = edge + 1;
            }
        }
        left.extend(&listing, begin..listing.len());
        left
    }
}

/// The edges of a run without those that go, and those that come, together. In a run of several processes each has some of either until
/// they are distributed. They are listed and grouped when they are asked for.
pub(super) struct Together<'t, P: Program, E> {
    run: &'t Run<P>,
    offsets: [Vec<u64>; 2],
    /// Items of the data of all edges.
    items: u64,
    more: Option<More<'t, P>>,
    gone: &'t Gone,
    mark: Mark<P, E>,
    /// Those that come, in a run of one process.
    come: Listing<P>,
    held: OnceLock<(GroupedEdges<E>, Listing<P>)>,
}

impl<'t, P: Program, E: Copy + Default + Send + Sync> Together<'t, P, E> {
    /// Takes the edges of a run, where those of each vertex begin if that is known, those that come and those that go; there are
    /// `vertices` left and right ones then. All processes call it.
    pub fn new(
        (run, known): (&'t Run<P>, Option<&[Vec<u64>; 2]>),
        vertices: [usize; 2],
        (more, gone): (Option<More<'t, P>>, &'t Gone),
        mark: Mark<P, E>,
    ) -> Result<Self, Error> {
        let peers = run.peers.as_deref();
        let before = match known {
            Some(offsets) => offsets.each_ref().map(|offsets| degrees_of(offsets)),
            None => {
                let [left, right] = count(&run.grid, &run.plan);
                [sum(peers, left)?, sum(peers, right)?]
            }
        };
        // A process knows what goes of the edges that it answers for.
        let (ends, edges) = gone.ends.iter().zip(&gone.counts).map(|(&ends, counts)| (ends, counts.edges)).unzip();
        let (ends, edges) = (all_gather::<u64>(peers, ends)?, all_gather::<u32>(peers, edges)?);
        let mut side = 0;
        let offsets = before.map(|mut degrees| {
            degrees.resize(vertices[side], 0);
            for (ends, edges) in ends.iter().zip(&edges) {
                degrees[[*ends as u32, (*ends >> 32) as u32][side] as usize] -= edges;
            }
            if let Some(more) = &more {
                degrees.iter_mut().zip(degrees_of(more.offsets[side])).for_each(|(degree, more)| *degree += more);
            }
            side += 1;
            offsets_of(&degrees)
        });
        let items = count_items(&run.grid, &run.plan) - gone.counts.iter().map(|counts| counts.items).sum::<u64>();
        let items = all_gather(peers, vec![items])?.iter().sum::<u64>();
        let items = items + more.as_ref().map_or(0, |more| more.items);
        let (come, held) = (Listing::default(), OnceLock::new());
        let mut together = Self { run, offsets, items, more, gone, mark, come, held };
        if let (true, Some(more)) = (together.is_alone(), &together.more) {
            (more.bring)(&|_, _| [Some(0), None], &mut together.come)?;
        }
        Ok(together)
    }

    /// Returns the number of items of the data of all edges.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns the edges that are here, and what they carry.
    pub fn listing(&self) -> Option<&Listing<P>> {
        self.held().ok().map(|(_, listing)| listing)
    }

    /// Returns how the run's edges become these, where all are here.
    pub fn change(&self) -> Option<Change<'_, P>> {
        let Run { grid, plan, .. } = self.run;
        self.is_alone().then_some(Change { grid, plan, come: &self.come, gone: &self.gone.ends })
    }

    fn is_alone(&self) -> bool {
        self.run.plan.processes.count == 1
    }

    /// Returns the edges that are here, grouped.
    fn held(&self) -> io::Result<&(GroupedEdges<E>, Listing<P>)> {
        if self.is_alone() {
            return Ok(self.held.get_or_init(|| {
                let mut listing = self.own();
                listing.extend(&self.come, 0..self.come.len());
                self.group(listing)
            }));
        }
        self.held.get().ok_or_else(|| io::Error::other("the edges are with the processes that had them"))
    }

    /// Lists the run's edges that stay.
    fn own(&self) -> Listing<P> {
        self.gone.without(Listing::of(&self.run.grid, &self.run.plan, self.run.seed))
    }

    fn group(&self, mut listing: Listing<P>) -> (GroupedEdges<E>, Listing<P>) {
        let data = (self.mark)(&mut listing);
        let (left, right) = (std::mem::take(&mut listing.left), std::mem::take(&mut listing.right));
        let [num_left, num_right] = self.offsets.each_ref().map(|offsets| offsets.len() - 1);
        let list = EdgeList { num_left, num_right, square: self.is_square(), left, right, data };
        (GroupedEdges::new(list, &[Side::Right]), listing)
    }
}

impl<P: Program, E: Copy + Default + Send + Sync> EdgeSource<E> for Together<'_, P, E> {
    fn is_square(&self) -> bool {
        self.run.plan.square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        &self.offsets[side as usize]
    }

    fn held_offsets(&self) -> &[u64] {
        self.held().map_or(&[0], |(edges, _)| edges.offsets(Side::Right))
    }

    fn distribute(&self, holders: Holders<'_>) -> io::Result<()> {
        let Some(peers) = self.run.peers.as_deref().filter(|_| !self.is_alone()) else { return Ok(()) };
        let mut listing = exchange(peers, &self.own(), holders).map_err(io::Error::other)?;
        if let Some(more) = &self.more {
            (more.bring)(holders, &mut listing)?;
        }
        let _ = self.held.set(self.group(listing));
        Ok(())
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.held().map_or(Vec::new(), |(edges, _)| edges.windows())
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[E])) -> io::Result<()> {
        self.held()?.0.visit_rows(side, rows, visit)
    }
}

fn degrees_of(offsets: &[u64]) -> Vec<u32> {
    offsets.windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect()
}

/// Adds up what processes have, each as many numbers.
fn sum(peers: Option<&dyn Peers>, mine: Vec<u32>) -> Result<Vec<u32>, Error> {
    let mut all = vec![0; mine.len()];
    for part in all_gather(peers, mine)?.chunks(all.len().max(1)) {
        all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
    }
    Ok(all)
}

/// Edges that go to other processes at a time.
const WINDOW: usize = 1 << 20;

/// Sends edges to their holders; returns what came. Edges with the same ends keep their order.
fn exchange<P: Program>(peers: &dyn Peers, own: &Listing<P>, holders: Holders<'_>) -> Result<Listing<P>, Error> {
    let windows = own.len().div_ceil(WINDOW) as u64;
    let most = all_gather(Some(peers), vec![windows])?.into_iter().max().unwrap_or(0) as usize;
    let mut held = Listing::default();
    for window in 0..most {
        let mut parts: Vec<Listing<P>> = (0..peers.processes()).map(|_| Listing::default()).collect();
        for edge in (window * WINDOW).min(own.len())..((window + 1) * WINDOW).min(own.len()) {
            for process in holders(own.left[edge], own.right[edge]).into_iter().flatten() {
                parts[usize::from(process)].extend(own, edge..edge + 1);
            }
        }
        for (process, bytes) in peers.exchange(parts.iter().map(pack).collect())?.iter().enumerate() {
            let part = unpack(bytes).ok_or(Error::Message(process))?;
            held.extend(&part, 0..part.len());
        }
    }
    Ok(held)
}

fn pack<P: Program>(part: &Listing<P>) -> Vec<u8> {
    let mut out = Vec::new();
    let ends: Vec<u64> = part.ends.iter().map(|&end| end as u64).collect();
    [&part.left, &part.right].into_iter().for_each(|ids| put(&mut out, bytemuck::cast_slice(ids)));
    put(&mut out, bytemuck::cast_slice(&ends));
    // Items without bytes cannot be seen as bytes.
    let items = if size_of_val(&part.items[..]) == 0 { &[] } else { bytemuck::cast_slice(&part.items) };
    put(&mut out, items);
    out
}

fn unpack<P: Program>(mut bytes: &[u8]) -> Option<Listing<P>> {
    let mut next = || take(&mut bytes).ok();
    let [left, right] = [next()?, next()?].map(bytemuck::pod_collect_to_vec::<u8, u32>);
    let ends: Vec<usize> = bytemuck::pod_collect_to_vec::<u8, u64>(next()?).iter().map(|&end| end as usize).collect();
    let (bytes, mut items) = (next()?, Vec::new());
    items.resize(ends.last().copied().unwrap_or(left.len()), Zeroable::zeroed());
    if !bytes.is_empty() {
        items = bytemuck::pod_collect_to_vec(bytes);
    }
    let listing = Listing { left, right, items, ends };
    let fits = listing.right.len() == listing.len() && listing.items_of(0..listing.len()).end == listing.items.len();
    fits.then_some(listing)
}
