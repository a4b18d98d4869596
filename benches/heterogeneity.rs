//! What the kinds of heterogeneity of TuX² are worth to BlockPG (its Figure 9): layouts of the same vertices, the same
//! numbers in all of them; one thread, rounds that begin with another layout each, medians over rounds of ratios within one.
//!
//!     cargo bench -p megagrid-benches --bench heterogeneity
//!
//! From each row to the next one thing is added: samples are not tracked (nobody has mirrors of them), samples and features
//! are different types, a feature's master keeps to itself what mirrors do not need; and, not in TuX², what edges do not read of samples
//! lies apart. Leaps are left out. Without `--bench` (as
//! `cargo test` runs it) the input is tiny and the times mean nothing.

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};
use megagrid_algorithms::blockpg::{
    self, BlockPg, Config, Damp, Derivatives, Margin, Parabola, Region, State, Survey, Totals, Weight,
};
use megagrid_datasets::synthetic::ClicksSettings;
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeSource, GroupedEdges, Side};
use megagrid_stages::{
    Add, Apply, BatchOrder, BatchSize, Combine, Context, Exchange, GlobalSync, Left, Master, MiniBatch, Program, Read,
    Right, Sequence, Store, Update, Vertex, mode, vertex,
};
use serde::{Deserialize, Serialize};

/// Where the data of samples and features are.
trait Layout: Send + Sync + 'static {
    type Sample: Vertex<Sync: Sized, Master: Sized>;
    type Feature: Vertex<Sync: Sized, Delta = Derivatives, Master: Sized, Mirror: Sized>;
    const NAME: &'static str;
    /// Whether samples that a block touched are found, as if they had mirrors.
    const TRACKED: bool = false;

    /// Tells whether a sample was touched, where they are tracked.
    fn is_touched(_: Read<'_, Self::Sample>) -> bool {
        false
    }
    /// Forgets that a sample was touched.
    fn forget(_: SyncMut<'_, Self::Sample>) {}
    fn parabola(sample: Read<'_, Self::Sample>) -> &Parabola;
    fn parabola_mut(sample: Update<'_, Self::Sample>) -> &mut Parabola;
    /// Sets what a sample knows.
    fn settle(
        sync: SyncMut<'_, Self::Sample>,
        master: MasterMut<'_, Self::Sample>,
        settle: impl FnOnce(&mut Parabola, &mut Margin),
    );
    /// The weight and its last change.
    fn weight(feature: Read<'_, Self::Feature>) -> (Weight, f64);
    /// Runs a step from the weight, and keeps what it returns and, without a mirror that does, the change.
    fn step(
        sync: SyncMut<'_, Self::Feature>,
        master: MasterMut<'_, Self::Feature>,
        step: impl FnOnce(Weight, &mut Region) -> Weight,
    );
}

type SyncOf<V> = <V as Vertex>::Sync;
type SyncMut<'v, V> = &'v mut <V as Vertex>::Sync;
type MasterMut<'v, V> = &'v mut <V as Vertex>::Master;

/// All that a vertex of either side may need: what both sides have is one field, and what edges read of samples comes first and,
/// with 96 bytes, never crosses a cache line.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Everything {
    parabola: Parabola,
    /// Of a sample its margin, of a feature its weight.
    value: f64,
    resting: u64,
    change: f64,
    penalty: f64,
    ahead: f64,
    reach: f32,
    trust: f32,
    gradient: f32,
    /// The sample's weight.
    weight: f32,
    course: [f32; 5],
    touched: f32,
}

impl Everything {
    #[inline(always)]
    fn weight(&self) -> Weight {
        Weight { value: self.value, resting: self.resting }
    }

    #[inline(always)]
    fn settle(&mut self, settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        let mut margin = Margin { margin: self.value, weight: self.weight, course: self.course };
        settle(&mut self.parabola, &mut margin);
        Margin { margin: self.value, weight: self.weight, course: self.course } = margin;
    }

    #[inline(always)]
    fn step(&mut self, step: impl FnOnce(Weight, &mut Region) -> Weight) {
        let Self { penalty, reach, trust, ahead, course, gradient, .. } = *self;
        let mut region = Region { penalty, reach, trust, ahead, course, gradient };
        let Weight { value, resting } = step(self.weight(), &mut region);
        self.change = value - self.value;
        (self.value, self.resting) = (value, resting);
        let Region { penalty, reach, trust, ahead, course, gradient } = region;
        *self = Self { penalty, reach, trust, ahead, course, gradient, ..*self };
    }
}

#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct WholeSample {
    parabola: Parabola,
    margin: Margin,
}

#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct WholeFeature {
    weight: Weight,
    region: Region,
    change: f64,
}

impl WholeFeature {
    #[inline(always)]
    fn step(&mut self, step: impl FnOnce(Weight, &mut Region) -> Weight) {
        let old = self.weight;
        self.weight = step(old, &mut self.region);
        self.change = self.weight.value - old.value;
    }
}

/// A vertex of one kind for both sides, all of it synced.
struct Same<const SIDE: u8>;

impl<const SIDE: u8> Vertex for Same<SIDE> {
    type Sync = Everything;
    type Delta = Derivatives;
    type Master = ();
    type Mirror = ();
}

/// One kind of vertex; whether samples are tracked.
struct OneType<const TRACKED: bool>;

impl<const TRACKED: bool> Layout for OneType<TRACKED> {
    type Sample = Same<0>;
    type Feature = Same<1>;
    const NAME: &'static str = if TRACKED { "one vertex type" } else { "samples not tracked" };
    const TRACKED: bool = TRACKED;

    #[inline(always)]
    fn is_touched(sample: Read<'_, Self::Sample>) -> bool {
        sample.sync.touched != 0.0
    }

    #[inline(always)]
    fn forget(sample: &mut Everything) {
        sample.touched = 0.0;
    }

    #[inline(always)]
    fn parabola(sample: Read<'_, Self::Sample>) -> &Parabola {
        &sample.sync.parabola
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, Self::Sample>) -> &mut Parabola {
        if TRACKED {
            sample.sync.touched = 1.0;
        }
        &mut sample.sync.parabola
    }

    #[inline(always)]
    fn settle(sync: &mut Everything, (): &mut (), settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        sync.settle(settle);
    }

    #[inline(always)]
    fn weight(feature: Read<'_, Self::Feature>) -> (Weight, f64) {
        (feature.sync.weight(), feature.sync.change)
    }

    #[inline(always)]
    fn step(sync: &mut Everything, (): &mut (), step: impl FnOnce(Weight, &mut Region) -> Weight) {
        sync.step(step);
    }
}

vertex! { struct SampleOnly { sync: WholeSample } }

vertex! { struct FeatureOnly { sync: WholeFeature, delta: Derivatives } }

/// Two vertex types, all of each synced.
struct TwoTypes;

impl Layout for TwoTypes {
    type Sample = SampleOnly;
    type Feature = FeatureOnly;
    const NAME: &'static str = "samples and features";

    #[inline(always)]
    fn parabola(sample: Read<'_, SampleOnly>) -> &Parabola {
        &sample.sync.parabola
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, SampleOnly>) -> &mut Parabola {
        &mut sample.sync.parabola
    }

    #[inline(always)]
    fn settle(sync: &mut WholeSample, (): &mut (), settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        settle(&mut sync.parabola, &mut sync.margin);
    }

    #[inline(always)]
    fn weight(feature: Read<'_, FeatureOnly>) -> (Weight, f64) {
        (feature.sync.weight, feature.sync.change)
    }

    #[inline(always)]
    fn step(sync: &mut WholeFeature, (): &mut (), step: impl FnOnce(Weight, &mut Region) -> Weight) {
        sync.step(step);
    }
}

/// Masters of features keep to themselves what mirrors do not need.
struct Mirrors;

impl Layout for Mirrors {
    type Sample = SampleOnly;
    type Feature = blockpg::Feature;
    const NAME: &'static str = "masters and mirrors";

    #[inline(always)]
    fn parabola(sample: Read<'_, SampleOnly>) -> &Parabola {
        TwoTypes::parabola(sample)
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, SampleOnly>) -> &mut Parabola {
        TwoTypes::parabola_mut(sample)
    }

    #[inline(always)]
    fn settle(sync: &mut WholeSample, master: &mut (), settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        TwoTypes::settle(sync, master, settle);
    }

    #[inline(always)]
    fn weight(feature: Read<'_, blockpg::Feature>) -> (Weight, f64) {
        Roles::weight(feature)
    }

    #[inline(always)]
    fn step(sync: &mut Weight, master: &mut Region, step: impl FnOnce(Weight, &mut Region) -> Weight) {
        Roles::step(sync, master, step);
    }
}

/// The program's own types: of samples too, what edges do not read is apart.
struct Roles;

impl Layout for Roles {
    type Sample = blockpg::Sample;
    type Feature = blockpg::Feature;
    const NAME: &'static str = "samples apart";

    #[inline(always)]
    fn parabola(sample: Read<'_, blockpg::Sample>) -> &Parabola {
        sample.sync
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, blockpg::Sample>) -> &mut Parabola {
        sample.sync
    }

    #[inline(always)]
    fn settle(sync: &mut Parabola, master: &mut Margin, settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        settle(sync, master);
    }

    #[inline(always)]
    fn weight(feature: Read<'_, blockpg::Feature>) -> (Weight, f64) {
        (*feature.sync, *feature.mirror)
    }

    #[inline(always)]
    fn step(sync: &mut Weight, master: &mut Region, step: impl FnOnce(Weight, &mut Region) -> Weight) {
        *sync = step(*sync, master);
    }
}

/// The program in a layout.
struct Laid<L>(PhantomData<fn() -> L>);

impl<L: Layout> Program for Laid<L> {
    type Left = L::Sample;
    type Right = L::Feature;
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

/// A stage of the program, in a layout: see `megagrid_algorithms::blockpg`.
struct Stage<L, const NUMBER: u8>(PhantomData<fn() -> L>);
type Differentiate<L> = Stage<L, 0>;
type Step<L> = Stage<L, 1>;
type Shift<L> = Stage<L, 2>;
type Settle<L> = Stage<L, 3>;
type Enumerate<L> = Stage<L, 4>;

type Cx<'a, L> = Context<'a, Laid<L>>;

impl<L: Layout> Exchange<Laid<L>> for Differentiate<L> {
    type Left = mode::Read;
    type Right = mode::Add;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, L::Feature>, cx: &Cx<'_, L>) -> bool {
        cx.global.state.full || L::weight(feature).0.resting == 0
    }

    #[inline(always)]
    fn exchange(&self, sample: Read<'_, L::Sample>, feature: Add<'_, L::Feature>, x: &mut f32, _: &mut Cx<'_, L>) {
        let parabola = L::parabola(sample);
        feature.delta.gradient -= f64::from(*x * parabola.slope);
        feature.delta.curvature += f64::from(*x * *x * parabola.curvature);
    }
}

impl<L: Layout> Apply<Laid<L>, L::Feature> for Step<L> {
    #[inline(always)]
    fn is_active(&self, feature: Read<'_, L::Feature>, cx: &Cx<'_, L>) -> bool {
        cx.global.state.full || L::weight(feature).0.resting == 0
    }

    #[inline(always)]
    fn apply(&self, feature: Master<'_, L::Feature>, cx: &mut Cx<'_, L>) {
        cx.worker.synced[1] += 1;
        let (state, totals) = (&cx.global.state, &mut cx.worker.totals);
        let Master { sync, master, delta } = feature;
        L::step(sync, master, |weight, region| region.step(weight, *delta, state, totals));
    }
}

impl<L: Layout> Exchange<Laid<L>> for Shift<L> {
    type Left = mode::Update;
    type Right = mode::Read;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, L::Feature>, _: &Cx<'_, L>) -> bool {
        L::weight(feature).1 != 0.0
    }

    #[inline(always)]
    fn exchange(&self, sample: Update<'_, L::Sample>, feature: Read<'_, L::Feature>, x: &mut f32, cx: &mut Cx<'_, L>) {
        cx.worker.totals.fall[1] += L::parabola_mut(sample).shift(f64::from(*x) * L::weight(feature).1);
    }
}

/// Finds the samples that a block changed: with mirrors of them, these would be sent.
impl<L: Layout> Apply<Laid<L>, L::Sample> for Enumerate<L> {
    #[inline(always)]
    fn is_active(&self, sample: Read<'_, L::Sample>, _: &Cx<'_, L>) -> bool {
        L::is_touched(sample)
    }

    #[inline(always)]
    fn apply(&self, sample: Master<'_, L::Sample>, cx: &mut Cx<'_, L>) {
        cx.worker.synced[0] += 1;
        L::forget(sample.sync);
    }
}

impl<L: Layout> Apply<Laid<L>, L::Sample> for Settle<L> {
    #[inline(always)]
    fn apply(&self, sample: Master<'_, L::Sample>, _: &mut Cx<'_, L>) {
        L::settle(sample.sync, sample.master, |parabola, margin| *parabola = margin.settle(parabola.shift));
    }
}

/// Ends a block, and an iteration.
struct EndBlock;
struct EndIteration;

impl<L: Layout> GlobalSync<Laid<L>> for EndBlock {
    fn apply(&self, total: Sums, shared: &mut Shared) {
        GlobalSync::<BlockPg>::apply(&Damp, total.totals, &mut shared.state);
        shared.synced.combine(&mut { total.synced });
    }
}

impl<L: Layout> GlobalSync<Laid<L>> for EndIteration {
    fn apply(&self, total: Sums, shared: &mut Shared) {
        GlobalSync::<BlockPg>::apply(&Survey, total.totals, &mut shared.state);
    }
}

/// Returns the bytes of an item of a store.
fn bytes<S: Store>() -> usize {
    size_of::<S::Item>()
}

/// How large the input is.
struct Sizes {
    clicks: ClicksSettings,
    blocks: u64,
    iterations: u64,
    rounds: usize,
}

/// What a layout took.
struct Taken {
    name: &'static str,
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
    fn median_seconds(&self) -> f64 {
        median(self.seconds.clone())
    }

    /// Returns how many times as long as another layout it took in the same round, the median over rounds.
    fn times(&self, other: &Self) -> f64 {
        median(self.seconds.iter().zip(&other.seconds).map(|(mine, other)| mine / other).collect())
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The ends of what the command takes by default. TuX² does not say how many it had; with tracking each costs a look at
/// all samples.
const BLOCKS: [u64; 2] = [20, 100];

/// Trains from the start, and returns the time of the iterations alone.
fn train<L: Layout>(signed: &GroupedEdges<f32>, sizes: &Sizes) -> Taken {
    let values = (signed.num_edges() as u64).div_ceil(sizes.blocks);
    let blocks = MiniBatch { size: BatchSize::EdgesOf(Side::Right, values), order: BatchOrder::RandomBlocks };
    let (differentiate, step): (Differentiate<L>, Step<L>) = (Stage(PhantomData), Stage(PhantomData));
    let (shift, enumerate): (Shift<L>, Enumerate<L>) = (Stage(PhantomData), Stage(PhantomData));
    let settle: Settle<L> = Stage(PhantomData);
    let state = Config { l1: 1.0, l2: 0.0 }.state();
    let mut settings = Settings { workers: 1, ..Settings::default() };
    // Shards of 65,536 rows whatever a row takes: all layouts add in the same order.
    settings.topology.l2_bytes = 1 << 40;
    let shared = Shared { state, synced: [0; 2] };
    macro_rules! run {
        ($sequence:expr) => {{
            let sequence = $sequence.apply(Left, settle).global_sync(EndIteration);
            let mut engine = Engine::<Laid<L>>::new(signed, sequence, &settings).expect("the samples fit the memory");
            engine.set_global(shared);
            finish::<L>(engine, sizes)
        }};
    }
    let sequence = Sequence::new();
    if L::TRACKED {
        run!(sequence.mini_batch(blocks, |b| {
            b.exchange(differentiate).apply(Right, step).exchange(shift).apply(Left, enumerate).global_sync(EndBlock)
        }))
    } else {
        run!(sequence.mini_batch(blocks, |b| {
            b.exchange(differentiate).apply(Right, step).exchange(shift).global_sync(EndBlock)
        }))
    }
}

fn finish<L: Layout>(mut engine: Engine<Laid<L>>, sizes: &Sizes) -> Taken {
    engine.init(Left, |_, first| {
        L::settle(first.sync, first.master, |parabola, margin| {
            *margin = Margin::new(0.0, 1.0);
            *parabola = margin.parabola();
        });
    });
    engine.init(Right, |_, first| {
        L::step(first.sync, first.master, |weight, region| {
            *region = Region::new(1.0, 1.0);
            weight
        });
    });
    let mut seconds = 0.0;
    let run = engine.run_until(sizes.iterations, |_, report| {
        seconds += report.seconds;
        Ok(false)
    });
    run.expect("stages do not panic");
    let vertices = sizes.clicks.num_samples + sizes.clicks.num_features;
    let [samples, features] = engine.global().synced.map(|count| count as f64);
    let [of_sample, of_feature] = [bytes::<SyncOf<L::Sample>>(), bytes::<SyncOf<L::Feature>>()];
    let synced = samples * of_sample as f64 + features * of_feature as f64;
    let right = engine.on(Right);
    let view = |feature| Read { sync: right.sync(feature), mirror: right.mirror(feature) };
    let weights = (0..right.len()).map(|feature| L::weight(view(feature)).0.value.to_bits()).collect();
    Taken {
        name: L::NAME,
        seconds: vec![seconds / sizes.iterations as f64],
        bytes_per_vertex: engine.grid().vertex_bytes() as f64 / vertices as f64,
        bytes_per_mirror: of_feature + bytes::<<L::Feature as Vertex>::Mirror>(),
        synced_bytes: synced / sizes.iterations as f64,
        weights,
    }
}

fn main() {
    let large =
        ClicksSettings { num_samples: 200_000, num_features: 100_000, mean_features: 50.0, ..Default::default() };
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (clicks, rounds) = if is_bench { (large, 7) } else { (ClicksSettings::default(), 1) };
    let made = clicks.generate().expect("settings within their ranges").samples.in_degree_order();
    let (mut list, labels) = (made.data.edges, made.labels);
    list.left.iter().zip(&mut list.data).for_each(|(&sample, value)| *value *= labels[sample as usize]);
    let signed = GroupedEdges::new(list, &[Side::Right]);

    BLOCKS.iter().for_each(|&blocks| compare(&signed, &Sizes { clicks, blocks, iterations: 8, rounds }));
}

fn compare(signed: &GroupedEdges<f32>, sizes: &Sizes) {
    let layouts =
        [train::<OneType<true>>, train::<OneType<false>>, train::<TwoTypes>, train::<Mirrors>, train::<Roles>];
    let mut taken: Vec<Taken> = layouts.iter().map(|train| train(signed, sizes)).collect();
    for round in 1..sizes.rounds {
        for n in 0..layouts.len() {
            let layout = (round + n) % layouts.len();
            taken[layout].seconds.append(&mut layouts[layout](signed, sizes).seconds);
        }
    }
    assert!(taken.iter().all(|one| one.weights == taken[0].weights), "weights are the same in all layouts");
    print(signed, sizes, &taken);
}

/// How much slower than the one before it a layout may seem.
const NOISE: f64 = 1.03;

fn print(signed: &GroupedEdges<f32>, sizes: &Sizes, taken: &[Taken]) {
    let (samples, features) = (signed.num_vertices(Side::Left), signed.num_vertices(Side::Right));
    let (values, blocks) = (signed.num_edges(), sizes.blocks);
    println!("BlockPG, {samples} samples, {features} features, {values} values, {blocks} blocks: one iteration");
    println!(
        "{:<22}{:>10}{:>8}{:>14}{:>14}{:>12}",
        "", "median ms", "ratio", "bytes/vertex", "bytes/mirror", "synced MB"
    );
    for one in taken {
        let Taken { name, bytes_per_vertex, bytes_per_mirror, synced_bytes, .. } = one;
        let (ms, ratio) = (one.median_seconds() * 1e3, taken[0].times(one));
        println!(
            "{name:<22}{ms:>10.2}{ratio:>8.2}{bytes_per_vertex:>14.1}{bytes_per_mirror:>14}{:>12.3}",
            synced_bytes / 1e6
        );
    }
    let verdict = |is: bool| if is { "PASS" } else { "FAIL" };
    // What TuX² compares; the last layout is this program's own.
    let published = &taken[..taken.len() - 1];
    let falls = |of: fn(&Taken) -> f64| published.windows(2).all(|two| of(&two[1]) < of(&two[0]));
    let monotone = taken.windows(2).all(|two| two[1].times(&two[0]) <= NOISE);
    let gain = |to: usize| 100.0 * (1.0 - taken[to].times(&taken[0]));
    println!("same weights in all: PASS");
    println!("time never rises by more than 3 %: {}", verdict(monotone));
    println!(
        "bytes of a vertex and its mirror fall: {}",
        verdict(falls(|one| one.bytes_per_vertex + one.bytes_per_mirror as f64))
    );
    println!("synced bytes fall: {}", verdict(falls(|one| one.synced_bytes)));
    let (of_published, of_all) = (gain(published.len() - 1), gain(taken.len() - 1));
    let holds = (10.0..=60.0).contains(&of_published);
    println!(
        "less time by 10 to 60 % with all that TuX² has: {of_published:.0} %, {}; with samples apart {of_all:.0} %",
        verdict(holds)
    );
}
