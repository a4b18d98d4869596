//! Where the data of samples and features are.

use bytemuck::{Pod, Zeroable};
use megagrid_algorithms::blockpg::{self, Derivatives, Margin, Parabola, Region, Weight};
use megagrid_stages::{Read, Update, Vertex, vertex};

type SyncMut<'v, V> = &'v mut <V as Vertex>::Sync;
type MasterMut<'v, V> = &'v mut <V as Vertex>::Master;

/// Where a sample's data are.
pub trait Sample: Vertex<Sync: Sized, Master: Sized> + Sized {
    /// Whether samples that a block touched are found, as if they had mirrors.
    const TRACKED: bool = false;

    /// Tells whether a sample was touched, where they are tracked.
    fn is_touched(_: Read<'_, Self>) -> bool {
        false
    }
    /// Forgets that a sample was touched.
    fn forget(_: SyncMut<'_, Self>) {}
    fn parabola(sample: Read<'_, Self>) -> &Parabola;
    fn parabola_mut(sample: Update<'_, Self>) -> &mut Parabola;
    /// Sets what a sample knows.
    fn settle(sync: SyncMut<'_, Self>, master: MasterMut<'_, Self>, settle: impl FnOnce(&mut Parabola, &mut Margin));
}

/// Where a feature's data are.
pub trait Feature: Vertex<Sync: Sized, Delta = Derivatives, Master: Sized, Mirror: Sized> + Sized {
    /// The weight and its last change.
    fn weight(feature: Read<'_, Self>) -> (Weight, f64);
    /// Runs a step from the weight, and keeps what it returns and, without a mirror that does, the change.
    fn step(sync: SyncMut<'_, Self>, master: MasterMut<'_, Self>, step: impl FnOnce(Weight, &mut Region) -> Weight);
}

/// All that a vertex of either side may need: what both sides have is one field, and what edges read of samples comes first.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Everything {
    parabola: Parabola,
    /// Of a sample its margin, of a feature its weight.
    value: f64,
    change: f64,
    ahead: f64,
    reach: f64,
    gradient: f64,
    /// The sample's weight.
    weight: f64,
    course: [f64; 5],
    trust: f32,
    resting: u16,
    free: u16,
    touched: u64,
}

/// A vertex of one kind for both sides, all of it synced; whether samples are tracked.
pub struct Same<const SIDE: u8, const TRACKED: bool>;

impl<const SIDE: u8, const TRACKED: bool> Vertex for Same<SIDE, TRACKED> {
    type Sync = Everything;
    type Delta = Derivatives;
    type Master = ();
    type Mirror = ();
}

impl<const TRACKED: bool> Sample for Same<0, TRACKED> {
    const TRACKED: bool = TRACKED;

    #[inline(always)]
    fn is_touched(sample: Read<'_, Self>) -> bool {
        TRACKED && sample.sync.touched != 0
    }

    #[inline(always)]
    fn forget(sample: &mut Everything) {
        sample.touched = 0;
    }

    #[inline(always)]
    fn parabola(sample: Read<'_, Self>) -> &Parabola {
        &sample.sync.parabola
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, Self>) -> &mut Parabola {
        if TRACKED {
            sample.sync.touched = 1;
        }
        &mut sample.sync.parabola
    }

    #[inline(always)]
    fn settle(all: &mut Everything, (): &mut (), settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        let mut margin = Margin { margin: all.value, label: 1.0, weight: all.weight, course: all.course };
        settle(&mut all.parabola, &mut margin);
        Margin { margin: all.value, weight: all.weight, course: all.course, .. } = margin;
    }
}

impl Feature for Same<1, false> {
    #[inline(always)]
    fn weight(feature: Read<'_, Self>) -> (Weight, f64) {
        let &Everything { value, trust, resting, free, change, .. } = feature.sync;
        (Weight { value, trust, resting, free }, change)
    }

    #[inline(always)]
    fn step(all: &mut Everything, (): &mut (), step: impl FnOnce(Weight, &mut Region) -> Weight) {
        let Everything { value: before, trust, resting, free, reach, ahead, course, gradient, .. } = *all;
        let mut region = Region { reach, ahead, course, gradient };
        let weight = step(Weight { value: before, trust, resting, free }, &mut region);
        let (Weight { value, trust, resting, free }, Region { reach, ahead, course, gradient }) = (weight, region);
        let change = value - before;
        *all = Everything { value, trust, resting, free, change, reach, ahead, course, gradient, ..*all };
    }
}

#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct WholeSample {
    parabola: Parabola,
    margin: Margin,
}

#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct WholeFeature {
    weight: Weight,
    region: Region,
    change: f64,
}

vertex! {
    /// A sample, all of it synced.
    pub struct SampleOnly { sync: WholeSample }
}

vertex! {
    /// A feature, all of it synced.
    pub struct FeatureOnly { sync: WholeFeature, delta: Derivatives }
}

impl Sample for SampleOnly {
    #[inline(always)]
    fn parabola(sample: Read<'_, Self>) -> &Parabola {
        &sample.sync.parabola
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, Self>) -> &mut Parabola {
        &mut sample.sync.parabola
    }

    #[inline(always)]
    fn settle(sync: &mut WholeSample, (): &mut (), settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        settle(&mut sync.parabola, &mut sync.margin);
    }
}

impl Feature for FeatureOnly {
    #[inline(always)]
    fn weight(feature: Read<'_, Self>) -> (Weight, f64) {
        (feature.sync.weight, feature.sync.change)
    }

    #[inline(always)]
    fn step(sync: &mut WholeFeature, (): &mut (), step: impl FnOnce(Weight, &mut Region) -> Weight) {
        let old = sync.weight;
        sync.weight = step(old, &mut sync.region);
        sync.change = sync.weight.value - old.value;
    }
}

/// The program's own: what edges do not read is apart.
impl Sample for blockpg::Sample {
    #[inline(always)]
    fn parabola(sample: Read<'_, Self>) -> &Parabola {
        sample.sync
    }

    #[inline(always)]
    fn parabola_mut(sample: Update<'_, Self>) -> &mut Parabola {
        sample.sync
    }

    #[inline(always)]
    fn settle(sync: &mut Parabola, master: &mut Margin, settle: impl FnOnce(&mut Parabola, &mut Margin)) {
        settle(sync, master);
    }
}

/// The program's own: masters keep to themselves what mirrors do not need.
impl Feature for blockpg::Feature {
    #[inline(always)]
    fn weight(feature: Read<'_, Self>) -> (Weight, f64) {
        (*feature.sync, *feature.mirror)
    }

    #[inline(always)]
    fn step(sync: &mut Weight, master: &mut Region, step: impl FnOnce(Weight, &mut Region) -> Weight) {
        *sync = step(*sync, master);
    }
}
