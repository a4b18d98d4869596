//! The Gramian of a side: the sum of the products of its rows with themselves.

use megagrid_stages::simd::{RowKernel, Vector, row_kernel};
use megagrid_stages::{ROW_ALIGN, row_width};

use crate::least_squares::tiles::{Row, add_own_products, add_products, upper};

/// Puts the columns of a square matrix of `width` rows, row by row, in the order that [`Weights`](crate::least_squares::Weights) want.
#[must_use]
pub fn tiled(matrix: impl Fn(usize, usize) -> f32, width: usize) -> Vec<Row> {
    let row = |at: usize| std::array::from_fn(|column| matrix(at % width, at / width * ROW_ALIGN + column));
    (0..width * width / ROW_ALIGN).map(row).collect()
}

/// Rows whose Gramian is added together.
const ROWS: usize = 64;

/// Adds up the Gramian of rows, a few of them at a time: what stands on and above the diagonal.
#[derive(Debug, Default)]
pub struct GramianOf {
    width: usize,
    rows: usize,
    /// Rows, sixteen columns after the other: `[width / 16, ROWS]`.
    panel: Vec<Row>,
    tile: [Row; ROW_ALIGN],
}

impl GramianOf {
    /// Adds a row to a Gramian, `[width, width]`, which may be empty before the first.
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
            if row == column {
                add_own_products::<V>(a, tile);
            } else {
                add_products::<V>(a, b, tile);
            }
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

/// Returns the Gramian of rows, `[width, width]`, of which `row` writes each into padded ones.
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
