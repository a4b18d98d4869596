//! The edges of an engine, without those that go and with those that come, as the source of its next grid.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use bytemuck::Zeroable;
use megagrid_partition::parallel::lock;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Holders, Side, count_degrees, offsets_of};
use megagrid_stages::{Item, Program};

use crate::Error;
use crate::grid::Listing;
use crate::run::{Peers, all_gather, put, take};

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

/// The edges of an engine and those that come, together. In a run of several processes each has some of either until they are
/// distributed.
pub(super) struct Together<'t, P: Program, E> {
    is_square: bool,
    offsets: [Vec<u64>; 2],
    /// Items of the data of all edges.
    items: u64,
    peers: Option<&'t dyn Peers>,
    own: Mutex<Listing<P>>,
    more: Option<More<'t, P>>,
    mark: Mark<P, E>,
    held: OnceLock<(GroupedEdges<E>, Listing<P>)>,
}

impl<'t, P: Program, E: Copy + Default + Send + Sync> Together<'t, P, E> {
    /// Takes the edges of an engine, of so many vertices left and right, and those that come. All processes call it.
    pub fn new(
        (own, is_square, vertices): (Listing<P>, bool, [usize; 2]),
        more: Option<More<'t, P>>,
        peers: Option<&'t dyn Peers>,
        mark: Mark<P, E>,
    ) -> Result<Self, Error> {
        let offsets = |side: usize| {
            let ends = if side == 0 { &own.left } else { &own.right };
            let mut degrees = vec![0; vertices[side]];
            for part in all_gather(peers, count_degrees(ends, vertices[side]))?.chunks(vertices[side].max(1)) {
                degrees.iter_mut().zip(part).for_each(|(degree, more)| *degree += more);
            }
            let more = more.iter().flat_map(|more| more.offsets[side].windows(2));
            degrees.iter_mut().zip(more).for_each(|(degree, ends)| *degree += (ends[1] - ends[0]) as u32);
            Ok::<_, Error>(offsets_of(&degrees))
        };
        let offsets = [offsets(0)?, offsets(1)?];
        let items = all_gather(peers, vec![own.items.len() as u64])?.iter().sum::<u64>();
        let items = items + more.as_ref().map_or(0, |more| more.items);
        let together =
            Self { is_square, offsets, items, peers, own: Mutex::new(own), more, mark, held: OnceLock::new() };
        if peers.is_none_or(|peers| peers.processes() == 1) {
            together.distribute(&|_, _| [Some(0), None])?;
        }
        Ok(together)
    }

    /// Returns the number of items of the data of all edges.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns the edges that are here, and what they carry.
    pub fn listing(&self) -> Option<&Listing<P>> {
        self.held.get().map(|(_, listing)| listing)
    }

    fn held(&self) -> io::Result<&GroupedEdges<E>> {
        let early = || io::Error::other("the edges are with the processes that had them");
        self.held.get().map(|(edges, _)| edges).ok_or_else(early)
    }
}

impl<P: Program, E: Copy + Default + Send + Sync> EdgeSource<E> for Together<'_, P, E> {
    fn is_square(&self) -> bool {
        self.is_square
    }

    fn offsets(&self, side: Side) -> &[u64] {
        &self.offsets[side as usize]
    }

    fn held_offsets(&self) -> &[u64] {
        self.held.get().map_or(&[0], |(edges, _)| edges.offsets(Side::Right))
    }

    fn distribute(&self, holders: Holders<'_>) -> io::Result<()> {
        let own = std::mem::take(&mut *lock(&self.own));
        let mut listing = match self.peers {
            Some(peers) => exchange(peers, &own, holders).map_err(io::Error::other)?,
            None => own,
        };
        if let Some(more) = &self.more {
            (more.bring)(holders, &mut listing)?;
        }
        let data = (self.mark)(&mut listing);
        let (left, right) = (std::mem::take(&mut listing.left), std::mem::take(&mut listing.right));
        let [num_left, num_right] = self.offsets.each_ref().map(|offsets| offsets.len() - 1);
        let list = EdgeList { num_left, num_right, square: self.is_square, left, right, data };
        let _ = self.held.set((GroupedEdges::new(list, &[Side::Right]), listing));
        Ok(())
    }

    fn windows(&self) -> Vec<Range<usize>> {
        self.held.get().map_or(Vec::new(), |(edges, _)| edges.windows())
    }

    fn visit_rows(&self, side: Side, rows: Range<usize>, visit: &mut dyn FnMut(&[u32], &[E])) -> io::Result<()> {
        self.held()?.visit_rows(side, rows, visit)
    }
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
