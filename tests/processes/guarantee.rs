//! The promise of bounded staleness, seen from inside: who reads what when, under delays.
//!
//! Every left vertex belongs to one clock of each iteration, and adds a mark at its own place in the rows of all right vertices.
//! When it does, it looks at the marks of others: all of clocks up to t − 1 − s must be there, and none of clocks after t + s may
//! be, since a worker there would be more than s clocks ahead of this one. Clocks count on over iterations.

use std::time::Duration;

use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{BatchSize, Context, Exchange, Left, Right, Sequence, Stages, Update, mode, program, vertex};
use proptest::prelude::*;

use super::{local, settings};
use crate::made::watch;

/// Clocks of an iteration.
pub const CLOCKS: usize = 8;
pub const ITERATIONS: u64 = 5;
/// Left vertices of a clock.
pub const EACH: usize = 4;
pub const LEFTS: usize = CLOCKS * EACH;
pub const RIGHTS: usize = 3;

vertex! {
    /// A left vertex: its number, and how often it saw too little, and too much.
    pub struct Marker { sync: [u32; 3] }
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
        cx: &mut Context<'_, Marking>,
    ) {
        let mut random = SplitMix::new(self.delays, u64::from(marker.sync[0]));
        if random.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        }
        look(marker.sync, board.sync, cx.iteration, self.slack);
        board.sync[marker.sync[0] as usize] += 1.0;
    }
}

/// Looks at the marks of others on behalf of a left vertex, which takes down whether these are too few, or too many.
pub fn look(marker: &mut [u32], marks: &[f32], iteration: u64, slack: usize) {
    let me = marker[0] as usize;
    // Clocks from 0.
    let clock = (iteration as usize - 1) * CLOCKS + me / EACH;
    for (other, marks) in marks[..LEFTS].iter().enumerate() {
        // How many marks it has made when this many clocks have ended.
        let by = |ended: usize| (ended + CLOCKS - 1 - other / EACH) / CLOCKS;
        marker[1] += u32::from((*marks as usize) < by(clock.saturating_sub(slack)));
        marker[2] += u32::from(*marks as usize > by(clock + slack + 1));
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

/// Returns how often too little and too much was seen.
fn run(settings: Settings, (processes, workers): (usize, usize), delays: u64) -> (u32, u32) {
    let edges = edges();
    local::run(processes, |peers| run_as(&edges, &Settings { peers, workers, ..settings.clone() }, delays))
}

/// The part of one process. At each look there are the marks of exactly the iterations that are done.
pub fn run_as(edges: &GroupedEdges<()>, settings: &Settings, delays: u64) -> (u32, u32) {
    let settings = Settings { dims: LEFTS, ..settings.clone() };
    let slack = settings.slack.unwrap() as usize;
    let mut engine = Engine::<Marking>::new(edges, sequence(slack, delays), &settings).unwrap();
    engine.init(Left, |id, first| *first.sync = [id as u32, 0, 0]);
    let mut looks = Vec::new();
    watch(&mut engine, ITERATIONS, |engine, report| {
        looks.extend(engine.reports().iter().map(|report| report.iteration));
        engine.collect().unwrap();
        if settings.peers.as_ref().is_none_or(|peers| peers.process() == 0) {
            let right = engine.on(Right);
            let marks = (0..RIGHTS).flat_map(|id| &right.sync(id)[..LEFTS]);
            marks.for_each(|marks| assert_eq!(*marks, report.iteration as f32, "no mark is lost, or counted twice"));
        }
    });
    assert!(looks.into_iter().eq(1..=ITERATIONS), "each iteration is reported");
    let left = engine.on(Left);
    let sum = |at: usize| (0..LEFTS).map(|id| left.sync(id)[at]).sum::<u32>();
    (sum(1), sum(2))
}

/// Settings with a slack, and looks so far apart.
pub fn with_slack(slack: u64, lazy: bool, look_every: u64) -> Settings {
    Settings { slack: Some(slack), lazy, look_every: Some(look_every), ..settings(None, 1, 1) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_worker_sees_what_the_slack_promises(
        slack in 0_u64..5,
        lazy: bool,
        look_every in 1..=ITERATIONS,
        shape in prop::sample::select(vec![(2, 1), (2, 2), (3, 1), (4, 1)]),
        delays: u64,
    ) {
        let (stale, ahead) = run(with_slack(slack, lazy, look_every), shape, delays);
        prop_assert_eq!(stale, 0, "changes of clock t - 1 - s that were not seen");
        prop_assert_eq!(ahead, 0, "changes of workers more than s clocks ahead");
    }
}
