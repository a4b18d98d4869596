//! Label propagation on a weighted graph: some vertices have a known label, the others take the weighted mean of the
//! label distributions of the vertices that point at them, until nothing changes [Zhu and Ghahramani 2002]:
//!
//! ```text
//! y_v = Σ over u → v of w_uv · y_u / Σ of w_uv        for v without a label; y_v = its label's unit vector else
//! ```
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | [`Spread`], each edge u → v | y_u, w_uv | weighted sum at v |
//! | [`Settle`], each vertex | weighted sum | y_v, change |
//! | [`Measure`], once per iteration | worker contexts | largest change |
//!
//! Input: a square graph with weights above 0; list an undirected edge in both directions. A vertex that no label reaches
//! keeps a row of zeros. Memory: two rows of labels a vertex, 6 bytes an edge.

use std::ops::ControlFlow;

use megagrid_engine::{EdgeInput, Engine, Error, Input, Settings};
use megagrid_partition::EdgeSource;
use megagrid_stages::kernels::axpy;
use megagrid_stages::{
    Add, AddView, Apply, Combine, Context, Exchange, GlobalSync, MasterView, Program, Read, ReadView, Row, Sequence,
    Stages, Value, Vertex,
};
use serde::{Deserialize, Serialize};

/// A vertex: its label distribution, and the sum of its neighbours'.
pub struct Member;

impl Vertex for Member {
    type Sync = Row<f32>;
    type Delta = Row<f32>;
    /// 1 where the label is known, and stays.
    type Master = Value<u8>;
    type Mirror = ();
}

/// The label propagation program.
pub struct LabelPropagation;

impl Program for LabelPropagation {
    type Left = Member;
    type Right = Member;
    /// The weight.
    type Edge = f32;
    type Worker = Largest;
    /// The largest change of the last iteration.
    type Global = f32;
}

/// The largest change that a worker has seen.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Largest(f32);

impl Combine for Largest {
    fn combine(&mut self, from: &mut Self) {
        self.0 = self.0.max(std::mem::take(from).0);
    }
}

/// Adds a vertex's distribution, times the edge's weight, to the sum of the vertex that it points at.
pub struct Spread;

impl Exchange<LabelPropagation> for Spread {
    type Left = Read;
    type Right = Add;

    #[inline(always)]
    fn exchange(
        &self,
        from: ReadView<'_, Member>,
        to: AddView<'_, Member>,
        weight: &mut f32,
        _: &mut Context<'_, LabelPropagation>,
    ) {
        axpy(to.delta, *weight, from.sync);
    }
}

/// Sets a distribution to the sum of its neighbours', scaled to 1.
pub struct Settle;

impl Apply<LabelPropagation, Member> for Settle {
    #[inline(always)]
    fn apply(&self, member: MasterView<'_, Member>, cx: &mut Context<'_, LabelPropagation>) {
        let total: f32 = member.delta.iter().sum();
        if *member.master == 1 || total == 0.0 {
            return;
        }
        for (share, sum) in member.sync.iter_mut().zip(member.delta) {
            let settled = sum / total;
            cx.worker.combine(&mut Largest((settled - *share).abs()));
            *share = settled;
        }
    }
}

/// Tells all workers the largest change of an iteration.
pub struct Measure;

impl GlobalSync<LabelPropagation> for Measure {
    fn apply(&self, total: Largest, largest_change: &mut f32) {
        *largest_change = total.0;
    }
}

/// Builds the stages of an iteration.
///
/// # Errors
/// None that data can cause.
pub fn sequence() -> Result<Sequence<LabelPropagation, impl Stages<LabelPropagation>>, megagrid_stages::Error> {
    Sequence::new().exchange(Spread).apply_right(Settle).global_sync(Measure).build()
}

/// Stop when no share changes by more than this.
pub const TOLERANCE: f32 = 1e-6;
/// Stop after this many iterations.
pub const MAX_ITERATIONS: u64 = 1000;

/// Spreads known labels, `0..num_labels` by vertex id, and returns the distributions.
///
/// # Shapes
/// Returns `[n][num_labels]`.
///
/// # Errors
/// What the engine refuses: see [`Engine::square`] and [`Engine::run`].
///
/// # Panics
/// When a label is not below `num_labels`.
pub fn propagate(
    edges: &dyn EdgeSource<f32>,
    num_labels: usize,
    known: &(dyn Fn(usize) -> Option<usize> + Sync),
    settings: &Settings,
) -> Result<Vec<Vec<f32>>, Error> {
    let settings = Settings { dims: [num_labels; 2], ..settings.clone() };
    let edge = EdgeInput { len: &|_: &f32| 1, fill: &|weight: &f32, items: &mut [f32]| items[0] = *weight };
    let input = Input { source: edges, edge, capacities: [None, None] };
    let Ok(sequence) = sequence() else { unreachable!("the sequence adds before it applies") };
    let mut engine = Engine::<LabelPropagation>::square(&input, &sequence, f32::INFINITY, &settings)?;
    engine.init_right(|id, first| {
        if let Some(label) = known(id) {
            assert!(label < num_labels, "label {label} of vertex {id} is below {num_labels}");
            first.sync[label] = 1.0;
            *first.master = 1;
        }
    });
    engine.run(MAX_ITERATIONS, |_, engine| {
        if *engine.global() <= TOLERANCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let members = engine.right();
    Ok((0..members.len()).map(|id| members.sync(id)[..num_labels].to_vec()).collect())
}
