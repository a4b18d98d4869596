//! The look of a full iteration at features that rest.

use megagrid_stages::{Context, Exchange, Read, Update, mode};

use super::control::Totals;
use super::program::{BlockPg, Feature, Sample};

/// Wakes the features that rest and should not, in a full iteration, which descend with the others then. Most of them rest on, in wide data
/// nearly all: their slopes are taken in the order in which they lie in memory, on all workers, and nothing is written.
pub struct Screen;

impl Exchange<BlockPg> for Screen {
    type Left = mode::Read;
    type Right = mode::Update;
    const CHANGES_EDGES: bool = false;
    const GROUPED: bool = true;

    #[inline(always)]
    fn is_idle(&self, cx: &Context<'_, BlockPg>) -> bool {
        !(cx.global.full && cx.global.screens)
    }

    #[inline(always)]
    fn visits_resting(&self, _: &Context<'_, BlockPg>) -> bool {
        true
    }

    #[inline(always)]
    fn is_active(&self, feature: Read<'_, Feature>, _: &Context<'_, BlockPg>) -> bool {
        feature.sync.rests()
    }

    #[inline(always)]
    fn begin(&self, _: Read<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        cx.worker.slope = 0.0;
    }

    #[inline(always)]
    fn exchange(&self, sample: Read<'_, Sample>, _: Update<'_, Feature>, x: &mut f32, cx: &mut Context<'_, BlockPg>) {
        cx.worker.slope -= f64::from(*x) * sample.sync.slope;
    }

    #[inline(always)]
    fn end(&self, feature: Update<'_, Feature>, cx: &mut Context<'_, BlockPg>) {
        let Totals { slope, screened, .. } = cx.worker;
        let weight = feature.sync;
        let [l1, _] = weight.penalties(cx.global);
        if weight.value == 0.0 && slope.abs() < l1 - cx.global.threshold {
            *screened += 1;
        } else {
            weight.wake();
        }
    }
}
