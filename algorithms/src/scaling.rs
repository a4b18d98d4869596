//! Classical multidimensional scaling (Torgerson 1952): places in the plane whose distances are like given ones.

use megagrid_partition::SplitMix;

/// Steps of Lanczos' method: with no more points than that the result is exact.
const STEPS: usize = 80;

/// Returns a place for each of `len` points whose distances are given, `[len * len]`: the two directions in which the places vary the most. Signs are
/// chosen so that the farthest place on each axis is positive. Time: `80 * len²`.
#[must_use]
pub fn places(distances: &[f64], len: usize) -> Vec<[f64; 2]> {
    let products = products(distances, len);
    let mut places = vec![[0.0; 2]; len];
    for (axis, (value, mut vector)) in largest(&products, len).into_iter().take(2).enumerate() {
        let farthest = vector.iter().copied().fold(0.0, |far: f64, at| if at.abs() > far.abs() { at } else { far });
        let scale = value.max(0.0).sqrt() * farthest.signum();
        vector.iter_mut().for_each(|at| *at *= scale);
        places.iter_mut().zip(vector).for_each(|(place, at)| place[axis] = at);
    }
    places
}

/// Returns the inner products of points about their mean: minus half the squared distances, with rows and columns centred.
fn products(distances: &[f64], len: usize) -> Vec<f64> {
    let squares: Vec<f64> = distances.iter().map(|distance| -0.5 * distance * distance).collect();
    let means: Vec<f64> = squares.chunks(len.max(1)).map(|row| row.iter().sum::<f64>() / len as f64).collect();
    let mean = means.iter().sum::<f64>() / len as f64;
    let centred = |(at, square): (usize, &f64)| square - means[at / len] - means[at % len] + mean;
    squares.iter().enumerate().map(centred).collect()
}

/// Returns eigenvalues of a symmetric matrix with their vectors of length 1, the largest values first, by Lanczos' method with full
/// orthogonalization.
fn largest(matrix: &[f64], len: usize) -> Vec<(f64, Vec<f64>)> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut images: Vec<Vec<f64>> = Vec::new();
    let mut tried = 0;
    let mut next = start(tried, len);
    while basis.len() < STEPS.min(len) {
        // Twice: once leaves rounding errors of the size of what is left.
        for _ in 0..2 {
            for known in &basis {
                let along = dot(known, &next);
                next.iter_mut().zip(known).for_each(|(next, known)| *next -= along * known);
            }
        }
        let length = dot(&next, &next).sqrt();
        if length < 1e-9 {
            // What the basis spans is mapped to itself: on from a direction outside.
            tried += 1;
            next = start(tried, len);
            continue;
        }
        next.iter_mut().for_each(|at| *at /= length);
        let image: Vec<f64> = matrix.chunks(len).map(|row| dot(row, &next)).collect();
        let norm = dot(&image, &image).sqrt();
        basis.push(next);
        // Kept near length 1, so that the threshold above means the same for all matrices.
        next = image.iter().map(|at| if norm > 0.0 { at / norm } else { 0.0 }).collect();
        images.push(image);
    }
    let size = basis.len();
    let small = (0..size * size).map(|at| dot(&basis[at / size], &images[at % size])).collect();
    let mut pairs = eigenpairs(small, size);
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let whole = |(value, part): (f64, Vec<f64>)| {
        let mut vector = vec![0.0; len];
        for (known, weight) in basis.iter().zip(part) {
            vector.iter_mut().zip(known).for_each(|(at, known)| *at += weight * known);
        }
        (value, vector)
    };
    pairs.into_iter().take(2).map(whole).collect()
}

/// Returns a random direction, another for each number.
fn start(number: u64, len: usize) -> Vec<f64> {
    let mut random = SplitMix::new(number, 0);
    (0..len).map(|_| random.unit() - 0.5).collect()
}

/// Returns all eigenvalues and vectors of a small symmetric matrix, by Jacobi's rotations.
fn eigenpairs(mut matrix: Vec<f64>, size: usize) -> Vec<(f64, Vec<f64>)> {
    let mut vectors: Vec<f64> = (0..size * size).map(|at| f64::from(u8::from(at / size == at % size))).collect();
    let total: f64 = matrix.iter().map(|entry| entry * entry).sum();
    for _ in 0..50 {
        let off: f64 = (0..size * size).filter(|at| at / size != at % size).map(|at| matrix[at] * matrix[at]).sum();
        if off <= 1e-28 * total {
            break;
        }
        for (p, q) in (0..size).flat_map(|p| (p + 1..size).map(move |q| (p, q))) {
            let entry = matrix[p * size + q];
            if entry == 0.0 {
                continue;
            }
            let ratio = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * entry);
            let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
            let cosine = 1.0 / tangent.hypot(1.0);
            let sine = tangent * cosine;
            for at in 0..size {
                rotate(&mut matrix, at * size + p, at * size + q, cosine, sine);
            }
            for at in 0..size {
                rotate(&mut matrix, p * size + at, q * size + at, cosine, sine);
                rotate(&mut vectors, p * size + at, q * size + at, cosine, sine);
            }
        }
    }
    let pair = |at: usize| (matrix[at * size + at], vectors[at * size..(at + 1) * size].to_vec());
    (0..size).map(pair).collect()
}

fn rotate(values: &mut [f64], p: usize, q: usize, cosine: f64, sine: f64) {
    let (at_p, at_q) = (values[p], values[q]);
    values[p] = cosine * at_p - sine * at_q;
    values[q] = sine * at_p + cosine * at_q;
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(points: &[[f64; 2]]) -> Vec<f64> {
        points.iter().flat_map(|a| points.iter().map(|b| (a[0] - b[0]).hypot(a[1] - b[1]))).collect()
    }

    #[test]
    fn points_of_the_plane_keep_their_distances() {
        for len in [1, 2, 3, 40, 200] {
            let points: Vec<[f64; 2]> =
                (0..len).map(|at| [f64::from(at * 37 % 101), 0.3 * f64::from(at * 53 % 97)]).collect();
            let given = distances(&points);
            let found = places(&given, points.len());
            for (given, found) in given.iter().zip(distances(&found)) {
                assert!((given - found).abs() < 1e-6, "{len} points: {given} became {found}");
            }
        }
    }

    #[test]
    fn equal_distances_and_none_are_no_trouble() {
        let equal: Vec<f64> = (0..25).map(|at| f64::from(u8::from(at / 5 != at % 5))).collect();
        for found in [places(&equal, 5), places(&[0.0; 25], 5), places(&[], 0)] {
            assert!(found.iter().flatten().all(|at| at.is_finite()), "{found:?}");
        }
        let spread = |axis: usize| places(&equal, 5).iter().map(|place| place[axis] * place[axis]).sum::<f64>();
        assert!((spread(0) - 0.5).abs() < 1e-9 && (spread(1) - 0.5).abs() < 1e-9, "each eigenvalue is a half");
    }
}
