//! Branches: each goes on as if there were no others, with settings of its own.

use megagrid_algorithms::blockpg::{self, BlockPg};
use megagrid_algorithms::lda::{self, Dense, Lda};
use megagrid_algorithms::mf::Config;
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_engine::{Branches, Engine, Error, Settings, checkpoint};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Left, Right};

use crate::made::{self, few_documents, learned, noise, page_rank, page_rank_state, run, settings, topics};

fn factorization(source: &GroupedEdges<f32>, workers: usize, config: Config) -> Engine<Mf> {
    made::factorization(source, config, in_place::sequence(config, 6000), &settings(workers, config.row_dims()))
}

/// What a run by itself comes to.
fn alone(source: &GroupedEdges<f32>, workers: usize, config: Config, clocks: u64) -> Vec<u32> {
    let mut engine = factorization(source, workers, config);
    run(&mut engine, clocks);
    learned(&engine)
}

#[test]
fn a_branch_goes_on_as_if_there_were_no_other() {
    let source = noise(3);
    for workers in [1, 3] {
        let config = Config { dims: 7, ..Config::default() };
        let alone = |clocks| alone(&source, workers, config, clocks);
        let mut engine = factorization(&source, workers, config);
        run(&mut engine, 2);
        let mut parent = engine.fork().unwrap();
        run(&mut engine, 5);
        assert_eq!(learned(&engine), alone(5));
        engine.switch(&mut parent).unwrap();
        assert_eq!((engine.iterations(), parent.iterations()), (2, 5));
        assert_eq!(learned(&engine), alone(2));
        // A second fork takes the memory of the first child.
        engine.free(parent);
        let mut parent = engine.fork().unwrap();
        run(&mut engine, 9);
        assert_eq!(learned(&engine), alone(9));
        engine.switch(&mut parent).unwrap();
        run(&mut engine, 5);
        assert_eq!(learned(&engine), alone(5));
    }
}

#[test]
fn branches_are_known_by_number() {
    let source = noise(3);
    let config = Config { dims: 7, ..Config::default() };
    let mut branches = Branches::new(factorization(&source, 2, config), 0);
    for (child, clocks) in [(1, 2), (2, 3)] {
        run(branches.fork(0, child).unwrap(), clocks);
    }
    run(branches.fork(2, 3).unwrap(), 5);
    for (branch, clocks) in [(0, 0), (1, 2), (2, 3), (3, 5)] {
        assert_eq!(learned(branches.select(branch).unwrap()), alone(&source, 2, config, clocks), "branch {branch}");
    }
    // The one in the engine is freed, then one beside it.
    branches.free(3).unwrap();
    branches.free(1).unwrap();
    assert!(branches.select(3).is_err() && branches.free(1).is_err() && branches.select(1).is_err());
    run(branches.fork(2, 4).unwrap(), 4);
    assert_eq!(learned(branches.engine()), alone(&source, 2, config, 4));
    assert_eq!(learned(branches.select(2).unwrap()), alone(&source, 2, config, 3));
}

#[test]
fn a_branch_has_settings_of_its_own() {
    let source = noise(3);
    let config = |step| Config { dims: 7, step, ..Config::default() };
    let set = |engine: &mut Engine<Mf>, step: f32, slack: u64| {
        let settings = Settings { slack: Some(slack), ..settings(2, config(step).row_dims()) };
        engine.reconfigure(&source, in_place::sequence(config(step), 6000), &settings)
    };
    let mut engine = factorization(&source, 2, config(0.1));
    let mut parent = engine.fork().unwrap();
    set(&mut engine, 0.02, 0).unwrap();
    run(&mut engine, 3);
    assert_eq!(learned(&engine), alone(&source, 2, config(0.02), 3));
    engine.switch(&mut parent).unwrap();
    set(&mut engine, 0.3, 0).unwrap();
    run(&mut engine, 3);
    assert_eq!(learned(&engine), alone(&source, 2, config(0.3), 3));
    // Slack changes what workers wait for, and not the grid.
    set(&mut engine, 0.1, 3).unwrap();
    assert_eq!(engine.plan().slack, Some(3));
    run(&mut engine, 6);
    assert!(learned(&engine).iter().all(|&value| f32::from_bits(value).is_finite()));
}

#[test]
fn what_needs_another_grid_is_refused() {
    let source = noise(3);
    let config = Config { dims: 7, ..Config::default() };
    let mut engine = factorization(&source, 2, config);
    let of = |workers, batch, dims| (in_place::sequence(Config { dims, ..config }, batch), settings(workers, dims + 2));
    for (sequence, settings) in [of(1, 6000, 7), of(2, 500, 7), of(2, 6000, 20)] {
        let refused = engine.reconfigure(&source, sequence, &settings);
        assert!(matches!(refused, Err(Error::OtherGrid)), "{refused:?}");
    }
    run(&mut engine, 2);
    assert_eq!(learned(&engine), alone(&source, 2, config, 2), "what was refused changed nothing");
}

#[test]
fn a_checkpoint_is_of_the_branch_in_the_engine() {
    let source = noise(3);
    let config = Config { dims: 7, ..Config::default() };
    let mut engine = factorization(&source, 2, config);
    run(&mut engine, 2);
    let mut two = engine.fork().unwrap();
    run(&mut engine, 4);
    engine.switch(&mut two).unwrap();
    let folder = tempfile::tempdir().unwrap();
    checkpoint::save(&mut engine, folder.path()).unwrap();
    let mut loaded = factorization(&source, 2, config);
    assert_eq!(checkpoint::load(&mut loaded, folder.path()).unwrap(), 2);
    assert_eq!(learned(&loaded), learned(&engine));
}

#[test]
fn topics_of_tokens_are_the_branchs_own() {
    let (source, config) = (few_documents(), lda::Config::new(8));
    let make = || topics::<Dense>(&source, &config, &settings(2, 8));
    // Counts follow from the topics of tokens, and the next ones from both.
    let state = |engine: &Engine<Lda<Dense>>| engine.on(Right).iter().flatten().copied().collect::<Vec<f32>>();
    let alone = |iterations| {
        let mut engine = make();
        run(&mut engine, iterations);
        state(&engine)
    };
    let mut engine = make();
    run(&mut engine, 3);
    let mut parent = engine.fork().unwrap();
    run(&mut engine, 6);
    assert_eq!(state(&engine), alone(6));
    engine.switch(&mut parent).unwrap();
    run(&mut engine, 5);
    assert_eq!(state(&engine), alone(5));
}

#[test]
fn shared_contexts_and_square_graphs_have_branches() {
    let mut engine = page_rank(&made::links(300, 5000), &[], &settings(2, 1));
    run(&mut engine, 2);
    let two = page_rank_state(&engine);
    let mut parent = engine.fork().unwrap();
    run(&mut engine, 4);
    let four = page_rank_state(&engine);
    engine.switch(&mut parent).unwrap();
    assert_eq!(page_rank_state(&engine), two);
    run(&mut engine, 4);
    assert_eq!(page_rank_state(&engine), four);
}

#[test]
fn what_is_known_of_features_belongs_to_a_branch() {
    let mut random = SplitMix::new(9, 0);
    let mut list = EdgeList { num_left: 150, num_right: 40, ..EdgeList::default() };
    for sample in 0..150 {
        for feature in 0..40 {
            if random.below(5) == 0 {
                list.push(sample, feature, random.unit() as f32 - 0.5);
            }
        }
    }
    let source = GroupedEdges::new(list, &[Side::Right]);
    let sequence = blockpg::sequence(200);
    let config = blockpg::Config { l1: 0.1, l2: 0.0 };
    let make = || {
        let mut engine = Engine::<BlockPg>::new(&source, sequence, &settings(2, 1)).unwrap();
        engine.set_global(config.state());
        engine.init(Left, |_, first| *first.sync = first.master.settle(0.0));
        engine
    };
    let state = |engine: &Engine<BlockPg>| {
        let features = engine.on(Right);
        let weights: Vec<String> = (0..40).map(|feature| format!("{:?}", features.sync(feature))).collect();
        (weights, format!("{:?}", engine.global()))
    };
    let mut engine = make();
    run(&mut engine, 2);
    let mut parent = engine.fork().unwrap();
    run(&mut engine, 6);
    let six = state(&engine);
    engine.switch(&mut parent).unwrap();
    run(&mut engine, 6);
    assert_eq!(state(&engine), six);
}
