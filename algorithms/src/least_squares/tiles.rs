//! Matrices in tiles of sixteen by sixteen numbers, and sums over rows of sixteen columns: the loops that the equations are made of.

use std::ops::Range;

use megagrid_stages::ROW_ALIGN;
use megagrid_stages::simd::{Half, Vector};

/// A row of sixteen columns; sixteen of them are a tile of a matrix.
pub type Row = [f32; ROW_ALIGN];

/// Lists the tiles on and above the diagonal.
pub fn upper(tiles: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..tiles).flat_map(move |row| (row..tiles).map(move |column| (row, column)))
}

/// Returns where a tile is in a matrix of `tiles` rows and columns of them.
#[inline(always)]
pub fn at(row: usize, column: usize, tiles: usize) -> Range<usize> {
    let first = (row * tiles + column) * ROW_ALIGN;
    first..first + ROW_ALIGN
}

/// A tile of numbers by themselves.
type Tile = [Row; ROW_ALIGN];

/// Replaces a gradient by the step that ends it: solves `matrix · step = −gradient` by a Cholesky decomposition of tiles, of those on and
/// above the diagonal, with A = L Lᵀ. Dimensions that are sums of those before them, but for rounding, have no step.
///
/// An inverse of each tile in the place of L⁻¹ would do, but what it leaves of a nearly singular matrix is rounding. The last tile, which
/// leaves nothing, is inverted: that is a sum less.
#[inline(always)]
pub fn descend<V: Vector>(matrix: &mut [Row], step: &mut [Row]) {
    let tiles = step.len();
    let Some(last) = tiles.checked_sub(1) else { return };
    for pivot in 0..last {
        let (above, below) = matrix.split_at_mut(at(pivot + 1, 0, tiles).start);
        let pivots = &mut above[at(pivot, 0, tiles).start..];
        let root = &mut pivots[at(0, pivot, tiles)];
        eliminate::<V, true>(root);
        let gradient = std::mem::take(&mut step[pivot]);
        add_dots::<V>(root, &gradient, &mut step[pivot..=pivot]);
        let root = transposed(root);
        for column in pivot + 1..tiles {
            let mut product = Tile::default();
            add_products::<V>(&root, &pivots[at(0, column, tiles)], &mut product);
            pivots[at(0, column, tiles)].copy_from_slice(&product);
        }
        for row in pivot + 1..tiles {
            let mut factors = Tile::default();
            factors.iter_mut().zip(&pivots[at(0, row, tiles)]).for_each(|(to, row)| *to = row.map(|value| -value));
            for column in row..tiles {
                let tile = &mut below[at(row - pivot - 1, column, tiles)];
                add_products::<V>(&factors, &pivots[at(0, column, tiles)], tile);
            }
            let gradient = step[pivot];
            add_scaled::<V>(&factors, &gradient, &mut step[row]);
        }
    }
    let inverse = &mut matrix[at(last, last, tiles)];
    eliminate::<V, false>(inverse);
    let gradient = std::mem::take(&mut step[last]);
    add_scaled::<V>(inverse, &gradient, &mut step[last]);
    for pivot in (0..last).rev() {
        let mut gradient = step[pivot];
        for column in pivot + 1..tiles {
            add_dots::<V>(&matrix[at(pivot, column, tiles)], &step[column], std::slice::from_mut(&mut gradient));
        }
        step[pivot] = [0.0; ROW_ALIGN];
        add_scaled::<V>(&matrix[at(pivot, pivot, tiles)], &gradient.map(|value| -value), &mut step[pivot]);
    }
}

/// Replaces a symmetric positive definite tile L Lᵀ by L⁻¹ (`ROOT`) or by minus its inverse, by sweeps (Goodnight 1979): each pivot's row is
/// taken from all rows, or from those after it, and columns of what the unit matrix becomes take the places of those that are eliminated.
/// Rows move up by one each time, so that all stay in registers.
#[inline(always)]
fn eliminate<V: Vector, const ROOT: bool>(tile: &mut [Row]) {
    let Some((tile, _)) = tile.split_first_chunk_mut::<ROW_ALIGN>() else { return };
    let mut rows: [V; ROW_ALIGN] = std::array::from_fn(|n| V::load(&tile[n]));
    // The row of the pivot, which is its column too. What follows its end is its beginning, of rows whose turn is over.
    let mut column = [[0.0; ROW_ALIGN]; 2];
    for pivot in 0..ROW_ALIGN {
        rows[0].store(&mut column[0]);
        if !ROOT {
            rows[0].store(&mut column[1]);
        }
        let column = &column.as_flattened()[pivot..pivot + ROW_ALIGN];
        let inverse = if column[0] > 0.0 { 1.0 / column[0] } else { 0.0 };
        let row = rows[0].with(pivot, if ROOT { 1.0 } else { -1.0 });
        let scaled = row.times(V::splat(inverse));
        for n in 1..ROW_ALIGN {
            rows[n - 1] = V::splat(column[n]).subtract_from(scaled, rows[n].with(pivot, 0.0));
        }
        rows[ROW_ALIGN - 1] = if ROOT { row.times(V::splat(inverse.sqrt())) } else { scaled };
    }
    rows.into_iter().zip(tile).for_each(|(row, to)| row.store(to));
}

#[inline(always)]
fn transposed(tile: &[Row]) -> Tile {
    let mut columns = Tile::default();
    for (n, row) in tile.iter().enumerate() {
        columns.iter_mut().zip(row).for_each(|(column, &value)| column[n] = value);
    }
    columns
}

/// Adds to a tile the products of all columns of `a` with all of `b`.
#[inline(always)]
pub fn add_products<V: Vector>(a: &[Row], b: &[Row], tile: &mut [Row]) {
    match V::SUMS {
        16 => add_products_of::<V, 16>(a, b, tile),
        4 => add_products_of::<V, 4>(a, b, tile),
        _ => add_products_of::<V, 2>(a, b, tile),
    }
}

/// Adds to a symmetric tile the products of all columns of `rows` with each other: those of the last eight with the first eight are
/// copies.
#[inline(always)]
pub fn add_own_products<V: Vector>(rows: &[Row], tile: &mut [Row]) {
    const HALF: usize = ROW_ALIGN / 2;
    let (first, last) = tile.split_at_mut(HALF);
    match V::SUMS {
        16 => add_products_of::<V, HALF>(rows, rows, first),
        4 => add_products_of::<V, 4>(rows, rows, first),
        _ => add_products_of::<V, 2>(rows, rows, first),
    }
    let mut sums: [V::Half; HALF] = std::array::from_fn(|n| V::Half::load(half(&last[n])));
    for row in rows {
        let b = V::Half::load(half(row));
        for n in 0..HALF {
            sums[n] = V::Half::splat(row[HALF + n]).times_plus(b, sums[n]);
        }
    }
    for (n, (sum, row)) in sums.into_iter().zip(last).enumerate() {
        let (copies, own) = row.split_at_mut(HALF);
        copies.iter_mut().zip(&*first).for_each(|(copy, row)| *copy = row[HALF + n]);
        if let Some(own) = own.first_chunk_mut() {
            sum.store(own);
        }
    }
}

/// Returns the last eight numbers.
#[inline(always)]
fn half(row: &Row) -> &[f32; ROW_ALIGN / 2] {
    &row.as_chunks().0[1]
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
pub fn add_scaled<V: Vector>(rows: &[Row], scales: &[f32], into: &mut Row) {
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

/// Adds to each number its row's product with `by`, sixteen rows at a time.
#[inline(always)]
pub fn add_dots<V: Vector>(rows: &[Row], by: &Row, into: &mut [Row]) {
    let by = V::load(by);
    for (rows, into) in rows.as_chunks::<ROW_ALIGN>().0.iter().zip(into) {
        let mut vectors = [by; ROW_ALIGN];
        vectors.iter_mut().zip(rows).for_each(|(vector, row)| *vector = V::load(row).times(by));
        V::sums_of(vectors).plus(V::load(into)).store(into);
    }
}

#[cfg(test)]
mod tests {
    use megagrid_partition::SplitMix;
    use megagrid_stages::simd::{Level, RowKernel, row_kernel};

    use super::*;

    struct Descend<'d>(&'d mut [Row], &'d mut [Row]);

    impl RowKernel for Descend<'_> {
        type Output = ();

        #[inline(always)]
        fn run<V: Vector>(self) {
            descend::<V>(self.0, self.1);
        }
    }

    /// Returns `count` numbers around zero.
    fn numbers(random: &mut SplitMix, count: usize) -> Vec<f64> {
        (0..count).map(|_| random.unit() - 0.5).collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Half the step's product with the matrix and itself, and with the gradient.
    fn objective(matrix: &[Vec<f64>], gradient: &[f64], step: &[f64]) -> f64 {
        let product: Vec<f64> = matrix.iter().map(|row| dot(row, step)).collect();
        dot(&product, step) / 2.0 + dot(gradient, step)
    }

    /// Solves by elimination in double precision.
    fn exact(matrix: &[Vec<f64>], gradient: &[f64]) -> Vec<f64> {
        let len = gradient.len();
        let mut rows: Vec<Vec<f64>> = matrix.iter().zip(gradient).map(|(row, g)| [&row[..], &[-g]].concat()).collect();
        for pivot in 0..len {
            let (above, below) = rows.split_at_mut(pivot + 1);
            let above = &above[pivot];
            for row in below {
                let factor = row[pivot] / above[pivot];
                row.iter_mut().zip(above).for_each(|(value, above)| *value -= factor * above);
            }
        }
        let mut step = vec![0.0; len];
        for row in (0..len).rev() {
            step[row] = (rows[row][len] - dot(&rows[row][row + 1..len], &step[row + 1..])) / rows[row][row];
        }
        step
    }

    /// The sum of `rank` rows, each times itself, with `diagonal` added to its diagonal; the gradient is a sum of these rows.
    fn made(random: &mut SplitMix, width: usize, rank: usize, diagonal: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let rows: Vec<Vec<f64>> = (0..rank).map(|_| numbers(random, width)).collect();
        let mut matrix = vec![vec![0.0; width]; width];
        for row in &rows {
            for (n, to) in matrix.iter_mut().enumerate() {
                to.iter_mut().zip(row).for_each(|(to, value)| *to += row[n] * value);
            }
        }
        matrix.iter_mut().enumerate().for_each(|(n, row)| row[n] += diagonal);
        let mut gradient = vec![0.0; width];
        for (row, scale) in rows.iter().zip(numbers(random, rank)) {
            gradient.iter_mut().zip(row).for_each(|(to, value)| *to += scale * value);
        }
        (matrix, gradient)
    }

    fn found(level: Level, matrix: &[Vec<f64>], gradient: &[f64]) -> Vec<f64> {
        let tiles = gradient.len() / ROW_ALIGN;
        let mut tiled = vec![[0.0; ROW_ALIGN]; tiles * tiles * ROW_ALIGN];
        for (row, column) in upper(tiles) {
            for (n, to) in tiled[at(row, column, tiles)].iter_mut().enumerate() {
                let from = &matrix[row * ROW_ALIGN + n][column * ROW_ALIGN..];
                to.iter_mut().zip(from).for_each(|(to, &value)| *to = value as f32);
            }
        }
        let mut step: Vec<Row> =
            gradient.as_chunks().0.iter().map(|row: &[f64; ROW_ALIGN]| row.map(|value| value as f32)).collect();
        level.run(|| row_kernel(Descend(&mut tiled, &mut step)));
        step.as_flattened().iter().map(|&value| value.into()).collect()
    }

    #[test]
    fn steps_end_at_the_minimum() {
        let mut random = SplitMix::new(3, 0);
        for (width, rank, diagonal) in [(16, 40, 0.0), (48, 200, 0.1), (16, 3, 1e-4), (32, 3, 1e-4), (64, 20, 1e-4)] {
            let (matrix, gradient) = made(&mut random, width, rank, diagonal);
            let least = objective(&matrix, &gradient, &exact(&matrix, &gradient));
            for level in Level::available() {
                let found = objective(&matrix, &gradient, &found(level, &matrix, &gradient));
                assert!((found - least).abs() <= 1e-3 * least.abs(), "{level}, {width}, {rank}: {found}, not {least}");
            }
        }
    }

    #[test]
    fn dimensions_that_are_not_there_have_no_step() {
        let mut random = SplitMix::new(4, 0);
        let (mut matrix, mut gradient) = made(&mut random, 48, 90, 0.0);
        for gone in [0, 7, 20, 47] {
            matrix.iter_mut().for_each(|row| row[gone] = 0.0);
            matrix[gone].fill(0.0);
            gradient[gone] = 1.0;
        }
        for level in Level::available() {
            let found = found(level, &matrix, &gradient);
            assert!(
                found.iter().all(|value| value.is_finite()) && [0, 7, 20, 47].iter().all(|&gone| found[gone] == 0.0)
            );
        }
    }
}
