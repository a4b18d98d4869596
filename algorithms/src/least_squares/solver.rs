//! The normal equations of one vertex, block by block: a rank update of the block's matrix by the rows of all neighbours, and its
//! solution by elimination. Neighbours' rows are copied once, each times the root of its feedback, so that sixteen columns of all lie
//! together.

use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::{RowKernel, Vector, row_kernel};

use super::tiles::{Row, add_dots, add_own_products, add_products, add_scaled, at, descend, upper};

/// The least weight λ of a regularizer of ratings: with 0 and fewer ratings than dimensions many rows are as good, of which this takes
/// the shortest.
pub const LEAST_LAMBDA: f32 = 1e-6;

/// What the equations of a vertex depend on beside its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'g> {
    /// α₀ times the Gramian of the other side, sixteen columns after the other: see `als::tiled`. Empty where pairs without
    /// feedback have no weight.
    pub gramian: &'g [Row],
    /// Weight α₀ of a pair without feedback.
    pub unseen: f32,
    /// Weight ρ of the regularizer.
    pub rho: f32,
}

/// Room for the equations of one vertex, kept from one to the next.
#[derive(Debug, Default)]
pub struct Solver {
    /// Neighbours that count.
    known: usize,
    /// Rows that the panel has of them, a multiple of sixteen.
    stride: usize,
    /// Neighbours' rows times the root of their feedback, sixteen columns after the other: `[width / 16, stride]`, from
    /// where a line of the cache begins ([`lines_of`]).
    panel: Vec<f32>,
    /// Of each neighbour the root of its feedback: `[stride]`.
    roots: Vec<f32>,
    /// By how much what is predicted of it is too large, times the root, sixteen neighbours together: `[stride / 16]`. What follows the
    /// last neighbour is anything.
    errors: Vec<Row>,
    /// The block's matrix in tiles, of which those on and above the diagonal are used: `[block / 16, block / 16, 16]`.
    matrix: Vec<Row>,
    /// The gradient, then the step.
    step: Vec<f32>,
}

impl Solver {
    /// Takes in the neighbours of a vertex whose row is `own`: of each edge those that count. Returns how many do.
    #[inline(always)]
    pub fn take_in<'r>(&mut self, own: &[f32], edges: usize, known: &impl Known<'r>) -> usize {
        self.stride = edges.next_multiple_of(ROW_ALIGN);
        let numbers = self.stride * own.len() + ROW_ALIGN;
        if self.panel.len() < numbers {
            self.panel.resize(numbers, 0.0);
        }
        self.roots.resize(self.stride, 0.0);
        self.errors.resize(self.stride / ROW_ALIGN, [0.0; ROW_ALIGN]);
        self.known = row_kernel(Pack { solver: self, own, edges, known });
        self.known
    }

    /// Leaves a column of the neighbours that were taken in out of the equations, but not of what is predicted. What is then found
    /// for it in `own` is anything.
    #[inline(always)]
    pub fn leave_out(&mut self, column: usize) {
        let rows = &mut lines_of(&mut self.panel)[column / ROW_ALIGN * self.stride..][..self.known];
        rows.iter_mut().for_each(|row| row[column % ROW_ALIGN] = 0.0);
    }

    /// Solves for `own`, `block` columns at a time, given the neighbours that were taken in.
    #[inline(always)]
    pub fn solve(&mut self, own: &mut [f32], block: usize, weights: Weights<'_>) {
        let block = block.min(own.len());
        self.matrix.resize(block * block / ROW_ALIGN, [0.0; ROW_ALIGN]);
        self.step.resize(block, 0.0);
        for first in (0..own.len()).step_by(block) {
            let columns = block.min(own.len() - first);
            row_kernel(Block { solver: self, own, first, columns, weights });
        }
    }

    /// Returns the loss on feedback, less what pairs without would lose: Σ r (1 − ŷ)² + α₀ (1 − 2 ŷ).
    #[must_use]
    #[inline(always)]
    pub fn loss(&self, unseen: f32) -> f64 {
        let (roots, errors) = (&self.roots[..self.known], &self.errors.as_flattened()[..self.known]);
        // With the error e = (ŷ − t) √r of the target t = 1 + α₀ / r, the loss is e² − α₀ − α₀² / r.
        let unseen = f64::from(unseen);
        let loss = |root: f32, error: f32| f64::from(error).powi(2) - unseen - (unseen / f64::from(root)).powi(2);
        let mut sums = [0.0; 8];
        let (eights, others) = (roots.as_chunks::<8>(), errors.as_chunks::<8>());
        for (roots, errors) in eights.0.iter().zip(others.0) {
            for n in 0..8 {
                sums[n] += loss(roots[n], errors[n]);
            }
        }
        let rest: f64 = eights.1.iter().zip(others.1).map(|(&root, &error)| loss(root, error)).sum();
        sums.iter().sum::<f64>() + rest
    }
}

/// What the equations of a vertex have of a neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Neighbor<'r> {
    /// Its row.
    pub row: &'r [f32],
    /// The root of the row's weight.
    pub root: f32,
    /// What the product with the row is to be, times the root.
    pub target: f32,
}

impl<'r> Neighbor<'r> {
    /// A neighbour with feedback, where pairs without have the weight `unseen`.
    #[inline(always)]
    #[must_use]
    pub fn of_feedback(row: &'r [f32], feedback: f32, unseen: f32) -> Self {
        let root = feedback.sqrt();
        Self { row, root, target: (feedback + unseen) / root }
    }
}

/// The neighbours of a vertex. A trait, for closures are not always inlined into loops of a vector level.
pub trait Known<'r> {
    /// Returns the neighbour at the other end of an edge, if it counts. Must be `#[inline(always)]`.
    fn neighbor(&self, edge: usize) -> Option<Neighbor<'r>>;
}

/// Copies the rows of all neighbours, scaled, and sets their errors.
struct Pack<'k, K> {
    solver: &'k mut Solver,
    own: &'k [f32],
    edges: usize,
    known: &'k K,
}

impl<'r, K: Known<'r>> RowKernel for Pack<'_, K> {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector>(self) -> usize {
        let Self { solver: Solver { panel, roots, errors, stride, .. }, own, edges, known: neighbors } = self;
        let (panel, own) = (lines_of(panel), own.as_chunks::<ROW_ALIGN>().0);
        let (mut products, mut known) = ([[0.0; ROW_ALIGN]; ROW_ALIGN], 0);
        for edge in 0..edges {
            let Some(Neighbor { row, root, target }) = neighbors.neighbor(edge) else { continue };
            let (scale, mut sum) = (V::splat(root), V::splat(0.0));
            for ((own, row), to) in own.iter().zip(row.as_chunks().0).zip(panel[known..].iter_mut().step_by(*stride)) {
                let scaled = scale.times(V::load(row));
                scaled.store(to);
                sum = scaled.times_plus(V::load(own), sum);
            }
            let (group, place) = (known / ROW_ALIGN, known % ROW_ALIGN);
            sum.store(&mut products[place]);
            roots[known] = root;
            errors[group][place] = target;
            known += 1;
            if place == ROW_ALIGN - 1 {
                subtract_from_sums::<V>(&products, &mut errors[group]);
            }
        }
        if !known.is_multiple_of(ROW_ALIGN) {
            subtract_from_sums::<V>(&products, &mut errors[known / ROW_ALIGN]);
        }
        known
    }
}

/// Returns the rows from where a line of the cache begins, so that none is in two lines.
#[inline(always)]
fn lines_of(numbers: &mut [f32]) -> &mut [Row] {
    let before = numbers.as_ptr().align_offset(size_of::<Row>()) % ROW_ALIGN;
    numbers[before..].as_chunks_mut().0
}

/// Subtracts numbers from the sums of rows.
#[inline(always)]
fn subtract_from_sums<V: Vector>(rows: &[Row; ROW_ALIGN], numbers: &mut Row) {
    let mut vectors = [V::splat(0.0); ROW_ALIGN];
    vectors.iter_mut().zip(rows).for_each(|(vector, row)| *vector = V::load(row));
    V::sums_of(vectors).minus(V::load(numbers)).store(numbers);
}

/// One block of a vertex: columns `first..first + columns` of its row.
struct Block<'k, 'g> {
    solver: &'k mut Solver,
    own: &'k mut [f32],
    first: usize,
    columns: usize,
    weights: Weights<'g>,
}

impl RowKernel for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { solver, own, first, columns, weights } = self;
        let Solver { known, stride, panel, errors, matrix, step, .. } = solver;
        let (panel, width, first, tiles) = (lines_of(panel), own.len(), first / ROW_ALIGN, columns / ROW_ALIGN);
        let Weights { gramian, rho, .. } = weights;
        let gramian = |at: usize| (!gramian.is_empty()).then(|| &gramian[(first + at) * width..][..width]);
        let panel = |at: usize| &panel[(first + at) * *stride..][..*stride];
        let (matrix, step) = (&mut matrix[..columns * tiles], &mut step.as_chunks_mut().0[..tiles]);
        for (row, column) in upper(tiles) {
            let tile = &mut matrix[at(row, column, tiles)];
            match gramian(column) {
                Some(gramian) => tile.copy_from_slice(&gramian[(first + row) * ROW_ALIGN..][..ROW_ALIGN]),
                None => tile.fill([0.0; ROW_ALIGN]),
            }
            if row == column {
                tile.iter_mut().enumerate().for_each(|(n, row)| row[n] += rho);
            }
            if row == column {
                add_own_products::<V>(&panel(row)[..*known], tile);
            } else {
                add_products::<V>(&panel(row)[..*known], &panel(column)[..*known], tile);
            }
        }
        for (n, step) in step.iter_mut().enumerate() {
            let here = &own.as_chunks().0[first + n];
            V::splat(rho).times(V::load(here)).store(step);
            gramian(n).into_iter().for_each(|gramian| add_scaled::<V>(gramian, own, step));
            add_scaled::<V>(&panel(n)[..*known], &errors.as_flattened()[..*known], step);
        }
        descend::<V>(matrix, step);
        for (n, step) in step.iter().enumerate() {
            let here = &mut own.as_chunks_mut().0[first + n];
            V::load(here).plus(V::load(step)).store(here);
            add_dots::<V>(panel(n), step, errors);
        }
    }
}
