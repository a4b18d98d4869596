//! Checkpoints of programs that the algorithms are not: all roles and shapes, and edge data that are written.

use megagrid_engine::checkpoint::{load, save};
use megagrid_engine::{Engine, Source};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{
    Add, Apply, Context, Exchange, Left, Master, Read, Right, Sequence, Update, mode, program, vertex,
};
use tempfile::tempdir;

use crate::checkpoint::names;
use crate::made::{Counts, run, settings};

vertex! { struct Origin { sync: u32, delta: u32, master: [u16] } }
vertex! { struct Target { sync: Counts, mirror: u64 } }
program! {
    /// A program with every role and shape, whose deltas wait from one iteration to the next.
    struct Many { left: Origin, right: Target, global: Vec<String> }
}

struct Count;

impl Exchange<Many> for Count {
    type Left = mode::Add;
    type Right = mode::Update;

    fn exchange(&self, source: Add<'_, Origin>, target: Update<'_, Target>, _: &mut (), cx: &mut Context<'_, Many>) {
        *source.delta += cx.iteration as u32;
        target.sync.0[cx.iteration as usize % 3] += 1;
        *target.mirror += 1;
    }
}

struct Settle;

impl Apply<Many, Origin> for Settle {
    fn apply(&self, source: Master<'_, Origin>, cx: &mut Context<'_, Many>) {
        *source.sync += *source.delta;
        source.master[cx.iteration as usize] += *source.delta as u16;
    }
}

const SOURCES: usize = 70;
const TARGETS: usize = 40;

/// Targets have `spare` counts more than they need, more or less.
fn many(workers: usize, spare: u32) -> Engine<Many> {
    let mut random = SplitMix::new(3, 0);
    let (left, right) =
        (0..900).map(|_| (random.below(SOURCES as u64) as u32, random.below(TARGETS as u64) as u32)).unzip();
    let list = EdgeList { num_left: SOURCES, num_right: TARGETS, square: false, left, right, data: vec![(); 900] };
    let source = GroupedEdges::new(list, &[Side::Right]);
    // The second exchange's deltas are settled in the next iteration.
    let sequence = Sequence::new().exchange(Count).apply(Left, Settle).exchange(Count);
    let capacities: Vec<u32> = (0..TARGETS as u32).map(|target| 3 + (target + spare) % 4).collect();
    let source = Source::from(&source).capacities(None, Some(&capacities));
    let mut engine = Engine::new(source, sequence, &settings(workers, 12)).unwrap();
    engine.set_global(vec!["first".to_owned(), "words".to_owned()]);
    engine
}

type ManyState = (Vec<(u32, Vec<u16>)>, Vec<(u64, Vec<u32>)>);

fn many_state(engine: &Engine<Many>) -> ManyState {
    let (left, right) = (engine.on(Left), engine.on(Right));
    (
        (0..SOURCES).map(|source| (*left.sync(source), left.master(source).to_vec())).collect(),
        (0..TARGETS).map(|target| (*right.mirror(target), right.sync(target).0.to_vec())).collect(),
    )
}

#[test]
fn all_roles_and_shapes_go_on_on_any_number_of_workers() {
    let mut straight = many(1, 0);
    run(&mut straight, 6);
    for (before, after) in [(1, 3), (3, 1), (2, 3)] {
        let dir = tempdir().unwrap();
        let mut first = many(before, 0);
        run(&mut first, 3);
        first.resume(3, vec!["other".to_owned()]);
        save(&mut first, dir.path()).unwrap();
        let mut second = many(after, 0);
        assert_eq!(load(&mut second, dir.path()).unwrap(), 3);
        assert_eq!(*second.global(), ["other"]);
        run(&mut second, 6);
        assert!(many_state(&second) == many_state(&straight), "{before} workers, then {after}");
        // A save does not disturb the run that it is taken from.
        run(&mut first, 6);
        assert!(many_state(&first) == many_state(&straight), "{before} workers");
    }
}

#[test]
fn other_capacities_are_refused() {
    let dir = tempdir().unwrap();
    save(&mut many(1, 0), dir.path()).unwrap();
    // As many counts in all, but not of the same vertices.
    let error = load(&mut many(1, 1), dir.path()).unwrap_err().to_string();
    assert!(error.contains("right-sync.bin: not the data of 40 vertices with 180 items of 4 bytes"), "{error}");
}

program! {
    /// Like `Many`, but edges are written.
    struct Changing { vertices: (), edge: u32 }
}

struct Increment;

impl Exchange<Changing> for Increment {
    type Left = mode::Read;
    type Right = mode::Read;

    fn exchange(&self, _: Read<'_, ()>, _: Read<'_, ()>, edge: &mut u32, _: &mut Context<'_, Changing>) {
        *edge += 1;
    }
}

#[test]
fn programs_that_write_edge_data_are_refused() {
    let build = || {
        let list =
            EdgeList { num_left: 2, num_right: 2, square: true, left: vec![0, 1], right: vec![1, 0], data: vec![5, 6] };
        let source = GroupedEdges::new(list, &[Side::Right]);
        let sequence = Sequence::new().exchange(Increment);
        Engine::<Changing>::new(&source, sequence, &settings(1, 1)).unwrap()
    };
    let dir = tempdir().unwrap();
    let mut engine = build();
    run(&mut engine, 1);
    assert!(save(&mut engine, dir.path()).unwrap_err().to_string().contains("may change what edges carry"));
    assert!(names(dir.path()).is_empty());
}
