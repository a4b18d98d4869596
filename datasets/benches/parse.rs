//! Throughput of the text readers, in MiB of uncompressed text per second, dictionaries included: on all threads, and
//! for names, whose dictionary threads share, also on one.
//! All on one core: `taskset -c 0 cargo bench -p megagrid-datasets --bench parse`.

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use megagrid_datasets::{Format, parse_corpus, parse_graph, parse_ratings, parse_samples};
use rayon::ThreadPoolBuilder;

/// Bytes of text of each input.
const TEXT_BYTES: usize = 64 << 20;

/// A 64-bit mixer: seeds in order give numbers that look random.
fn mix(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// Writes lines until the text is long enough.
fn text(mut line: impl FnMut(u64, &mut String)) -> String {
    let mut text = String::with_capacity(TEXT_BYTES + 1024);
    let mut seed = 0;
    while text.len() < TEXT_BYTES {
        line(seed, &mut text);
        seed += 1;
    }
    text
}

macro_rules! lines {
    ($seed:ident, $($format:tt)*) => { text(|$seed, text| { let _ = writeln!(text, $($format)*); }) };
}

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(TEXT_BYTES as u64));
    let one = ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");

    let dense = lines!(s, "{}\t{}", mix(s) % 1_000_000, mix(!s) % 1_000_000);
    group
        .bench_function("edges, ids below 1 M", |b| b.iter(|| parse_graph(black_box(dense.as_bytes()), Format::Edges)));
    let sparse = lines!(s, "{} {}", mix(mix(s) % 1_000_000) >> 1, mix(mix(!s) % 1_000_000) >> 1);
    group.bench_function("edges, ids of 63 bits", |b| {
        b.iter(|| parse_graph(black_box(sparse.as_bytes()), Format::Edges))
    });
    let names = lines!(s, "page{} page{}", mix(s) % 1_000_000, mix(!s) % 1_000_000);
    group.bench_function("edges, names", |b| b.iter(|| parse_graph(black_box(names.as_bytes()), Format::Edges)));
    group.bench_function("edges, names, one thread", |b| {
        one.install(|| b.iter(|| parse_graph(black_box(names.as_bytes()), Format::Edges)))
    });

    let movielens = lines!(s, "{}\t{}\t{}\t{}", mix(s) % 48_000, mix(!s) % 17_800, s % 5 + 1, 880_000_000 + s);
    group.bench_function("ratings, tabs", |b| {
        b.iter(|| parse_ratings(black_box(movielens.as_bytes()), Format::Ratings))
    });
    let decimal = lines!(s, "{}::{}::{:.3}", mix(s) % 48_000, mix(!s) % 17_800, (s % 5000) as f32 / 1000.0);
    group.bench_function("ratings, colons", |b| {
        b.iter(|| parse_ratings(black_box(decimal.as_bytes()), Format::Ratings))
    });
    let named = lines!(s, "A{:013X},B{:09X},{}.5", mix(mix(s) % 48_000) >> 12, mix(mix(!s) % 17_800) >> 28, s % 5);
    group.bench_function("ratings, names", |b| b.iter(|| parse_ratings(black_box(named.as_bytes()), Format::Ratings)));
    group.bench_function("ratings, names, one thread", |b| {
        one.install(|| b.iter(|| parse_ratings(black_box(named.as_bytes()), Format::Ratings)))
    });

    let samples = lines!(s, "{} {}:1 {}:0.25", 2 * (s as i64 % 2) - 1, mix(s) % 1000 + 1, mix(!s) % 100_000 + 1001);
    group.bench_function("libsvm", |b| b.iter(|| parse_samples(black_box(samples.as_bytes()), Format::Libsvm, &[])));
    let documents = lines!(s, "word{} word{} word{}", mix(s) % 1000, mix(!s) % 30_000, mix(s ^ 77) % 1000);
    group.bench_function("text", |b| b.iter(|| parse_corpus(black_box(documents.as_bytes()), Format::Text, None)));
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
