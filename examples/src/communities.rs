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
//! | [`settle`], each vertex | weighted sum | y_v, change |
//! | once per iteration | worker contexts | largest change |
//!
//! Input: a square graph with weights above 0; list an undirected edge in both directions. A vertex that no label reaches
//! keeps a row of zeros. Memory: two rows of labels a vertex, 6 bytes an edge.

use megagrid::kernels::axpy;
use megagrid::prelude::*;

vertex! {
    /// A vertex: its label distribution, the sum of its neighbours', and 1 where the label is known, and stays.
    pub struct Member { sync: [f32], delta: [f32], master: u8 }
}

program! {
    /// The label propagation program: edges have weights, and workers find the largest change.
    pub struct Labels { vertices: Member, edge: f32, worker: Max<f32>, global: Max<f32> }
}

edge_stage! {
    /// Adds a vertex's distribution, times the edge's weight, to the sum of the vertex that it points at.
    pub struct Spread {}
    fn exchange(&self, from: Read<Member>, to: Add<Member>, weight: &f32) in Labels {
        axpy(to.delta, *weight, from.sync);
    }
}

/// Sets a distribution to the sum of its neighbours', scaled to 1.
pub fn settle(member: Master<Member>, cx: &mut Context<Labels>) {
    let total: f32 = member.delta.iter().sum();
    if *member.master == 1 || total == 0.0 {
        return;
    }
    for (share, sum) in member.sync.iter_mut().zip(member.delta) {
        cx.worker.see((sum / total - *share).abs());
        *share = sum / total;
    }
}

/// Returns the stages of an iteration.
pub fn sequence() -> Sequence<Labels, impl Stages<Labels>> {
    Sequence::new().exchange(Spread {}).apply(Right, settle).global_sync(|change, now: &mut Max<f32>| *now = change)
}

/// Stop when no share changes by more than this.
pub const TOLERANCE: f32 = 1e-6;
/// Stop after this many iterations.
const MAX_ITERATIONS: u64 = 1000;

/// Spreads known labels, `0..num_labels` by vertex id, and returns the distributions.
///
/// # Shapes
/// Returns `[n][num_labels]`.
///
/// # Errors
/// What the engine refuses: see [`Engine::new`] and [`Engine::run_until`].
///
/// # Panics
/// When a label is not below `num_labels`.
pub fn propagate(
    edges: &Edges<f32>,
    num_labels: usize,
    known: impl Fn(usize) -> Option<usize> + Sync,
    settings: &Settings,
) -> Result<Vec<Vec<f32>>, Error> {
    let mut engine = Engine::<Labels>::new(edges, sequence(), &Settings { dims: num_labels, ..settings.clone() })?;
    engine.init(Right, |id, first| {
        if let Some(label) = known(id) {
            assert!(label < num_labels, "label {label} of vertex {id} is below {num_labels}");
            first.sync[label] = 1.0;
            *first.master = 1;
        }
    });
    engine.run_until(MAX_ITERATIONS, |engine, _| Ok(engine.global().0 <= TOLERANCE))?;
    Ok(engine.on(Right).iter().map(|shares| shares[..num_labels].to_vec()).collect())
}
