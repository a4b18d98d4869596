//! The normal equations of one vertex, block by block: a rank update of the block's matrix by the rows of all neighbours, and its
//! solution by elimination. Neighbours' rows are copied once, each times the root of its feedback, so that sixteen columns of all lie
//! together.

use std::ops::Range;

use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
use megagrid_stages::{ROW_ALIGN, row_width};

/// A row of sixteen columns; sixteen of them are a tile of a matrix.
type Row = [f32; ROW_ALIGN];

/// What the equations of a vertex depend on beside its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'g> {
    /// α₀ times the Gramian of the other side, sixteen columns after the other: see [`tiled`].
    pub gramian: &'g [Row],
    /// Weight α₀ of a pair without feedback.
    pub unseen: f32,
    /// Weight ρ of the regularizer.
    pub rho: f32,
}

/// Puts the columns of a square matrix of `width` rows, row by row, in the order that [`Weights`] want.
#[must_use]
pub fn tiled(matrix: impl Fn(usize, usize) -> f32, width: usize) -> Vec<Row> {
    let row = |at: usize| std::array::from_fn(|column| matrix(at % width, at / width * ROW_ALIGN + column));
    (0..width * width / ROW_ALIGN).map(row).collect()
}

/// Room for the equations of one vertex, kept from one to the next.
#[derive(Debug, Default)]
pub struct Solver {
    /// Neighbours' rows times the root of their feedback, sixteen columns after the other: `[width / 16, edges]`.
    panel: Vec<Row>,
    /// Of each neighbour the root of its feedback.
    roots: Vec<f32>,
    /// By how much what is predicted of it is too large, times the root.
    errors: Vec<f32>,
    /// The block's matrix in tiles, of which those on and above the diagonal are used: `[block / 16, block / 16, 16]`.
    matrix: Vec<Row>,
    /// The gradient, then the step.
    step: Vec<f32>,
    /// A tile.
    tile: Vec<Row>,
}

impl Solver {
    /// Begins with a vertex of at most `edges` edges of `width` columns.
    pub fn begin(&mut self, edges: usize, width: usize) {
        self.roots.clear();
        self.errors.clear();
        let rows = edges * width / ROW_ALIGN;
        if self.panel.len() < rows {
            self.panel.resize(rows, [0.0; ROW_ALIGN]);
        }
    }

    /// Takes in a neighbour: its row and its feedback, of a vertex of at most `edges` edges whose row is `own`.
    #[inline(always)]
    pub fn push(&mut self, own: &[f32], row: &[f32], feedback: f32, unseen: f32, edges: usize) {
        let root = feedback.sqrt();
        self.push_toward(own, row, root, (feedback + unseen) / root, edges);
    }

    /// Takes in a neighbour whose row has the weight `root²`, and whose product with what is solved for is to be `target / root`.
    #[inline(always)]
    pub fn push_toward(&mut self, own: &[f32], row: &[f32], root: f32, target: f32, edges: usize) {
        let panel = &mut self.panel[self.errors.len()..];
        let predicted = row_kernel(Pack { own, row, root, panel, stride: edges });
        self.roots.push(root);
        self.errors.push(predicted - target);
    }

    /// Solves for `own`, `block` columns at a time, given all neighbours of the `edges` that it was begun with.
    #[inline(always)]
    pub fn solve(&mut self, own: &mut [f32], edges: usize, block: usize, weights: Weights<'_>) {
        let block = block.min(own.len());
        self.matrix.resize(block * block / ROW_ALIGN, [0.0; ROW_ALIGN]);
        self.step.resize(block, 0.0);
        self.tile.resize(ROW_ALIGN, [0.0; ROW_ALIGN]);
        for first in (0..own.len()).step_by(block) {
            let columns = block.min(own.len() - first);
            row_kernel(Block { solver: self, own, edges, first, columns, weights });
        }
    }

    /// Returns the loss on feedback, less what pairs without would lose: Σ r (1 − ŷ)² + α₀ (1 − 2 ŷ).
    #[must_use]
    pub fn loss(&self, unseen: f32) -> f64 {
        let loss = |(&root, &error): (&f32, &f32)| {
            let (root, unseen) = (f64::from(root), f64::from(unseen));
            let feedback = root * root;
            let predicted = (f64::from(error) + (feedback + unseen) / root) / root;
            feedback * (1.0 - predicted).powi(2) + unseen * (1.0 - 2.0 * predicted)
        };
        self.roots.iter().zip(&self.errors).map(loss).sum()
    }
}

/// Copies a row, scaled, and returns its product with another.
struct Pack<'k> {
    own: &'k [f32],
    row: &'k [f32],
    root: f32,
    panel: &'k mut [Row],
    stride: usize,
}

impl RowKernel for Pack<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<V: Vector>(self) -> f32 {
        let (own, row) = (self.own.as_chunks::<ROW_ALIGN>().0, self.row.as_chunks::<ROW_ALIGN>().0);
        let (root, mut sum) = (V::splat(self.root), V::splat(0.0));
        for ((own, row), to) in own.iter().zip(row).zip(self.panel.iter_mut().step_by(self.stride)) {
            let scaled = root.times(V::load(row));
            scaled.store(to);
            sum = scaled.times_plus(V::load(own), sum);
        }
        sum.sum()
    }
}

/// One block of a vertex: columns `first..first + columns` of its row.
struct Block<'k, 'g> {
    solver: &'k mut Solver,
    own: &'k mut [f32],
    edges: usize,
    first: usize,
    columns: usize,
    weights: Weights<'g>,
}

impl RowKernel for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { solver: Solver { panel, errors, matrix, step, tile, .. }, own, edges, first, columns, weights } =
            self;
        let (width, known, first, tiles) = (own.len(), errors.len(), first / ROW_ALIGN, columns / ROW_ALIGN);
        let Weights { gramian, rho, .. } = weights;
        let gramian = |at: usize| &gramian[(first + at) * width..][..width];
        let panel = |at: usize| &panel[(first + at) * edges..][..known];
        let (matrix, step) = (&mut matrix[..columns * tiles], &mut step.as_chunks_mut().0[..tiles]);
        for (row, column) in upper(tiles) {
            let tile = &mut matrix[at(row, column, tiles)];
            tile.copy_from_slice(&gramian(column)[(first + row) * ROW_ALIGN..][..ROW_ALIGN]);
            if row == column {
                tile.iter_mut().enumerate().for_each(|(n, row)| row[n] += rho);
            }
            add_products::<V>(panel(row), panel(column), tile);
        }
        for (n, step) in step.iter_mut().enumerate() {
            let here = &own.as_chunks().0[first + n];
            V::splat(rho).times(V::load(here)).store(step);
            add_scaled::<V>(gramian(n), own, step);
            add_scaled::<V>(panel(n), errors, step);
        }
        descend::<V>(matrix, step, tile);
        for (n, step) in step.iter().enumerate() {
            let here = &mut own.as_chunks_mut().0[first + n];
            V::load(here).plus(V::load(step)).store(here);
            add_dots::<V>(panel(n), step, errors);
        }
    }
}

/// Lists the tiles on and above the diagonal.
fn upper(tiles: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..tiles).flat_map(move |row| (row..tiles).map(move |column| (row, column)))
}

/// Returns where a tile is in a matrix of `tiles` rows and columns of them.
#[inline(always)]
fn at(row: usize, column: usize, tiles: usize) -> Range<usize> {
    let first = (row * tiles + column) * ROW_ALIGN;
    first..first + ROW_ALIGN
}

/// Replaces a gradient by the step that ends it: solves `matrix · step = −gradient` by elimination of tiles, of those on and above the
/// diagonal.
#[inline(always)]
fn descend<V: Vector>(matrix: &mut [Row], step: &mut [Row], factors: &mut [Row]) {
    let tiles = step.len();
    for pivot in 0..tiles {
        invert::<V>(&mut matrix[at(pivot, pivot, tiles)]);
        let (above, below) = matrix.split_at_mut(at(pivot + 1, 0, tiles).start);
        let pivots = &above[at(pivot, 0, tiles).start..];
        for row in pivot + 1..tiles {
            factors.fill([0.0; ROW_ALIGN]);
            add_products::<V>(&pivots[at(0, pivot, tiles)], &pivots[at(0, row, tiles)], factors);
            for column in row..tiles {
                add_products::<V>(
                    factors,
                    &pivots[at(0, column, tiles)],
                    &mut below[at(row - pivot - 1, column, tiles)],
                );
            }
            let gradient = step[pivot];
            add_scaled::<V>(factors, &gradient, &mut step[row]);
        }
    }
    for pivot in (0..tiles).rev() {
        let mut gradient = step[pivot];
        for column in pivot + 1..tiles {
            add_dots::<V>(&matrix[at(pivot, column, tiles)], &step[column], &mut gradient);
        }
        step[pivot] = [0.0; ROW_ALIGN];
        add_scaled::<V>(&matrix[at(pivot, pivot, tiles)], &gradient, &mut step[pivot]);
    }
}

/// Replaces a symmetric positive definite tile by minus its inverse, by sweeps (Goodnight 1979): after that of a pivot d the tile is
/// symmetric again, with −1 / d there, and its row and column over d. Rows move up by one each time, so that all stay in registers.
#[inline(always)]
fn invert<V: Vector>(tile: &mut [Row]) {
    let Some((tile, _)) = tile.split_first_chunk_mut::<ROW_ALIGN>() else { return };
    let mut rows: [V; ROW_ALIGN] = std::array::from_fn(|n| V::load(&tile[n]));
    // The row of the pivot twice, so that what follows its end is its beginning.
    let mut twice = [[0.0; ROW_ALIGN]; 2];
    for pivot in 0..ROW_ALIGN {
        twice.iter_mut().for_each(|copy| rows[0].store(copy));
        let column = &twice.as_flattened()[pivot..pivot + ROW_ALIGN];
        let inverse = 1.0 / column[0];
        let row = rows[0].times(V::splat(inverse)).with(pivot, -inverse);
        for n in 1..ROW_ALIGN {
            rows[n - 1] = V::splat(column[n]).subtract_from(row, rows[n].with(pivot, 0.0));
        }
        rows[ROW_ALIGN - 1] = row;
    }
    rows.into_iter().zip(tile).for_each(|(row, to)| row.store(to));
}

/// Adds to a tile the products of all columns of `a` with all of `b`.
#[inline(always)]
fn add_products<V: Vector>(a: &[Row], b: &[Row], tile: &mut [Row]) {
    match V::SUMS {
        16 => add_products_of::<V, 16>(a, b, tile),
        4 => add_products_of::<V, 4>(a, b, tile),
        _ => add_products_of::<V, 2>(a, b, tile),
    }
}

#[inline(always)]
fn add_products_of<V: Vector, const N: usize>(a: &[Row], b: &[Row], tile: &mut [Row]) {
    for (tile, from) in tile.as_chunks_mut::<N>().0.iter_mut().zip((0..).step_by(N)) {
        let mut sums: [V; N] = std::array::from_fn(|n| V::load(&tile[n]));
        for (a, b) in a.iter().zip(b) {
            let b = V::load(b);
            for n in 0..N {
                sums[n] = V::splat(a[from + n]).times_plus(b, sums[n]);
            }
        }
        sums.into_iter().zip(tile).for_each(|(sum, row)| sum.store(row));
    }
}

/// Adds the rows, each times its scale.
#[inline(always)]
fn add_scaled<V: Vector>(rows: &[Row], scales: &[f32], into: &mut Row) {
    let mut sums = [V::load(into), V::splat(0.0), V::splat(0.0), V::splat(0.0)];
    let (fours, others) = rows.as_chunks::<4>();
    let (scales_of_fours, scales) = scales.as_chunks::<4>();
    for (rows, scales) in fours.iter().zip(scales_of_fours) {
        for n in 0..4 {
            sums[n] = V::splat(scales[n]).times_plus(V::load(&rows[n]), sums[n]);
        }
    }
    for (row, &scale) in others.iter().zip(scales) {
        sums[0] = V::splat(scale).times_plus(V::load(row), sums[0]);
    }
    sums[0].plus(sums[1]).plus(sums[2].plus(sums[3])).store(into);
}

/// Adds to each number its row's product with `by`.
#[inline(always)]
fn add_dots<V: Vector>(rows: &[Row], by: &Row, into: &mut [f32]) {
    let by = V::load(by);
    let (pairs, rest) = rows.as_chunks::<2>();
    let (into_pairs, into_rest) = into.as_chunks_mut::<2>();
    for (rows, into) in pairs.iter().zip(into_pairs) {
        let (one, two) = V::load(&rows[0]).times(by).sums(V::load(&rows[1]).times(by));
        into[0] += one;
        into[1] += two;
    }
    for (row, into) in rest.iter().zip(into_rest) {
        *into += V::load(row).times(by).sum();
    }
}

/// Rows whose Gramian is added together.
const ROWS: usize = 64;

/// Adds up the Gramian of rows, a few of them at a time.
#[derive(Debug, Default)]
pub(super) struct GramianOf {
    width: usize,
    rows: usize,
    /// Rows, sixteen columns after the other: `[width / 16, ROWS]`.
    panel: Vec<Row>,
    tile: [Row; ROW_ALIGN],
}

impl GramianOf {
    /// Adds a row.
    #[inline(always)]
    pub fn push(&mut self, row: &[f32], into: &mut Vec<f64>) {
        if self.width != row.len() || into.is_empty() {
            self.width = row.len();
            self.panel.resize(ROWS * row.len() / ROW_ALIGN, [0.0; ROW_ALIGN]);
            into.resize(row.len() * row.len(), 0.0);
        }
        for (to, row) in self.panel[self.rows..].iter_mut().step_by(ROWS).zip(row.as_chunks().0) {
            *to = *row;
        }
        self.rows += 1;
        if self.rows == ROWS {
            self.flush(into);
        }
    }

    /// Adds the rows that it still has.
    pub fn flush(&mut self, into: &mut [f64]) {
        if self.rows > 0 {
            row_kernel(Products { of: self, into });
            self.rows = 0;
        }
    }
}

struct Products<'k> {
    of: &'k mut GramianOf,
    into: &'k mut [f64],
}

impl RowKernel for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let GramianOf { width, rows, panel, tile } = self.of;
        for (row, column) in upper(*width / ROW_ALIGN) {
            let [a, b] = [row, column].map(|tile| &panel[tile * ROWS..][..*rows]);
            *tile = [[0.0; ROW_ALIGN]; ROW_ALIGN];
            add_products::<V>(a, b, tile);
            for (n, products) in tile.iter().enumerate() {
                let into = &mut self.into[(row * ROW_ALIGN + n) * *width + column * ROW_ALIGN..];
                into.iter_mut().zip(products).for_each(|(sum, &product)| *sum += f64::from(product));
            }
        }
    }
}

/// Copies the upper triangle of a square matrix to the lower one.
pub(super) fn mirror(matrix: &mut [f64], width: usize) {
    for row in 0..width {
        (0..row).for_each(|column| matrix[row * width + column] = matrix[column * width + row]);
    }
}

/// Returns the Gramian of rows, `[width, width]`, of whom `row` writes each into padded ones.
#[must_use]
pub fn gramian(dims: usize, count: usize, mut row: impl FnMut(usize, &mut [f32])) -> Vec<f64> {
    let width = row_width(dims);
    let (mut of, mut total, mut buffer) = (GramianOf::default(), vec![0.0; width * width], vec![0.0; width]);
    for n in 0..count {
        row(n, &mut buffer);
        of.push(&buffer, &mut total);
    }
    of.flush(&mut total);
    mirror(&mut total, width);
    total
}
