//! Row kernels at each vector level, rows in the first-level cache: `cargo bench -p megagrid-benches --bench kernels`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use megagrid_benches::loops::AtLevel;
use megagrid_stages::kernels::{axpy, descend, dot};
use megagrid_stages::simd::Level;

/// Rows per side; both sides fit a cache of 32 KB at the widest row.
const ROWS: usize = 16;

fn rows(width: usize) -> Vec<f32> {
    (0..ROWS * width).map(|at| (at % 97) as f32 / 97.0 - 0.5).collect()
}

/// Runs `kernel` on every pair of rows.
#[inline(always)]
fn each_pair(
    left: &mut [f32],
    right: &mut [f32],
    width: usize,
    mut kernel: impl FnMut(&mut [f32], &mut [f32]) -> f32,
) -> f32 {
    let mut sum = 0.0;
    for p in left.chunks_exact_mut(width) {
        for q in right.chunks_exact_mut(width) {
            sum += kernel(p, q);
        }
    }
    sum
}

fn kernels(criterion: &mut Criterion) {
    for width in [16, 32, 112] {
        let (mut left, mut right) = (rows(width), rows(width));
        let mut group = criterion.benchmark_group(format!("width {width}"));
        group.throughput(Throughput::Elements((ROWS * ROWS) as u64));
        for level in Level::available() {
            let (p, q) = (&mut left, &mut right);
            group.bench_function(BenchmarkId::new("dot", level), |bencher| {
                bencher.iter(|| level.run(AtLevel(|| each_pair(p, q, width, |p, q| dot(p, q)))));
            });
            group.bench_function(BenchmarkId::new("axpy", level), |bencher| {
                let axpy = |p: &mut [f32], q: &mut [f32]| {
                    axpy(p, 1e-9, q);
                    0.0
                };
                bencher.iter(|| level.run(AtLevel(|| each_pair(p, q, width, axpy))));
            });
            group.bench_function(BenchmarkId::new("descend", level), |bencher| {
                let descend = |p: &mut [f32], q: &mut [f32]| descend(p, q, 1e-3, 1e-3, 1e-3, 1e-3).0;
                bencher.iter(|| level.run(AtLevel(|| each_pair(p, q, width, descend))));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
