//! Making a plan.

use std::ops::Range;
use std::sync::Arc;

use megagrid_stages::Side;
use megagrid_stages::mode::Mode;

use super::builder::Builder;
use super::choice::Choice;
use super::input::Input;
use super::outline::{self, Outline, StageInfo, StageKind};
use super::placement::{Columns, Placement};
use super::processes;
use super::schedule::{self, Schedule, Scope, rotates};
use super::shape::{self, SideShape, Weights};
use super::sizing::{fit_edges, sizing};
use super::{Plan, Quality};
use crate::Error;
use crate::machine::topology::{Home, Topology};

impl Plan {
    /// Makes a plan.
    ///
    /// # Errors
    /// Mini-batches of edges of different sizes, or within each other; with all edges of a right vertex in one block several
    /// processes, or an Exchange that changes left rows in place; on a square graph an Exchange that changes both ends,
    /// or one in place; an Incident beside an Exchange in several processes, or an Exchange that may change edges
    /// which are in the processes of both ends; processes without a shard; several
    /// passes in a clock, where a stage needs all workers in each, or an iteration has several clocks.
    pub fn make(stages: Vec<StageInfo>, body: &[Outline], input: &Input<'_>) -> Result<Self, Error> {
        if input.square {
            check_square(&stages)?;
        }
        check_processes(&stages, input.processes.count)?;
        let layers = layers(body, input.edges)?;
        let weights = [0, 1].map(|side| Weights::new((0..input.rows[side]).map(|row| input.degrees[side](row))));
        let bounds = [Side::Left, Side::Right].map(|side| batch_bounds(&weights[side as usize], body, side));
        let assignment = Assignment::new(&stages, input, (&weights, &bounds), layers)?;
        let shapes = assignment.shapes(&stages, input, (&weights, bounds), layers);
        let adds_left = stages.iter().any(|stage| stage.kind.mode(Side::Left) == Some(Mode::Add));
        let square = input.square.then_some(adds_left);
        let Assignment { schedules, columns, grouped, whole, .. } = assignment;
        let threads = input.workers / input.processes.count;
        let placement = Placement::new(columns, [&shapes[0], &shapes[1]], threads, square);
        let [left, right] = shapes;

        let mut plan = Self {
            workers: input.workers,
            processes: input.processes,
            slack: input.slack,
            flows: false,
            look_every: 1,
            passes_per_clock: input.passes_per_clock,
            mirrored: false,
            parts: [None; 2],
            copies: copies(&schedules, threads),
            wide: if whole { input.rows[0] } else { left.max_rows() }.max(right.max_rows()) > 1 << 16,
            whole,
            homes: homes(input.topology, input.workers, threads),
            body: Vec::new(),
            steps: Arc::default(),
            reduces: outline::reduces(&stages, body, input.square || input.processes.count > 1),
            alternates: false,
            square: input.square,
            edges: input.edges,
            memory_bytes: 0,
            early: input.early,
            traffic: None,
            placement: Arc::new(placement),
            quality: Quality::default(),
            stages,
            schedules,
            left,
            right,
            layers,
            grouped,
        };
        let scope = Scope { left: 0..plan.left.num_shards(), right: 0..plan.right.num_shards(), layers: 0..layers };
        plan.mirrored = (plan.slack != Some(0) || plan.passes_per_clock > 1) && plan.rotates_updates();
        plan.parts = [Side::Left, Side::Right].map(|side| plan.part(side, body));
        plan.alternates = plan.can_alternate(body);
        plan.add_crossings();
        Builder { plan: &mut plan, weights: &weights }.body(body, &scope);
        if !input.early {
            plan.send_last_first();
        }
        plan.check_rotations()?;
        plan.check_shards()?;
        plan.check_passes()?;
        plan.let_flow(input.look_every);
        Ok(plan)
    }
}

/// Who runs which edges, before shards are cut: the schedule of each stage, and the columns of processes.
struct Assignment {
    schedules: Vec<Option<Schedule>>,
    columns: Columns,
    /// Whether vertices of both sides may be cut.
    cut: bool,
    /// Whether blocks are grouped by right vertices.
    grouped: bool,
    /// Whether some stage takes whole columns.
    whole: bool,
}

impl Assignment {
    fn new(
        stages: &[StageInfo],
        input: &Input<'_>,
        (weights, bounds): (&[Weights; 2], &[Vec<usize>; 2]),
        layers: usize,
    ) -> Result<Self, Error> {
        let (workers, processes) = (input.workers, input.processes.count);
        let imbalance = [0, 1].map(|side| imbalance(&weights[side], &bounds[side], workers));
        let grouped = grouped(stages)?;
        let chosen = choose(input, stages, bounds, layers)?;
        let cut = chosen.is_some();
        let mut columns = chosen.unwrap_or_else(|| Columns::whole(stages, processes));
        let left_whole = processes > 1 && !cut && columns.are_whole(Side::Left);
        let costs = schedule::Costs { imbalance, settled: settled(stages), workers, processes, left_whole, cut };
        let whole = stages.iter().any(|stage| stage.whole);
        let schedules = stages.iter().map(|stage| schedule_of(stage, whole, costs)).collect::<Result<Vec<_>, _>>()?;
        if !cut {
            columns.follow([Side::Left, Side::Right].map(|side| runs_edges(stages, &schedules, side)));
            check_doubled(stages, &columns)?;
        }
        Ok(Self { schedules, columns, cut, grouped, whole })
    }

    /// Cuts the rows of both sides into shards.
    fn shapes(
        &self,
        stages: &[StageInfo],
        input: &Input<'_>,
        (weights, mut bounds): (&[Weights; 2], [Vec<usize>; 2]),
        layers: usize,
    ) -> [SideShape; 2] {
        let (cut, processes) = (self.cut, input.processes.count);
        let of_processes = (processes, input.workers / processes);
        let mut owned = owned_sides(stages, &self.schedules, input.square);
        // Vertices of a square graph have one home, whichever side's shards their masters are asked by.
        let has_one_home = input.square && processes > 1 && (owned[0] && !cut || keeps_left(stages));
        if has_one_home {
            bounds = [0, 1].map(|_| merged(&bounds));
        }
        owned[0] |= cut && !input.square;
        owned[1] |= cut;
        let rotates = self.schedules.contains(&Some(Schedule::Rotation));
        let mut sizing = sizing(input, (self.grouped, rotates), owned, input.edges / layers as u64, &bounds);
        fit_edges(&mut sizing, input, stages, &bounds);
        let of_homes = (cut || has_one_home).then(|| home_weights(input, &self.columns));
        let work = of_homes.as_ref().unwrap_or(weights);
        let mut shapes = [0, 1].map(|side| shape::shards(&work[side], &bounds[side], sizing[side], input.workers));
        if has_one_home {
            shapes[0] = shapes[1].clone();
        } else if cut && input.square {
            processes::deal_seats(&mut shapes[0], bounds[1].len() - 1, of_processes);
        }
        if self.whole {
            // Nobody runs edges by left shards.
            let rows = Weights::new(std::iter::repeat_n(0, input.rows[0]));
            shapes[0] = shape::shards(&rows, &bounds[0], sizing[0], input.workers);
        }
        if rotates {
            processes::own_by_first_visit(&mut shapes[1], &bounds[1], of_processes);
        }
        shapes
    }
}

/// Chooses columns of processes, where vertices of both sides may be cut.
fn choose(
    input: &Input<'_>,
    stages: &[StageInfo],
    bounds: &[Vec<usize>; 2],
    layers: usize,
) -> Result<Option<Columns>, Error> {
    let choice = Choice {
        stages,
        processes: input.processes.count,
        threads: input.workers / input.processes.count,
        rows: input.rows,
        degrees: [&input.degrees[0], &input.degrees[1]],
        batches: bounds[1].windows(2).map(|rows| rows[0]..rows[1]).collect(),
        rounds: layers * (bounds[0].len() - 1).max(1),
        bytes: input.crossing_bytes,
        square: input.square,
    };
    choice.columns(input.strategy)
}

/// Returns what homes of rows are to share out evenly.
fn home_weights(input: &Input<'_>, columns: &Columns) -> [Weights; 2] {
    let degrees: [&dyn Fn(usize) -> u64; 2] = [&input.degrees[0], &input.degrees[1]];
    columns.work(degrees, input.rows, input.square).map(|work| Weights::new(work.into_iter()))
}

/// Tells whether the owners of a side's shards run their edges in some stage.
fn runs_edges(stages: &[StageInfo], schedules: &[Option<Schedule>], side: Side) -> bool {
    stages.iter().zip(schedules).any(|(stage, schedule)| {
        stage.kind == StageKind::Incident(side) || schedule.is_some_and(|schedule| schedule.home() == side)
    })
}

/// Tells whether stages run on the left side's masters.
fn keeps_left(stages: &[StageInfo]) -> bool {
    let kinds =
        [StageKind::Apply(Side::Left), StageKind::Incident(Side::Left), StageKind::GlobalSync(Some(Side::Left))];
    stages.iter().any(|stage| kinds.contains(&stage.kind))
}

/// Joins the rows at which batches of either side begin.
fn merged(bounds: &[Vec<usize>; 2]) -> Vec<usize> {
    let mut all = bounds.concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Refuses what would hold a row of a square graph exclusively and once more: `Update`, or `Add` on both ends.
fn check_square(stages: &[StageInfo]) -> Result<(), Error> {
    use megagrid_stages::mode::Mode::{Add, Read};
    let refused = |stage: &&StageInfo| match stage.kind {
        StageKind::Exchange(left, right) => !matches!((left, right), (Read, Read | Add) | (Add, Read)),
        _ => false,
    };
    stages.iter().find(refused).map_or(Ok(()), |stage| Err(Error::SquareUpdate(stage.name.clone())))
}

/// Refuses stages on all edges of a vertex beside others on edges, with several processes: what these change in edge data would
/// not come to the process of the other end.
fn check_processes(stages: &[StageInfo], processes: usize) -> Result<(), Error> {
    let exchanges = stages.iter().any(|stage| matches!(stage.kind, StageKind::Exchange(..)));
    let refused = |stage: &&StageInfo| processes > 1 && exchanges && matches!(stage.kind, StageKind::Incident(_));
    stages.iter().find(refused).map_or(Ok(()), |stage| Err(Error::EdgesOfProcesses(stage.name.clone())))
}

/// Refuses stages that may change what edges carry where edges are in the processes of both their ends: the other one would not see it.
fn check_doubled(stages: &[StageInfo], columns: &Columns) -> Result<(), Error> {
    let refused = |stage: &&StageInfo| columns.doubled && stage.changes_edges;
    stages.iter().find(refused).map_or(Ok(()), |stage| Err(Error::ChangedEdges(stage.name.clone())))
}

/// Tells whether edges are stored by right vertex rather than as shuffled pairs.
fn grouped(stages: &[StageInfo]) -> Result<bool, Error> {
    let shuffled = stages.iter().find(|stage| rotates(stage) && !stage.grouped);
    match (shuffled, stages.iter().find(|stage| stage.grouped)) {
        (Some(shuffled), Some(grouped)) => {
            Err(Error::EdgeOrder { shuffled: shuffled.name.clone(), grouped: grouped.name.clone() })
        }
        (shuffled, _) => Ok(shuffled.is_none()),
    }
}

/// Tells on which sides an Exchange that reads the other side changes rows in place.
fn settled(stages: &[StageInfo]) -> [bool; 2] {
    use megagrid_stages::mode::Mode::{Read, Update};
    let has = |modes| stages.iter().any(|stage| stage.kind == modes);
    [has(StageKind::Exchange(Update, Read)), has(StageKind::Exchange(Read, Update))]
}

fn schedule_of(stage: &StageInfo, whole: bool, costs: schedule::Costs) -> Result<Option<Schedule>, Error> {
    let StageKind::Exchange(left, right) = stage.kind else { return Ok(None) };
    if !whole {
        return Ok(Some(schedule::choose(left, right, costs)));
    }
    schedule::choose_whole(left, stage.by_one)
        .filter(|_| costs.processes == 1)
        .map(Some)
        .ok_or_else(|| Error::WholeColumns(stage.name.clone()))
}

fn copies(schedules: &[Option<Schedule>], workers: usize) -> [usize; 2] {
    let mut copies = [1, 1];
    for schedule in schedules.iter().flatten() {
        match schedule {
            Schedule::Owned { side, partial: true } => copies[side.other() as usize] = workers,
            Schedule::Whole { partial: true, .. } => copies[0] = workers,
            _ => {}
        }
    }
    copies
}

/// Tells on which sides shards belong to workers. A square graph's vertices belong to workers by right shards.
fn owned_sides(stages: &[StageInfo], schedules: &[Option<Schedule>], square: bool) -> [bool; 2] {
    let mut owned = [false, square];
    for (stage, schedule) in stages.iter().zip(schedules) {
        match (stage.kind, schedule) {
            (StageKind::Exchange(..), Some(schedule)) => owned[schedule.home() as usize] = true,
            (StageKind::Exchange(..), _) => owned[0] = true,
            (StageKind::Incident(side) | StageKind::Apply(side), _) => owned[side as usize] = true,
            (StageKind::GlobalSync(Some(side)), _) => owned[side as usize] = true,
            _ => {}
        }
    }
    owned
}

/// Returns the number of layers that mini-batches of edges need.
fn layers(body: &[Outline], edges: u64) -> Result<usize, Error> {
    let mut sizes = Vec::new();
    let mut nested = false;
    for outline in body {
        outline.walk(&mut |inner| {
            if let Outline::Edges(size, _, body) = inner {
                sizes.push(*size);
                body.iter().for_each(|o| o.walk(&mut |deeper| nested |= matches!(deeper, Outline::Edges(..))));
            }
        });
    }
    sizes.dedup();
    match sizes[..] {
        [] => Ok(1),
        [size] if !nested => Ok(edges.div_ceil(size).max(1) as usize),
        _ => Err(Error::EdgeBatches),
    }
}

/// Returns the rows of a side at which some batch begins, and both ends.
fn batch_bounds(weights: &Weights, body: &[Outline], side: Side) -> Vec<usize> {
    let mut bounds = vec![0, weights.rows()];
    collect_bounds(weights, body, side, 0..weights.rows(), &mut bounds);
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

fn collect_bounds(weights: &Weights, body: &[Outline], side: Side, rows: Range<usize>, bounds: &mut Vec<usize>) {
    for outline in body {
        match outline {
            Outline::Stage(_) => {}
            Outline::Vertices(of, cut, _, inner) if *of == side => {
                for batch in shape::batches(weights, rows.clone(), *cut) {
                    bounds.extend([batch.start, batch.end]);
                    collect_bounds(weights, inner, side, batch, bounds);
                }
            }
            Outline::Vertices(.., inner) | Outline::Edges(.., inner) => {
                collect_bounds(weights, inner, side, rows.clone(), bounds);
            }
        }
    }
}

/// Returns the heaviest worker's share over the mean if each batch is cut into equal parts for the workers.
fn imbalance(weights: &Weights, bounds: &[usize], workers: usize) -> f64 {
    let mut heaviest = 0;
    for interval in bounds.windows(2) {
        let parts = weights.split(interval[0]..interval[1], workers);
        heaviest += parts.iter().map(|part| weights.of(part)).max().unwrap_or(0);
    }
    let mean = weights.of(&(0..weights.rows())) as f64 / workers as f64;
    if mean == 0.0 { 1.0 } else { heaviest as f64 / mean }
}

/// Returns where each worker runs: processes are taken to have a machine each, or to share all of one.
fn homes(topology: &Topology, workers: usize, threads: usize) -> Vec<Home> {
    (0..workers).map(|worker| topology.home_of(worker % threads, threads)).collect()
}
