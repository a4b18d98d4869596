//! Stages at work: what a task does to the grid, for each kind of stage. Made once from a sequence; nothing generic is left
//! behind it.

mod incident;

use std::marker::PhantomData;
use std::sync::Arc;

use megagrid_partition::Side;
use megagrid_stages::mode::Access;
use megagrid_stages::simd::Kernel;
use megagrid_stages::{
    Aggregate, Apply, BatchSize, Combine, Context, EdgeItem, Exchange, GlobalSync, Incident, Master, MiniBatch, On,
    Program, Read, Sequence, Shape, Stages, Store, Total, Vertex, Visitor,
};

use crate::Error;
use crate::engine::RightItem;
use crate::globals::Globals;
use crate::grid::{Edges, Fixed, Grid, HeldRows, Id, LocalEdges, OwnedRow, OwnedRows, Runtime, Walk, Width};
use crate::plan::{Cut, Outline, Plan, StageInfo, StageKind, Task};
use crate::sync::{Body, Kind, Malformed, Message, Outbox, Replicas, Replication, others};
use incident::RunIncident;
pub use incident::{Scratch, visit};

/// What a task works on.
pub struct Site<'s, P: Program> {
    pub plan: &'s Plan,
    pub grid: &'s Grid<P>,
    pub globals: &'s Globals<P>,
    pub worker: usize,
    pub clock: u64,
    pub stage: usize,
    pub dims: usize,
    /// What is known of other processes, and where what is sent to them is put.
    pub sync: Option<&'s Replication>,
    pub replicas: Option<&'s Replicas<RightItem<P>>>,
    pub outbox: &'s Outbox,
}

/// A stage with its function, ready to run tasks.
pub trait RunStage<P: Program>: Send + Sync {
    /// Runs a task and returns the edges, or vertices, that it ran on; `None`: a hold was refused and nothing was changed.
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64>;

    /// Takes in what another process's worker sent for this stage.
    fn receive(&self, _: &Globals<P>, _: &Message) -> Result<(), Malformed> {
        Err(Malformed)
    }
}

/// Collects the stages of a sequence.
pub struct Collect<P: Program> {
    pub infos: Vec<StageInfo>,
    pub stages: Vec<Box<dyn RunStage<P>>>,
    open: Vec<(Option<MiniBatch>, Vec<Outline>)>,
}

impl<P: Program> Collect<P> {
    /// Checks a sequence, and returns its stages and its outline.
    pub fn from<S: Stages<P>>(sequence: &Sequence<P, S>) -> Result<(Self, Vec<Outline>), Error> {
        sequence.check()?;
        let mut collect = Self { infos: Vec::new(), stages: Vec::new(), open: vec![(None, Vec::new())] };
        sequence.visit(&mut collect);
        let body = collect.open.pop().map(|(_, body)| body).unwrap_or_default();
        Ok((collect, body))
    }

    fn add<T>(&mut self, kind: StageKind, grouped: bool, stage: impl RunStage<P> + 'static) {
        self.infos.push(StageInfo { name: name::<T>(), kind, grouped });
        self.stages.push(Box::new(stage));
        let index = self.stages.len() - 1;
        self.push(Outline::Stage(index));
    }

    fn push(&mut self, outline: Outline) {
        if let Some((_, body)) = self.open.last_mut() {
            body.push(outline);
        }
    }
}

/// Returns the name of a stage: of its type, of its function, or of the function that a closure is in.
pub fn name<T>() -> String {
    let full = std::any::type_name::<T>();
    let full = full.split_once("::Function<").map_or(full, |(_, function)| function);
    let path = full.split(['<', ',']).next().unwrap_or(full);
    match path.strip_suffix("::{{closure}}") {
        Some(within) => format!("closure in {}", last(within)),
        None => last(path).to_owned(),
    }
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

impl<P: Program> Visitor<P> for Collect<P> {
    fn exchange<E: Exchange<P>>(&mut self, stage: &Arc<E>) {
        let kind = StageKind::Exchange(E::Left::MODE, E::Right::MODE);
        self.add::<E>(kind, E::GROUPED, RunExchange(Arc::clone(stage)));
    }

    fn incident<O: On<P>, A: Incident<P, O::Vertex>>(&mut self, stage: &Arc<A>) {
        self.add::<A>(StageKind::Incident(O::SIDE), false, RunIncident::<P, O, A>::new(stage));
    }

    fn apply<O: On<P>, A: Apply<P, O::Vertex>>(&mut self, stage: &Arc<A>) {
        self.add::<A>(StageKind::Apply(O::SIDE), false, RunApply::<O, A>(Arc::clone(stage), PhantomData));
    }

    fn global_sync<G: GlobalSync<P>>(&mut self, stage: &Arc<G>) {
        self.add::<G>(StageKind::GlobalSync(None), false, RunGlobalSync(Arc::clone(stage)));
    }

    fn global_sync_over<O: On<P>, G: Aggregate<P, O::Vertex>>(&mut self, stage: &Arc<G>) {
        let run = RunAggregate::<O, G>(RunGlobalSync(Arc::clone(stage)), PhantomData);
        self.add::<G>(StageKind::GlobalSync(Some(O::SIDE)), false, run);
    }

    fn begin_batch(&mut self, batch: MiniBatch) {
        self.open.push((Some(batch), Vec::new()));
    }

    fn end_batch(&mut self) {
        if let Some((Some(batch), body)) = self.open.pop() {
            self.push(match batch.size {
                BatchSize::Edges(n) => Outline::Edges(n, batch.order, body),
                BatchSize::Vertices(side, n) => Outline::Vertices(side, Cut::Vertices(n), batch.order, body),
                BatchSize::EdgesOf(side, n) => Outline::Vertices(side, Cut::Edges(n), batch.order, body),
            });
        }
    }
}

/// Tries until a hold is given: for holds that others keep for the time of a block at most.
pub fn hold<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut refused = 0_u32;
    loop {
        if let Some(held) = attempt() {
            return held;
        }
        refused += 1;
        if refused.is_multiple_of(64) { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}

struct RunExchange<E>(Arc<E>);

impl<P: Program, E: Exchange<P>> RunStage<P> for RunExchange<E> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        exchange(&*self.0, site.grid, site.plan, site.worker, task, cx)
    }
}

/// Runs an edge function on the blocks of a task.
pub fn exchange<P: Program, E: Exchange<P>>(
    stage: &E,
    grid: &Grid<P>,
    plan: &Plan,
    worker: usize,
    task: &Task,
    cx: &mut Context<'_, P>,
) -> Option<u64> {
    let (mut edges, mut active) = (0, Vec::new());
    let is_own = |left: usize| task.turn.is_none() || plan.left.owners[left] == worker;
    for shard in task.right.clone() {
        active.clear();
        let column = &grid.columns[shard];
        let pieces = grid.right_pieces.of(shard..shard + 1);
        let take = || grid.right.try_hold::<E::Right>(pieces.clone(), task.copies[1]);
        // Before anything was changed a refused worker takes another task.
        let mut right = if edges == 0 { take()? } else { hold(take) };
        for layer in task.layers.clone() {
            for left in task.left.clone().filter(|&left| is_own(left)) {
                let block = layer * grid.left_shards + left;
                let len = column.edges.blocks()[block].edges.len();
                if len == 0 {
                    continue;
                }
                let pieces = grid.left_pieces.of(left..left + 1);
                let mut left = hold(|| grid.left.try_hold::<E::Left>(pieces.clone(), task.copies[0]));
                let mut data = hold(|| column.data.try_own(block..block + 1));
                let at =
                    BlockAt { stage, block, left: &mut left, right: &mut right, data: &mut data, active: &mut active };
                at.run(grid, &column.edges, cx);
                edges += len as u64;
                left.check_padding(grid.left.dims(), name::<E>);
            }
        }
        right.check_padding(grid.right.dims(), name::<E>);
    }
    Some(edges)
}

/// A block with everything that it needs held.
struct BlockAt<'b, 'h, P: Program, E: Exchange<P>> {
    stage: &'b E,
    block: usize,
    left: &'b mut HeldRows<'h, P::Left, E::Left>,
    right: &'b mut HeldRows<'h, P::Right, E::Right>,
    data: &'b mut [EdgeItem<P>],
    active: &'b mut Vec<bool>,
}

impl<P: Program, E: Exchange<P>> BlockAt<'_, '_, P, E> {
    fn run(self, grid: &Grid<P>, edges: &Edges, cx: &mut Context<'_, P>) {
        match edges {
            Edges::Narrow(edges) => self.run_ids(grid, edges, cx),
            Edges::Wide(edges) => self.run_ids(grid, edges, cx),
        }
    }

    /// Common row widths are compiled in, so that the loops over a row unroll.
    fn run_ids<I: Id>(self, grid: &Grid<P>, edges: &LocalEdges<I>, cx: &mut Context<'_, P>) {
        let widths = (grid.left.width(), grid.right.width());
        if !has::<P::Left>(Shape::Row) && !has::<P::Right>(Shape::Row) || widths.0 != widths.1 {
            return self.run_widths(grid, edges, (Runtime(widths.0), Runtime(widths.1)), cx);
        }
        match widths.0 {
            16 => self.run_widths(grid, edges, (Fixed::<16>, Fixed::<16>), cx),
            32 => self.run_widths(grid, edges, (Fixed::<32>, Fixed::<32>), cx),
            64 => self.run_widths(grid, edges, (Fixed::<64>, Fixed::<64>), cx),
            112 => self.run_widths(grid, edges, (Fixed::<112>, Fixed::<112>), cx),
            128 => self.run_widths(grid, edges, (Fixed::<128>, Fixed::<128>), cx),
            _ => self.run_widths(grid, edges, (Runtime(widths.0), Runtime(widths.1)), cx),
        }
    }

    fn run_widths<I: Id, W: Width>(
        self,
        grid: &Grid<P>,
        edges: &LocalEdges<I>,
        widths: (W, W),
        cx: &mut Context<'_, P>,
    ) {
        let Self { stage, block, left, right, data, active } = self;
        let walk = Walk { edges, block, left, right, data, active, stage, widths };
        // Where an edge has no rows to go over, a vector would hold the ends of several edges.
        let has_items =
            [Shape::Row, Shape::Entries].iter().any(|&shape| has::<P::Left>(shape) || has::<P::Right>(shape));
        let level = if has_items { grid.level } else { grid.level.of_scattered() };
        level.run(OneBlock { walk, cx });
    }
}

/// Tells whether one of a vertex type's stores has a shape.
fn has<V: Vertex>(shape: Shape) -> bool {
    let shapes = [
        <V::Sync as Store>::SHAPE,
        <V::Delta as Store>::SHAPE,
        <V::Mirror as Store>::SHAPE,
        <V::Master as Store>::SHAPE,
    ];
    shapes.contains(&shape)
}

struct OneBlock<'k, 'w, 'h, 'c, P: Program, E: Exchange<P>, I, W> {
    walk: Walk<'w, 'h, P, E, I, W>,
    cx: &'k mut Context<'c, P>,
}

impl<P: Program, E: Exchange<P>, I: Id, W: Width> Kernel for OneBlock<'_, '_, '_, '_, P, E, I, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut at_hand = std::mem::take(self.cx.worker);
        self.walk.run(&mut Context { worker: &mut at_hand, ..*self.cx });
        *self.cx.worker = at_hand;
    }
}

struct RunApply<O, A>(Arc<A>, PhantomData<O>);

impl<P: Program, O: On<P>, A: Apply<P, O::Vertex>> RunStage<P> for RunApply<O, A> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let (grid, shards) = (site.grid, task.shards(O::SIDE));
        let mut owned = grid.rows::<O>().try_own(grid.pieces(O::SIDE).of(shards.clone()))?;
        add_arrived(site, O::SIDE, shards.start, &mut owned);
        Some(apply::<P, O::Vertex, A>(&self.0, owned, site, cx))
    }
}

fn apply<P: Program, V: Vertex, A: Apply<P, V>>(
    stage: &A,
    owned: OwnedRows<'_, V>,
    site: &Site<'_, P>,
    cx: &mut Context<'_, P>,
) -> u64 {
    let (vertices, reduces) = (owned.rows.len() as u64, site.plan.reduces[site.stage]);
    site.grid.level.run(ApplyRows { stage, owned, reduces, cx });
    vertices
}

/// Adds what other processes sent for a shard to its deltas.
///
/// # Panics
/// When a message has other rows than the plan says, which ends the run.
fn add_arrived<P: Program, V: Vertex>(site: &Site<'_, P>, side: Side, shard: usize, owned: &mut OwnedRows<'_, V>) {
    if let Some(sync) = site.sync {
        let added = sync.add_arrived(side, shard, site.dims, owned, site.plan);
        assert!(added.is_ok(), "deltas that another process sent do not fit the rows of shard {shard}");
    }
}

struct ApplyRows<'k, 'h, 'c, P: Program, V: Vertex, A> {
    stage: &'k A,
    owned: OwnedRows<'h, V>,
    /// Whether there are deltas to reduce.
    reduces: bool,
    cx: &'k mut Context<'c, P>,
}

impl<P: Program, V: Vertex, A: Apply<P, V>> Kernel for ApplyRows<'_, '_, '_, P, V, A> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        // A context that no pointer leads to stays in registers while the rows are written.
        let mut at_hand = std::mem::take(self.cx.worker);
        let mut cx = Context::<P> { worker: &mut at_hand, ..*self.cx };
        let (mut old, padding) = (Vec::new(), self.owned.padding.clone());
        let mut rows = self.owned.each_row_in_parts();
        while let Some(mut row) = rows.next() {
            if is_active::<P, V, A>(self.stage, &row, &cx) {
                if self.reduces {
                    rows.fetch_after(&row);
                    rows.reduce_row(&mut row);
                }
                apply_row::<P, V, A>(self.stage, &mut row, self.reduces, &mut old, &mut cx);
                row.check_padding(&padding, name::<A>);
            }
        }
        *self.cx.worker = at_hand;
    }
}

/// Tells whether Apply is to run on a row.
#[inline(always)]
fn is_active<P: Program, V: Vertex, A: Apply<P, V>>(stage: &A, row: &OwnedRow<'_, V>, cx: &Context<'_, P>) -> bool {
    stage.is_active(Read { sync: V::Sync::view(row.sync), mirror: V::Mirror::view(row.mirror) }, cx)
}

/// Runs Apply on one row, whose delta was `reduced` or is zero, and refreshes its mirror data; `old` is scratch.
#[inline(always)]
fn apply_row<P: Program, V: Vertex, A: Apply<P, V>>(
    stage: &A,
    row: &mut OwnedRow<'_, V>,
    reduced: bool,
    old: &mut Vec<<V::Sync as Store>::Item>,
    cx: &mut Context<'_, P>,
) {
    let keeps_mirror = V::Mirror::SHAPE != Shape::Nothing;
    // One value stays in registers: through memory its way would be as long as that of all that is written before it.
    let value = if V::Sync::SHAPE == Shape::Value { row.sync.first().copied() } else { None };
    if keeps_mirror && value.is_none() {
        old.clear();
        old.extend_from_slice(row.sync);
    }
    let vertex = Master {
        sync: V::Sync::view_mut(row.sync),
        master: V::Master::view_mut(row.master),
        delta: V::Delta::view(row.delta),
    };
    stage.apply(vertex, cx);
    if reduced {
        row.delta.fill(bytemuck::Zeroable::zeroed());
    }
    if keeps_mirror {
        let old = value.as_ref().map_or(&old[..], std::slice::from_ref);
        V::refresh(V::Mirror::view_mut(row.mirror), V::Sync::view(old), V::Sync::view(row.sync));
    }
}

struct RunGlobalSync<G>(Arc<G>);

/// Sends a worker's sums to all other processes.
///
/// # Panics
/// When a worker context cannot be written as bytes, which ends the run.
fn send_sums<P: Program>(site: &Site<'_, P>, sums: &P::Worker) {
    let body = match bincode::serialize(sums) {
        Ok(body) => body,
        Err(error) => panic!("a worker context cannot be sent to other processes: {error}"),
    };
    for process in others(site.plan.processes.this, site.plan.processes.count) {
        site.outbox.put(Message {
            kind: Kind::Sums,
            stage: site.stage as u32,
            from: site.worker as u32,
            to: (process * site.plan.threads()) as u32,
            number: site.clock,
            body: Body::Own(body.clone()),
            ..Message::default()
        });
    }
}

impl<P: Program, G: GlobalSync<P>> RunStage<P> for RunGlobalSync<G> {
    fn run(&self, site: &Site<'_, P>, _: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let key = (site.clock, site.stage as u64);
        let mut sums = P::Worker::default();
        sums.combine(cx.worker);
        if site.sync.is_some() {
            send_sums(site, &sums);
        }
        site.globals.deposit(&*self.0, key, site.worker, sums);
        Some(0)
    }

    fn receive(&self, globals: &Globals<P>, message: &Message) -> Result<(), Malformed> {
        let sums = bincode::deserialize(&message.body.bytes()).map_err(|_| Malformed)?;
        globals.deposit(&*self.0, (message.number, u64::from(message.stage)), message.from as usize, sums);
        Ok(())
    }
}

/// A GlobalSync whose tasks with a shard add its vertices to the worker's context.
struct RunAggregate<O, G>(RunGlobalSync<G>, PhantomData<O>);

impl<P: Program, O: On<P>, G: Aggregate<P, O::Vertex>> RunStage<P> for RunAggregate<O, G> {
    fn run(&self, site: &Site<'_, P>, task: &Task, cx: &mut Context<'_, P>) -> Option<u64> {
        let (grid, shards) = (site.grid, task.shards(O::SIDE));
        if shards.is_empty() {
            return self.0.run(site, task, cx);
        }
        let rows = grid.rows::<O>().try_share(grid.pieces(O::SIDE).of(shards))?;
        for row in rows.rows.clone() {
            let vertex = Total { sync: rows.sync.view(row), master: rows.master.view(row) };
            self.0.0.aggregate(vertex, cx.worker);
        }
        Some(0)
    }

    fn receive(&self, globals: &Globals<P>, message: &Message) -> Result<(), Malformed> {
        self.0.receive(globals, message)
    }
}
