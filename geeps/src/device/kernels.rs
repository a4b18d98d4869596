//! The commands on slices: sums in a fixed order, so that they give the same bits every time.

use super::command::MatMul;

/// Returns `values` as indices.
pub(super) fn indices(values: &[f32]) -> &[u32] {
    bytemuck::cast_slice(values)
}

fn row(table: &[f32], key: u32, width: usize) -> &[f32] {
    &table[key as usize * width..][..width]
}

fn row_mut(table: &mut [f32], key: u32, width: usize) -> &mut [f32] {
    &mut table[key as usize * width..][..width]
}

pub(super) fn gather(table: &[f32], keys: &[u32], to: &mut [f32], width: usize) {
    for (to, &key) in to.chunks_exact_mut(width).zip(keys) {
        to.copy_from_slice(row(table, key, width));
    }
}

pub(super) fn put(from: &[f32], keys: &[u32], table: &mut [f32], width: usize) {
    for (from, &key) in from.chunks_exact(width).zip(keys) {
        row_mut(table, key, width).copy_from_slice(from);
    }
}

pub(super) fn axpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += alpha * x);
}

pub(super) fn scale(alpha: f32, x: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to = alpha * x);
}

pub(super) fn adagrad(update: &mut [f32], history: &mut [f32], step: f32, epsilon: f32) {
    for (update, history) in update.iter_mut().zip(history) {
        *history += *update * *update;
        *update = -step * *update / (history.sqrt() + epsilon);
    }
}

/// Sums over k in ascending order whichever way A and B are stored; the inner loop goes along what lies side by side.
pub(super) fn mat_mul(a: &[f32], b: &[f32], to: &mut [f32], of: &MatMul) {
    let &MatMul { m, n, k, transpose_a, transpose_b, alpha, .. } = of;
    if m * n == 0 {
        return;
    }
    let a_at = |i: usize, l: usize| if transpose_a { a[l * m + i] } else { a[i * k + l] };
    to.fill(0.0);
    if transpose_b {
        rows_times_turned(a_at, b, to, [n, k]);
    } else {
        rows_times(a_at, b, to, n);
    }
    if alpha != 1.0 {
        to.iter_mut().for_each(|value| *value *= alpha);
    }
}

/// The same where B is stored `n × k`. One value at a time would sum along k in whole, which no vector unit may reorder: a part of B
/// after the other is turned first.
fn rows_times_turned(a_at: impl Fn(usize, usize) -> f32, b: &[f32], to: &mut [f32], [n, k]: [usize; 2]) {
    const COLUMNS: usize = 16;
    const DEPTH: usize = 64;
    let mut part = [[0.0; COLUMNS]; DEPTH];
    for j in (0..n).step_by(COLUMNS) {
        let columns = COLUMNS.min(n - j);
        for l in (0..k).step_by(DEPTH) {
            let part = &mut part[..DEPTH.min(k - l)];
            for (l, part) in (l..).zip(&mut *part) {
                part[..columns].iter_mut().zip(j..).for_each(|(value, j)| *value = b[j * k + l]);
            }
            for (i, to) in to.chunks_exact_mut(n).enumerate() {
                let to = &mut to[j..j + columns];
                (l..).zip(&*part).for_each(|(l, part)| axpy(a_at(i, l), &part[..columns], to));
            }
        }
    }
}

fn rows_times(a_at: impl Fn(usize, usize) -> f32, b: &[f32], to: &mut [f32], n: usize) {
    for (i, to) in to.chunks_exact_mut(n).enumerate() {
        for (l, b) in b.chunks_exact(n).enumerate() {
            axpy(a_at(i, l), b, to);
        }
    }
}

pub(super) fn add_bias(bias: &[f32], to: &mut [f32]) {
    to.chunks_exact_mut(bias.len()).for_each(|row| axpy(1.0, bias, row));
}

pub(super) fn sum_rows(from: &[f32], to: &mut [f32], alpha: f32) {
    to.fill(0.0);
    from.chunks_exact(to.len()).for_each(|row| axpy(1.0, row, to));
    to.iter_mut().for_each(|value| *value *= alpha);
}

pub(super) fn relu(to: &mut [f32]) {
    // Not `max`, which makes 0 of what is no number.
    to.iter_mut().filter(|value| **value < 0.0).for_each(|value| *value = 0.0);
}

pub(super) fn relu_gradient(activations: &[f32], to: &mut [f32]) {
    to.iter_mut().zip(activations).filter(|(_, x)| **x <= 0.0).for_each(|(to, _)| *to = 0.0);
}

pub(super) fn softmax_cross_entropy(logits: &[f32], labels: &[u32], errors: &mut [f32], losses: &mut [f32]) {
    let (rows, classes) = (labels.len(), logits.len() / labels.len().max(1));
    let each = logits.chunks_exact(classes.max(1)).zip(errors.chunks_exact_mut(classes.max(1)));
    for (((logits, errors), &label), loss) in each.zip(labels).zip(losses) {
        let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        errors.iter_mut().zip(logits).for_each(|(error, logit)| *error = (logit - top).exp());
        let sum: f32 = errors.iter().sum();
        *loss = sum.ln() - (logits[label as usize] - top);
        errors.iter_mut().for_each(|error| *error /= sum);
        errors[label as usize] -= 1.0;
        errors.iter_mut().for_each(|error| *error /= rows as f32);
    }
}

/// The factors and what becomes of them: `[left, right]`.
pub(super) fn factor_updates(
    [left, right]: [&[f32]; 2],
    ratings: &[f32],
    [left_update, right_update]: [&mut [f32]; 2],
    losses: &mut [f32],
    step: f32,
    lambda: f32,
) {
    let width = (left.len() / ratings.len().max(1)).max(1);
    for (i, (rating, loss)) in ratings.iter().zip(losses).enumerate() {
        let at = i * width..(i + 1) * width;
        let (p, q) = (&left[at.clone()], &right[at.clone()]);
        let error = rating - p.iter().zip(q).map(|(p, q)| p * q).sum::<f32>();
        for ((p, q), (to_p, to_q)) in p.iter().zip(q).zip(left_update[at.clone()].iter_mut().zip(&mut right_update[at]))
        {
            *to_p = step * (error * q - lambda * p);
            *to_q = step * (error * p - lambda * q);
        }
        *loss = error * error;
    }
}
