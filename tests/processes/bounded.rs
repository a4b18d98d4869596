//! Memory is bounded where a process does not take in what others send: they run ahead as far as the consistency model lets
//! them, and keep as many clocks' changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side};
use megagrid_stages::{BatchSize, Left, Right, Sequence, Stages, Update, program, vertex};

use super::{local, settings};
use crate::made::watch;

const CLOCKS: usize = 200;
/// Left vertices of a clock, so that both processes have some.
const EACH: usize = 4;
const RIGHTS: usize = 5;
const DIMS: usize = 20;
/// Bytes of the changes of a clock.
const CHANGE: u64 = (RIGHTS * DIMS * 4) as u64;
/// After so long something hangs.
const LONG: Duration = Duration::from_secs(60);

vertex! { struct Tick { sync: u64 } }

vertex! { struct Sum { sync: [f32] } }

program! { struct Ticking { left: Tick, right: Sum } }

/// Whoever comes first stops, and is deaf, until the others have come as far as they may, and a while longer.
struct Stall {
    /// The last clock that others can begin meanwhile.
    furthest: u64,
    is_taken: AtomicBool,
    is_over: AtomicBool,
    /// The last clock that the others began meanwhile.
    seen: AtomicU64,
}

impl Stall {
    fn new(furthest: u64) -> Self {
        Self { furthest, is_taken: AtomicBool::new(false), is_over: AtomicBool::new(false), seen: AtomicU64::new(0) }
    }

    fn at(&self, clock: u64) {
        if !self.is_taken.swap(true, Ordering::AcqRel) {
            let begin = Instant::now();
            while self.seen.load(Ordering::Acquire) < self.furthest && begin.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
            self.is_over.store(true, Ordering::Release);
        } else if !self.is_over.load(Ordering::Acquire) {
            self.seen.fetch_max(clock, Ordering::AcqRel);
        }
    }
}

fn sequence(stall: &'static Stall) -> Sequence<Ticking, impl Stages<Ticking>> {
    let add = move |tick: Update<Tick>, sum: Update<Sum>| {
        stall.at(*tick.sync);
        sum.sync[..DIMS].iter_mut().for_each(|item| *item += 1.0);
    };
    Sequence::new().mini_batch(BatchSize::Vertices(Side::Left, EACH as u64), move |batch| batch.exchange(add))
}

/// Returns the last clock that was begun while a process was deaf, and the most bytes that were kept for it.
fn run(slack: Option<u64>, lazy: bool, furthest: u64) -> (u64, u64) {
    // Stage functions live as long as the program.
    let stall: &'static Stall = Box::leak(Box::new(Stall::new(furthest)));
    let lefts = CLOCKS * EACH;
    let pairs = (0..lefts as u32).flat_map(|left| (0..RIGHTS as u32).map(move |right| (left, right)));
    let (left, right): (Vec<u32>, Vec<u32>) = pairs.unzip();
    let data = vec![(); left.len()];
    let list = EdgeList { num_left: lefts, num_right: RIGHTS, square: false, left, right, data };
    let edges = GroupedEdges::new(list, &[Side::Right]);
    let bytes = local::run(2, |peers| {
        let settings = Settings { slack, lazy, dims: DIMS, ..settings(peers, 1, 1) };
        let mut engine = Engine::<Ticking>::new(&edges, sequence(stall), &settings).unwrap();
        engine.init(Left, |id, first| *first.sync = (id / EACH + 1) as u64);
        let mut bytes = 0;
        watch(&mut engine, 1, |_, report| {
            bytes = report.unacknowledged_bytes;
        });
        engine.collect().unwrap();
        let right = engine.on(Right);
        assert!((0..RIGHTS).all(|id| right.sync(id)[0] == lefts as f32), "no change is lost");
        bytes
    });
    (stall.seen.load(Ordering::Acquire), bytes)
}

#[test]
fn with_slack_the_bound_is_the_slack() {
    for (slack, lazy) in [(0, false), (1, false), (1, true), (7, false), (7, true)] {
        let (seen, bytes) = run(Some(slack), lazy, slack + 1);
        assert_eq!(seen, slack + 1, "slack {slack}, lazy {lazy}: clocks begun");
        if slack > 0 {
            assert!(bytes >= slack * CHANGE && bytes <= (slack + 1) * CHANGE, "slack {slack}, lazy {lazy}: {bytes}");
        }
    }
}

#[test]
fn without_a_bound_on_staleness_changes_of_64_clocks_are_kept_at_most() {
    let (seen, bytes) = run(None, false, 64);
    assert_eq!(seen, 64, "clocks begun");
    // Of rows whose masters are in the same process, less.
    assert!(bytes >= 62 * CHANGE / RIGHTS as u64 && bytes <= 64 * CHANGE, "{bytes}");
}
