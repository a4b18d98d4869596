//! From a program and its edges to a plan, before any memory is taken.

use std::any::TypeId;
use std::sync::Arc;

use megagrid_partition::{EdgeSource, Side};
use megagrid_stages::mode::Mode;
use megagrid_stages::{BatchOrder, EdgeItem, Program, Sequence, Stages, Store, Vertex, row_width};

use super::estimate;
use super::settings::Settings;
use crate::Error;
use crate::grid::{self, RowOrder, Source};
use crate::plan::{self, Outline, Plan, Strategy};
use crate::stages::Collected;
use crate::sync::{self, Mirrors};

/// Makes the plan of a program on a graph, without its memory. With several processes it reads the edges, to predict what
/// crosses between them, and asks no other process.
///
/// # Errors
/// As [`Engine::new`](super::Engine::new), but for memory.
pub fn plan<'s, P: Program, S: Stages<P>, T: 's>(
    source: impl Into<Source<'s, T, P>>,
    sequence: &Sequence<P, S>,
    settings: &Settings,
) -> Result<Plan, Error> {
    predict(&source.into(), &Collected::of(sequence)?, settings).map(|(plan, _)| plan)
}

/// Makes a plan, and with several processes the mirrors of all.
pub(super) fn predict<P: Program, T>(
    source: &Source<'_, T, P>,
    program: &Collected<P>,
    settings: &Settings,
) -> Result<(Plan, Option<Arc<Mirrors>>), Error> {
    let (mut plan, orders) = make_plan(source, program, settings)?;
    if !plan.is_distributed() {
        return Ok((plan, None));
    }
    let mirrors = Mirrors::predict(&plan, source.edges, &orders)?;
    plan.traffic = sync::predict::<P>(&plan, &mirrors, settings.dims);
    plan.quality = mirrors.quality(&plan);
    Ok((plan, Some(Arc::new(mirrors))))
}

pub(super) fn make_plan<P: Program, T>(
    input: &Source<'_, T, P>,
    program: &Collected<P>,
    settings: &Settings,
) -> Result<(Plan, [RowOrder; 2]), Error> {
    check_square::<P>(input.edges.is_square())?;
    let width = row_width(settings.dims);
    let items = estimate::edge_items(input)?;
    let [left_capacities, right_capacities] = input.capacities;
    let bytes = Bytes {
        rows: [
            grid::touched_bytes::<P::Left>(width, left_capacities),
            grid::touched_bytes::<P::Right>(width, right_capacities),
        ],
        crossing: [crossing_bytes::<P::Left>(width), crossing_bytes::<P::Right>(width)],
        edges: items * size_of::<EdgeItem<P>>() as u64,
        edges_in_slices: P::Edge::SHAPE.is_slice(),
    };
    let (mut plan, orders) = plan_of_bytes(input.edges, (&program.infos, &program.body), &bytes, settings)?;
    plan.memory_bytes = estimate::estimate(&plan, input, &orders, settings.dims, items);
    Ok((plan, orders))
}

/// What a plan needs to know of a program's data.
struct Bytes {
    /// Of an average row that stages touch, left and right.
    rows: [usize; 2],
    /// See [`crossing_bytes`].
    crossing: [[u64; 2]; 2],
    /// Of all edges' data.
    edges: u64,
    edges_in_slices: bool,
}

/// Makes a plan. Of no program's type, so that it is compiled once for each type of values of a source.
fn plan_of_bytes<T>(
    source: &dyn EdgeSource<T>,
    (infos, body): (&[plan::StageInfo], &[Outline]),
    bytes: &Bytes,
    settings: &Settings,
) -> Result<(Plan, [RowOrder; 2]), Error> {
    settings.check()?;
    let orders = row_orders(source, (infos, body), settings.seed);
    let degree = |side: Side| {
        let (offsets, order) = (source.offsets(side), &orders[side as usize]);
        Box::new(move |row: usize| {
            let id = order.id(row);
            offsets[id + 1] - offsets[id]
        }) as Box<dyn Fn(usize) -> u64 + '_>
    };
    let processes = settings.peers.as_ref().map_or_else(plan::Processes::default, |peers| plan::Processes {
        this: peers.process(),
        count: peers.processes(),
    });
    let is_cut = processes.count > 1;
    let sizes = plan::Input {
        degrees: [degree(Side::Left), degree(Side::Right)],
        rows: [source.num_vertices(Side::Left), source.num_vertices(Side::Right)],
        edges: source.num_edges() as u64,
        row_bytes: bytes.rows,
        edge_bytes: bytes.edges,
        square: source.is_square(),
        workers: settings.workers * processes.count,
        processes,
        strategy: if is_cut { strategy(settings, bytes.edges_in_slices, infos)? } else { Strategy::BiCut },
        crossing_bytes: bytes.crossing,
        slack: settings.slack,
        look_every: settings.look_every,
        passes_per_clock: settings.passes_per_clock,
        topology: &settings.topology,
        grid: settings.grid,
        early: settings.early,
    };
    let plan = Plan::make(infos.to_vec(), body, &sizes)?;
    drop(sizes);
    Ok((plan, orders))
}

/// Returns the strategy, where edges carry what their blocks are stored by: bicut, which keeps blocks whole.
fn strategy(settings: &Settings, in_slices: bool, stages: &[plan::StageInfo]) -> Result<Strategy, Error> {
    match settings.strategy {
        Strategy::Auto if in_slices || settings.slack != Some(0) => Ok(Strategy::BiCut),
        Strategy::BiCut | Strategy::Auto => Ok(settings.strategy),
        // Where a stage does, the plan says so.
        strategy if in_slices && plan::needs_whole_vertices(stages).is_none() => {
            Err(Error::Strategy { stage: "data of edges in slices".into(), strategy: strategy.name() })
        }
        strategy => Ok(strategy),
    }
}

/// Bytes of an average vertex's synced data and of its delta.
fn crossing_bytes<V: Vertex>(width: usize) -> [u64; 2] {
    let [sync, _, _, delta] = grid::role_bytes::<V>(1, width, 1);
    [sync, delta]
}

/// Tells whether both sides of a program are the same vertices.
pub(super) fn is_square<P: Program>() -> bool {
    TypeId::of::<P::Left>() == TypeId::of::<P::Right>()
}

pub(super) fn check_square<P: Program>(found: bool) -> Result<(), Error> {
    match (is_square::<P>(), found) {
        (true, false) => Err(Error::Squareness {
            expected: "square",
            found: "bipartite",
            advice: "read the input as a graph with one id space (Edges::square), or give the program two vertex types",
        }),
        (false, true) => Err(Error::Squareness {
            expected: "bipartite",
            found: "square",
            advice: "read the input as ratings, samples or documents (Edges::bipartite), or give the program one vertex type",
        }),
        _ => Ok(()),
    }
}

pub(super) fn row_orders<T>(
    source: &dyn EdgeSource<T>,
    (infos, body): (&[plan::StageInfo], &[Outline]),
    seed: u64,
) -> [RowOrder; 2] {
    [Side::Left, Side::Right].map(|side| row_order(source, infos, body, side, seed))
}

/// Rows are in the order of ids, but for sides whose vertices are dealt to random blocks, or change in place, where every
/// shard is to have its share of hubs.
fn row_order<T>(
    source: &dyn EdgeSource<T>,
    infos: &[plan::StageInfo],
    body: &[Outline],
    side: Side,
    seed: u64,
) -> RowOrder {
    let rows = source.num_vertices(side);
    let (mut cut, mut random) = (false, false);
    for outline in body {
        outline.walk(&mut |inner| {
            if let Outline::Vertices(of, _, order, _) = inner {
                cut |= *of == side;
                random |= *of == side && *order == BatchOrder::RandomBlocks;
            }
        });
    }
    let in_place = infos.iter().any(|stage| plan::rotates(stage) || stage.kind.mode(side) == Some(Mode::Update));
    let shuffled = (random || in_place && !cut) && !source.is_square();
    if shuffled { RowOrder::shuffled(rows, seed ^ u64::from(side == Side::Right)) } else { RowOrder::Natural(rows) }
}
