//! Plain single-threaded loops of the same algorithms: what a person would write without an engine (COST, McSherry et al.
//! 2015), and the same with rows in a hash map.

use megagrid_algorithms::mf::Config;
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_stages::kernels::{descend, dot};
use megagrid_stages::row_width;
use megagrid_stages::simd::{Kernel, Level};
use rustc_hash::FxHashMap;

/// A closure as a kernel: a loop that is compiled for each vector level.
pub struct AtLevel<F>(pub F);

impl<T, F: FnOnce() -> T> Kernel for AtLevel<F> {
    type Output = T;

    #[inline(always)]
    fn run(self) -> T {
        (self.0)()
    }
}

/// Ratings in a random order.
pub struct Shuffled(Vec<(u32, u32, f32)>);

impl Shuffled {
    /// Shuffles ratings (Fisher–Yates).
    pub fn new(edges: &EdgeList<f32>) -> Self {
        let ends = edges.left.iter().zip(&edges.right).zip(&edges.data);
        let mut ratings: Vec<_> = ends.map(|((&user, &item), &rating)| (user, item, rating)).collect();
        let mut random = SplitMix::new(1, 0);
        for last in (1..ratings.len()).rev() {
            ratings.swap(last, random.below(last as u64 + 1) as usize);
        }
        Self(ratings)
    }
}

/// Rows of one side by id.
pub trait Rows {
    /// Returns a row and its sum of mean squared gradients.
    fn row(&mut self, id: u32) -> (&mut [f32], &mut f32);
}

/// Rows in one array.
pub struct ArrayRows {
    width: usize,
    factors: Vec<f32>,
    squares: Vec<f32>,
}

impl ArrayRows {
    /// Makes rows with the first values that `init` sets.
    pub fn new(rows: usize, dims: usize, init: impl Fn(usize, &mut [f32])) -> Self {
        let width = row_width(dims);
        let mut factors = vec![0.0; rows * width];
        factors.chunks_exact_mut(width).enumerate().for_each(|(id, row)| init(id, row));
        Self { width, factors, squares: vec![0.0; rows] }
    }
}

impl Rows for ArrayRows {
    #[inline(always)]
    fn row(&mut self, id: u32) -> (&mut [f32], &mut f32) {
        let id = id as usize;
        (&mut self.factors[id * self.width..(id + 1) * self.width], &mut self.squares[id])
    }
}

/// Rows in a hash map with a fast hasher.
pub struct HashRows(FxHashMap<u32, (Box<[f32]>, f32)>);

impl HashRows {
    /// Makes rows with the first values that `init` sets.
    pub fn new(rows: usize, dims: usize, init: impl Fn(usize, &mut [f32])) -> Self {
        let row = |id: usize| {
            let mut row = vec![0.0; row_width(dims)].into_boxed_slice();
            init(id, &mut row);
            (id as u32, (row, 0.0))
        };
        Self((0..rows).map(row).collect())
    }
}

impl Rows for HashRows {
    #[inline(always)]
    fn row(&mut self, id: u32) -> (&mut [f32], &mut f32) {
        let (row, squares) = self.0.get_mut(&id).expect("every vertex has a row");
        (row, squares)
    }
}

/// One iteration of matrix factorization with adaptive steps, rating by rating.
pub fn mf<R: Rows>(level: Level, config: Config, ratings: &Shuffled, users: &mut R, items: &mut R) {
    level.run(Mf { config, ratings, users, items });
}

struct Mf<'r, R> {
    config: Config,
    ratings: &'r Shuffled,
    users: &'r mut R,
    items: &'r mut R,
}

impl<R: Rows> Kernel for Mf<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Config { step, lambda, .. } = self.config;
        let mean = 1.0 / self.config.row_dims() as f32;
        for &(user, item, rating) in &self.ratings.0 {
            let ((p, p_squares), (q, q_squares)) = (self.users.row(user), self.items.row(item));
            let error = rating - dot(p, q);
            let (p_step, q_step) = (step / (1.0 + *p_squares).sqrt(), step / (1.0 + *q_squares).sqrt());
            let squares = descend(p, q, error, lambda, p_step, q_step);
            *p_squares += squares.0 * mean;
            *q_squares += squares.1 * mean;
        }
    }
}

/// PageRank by pulling along a graph grouped by targets.
pub struct PullPageRank {
    offsets: Vec<u64>,
    sources: Vec<u32>,
    per_link: Vec<f32>,
    scores: Vec<f32>,
    passed: Vec<f32>,
}

const DAMPING: f32 = 0.85;

impl PullPageRank {
    /// Begins with equal scores. `offsets` and `sources` are the links by target.
    pub fn new(offsets: &[u64], sources: Vec<u32>, out_degrees: &[u32]) -> Self {
        let pages = out_degrees.len();
        let per_link = out_degrees.iter().map(|&links| if links == 0 { 0.0 } else { DAMPING / links as f32 }).collect();
        let scores = vec![1.0 / pages as f32; pages];
        Self { offsets: offsets.to_vec(), sources, per_link, scores, passed: vec![0.0; pages] }
    }

    /// Runs one iteration and returns the L1 change.
    pub fn iterate(&mut self) -> f32 {
        let pages = self.scores.len() as f32;
        let mut dangling = 0.0;
        for ((passed, &score), &per_link) in self.passed.iter_mut().zip(&self.scores).zip(&self.per_link) {
            *passed = score * per_link;
            dangling += if per_link == 0.0 { score } else { 0.0 };
        }
        let restart = (1.0 - DAMPING + DAMPING * dangling) / pages;
        let mut change = 0.0;
        for (span, score) in self.offsets.windows(2).zip(&mut self.scores) {
            let sources = &self.sources[span[0] as usize..span[1] as usize];
            let settled = restart + sources.iter().map(|&page| self.passed[page as usize]).sum::<f32>();
            change += (settled - *score).abs();
            *score = settled;
        }
        change
    }
}
