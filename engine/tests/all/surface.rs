//! What the engine refuses and what it checks: sequences, graphs of the other kind, settings of a branch, padding.

use megagrid_datasets::Edges;
use megagrid_engine::checkpoint::check_target;
use megagrid_engine::{Engine, Error, Injection, Settings, Source};
use megagrid_partition::EdgeSource;
use megagrid_stages::simd::Level;
use megagrid_stages::{Add, BatchSize, Context, Left, Master, Read, Right, Sequence, Side, Update, program, vertex};

use crate::made::watch;

vertex! { struct Page { sync: u32, delta: u32 } }
program! { struct Links { vertices: Page } }

vertex! { struct User { sync: [f32] } }
vertex! { struct Item { sync: [f32], delta: [f32] } }
program! { struct Factors { left: User, right: Item, edge: f32, worker: u64 } }

fn ratings() -> Edges<f32> {
    Edges::bipartite(3, 2, [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 3.0), (2, 1, 4.0)]).unwrap()
}

fn settings() -> Settings {
    Settings { workers: 1, dims: 5, ..Settings::default() }
}

#[test]
fn graphs_of_the_other_kind_are_refused_with_what_to_write() {
    let message = |edges: &dyn EdgeSource<()>| {
        let sequence = Sequence::new().exchange(|_: Read<Page>, _: Read<Page>| {});
        Engine::<Links>::new(edges, sequence, &settings()).err().unwrap().to_string()
    };
    let found = message(&Edges::bipartite(2, 2, [(0, 1)]).unwrap());
    assert!(found.contains("Edges::square") && found.contains("two vertex types"), "{found}");
    let square = Edges::square(2, [(0, 1, 1.0)]).unwrap();
    let sequence = Sequence::new().exchange(|_: Read<User>, _: Read<Item>| {});
    let found = Engine::<Factors>::new(&square, sequence, &settings()).err().unwrap().to_string();
    assert!(found.contains("Edges::bipartite") && found.contains("one vertex type"), "{found}");
}

#[test]
fn a_sequence_is_checked() {
    let links = Edges::square(2, [(0, 1)]).unwrap();
    let sequence = Sequence::new()
        .exchange(|_: Read<Page>, _: Read<Page>| {})
        .apply(Right, |page: Master<Page>| *page.sync = *page.delta);
    let error = Engine::<Links>::new(&links, sequence, &settings()).err().unwrap();
    assert!(matches!(error, Error::Sequence(megagrid_stages::Error::NothingToApply(_))), "{error}");
}

#[test]
fn rows_have_as_many_items_as_memory_is_laid_out_for() {
    let links = Edges::square(2, [(0, 1)]).unwrap();
    for (workers, dims) in [(1, 0), (1, usize::MAX), (0, 1), (1 << 20, 1)] {
        let sequence = Sequence::new().exchange(|_: Read<Page>, _: Read<Page>| {});
        let settings = Settings { workers, dims, ..settings() };
        let error = Engine::<Links>::new(&links, sequence, &settings).err().unwrap();
        assert!(matches!(error, Error::Setting { .. }), "{error}");
    }
}

#[test]
fn one_worker_reads_what_earlier_batches_settled_whatever_the_slack() {
    let links = Edges::square(10, (0..9).map(|page| (page, page + 1))).unwrap();
    for slack in [Some(0), Some(1), Some(3), None] {
        let sequence = Sequence::new().mini_batch(BatchSize::Vertices(Side::Right, 1), |batch| {
            let add = |from: Read<Page>, to: Add<Page>| *to.delta += *from.sync + 1;
            batch.exchange(add).apply(Right, |page: Master<Page>| *page.sync = *page.delta)
        });
        let settings = Settings { slack, ..settings() };
        let mut engine = Engine::<Links>::new(&links, sequence, &settings).unwrap();
        engine.iterate(1).unwrap();
        assert_eq!(engine.on(Right).iter().copied().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>(), "{slack:?}");
    }
}

#[test]
fn checkpoints_of_changed_edges_are_refused_before_the_first() {
    let (ratings, place) = (ratings(), tempfile::tempdir().unwrap());
    let check = |engine: Engine<Factors>| check_target(&engine, place.path()).err().map(|error| error.to_string());
    let reads = Sequence::new().exchange(|_: Read<User>, _: Read<Item>, _: &f32| {});
    assert_eq!(check(Engine::new(&ratings, reads, &settings()).unwrap()), None);
    let changes = Sequence::new().exchange(|_: Read<User>, _: Read<Item>, edge: &mut f32| *edge += 1.0);
    let error = check(Engine::new(&ratings, changes, &settings()).unwrap()).unwrap();
    assert!(error.contains("take edge: &E"), "{error}");
}

#[test]
fn stages_have_names() {
    fn count(_: Read<Page>, to: Add<Page>) {
        *to.delta += 1;
    }
    let links = Edges::square(2, [(0, 1)]).unwrap();
    let sequence = Sequence::new().exchange(count).apply(Right, |page: Master<Page>| *page.sync = *page.delta);
    let engine = Engine::<Links>::new(&links, sequence, &settings()).unwrap();
    let names: Vec<_> = engine.plan().stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["count", "closure in stages_have_names"]);
}

#[test]
fn an_error_between_iterations_ends_the_run() {
    let ratings = ratings();
    let sequence = Sequence::new().exchange(|_: Read<User>, _: Read<Item>| {});
    let mut engine = Engine::<Factors>::new(&ratings, sequence, &settings()).unwrap();
    let result = engine.run_until(9, |engine, report| {
        assert_eq!(engine.iterations(), report.iteration);
        // Not within a run.
        if report.iteration == 2 { engine.iterate(1).map(|()| false) } else { Ok(false) }
    });
    assert!(matches!(result, Err(Error::Running)), "{result:?}");
    assert_eq!(engine.iterations(), 2);
    engine.iterate(3).unwrap();
    assert_eq!(engine.iterations(), 5);
    engine.run_until(9, |_, report| Ok(report.iteration == 7)).unwrap();
    assert_eq!(engine.iterations(), 7);
}

fn count(_: Read<User>, _: Read<Item>, cx: &mut Context<Factors>) {
    *cx.worker += 1;
}

#[test]
fn a_total_is_of_all_edges() {
    let ratings = ratings();
    for workers in 1..4 {
        let sequence = Sequence::new().exchange(|_: Read<User>, _: Read<Item>| {});
        let settings = Settings { workers, ..settings() };
        let mut engine = Engine::<Factors>::new(&ratings, sequence, &settings).unwrap();
        assert_eq!(engine.total(count).unwrap(), 4);
    }
}

#[test]
fn a_branch_obeys_its_level_and_injection_and_refuses_another_seed() {
    let ratings = ratings();
    let descend = || Sequence::new().exchange(|user: Update<User>, _: Read<Item>| user.sync[0] += 1.0);
    let mut engine = Engine::<Factors>::new(&ratings, descend(), &settings()).unwrap();
    let inject = Some(Injection::Delay { seconds: 0.05, turns: 1 });
    let level = Level::available()[0];
    engine.reconfigure(&ratings, descend(), &Settings { level, inject, ..settings() }).unwrap();
    assert_eq!(engine.grid().level, level);
    let mut seconds = 0.0;
    watch(&mut engine, 1, |_, report| {
        seconds = report.seconds;
    });
    assert!(seconds >= 0.05, "delayed: {seconds}");
    let refused = engine.reconfigure(&ratings, descend(), &Settings { seed: 7, ..settings() });
    assert!(matches!(refused, Err(Error::OtherGrid)), "{refused:?}");
}

#[cfg(debug_assertions)]
mod padding {
    use super::*;

    fn run<S: megagrid_stages::Stages<Factors>>(sequence: Sequence<Factors, S>) -> String {
        let ratings = ratings();
        let mut engine = Engine::<Factors>::new(Source::from(&ratings), sequence, &settings()).unwrap();
        engine.iterate(1).unwrap_err().to_string()
    }

    fn spill(user: Update<User>, _: Read<Item>) {
        user.sync[5] = 1.0;
    }

    #[test]
    fn what_an_edge_function_leaves_there_is_told() {
        let found = run(Sequence::new().exchange(spill));
        assert!(found.contains("spill") && found.contains("behind its 5"), "{found}");
        let found = run(Sequence::new().exchange(|_: Read<User>, item: Add<Item>| item.delta[6] = 1.0));
        assert!(found.contains("closure in what_an_edge"), "{found}");
    }

    #[test]
    fn what_an_apply_leaves_there_is_told() {
        let found = run(Sequence::new()
            .exchange(|_: Read<User>, item: Add<Item>| item.delta[0] = 1.0)
            .apply(Right, |item: Master<Item>| item.sync.fill(2.0)));
        assert!(found.contains("closure in what_an_apply"), "{found}");
    }

    #[test]
    #[should_panic(expected = "init wrote to items of row")]
    fn what_first_values_leave_there_is_told() {
        let ratings = ratings();
        let sequence = Sequence::new().exchange(|_: Read<User>, _: Read<Item>| {});
        let mut engine = Engine::<Factors>::new(&ratings, sequence, &settings()).unwrap();
        engine.init(Left, |_, user| user.sync.fill(1.0));
    }
}
