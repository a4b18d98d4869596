//! What this machine gives to a loop that does nothing else, and the bounds that follow for PageRank and MF.
//!
//!     cargo limits
//!
//! Without `--bench` (as `cargo test` runs it) arrays are tiny and the figures mean nothing.

use std::hint::black_box;

use megagrid_benches::loops::AtLevel;
use megagrid_benches::measure::seconds;
use megagrid_partition::SplitMix;
use megagrid_stages::kernels::{descend, dot};
use megagrid_stages::simd::Level;

fn main() {
    let full = std::env::args().any(|arg| arg == "--bench");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for threads in [1, cores] {
        println!("\n{threads} threads");
        let large = if full { 1 << 26 } else { 1 << 12 };
        row("triad, GB/s", 12.0 * large as f64 / best(threads, || triad(large)) / 1e9);
        row("sum, GB/s", 4.0 * large as f64 / best(threads, || sum(large)) / 1e9);
        for kib in [32, 256, 1024, 4096, 16_384, 65_536] {
            let values = if full { kib << 8 } else { 64 };
            let gathers = if full { 1 << 24 } else { 1 << 10 };
            let seconds = best(threads, || gather(values, gathers));
            row(&format!("gathers of 4 B from {kib} KiB, M/s"), gathers as f64 / seconds / 1e6);
        }
        let rounds = if full { 2_000_000 } else { 100 };
        for dims in [32, 112] {
            let flops = (2 * dims * rounds) as f64;
            row(&format!("dot, k = {dims} in L1, GFLOP/s"), flops / best(threads, || dots(dims, rounds)) / 1e9);
            let steps = best(threads, || steps(dims, rounds));
            row(&format!("dot and descend, k = {dims} in L1, M/s"), rounds as f64 / steps / 1e6);
        }
    }
}

fn row(name: &str, value: f64) {
    println!("{name:<42} {value:>10.1}");
}

/// Prepares on every thread, runs all threads at once, and returns the least time over rounds, divided by the threads.
fn best<R: FnMut()>(threads: usize, prepare: impl Fn() -> R + Sync) -> f64 {
    let barrier = std::sync::Barrier::new(threads);
    let one = || {
        let mut run = prepare();
        let times = (0..7).map(|_| {
            barrier.wait();
            seconds(&mut run)
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let slowest = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        parts.into_iter().map(|part| part.join().expect("a loop does not panic")).fold(0.0, f64::max)
    });
    slowest / threads as f64
}

fn triad(items: usize) -> impl FnMut() {
    let (mut a, b, c) = (vec![0_f32; items], vec![1_f32; items], vec![2_f32; items]);
    move || {
        let triad = || {
            a.iter_mut().zip(&b).zip(&c).for_each(|((a, b), c)| *a = b + 3.0 * c);
            a[0]
        };
        black_box(Level::detect().run(AtLevel(triad)));
    }
}

fn sum(items: usize) -> impl FnMut() {
    let a = vec![1_f32; items];
    move || {
        let sum = || {
            let mut lanes = [0.0; 64];
            a.chunks_exact(64).for_each(|chunk| lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x));
            lanes[0]
        };
        black_box(Level::detect().run(AtLevel(sum)));
    }
}

/// Sums values at random places, as a block of PageRank does; `values` is a power of two.
fn gather(values: usize, gathers: usize) -> impl FnMut() {
    let from = vec![1_f32; values];
    let mut random = SplitMix::new(1, 0);
    let places: Vec<u32> = (0..gathers).map(|_| random.below(values as u64) as u32).collect();
    move || {
        let gather = || {
            let mut lanes = [0.0; 8];
            for chunk in places.chunks_exact(8) {
                lanes.iter_mut().zip(chunk).for_each(|(lane, &place)| *lane += from[place as usize & (from.len() - 1)]);
            }
            lanes[0]
        };
        black_box(Level::detect().run(AtLevel(gather)));
    }
}

/// Dot products of two rows in the first-level cache.
fn dots(dims: usize, rounds: usize) -> impl FnMut() {
    let (a, b) = (vec![1_f32; dims], vec![0.5_f32; dims]);
    move || {
        let dots = || (0..rounds).map(|_| dot(black_box(&a), &b)).sum::<f32>();
        black_box(Level::detect().run(AtLevel(dots)));
    }
}

const ROWS: usize = 16;

/// What MF does for a rating, on rows that are at hand and independent of those before.
fn steps(dims: usize, rounds: usize) -> impl FnMut() {
    let (mut a, mut b) = (vec![0.1_f32; ROWS * dims], vec![0.1_f32; ROWS * dims]);
    move || {
        let steps = || {
            let mut total = 0.0;
            for _ in 0..rounds / ROWS {
                for (p, q) in a.chunks_exact_mut(dims).zip(b.chunks_exact_mut(dims)) {
                    let error = 1.0 - dot(p, q);
                    total += descend(p, q, error, 0.05, 1e-3, 1e-3).0;
                }
            }
            total
        };
        black_box(Level::detect().run(AtLevel(steps)));
    }
}
