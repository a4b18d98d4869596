//! The promise of bounded staleness, seen from inside: who reads what when, under delays.
//!
//! Every left vertex belongs to one clock and marks its own place in the rows of all right vertices. When it does, it looks which
//! others have: all of clocks up to t − 1 − s must have, and none of clocks after t + s may have, since a worker there would be
//! more than s clocks ahead of this one.

use std::time::Duration;

use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{BatchSize, Context, Exchange, Left, Right, Sequence, Stages, Update, mode, program, vertex};
use proptest::prelude::*;

use super::{local, settings};

const CLOCKS: usize = 20;
/// Left vertices of a clock.
const EACH: usize = 4;
pub const LEFTS: usize = CLOCKS * EACH;
pub const RIGHTS: usize = 3;

vertex! {
    /// A left vertex: its number, and how often it saw too little, and too much.
    struct Marker { sync: [u32; 3] }
}

vertex! { struct Board { sync: [f32] } }

program! { struct Marking { left: Marker, right: Board } }

struct Mark {
    slack: usize,
    delays: u64,
}

impl Exchange<Marking> for Mark {
    type Left = mode::Update;
    type Right = mode::Update;

    fn exchange(
        &self,
        marker: Update<'_, Marker>,
        board: Update<'_, Board>,
        (): &mut (),
        _: &mut Context<'_, Marking>,
    ) {
        let mut random = SplitMix::new(self.delays, u64::from(marker.sync[0]));
        if random.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        }
        let me = marker.sync[0] as usize;
        let clock = me / EACH;
        for (other, mark) in board.sync[..LEFTS].iter().enumerate() {
            let at = other / EACH;
            marker.sync[1] += u32::from(at + self.slack < clock && *mark != 1.0);
            marker.sync[2] += u32::from(at > clock + self.slack && *mark != 0.0);
        }
        board.sync[me] += 1.0;
    }
}

fn sequence(slack: usize, delays: u64) -> Sequence<Marking, impl Stages<Marking>> {
    let mark = Mark { slack, delays };
    Sequence::new().mini_batch(BatchSize::Vertices(Side::Left, EACH as u64), move |b| b.exchange(mark))
}

pub fn edges() -> GroupedEdges<()> {
    let all = (0..LEFTS as u32).flat_map(|left| (0..RIGHTS as u32).map(move |right| (left, right)));
    let (left, right): (Vec<u32>, Vec<u32>) = all.unzip();
    let data = vec![(); left.len()];
    GroupedEdges::new(EdgeList { num_left: LEFTS, num_right: RIGHTS, square: false, left, right, data }, &[Side::Right])
}

/// Returns how often too little and too much was seen, and the marks at the end.
fn run(slack: u64, lazy: bool, (processes, workers): (usize, usize), delays: u64) -> (u32, u32, f32) {
    let edges = edges();
    local::run(processes, |peers| run_as(&edges, &settings(peers, workers, 1), (slack, lazy), delays))
}

/// The part of one process.
pub fn run_as(
    edges: &GroupedEdges<()>,
    settings: &Settings,
    (slack, lazy): (u64, bool),
    delays: u64,
) -> (u32, u32, f32) {
    let settings = Settings { slack: Some(slack), lazy, dims: LEFTS, ..settings.clone() };
    let mut engine = Engine::<Marking>::new(edges, sequence(slack as usize, delays), &settings).unwrap();
    engine.init(Left, |id, first| *first.sync = [id as u32, 0, 0]);
    engine.run_until(1, |_, _| Ok(false)).unwrap();
    engine.collect().unwrap();
    let (left, right) = (engine.on(Left), engine.on(Right));
    let sum = |at: usize| (0..LEFTS).map(|id| left.sync(id)[at]).sum::<u32>();
    (sum(1), sum(2), (0..RIGHTS).map(|id| right.sync(id).iter().sum::<f32>()).sum())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_worker_sees_what_the_slack_promises(
        slack in 0_u64..5,
        lazy: bool,
        shape in prop::sample::select(vec![(2, 1), (2, 2), (3, 1), (4, 1)]),
        delays: u64,
    ) {
        let (stale, ahead, marks) = run(slack, lazy, shape, delays);
        prop_assert_eq!(stale, 0, "changes of clock t - 1 - s that were not seen");
        prop_assert_eq!(ahead, 0, "changes of workers more than s clocks ahead");
        prop_assert_eq!(marks, (LEFTS * RIGHTS) as f32, "no change is lost or counted twice");
    }
}
