//! PageRank whose links have weights: a page divides its rank by the weights of the links out of it.

use megagrid_stages::{Add, Context, Exchange, Read, mode, program};

use super::{Follow, Page, State};

program! {
    /// PageRank with a weight of each link, 0 or above. It has a program of its own, so that links without weights take no memory and no
    /// time for them. Memory: 4 bytes a link more.
    pub struct Weighted { vertices: Page, edge: f32, worker: [f64; 3], global: State }
}

impl Exchange<Weighted> for Follow {
    type Left = mode::Read;
    type Right = mode::Add;
    const CHANGES_EDGES: bool = false;

    #[inline(always)]
    fn exchange(&self, from: Read<'_, Page>, to: Add<'_, Page>, weight: &mut f32, _: &mut Context<'_, Weighted>) {
        *to.delta += *from.sync * *weight;
    }
}
