//! TuX², Figure 8: rows in arrays against rows in hash maps, the same program. Real time, one thread.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use megagrid_benches::inputs;
use megagrid_benches::measure::interleaved;
use megagrid_engine::os::AlignedBuffer;
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_stages::kernels::{axpy, dot};
use megagrid_stages::row_width;
use megagrid_stages::simd::{Kernel, Level};
use rustc_hash::FxBuildHasher;

use megagrid_benches::findings::Findings;

const DIMS: usize = 50;
const USERS: usize = 100_000;
const RATINGS: usize = 3_000_000;
const ITEMS: [usize; 2] = [5_000, 200_000];
/// Topics, and the documents and words that have them.
const TOPICS: usize = 50;
const WORDS: usize = 5_000;
const ROUNDS: usize = 5;

/// Vertices by id: what they agree on, and what was added since.
trait Rows {
    fn row(&mut self, id: u32) -> (&mut [f32], &mut [f32]);
}

/// All in one array, of the memory that the engine's arrays are: huge pages where the system has them.
struct Array(AlignedBuffer<f32>, usize);

impl Rows for Array {
    #[inline(always)]
    fn row(&mut self, id: u32) -> (&mut [f32], &mut [f32]) {
        let Self(values, width) = self;
        values[2 * *width * id as usize..][..2 * *width].split_at_mut(*width)
    }
}

/// Each in memory of its own, found by a hash of its id.
struct Hashed<S>(HashMap<u32, Box<[f32]>, S>, usize);

impl<S: BuildHasher> Rows for Hashed<S> {
    #[inline(always)]
    fn row(&mut self, id: u32) -> (&mut [f32], &mut [f32]) {
        self.0.get_mut(&id).expect("every vertex has a row").split_at_mut(self.1)
    }
}

/// First values, the same for all layouts.
fn first(side: u64, id: usize, width: usize, dims: usize) -> Box<[f32]> {
    let mut random = SplitMix::new(side, id as u64);
    let mut row = vec![0.0; 2 * width].into_boxed_slice();
    row[..dims].fill_with(|| random.below(1000) as f32 * 1e-4);
    row
}

fn arrays(sizes: [usize; 2], dims: usize) -> [Array; 2] {
    let width = row_width(dims);
    [0, 1].map(|side| {
        let mut values = AlignedBuffer::zeroed(2 * width * sizes[side]).expect("memory for the rows");
        let rows = values.chunks_exact_mut(2 * width);
        rows.enumerate().for_each(|(id, row)| row.copy_from_slice(&first(side as u64, id, width, dims)));
        Array(values, width)
    })
}

/// Rows come as a file of edges first names them, which is in no order.
fn hashed<S: BuildHasher + Default>(sizes: [usize; 2], dims: usize) -> [Hashed<S>; 2] {
    let width = row_width(dims);
    [0, 1].map(|side| {
        let mut ids: Vec<usize> = (0..sizes[side]).collect();
        let mut random = SplitMix::new(3, side as u64);
        for last in (1..ids.len()).rev() {
            ids.swap(last, random.below(last as u64 + 1) as usize);
        }
        Hashed(ids.into_iter().map(|id| (id as u32, first(side as u64, id, width, dims))).collect(), width)
    })
}

/// Batch gradients: an Exchange over all ratings and an Apply on all vertices.
struct Factorize<'f, R> {
    ratings: &'f EdgeList<f32>,
    rows: &'f mut [R; 2],
}

impl<R: Rows> Kernel for Factorize<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { ratings, rows: [users, items] } = self;
        for ((&user, &item), &rating) in ratings.left.iter().zip(&ratings.right).zip(&ratings.data) {
            let ((p, p_delta), (q, q_delta)) = (users.row(user), items.row(item));
            let error = rating - dot(p, q);
            axpy(p_delta, error, q);
            axpy(q_delta, error, p);
        }
        for (rows, len) in [(users, ratings.num_left), (items, ratings.num_right)] {
            for id in 0..len {
                let (sync, delta) = rows.row(id as u32);
                axpy(sync, 1e-5, delta);
                delta.fill(0.0);
            }
        }
    }
}

/// A draw for each token by the counts of its document and word over all topics.
struct Sample<'s, R> {
    tokens: &'s mut EdgeList<f32>,
    rows: &'s mut [R; 2],
}

impl<R: Rows> Kernel for Sample<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { tokens, rows: [documents, words] } = self;
        let mut random = SplitMix::new(1, 1);
        let mut sums = [0.0f32; TOPICS];
        for at in 0..tokens.data.len() {
            let (document, _) = documents.row(tokens.left[at]);
            let (word, _) = words.row(tokens.right[at]);
            let old = tokens.data[at] as usize;
            document[old] -= 1.0;
            word[old] -= 1.0;
            let mut sum = 0.0;
            for topic in 0..TOPICS {
                sum += (document[topic] + 0.1) * (word[topic] + 0.01);
                sums[topic] = sum;
            }
            let drawn = sum * (random.below(1 << 24) as f32 / (1 << 24) as f32);
            let new = sums.partition_point(|&below| below <= drawn).min(TOPICS - 1);
            document[new] += 1.0;
            word[new] += 1.0;
            tokens.data[at] = new as f32;
        }
    }
}

/// Returns edges in another order.
fn ordered(edges: &EdgeList<f32>, key: impl Fn(usize) -> u64) -> EdgeList<f32> {
    let mut order: Vec<usize> = (0..edges.data.len()).collect();
    order.sort_by_key(|&at| key(at));
    let of = |ids: &[u32]| order.iter().map(|&at| ids[at]).collect();
    let data = order.iter().map(|&at| edges.data[at]).collect();
    EdgeList { left: of(&edges.left), right: of(&edges.right), data, ..*edges }
}

/// Measures a run on both layouts, and with a slow hash; returns how often the fast hash takes the array's time.
fn ratio(name: &str, runs: [Box<dyn FnMut() + '_>; 3]) -> f64 {
    let [array, hash, slow] = interleaved(ROUNDS, runs);
    println!("    {name:<34} {:>7.3} s  {:>5.2}  {:>5.2}", array, hash / array, slow / array);
    hash / array
}

pub fn run(findings: &mut Findings) {
    let level = Level::detect();
    println!("  one thread, medians of {ROUNDS} interleaved rounds; hash map (FxHash, then SipHash) by array");
    let (mut least, mut by_item, mut all) = (f64::INFINITY, f64::INFINITY, Vec::new());
    for items in ITEMS {
        let edges = inputs::ratings(USERS, items, RATINGS);
        let mut random = SplitMix::new(7, 7);
        let noise: Vec<u64> = edges.data.iter().map(|_| random.below(1 << 60)).collect();
        let orders = [
            ("by user", ordered(&edges, |at| u64::from(edges.left[at]))),
            ("by item", ordered(&edges, |at| u64::from(edges.right[at]))),
            ("unordered", ordered(&edges, |at| noise[at])),
        ];
        let sizes = [USERS, items];
        let (mut array, mut fast, mut slow) =
            (arrays(sizes, DIMS), hashed::<FxBuildHasher>(sizes, DIMS), hashed::<RandomState>(sizes, DIMS));
        for (name, ratings) in &orders {
            let found = ratio(
                &format!("MF, {items} items, {name}"),
                [
                    Box::new(|| level.run(Factorize { ratings, rows: &mut array })),
                    Box::new(|| level.run(Factorize { ratings, rows: &mut fast })),
                    Box::new(|| level.run(Factorize { ratings, rows: &mut slow })),
                ],
            );
            least = least.min(found);
            by_item = if *name == "by item" { by_item.min(found) } else { by_item };
            all.push(found);
        }
    }
    let mut tokens = ordered(&inputs::ratings(USERS, WORDS, RATINGS), |at| at as u64);
    tokens.data.fill(0.0);
    let (mut array, mut fast, mut slow) = (
        arrays([USERS, WORDS], TOPICS),
        hashed::<FxBuildHasher>([USERS, WORDS], TOPICS),
        hashed::<RandomState>([USERS, WORDS], TOPICS),
    );
    let mut copies = [tokens.clone(), tokens.clone(), tokens];
    let [a, b, c] = &mut copies;
    let topics = ratio(
        "LDA, 5000 words, by document",
        [
            Box::new(|| level.run(Sample { tokens: a, rows: &mut array })),
            Box::new(|| level.run(Sample { tokens: b, rows: &mut fast })),
            Box::new(|| level.run(Sample { tokens: c, rows: &mut slow })),
        ],
    );
    findings.check(format!("MF: at least 1.2 in every order: {least:.2}"), least >= 1.2);
    findings.check(format!("MF: at least 1.8 by item: {by_item:.2}"), by_item >= 1.8);
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    findings.check(format!("LDA gains less than MF: {topics:.2} against {mean:.2} in the mean"), topics < mean);
}
