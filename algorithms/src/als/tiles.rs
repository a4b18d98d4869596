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

/// Replaces a gradient by the step that ends it: solves `matrix · step = −gradient` by elimination of tiles, of those on and above the
/// diagonal.
#[inline(always)]
pub fn descend<V: Vector>(matrix: &mut [Row], step: &mut [Row], factors: &mut [Row]) {
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
            add_dots::<V>(&matrix[at(pivot, column, tiles)], &step[column], std::slice::from_mut(&mut gradient));
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
