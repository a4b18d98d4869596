//! What the kinds of heterogeneity of TuX² are worth to BlockPG (its Figure 9): layouts of the same vertices, the same
//! numbers in all of them; one thread, rounds that begin with another layout each, medians over rounds of ratios within one.
//!
//!     cargo heterogeneity [--json FILE]
//!
//! From each row to the next one thing is added: samples are not tracked (nobody has mirrors of them), samples and features
//! are different types, a feature's master keeps to itself what mirrors do not need; and, not in TuX², what edges do not read of samples
//! lies apart. Leaps are left out. Without `--bench` (as
//! `cargo test` runs it) the input is tiny and the times mean nothing.

mod layouts;

use std::io;
use std::marker::PhantomData;
use std::process::ExitCode;

use layouts::{Feature, FeatureOnly, Same, Sample, SampleOnly};
use megagrid_algorithms::blockpg::{self, BlockPg, Config, Damp, Margin, Region, State, Survey, Totals};
use megagrid_benches::findings::{Findings, Verdicts};
use megagrid_benches::measure::{iterate, median};
use megagrid_datasets::synthetic::ClicksSettings;
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeSource, GroupedEdges, Side};
use megagrid_results::published::Evidence::{Counted, Real};
use megagrid_stages::{
    Add, Apply, BatchOrder, BatchSize, Combine, Context, Exchange, GlobalSync, Left, Master, MiniBatch, Program, Read,
    Right, Sequence, Stages, Store, Update, mode,
};
use serde::{Deserialize, Serialize};

/// The program with the data of samples and features laid out so: see `megagrid_algorithms::blockpg`.
struct Laid<S, F>(PhantomData<fn() -> (S, F)>);

impl<S: Sample, F: Feature> Program for Laid<S, F> {
    type Left = S;
    type Right = F;
    type Edge = f32;
    type Worker = Sums;
    type Global = Shared;
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Sums {
    totals: Totals,
    /// Vertices that masters would send to mirrors, samples and features.
    synced: [u64; 2],
}

impl Combine for Sums {
    fn combine(&mut self, from: &mut Self) {
        self.totals.combine(&mut from.totals);
        self.synced.combine(&mut from.synced);
    }
}

#[derive(Clone, Copy, Default)]
struct Shared {
    state: State,
    synced: [u64; 2],
}

type Cx<'a, S, F> = Context<'a, Laid<S, F>>;

/// Tells whether a step is for a feature.
#[inline(always)]
fn steps<S: Sample, F: Feature>(feature: Read<'_, F>, cx: &Cx<'_, S, F>) -> bool {
    cx.global.state.full || F::weight(feature).0.resting == 0
}

struct Differentiate;

impl<S: Sample, F: Feature> Exchange<Laid<S, F>> for Differentiate {
    type Left = mode::Read;
    type Right = mode::Add;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, F>, cx: &Cx<'_, S, F>) -> bool {
        steps(feature, cx)
    }

    #[inline(always)]
    fn exchange(&self, sample: Read<'_, S>, feature: Add<'_, F>, x: &mut f32, _: &mut Cx<'_, S, F>) {
        let parabola = S::parabola(sample);
        feature.delta.gradient -= f64::from(*x) * parabola.slope;
        feature.delta.curvature += f64::from(*x * *x) * parabola.curvature;
    }
}

struct Step;

impl<S: Sample, F: Feature> Apply<Laid<S, F>, F> for Step {
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, F>, cx: &Cx<'_, S, F>) -> bool {
        steps(feature, cx)
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, F>, cx: &mut Cx<'_, S, F>) {
        cx.worker.synced[1] += 1;
        let (state, totals) = (&cx.global.state, &mut cx.worker.totals);
        let Master { sync, master, delta } = feature;
        F::step(sync, master, |weight, region| region.step(weight, *delta, state, totals));
    }
}

struct Shift;

impl<S: Sample, F: Feature> Exchange<Laid<S, F>> for Shift {
    type Left = mode::Update;
    type Right = mode::Read;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, F>, _: &Cx<'_, S, F>) -> bool {
        F::weight(feature).1 != 0.0
    }

    #[inline(always)]
    fn exchange(&self, sample: Update<'_, S>, feature: Read<'_, F>, x: &mut f32, cx: &mut Cx<'_, S, F>) {
        cx.worker.totals.fall[1] += S::parabola_mut(sample).shift(f64::from(*x) * F::weight(feature).1);
    }
}

/// Finds the samples that a block changed: with mirrors of them, these would be sent.
struct Enumerate;

impl<S: Sample, F: Feature> Apply<Laid<S, F>, S> for Enumerate {
    #[inline(always)]
    fn is_active(&self, sample: Read<'_, S>, _: &Cx<'_, S, F>) -> bool {
        S::is_touched(sample)
    }

    #[inline(always)]
    fn apply(&self, sample: Master<'_, S>, cx: &mut Cx<'_, S, F>) {
        cx.worker.synced[0] += 1;
        S::forget(sample.sync);
    }
}

struct Settle;

impl<S: Sample, F: Feature> Apply<Laid<S, F>, S> for Settle {
    #[inline(always)]
    fn apply(&self, sample: Master<'_, S>, _: &mut Cx<'_, S, F>) {
        S::settle(sample.sync, sample.master, |parabola, margin| *parabola = margin.settle(parabola.shift));
    }
}

struct EndBlock;
struct EndIteration;

impl<S: Sample, F: Feature> GlobalSync<Laid<S, F>> for EndBlock {
    fn apply(&self, total: Sums, shared: &mut Shared) {
        GlobalSync::<BlockPg>::apply(&Damp, total.totals, &mut shared.state);
        shared.synced.combine(&mut { total.synced });
    }
}

impl<S: Sample, F: Feature> GlobalSync<Laid<S, F>> for EndIteration {
    fn apply(&self, total: Sums, shared: &mut Shared) {
        GlobalSync::<BlockPg>::apply(&Survey, total.totals, &mut shared.state);
    }
}

/// Returns the bytes of an item of a store.
fn bytes<S: Store>() -> usize {
    size_of::<S::Item>()
}

struct Sizes {
    clicks: ClicksSettings,
    blocks: u64,
    iterations: u64,
    rounds: usize,
}

/// What a layout took.
struct Taken {
    /// Of an iteration, by round.
    seconds: Vec<f64>,
    bytes_per_vertex: f64,
    /// What a feature takes in a process that does not keep its master.
    bytes_per_mirror: usize,
    synced_bytes: f64,
    /// The weights' bits.
    weights: Vec<u64>,
}

impl Taken {
    /// Returns how many times as long as another layout it took in the same round, the median over rounds.
    fn times(&self, other: &Self) -> f64 {
        median(self.seconds.iter().zip(&other.seconds).map(|(mine, other)| mine / other).collect())
    }
}

/// The ends of what the command takes by default. TuX² does not say how many it had; with tracking each costs a look at
/// all samples.
const BLOCKS: [u64; 2] = [20, 100];

/// Trains from the start, and returns the time of the iterations.
fn train<S: Sample, F: Feature>(signed: &GroupedEdges<f32>, sizes: &Sizes) -> Taken {
    let values = (signed.num_edges() as u64).div_ceil(sizes.blocks);
    let blocks = MiniBatch { size: BatchSize::EdgesOf(Side::Right, values), order: BatchOrder::RandomBlocks };
    let sequence: Sequence<Laid<S, F>> = Sequence::new();
    if S::TRACKED {
        let tracked = sequence.mini_batch(blocks, |b| {
            b.exchange(Differentiate).apply(Right, Step).exchange(Shift).apply(Left, Enumerate).global_sync(EndBlock)
        });
        return finish(signed, sizes, tracked);
    }
    let untracked = sequence
        .mini_batch(blocks, |b| b.exchange(Differentiate).apply(Right, Step).exchange(Shift).global_sync(EndBlock));
    finish(signed, sizes, untracked)
}

fn finish<S: Sample, F: Feature>(
    signed: &GroupedEdges<f32>,
    sizes: &Sizes,
    blocks: Sequence<Laid<S, F>, impl Stages<Laid<S, F>>>,
) -> Taken {
    let mut settings = Settings { workers: 1, ..Settings::default() };
    // Shards of 65,536 rows whatever a row takes: all layouts add in the same order.
    settings.topology.l2_bytes = 1 << 40;
    let sequence = blocks.apply(Left, Settle).global_sync(EndIteration);
    let mut engine = Engine::<Laid<S, F>>::new(signed, sequence, &settings).expect("the samples fit the memory");
    engine.set_global(Shared { state: Config { l1: 1.0, l2: 0.0 }.state(), synced: [0; 2] });
    engine.init(Left, |_, first| {
        S::settle(first.sync, first.master, |parabola, margin| {
            *margin = Margin::new(0.0, 1.0, 1.0);
            *parabola = margin.parabola();
        });
    });
    engine.init(Right, |_, first| {
        F::step(first.sync, first.master, |_, region| {
            *region = Region::new(1.0);
            region.weight(0.0, false)
        });
    });
    let seconds: f64 = iterate(&mut engine, sizes.iterations).iter().map(|report| report.seconds).sum();
    let vertices = sizes.clicks.num_samples + sizes.clicks.num_features;
    let [samples, features] = engine.global().synced.map(|count| count as f64);
    let [of_sample, of_feature] = [bytes::<S::Sync>(), bytes::<F::Sync>()];
    let synced = samples * of_sample as f64 + features * of_feature as f64;
    let right = engine.on(Right);
    let view = |feature| Read { sync: right.sync(feature), mirror: right.mirror(feature) };
    let weights = (0..right.len()).map(|feature| F::weight(view(feature)).0.value.to_bits()).collect();
    Taken {
        seconds: vec![seconds / sizes.iterations as f64],
        bytes_per_vertex: engine.grid().vertex_bytes() as f64 / vertices as f64,
        bytes_per_mirror: of_feature + bytes::<F::Mirror>(),
        synced_bytes: synced / sizes.iterations as f64,
        weights,
    }
}

fn main() -> io::Result<ExitCode> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut verdicts = Verdicts::new(&mut arguments)?;
    let large =
        ClicksSettings { num_samples: 200_000, num_features: 100_000, mean_features: 50.0, ..Default::default() };
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let (clicks, rounds) = if is_bench { (large, 7) } else { (ClicksSettings::default(), 1) };
    let made = clicks.generate().expect("settings within their ranges").samples.in_degree_order();
    let (mut list, labels) = (made.data.edges, made.labels.signs().collect::<Vec<_>>());
    list.left.iter().zip(&mut list.data).for_each(|(&sample, value)| *value *= labels[sample as usize]);
    let signed = GroupedEdges::new(list, &[Side::Right]);

    let mut findings = Findings::new(Real, &[]);
    for blocks in BLOCKS {
        compare(&signed, &Sizes { clicks, blocks, iterations: 8, rounds }, &mut findings);
    }
    verdicts.add(2, "TuX2 Figure 9: heterogeneous vertices", findings)?;
    // Times of a tiny input say nothing.
    Ok(if is_bench { verdicts.exit_code() } else { ExitCode::SUCCESS })
}

type Train = fn(&GroupedEdges<f32>, &Sizes) -> Taken;

/// From each to the next one thing is added.
const LAYOUTS: [(&str, Train); 5] = [
    ("one vertex type", train::<Same<0, true>, Same<1, false>>),
    ("samples not tracked", train::<Same<0, false>, Same<1, false>>),
    ("samples and features", train::<SampleOnly, FeatureOnly>),
    ("masters and mirrors", train::<SampleOnly, blockpg::Feature>),
    ("samples apart", train::<blockpg::Sample, blockpg::Feature>),
];

/// How much slower than the one before it a layout may seem.
const NOISE: f64 = 1.03;

fn compare(signed: &GroupedEdges<f32>, sizes: &Sizes, findings: &mut Findings) {
    let mut taken: Vec<Taken> = LAYOUTS.iter().map(|(_, train)| train(signed, sizes)).collect();
    for round in 1..sizes.rounds {
        for n in 0..LAYOUTS.len() {
            let layout = (round + n) % LAYOUTS.len();
            taken[layout].seconds.append(&mut LAYOUTS[layout].1(signed, sizes).seconds);
        }
    }
    assert!(taken.iter().all(|one| one.weights == taken[0].weights), "weights are the same in all layouts");
    let (samples, features) = (signed.num_vertices(Side::Left), signed.num_vertices(Side::Right));
    let (values, blocks) = (signed.num_edges(), sizes.blocks);
    println!("BlockPG, {samples} samples, {features} features, {values} values, {blocks} blocks: one iteration");
    println!("                       median ms   ratio  bytes/vertex  bytes/mirror   synced MB");
    for ((name, _), one) in LAYOUTS.iter().zip(&taken) {
        let Taken { bytes_per_vertex, bytes_per_mirror, synced_bytes, .. } = one;
        let (ms, ratio, synced) = (median(one.seconds.clone()) * 1e3, taken[0].times(one), synced_bytes / 1e6);
        println!("{name:<22}{ms:>10.2}{ratio:>8.2}{bytes_per_vertex:>14.1}{bytes_per_mirror:>14}{synced:>12.3}");
    }
    // What TuX² compares; the last layout is this program's own.
    let published = &taken[..taken.len() - 1];
    let falls = |of: fn(&Taken) -> f64| published.windows(2).all(|two| of(&two[1]) < of(&two[0]));
    let monotone = taken.windows(2).all(|two| two[1].times(&two[0]) <= NOISE);
    let gain = |to: usize| 100.0 * (1.0 - taken[to].times(&taken[0]));
    let (of_published, of_all) = (gain(published.len() - 1), gain(taken.len() - 1));
    let what = "all that TuX² has takes 10 to 60 % less time (29 %)";
    let found = format!("{of_published:.0} %, with samples apart {of_all:.0} %");
    findings.check(format!("{blocks} blocks: {what}: {found}"), (10.0..=60.0).contains(&of_published));
    findings.check(format!("{blocks} blocks: from layout to layout time never rises by more than 3 %"), monotone);
    let bytes_fall = falls(|one| one.bytes_per_vertex + one.bytes_per_mirror as f64);
    findings.check_by(Counted, format!("{blocks} blocks: bytes of a vertex and its mirror fall"), bytes_fall);
    findings.check_by(Counted, format!("{blocks} blocks: synced bytes fall"), falls(|one| one.synced_bytes));
}
