//! Matrix factorization by SGD over ratings in the (shuffled) order of the file, one adaptive
//! step per row: G += |gradient|² / k, then x -= step / sqrt(G) · gradient, G starting at one.

use std::time::Instant;

const STEP: f32 = 0.1;
const LAMBDA: f32 = 0.05;
/// Rows are padded to this many values, which a compiler turns into whole vectors.
const LANES: usize = 16;

struct Ratings(Vec<(u32, u32, f32)>);

/// One side's factors, `[num_rows, width]`, and its accumulated squared gradients.
struct Factors {
    rows: Vec<f32>,
    squares: Vec<f32>,
}

/// Trains for `iterations` epochs and gives the time and the test RMSE after each.
pub fn measure(train: &str, test: &str, dims: usize, iterations: usize) -> Result<String, String> {
    let (train, test) = (read(train)?, read(test)?);
    let width = dims.next_multiple_of(LANES);
    let count = |id: fn(&(u32, u32, f32)) -> u32| {
        train.0.iter().chain(&test.0).map(id).max().map_or(0, |largest| largest as usize + 1)
    };
    let mean = train.0.iter().map(|r| f64::from(r.2)).sum::<f64>() / train.0.len() as f64;
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut users = Factors::new(count(|r| r.0), dims, width, mean, &mut random);
    let mut items = Factors::new(count(|r| r.1), dims, width, mean, &mut random);

    let (mut seconds, mut rmse) = (Vec::new(), Vec::new());
    for _ in 0..iterations {
        let started = Instant::now();
        epoch(&train, &mut users, &mut items, dims, width);
        seconds.push(started.elapsed().as_secs_f64());
        rmse.push(evaluate(&test, &users, &items, width));
    }
    if rmse.iter().any(|error| !error.is_finite()) {
        return Err("the test RMSE is not finite".to_owned());
    }
    Ok(format!("{{\"ratings\":{},\"epoch_seconds\":{seconds:?},\"test_rmse\":{rmse:?}}}", train.0.len()))
}

fn read(path: &str) -> Result<Ratings, String> {
    let words = super::read_words(path, 3)?;
    let (records, _) = words.as_chunks::<3>();
    let rating = |r: &[[u8; 4]; 3]| (u32::from_le_bytes(r[0]), u32::from_le_bytes(r[1]), f32::from_le_bytes(r[2]));
    Ok(Ratings(records.iter().map(rating).collect()))
}

impl Factors {
    /// Rows whose products start near `mean`, with noise to break the symmetry.
    fn new(num_rows: usize, dims: usize, width: usize, mean: f64, random: &mut u64) -> Self {
        let scale = 1.0 / (dims as f32).sqrt();
        let level = 0.6 * (mean.abs() as f32).sqrt() * scale;
        let mut rows = vec![0.0; num_rows * width];
        for row in rows.chunks_exact_mut(width) {
            for value in &mut row[..dims] {
                *value = level + scale * uniform(random);
            }
        }
        Factors { rows, squares: vec![1.0; num_rows] }
    }
}

/// Uniform in `[0, 1)`, by xorshift64 (Marsaglia 2003).
fn uniform(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 40) as f32 / (1u32 << 24) as f32
}

fn epoch(train: &Ratings, users: &mut Factors, items: &mut Factors, dims: usize, width: usize) {
    let per_value = 1.0 / dims as f32;
    for &(user, item, rating) in &train.0 {
        let (user, item) = (user as usize, item as usize);
        let p = &mut users.rows[user * width..][..width];
        let q = &mut items.rows[item * width..][..width];
        let error = rating - dot(p, q);
        let p_step = STEP / users.squares[user].sqrt();
        let q_step = STEP / items.squares[item].sqrt();
        let (p_square, q_square) = descend(p, q, error, p_step, q_step);
        users.squares[user] += p_square * per_value;
        items.squares[item] += q_square * per_value;
    }
}

fn dot(p: &[f32], q: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (p, q) in p.as_chunks::<LANES>().0.iter().zip(q.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            lanes[lane] += p[lane] * q[lane];
        }
    }
    lanes.iter().sum()
}

/// Takes one step on both rows; returns their squared gradients. Padding stays zero.
fn descend(p: &mut [f32], q: &mut [f32], error: f32, p_step: f32, q_step: f32) -> (f32, f32) {
    let (mut p_squares, mut q_squares) = ([0.0f32; LANES], [0.0f32; LANES]);
    for (p, q) in p.as_chunks_mut::<LANES>().0.iter_mut().zip(q.as_chunks_mut::<LANES>().0) {
        for lane in 0..LANES {
            let dp = error * q[lane] - LAMBDA * p[lane];
            let dq = error * p[lane] - LAMBDA * q[lane];
            p_squares[lane] += dp * dp;
            q_squares[lane] += dq * dq;
            p[lane] += p_step * dp;
            q[lane] += q_step * dq;
        }
    }
    (p_squares.iter().sum(), q_squares.iter().sum())
}

fn evaluate(test: &Ratings, users: &Factors, items: &Factors, width: usize) -> f64 {
    let squared = |&(user, item, rating): &(u32, u32, f32)| {
        let (p, q) = (&users.rows[user as usize * width..][..width], &items.rows[item as usize * width..][..width]);
        f64::from(rating - dot(p, q)).powi(2)
    };
    (test.0.iter().map(squared).sum::<f64>() / test.0.len() as f64).sqrt()
}
