//! Branches: each goes on as if there were no others, with settings of its own.

use megagrid_algorithms::blockpg::{self, BlockPg};
use megagrid_algorithms::lda::{self, Lda, Tokens, edge_len, fill_edge};
use megagrid_algorithms::mf::Config;
use megagrid_algorithms::mf::in_place::{self, Mf};
use megagrid_algorithms::pagerank::{self, Damping, PageRank, Start};
use megagrid_engine::{Branch, Branches, Engine, Error, Settings, Source, Topology, checkpoint};
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::{Left, Program, Right};

fn settings(workers: usize, dims: usize) -> Settings {
    let topology = Topology { l2_bytes: 4096, ..Topology::synthetic(1, workers) };
    Settings { workers, dims, topology, ..Settings::default() }
}

fn run<P: Program>(engine: &mut Engine<P>, last: u64) {
    engine.run_until(last, |_, _| Ok(false)).unwrap();
}

const USERS: usize = 200;
const ITEMS: usize = 90;

fn ratings() -> GroupedEdges<f32> {
    let mut random = SplitMix::new(3, 0);
    let mut list = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for _ in 0..6000 {
        list.left.push(random.below(USERS as u64) as u32);
        list.right.push(random.below(ITEMS as u64) as u32);
        list.data.push((1.0 + 4.0 * random.unit()) as f32);
    }
    GroupedEdges::new(list, &[Side::Right])
}

fn factorization(source: &GroupedEdges<f32>, workers: usize, config: Config) -> Engine<Mf> {
    let sequence = in_place::sequence(config, 6000);
    let mut engine = Engine::new(source, sequence, &settings(workers, config.row_dims())).unwrap();
    engine.init(Left, |user, first| config.init_user(1, user, first.sync));
    engine.init(Right, |item, first| config.init_item(1, item, first.sync));
    engine
}

/// All that a factorization learns.
fn factors(engine: &Engine<Mf>) -> Vec<f32> {
    let (users, items) = (engine.on(Left), engine.on(Right));
    let rows = (0..USERS).flat_map(|user| [users.sync(user), std::slice::from_ref(users.mirror(user))].concat());
    let others = (0..ITEMS).flat_map(|item| [items.sync(item), std::slice::from_ref(items.mirror(item))].concat());
    rows.chain(others).collect()
}

#[test]
fn a_branch_goes_on_as_if_there_were_no_other() {
    let source = ratings();
    for workers in [1, 3] {
        let config = Config { dims: 7, ..Config::default() };
        let alone = |clocks| {
            let mut engine = factorization(&source, workers, config);
            run(&mut engine, clocks);
            factors(&engine)
        };
        let mut engine = factorization(&source, workers, config);
        run(&mut engine, 2);
        let mut parent = engine.fork().unwrap();
        run(&mut engine, 5);
        assert_eq!(factors(&engine), alone(5));
        engine.switch(&mut parent).unwrap();
        assert_eq!((engine.iterations(), parent.iterations()), (2, 5));
        assert_eq!(factors(&engine), alone(2));
        // A second fork takes the memory of the first child.
        engine.free(parent);
        let mut parent = engine.fork().unwrap();
        run(&mut engine, 9);
        assert_eq!(factors(&engine), alone(9));
        engine.switch(&mut parent).unwrap();
        run(&mut engine, 5);
        assert_eq!(factors(&engine), alone(5));
    }
}

#[test]
fn branches_are_known_by_number() {
    let source = ratings();
    let config = Config { dims: 7, ..Config::default() };
    let alone = |clocks| {
        let mut engine = factorization(&source, 2, config);
        run(&mut engine, clocks);
        factors(&engine)
    };
    let mut branches = Branches::new(factorization(&source, 2, config), 0);
    for (child, clocks) in [(1, 2), (2, 3)] {
        run(branches.fork(0, child).unwrap(), clocks);
    }
    run(branches.fork(2, 3).unwrap(), 5);
    for (branch, clocks) in [(0, 0), (1, 2), (2, 3), (3, 5)] {
        assert_eq!(factors(branches.select(branch).unwrap()), alone(clocks), "branch {branch}");
    }
    // The one in the engine is freed, then one beside it.
    branches.free(3).unwrap();
    branches.free(1).unwrap();
    assert!(branches.select(3).is_err() && branches.free(1).is_err() && !branches.is_alive(1));
    run(branches.fork(2, 4).unwrap(), 4);
    assert_eq!(factors(branches.engine()), alone(4));
    assert_eq!(factors(branches.select(2).unwrap()), alone(3));
}

#[test]
fn a_branch_has_settings_of_its_own() {
    let source = ratings();
    let config = |step| Config { dims: 7, step, ..Config::default() };
    let set = |engine: &mut Engine<Mf>, step: f32, slack: u64| {
        let settings = Settings { slack: Some(slack), ..settings(2, config(step).row_dims()) };
        engine.reconfigure(&source, in_place::sequence(config(step), 6000), &settings)
    };
    let alone = |step, clocks| {
        let mut engine = factorization(&source, 2, config(step));
        run(&mut engine, clocks);
        factors(&engine)
    };
    let mut engine = factorization(&source, 2, config(0.1));
    let mut parent = engine.fork().unwrap();
    set(&mut engine, 0.02, 0).unwrap();
    run(&mut engine, 3);
    assert_eq!(factors(&engine), alone(0.02, 3));
    engine.switch(&mut parent).unwrap();
    set(&mut engine, 0.3, 0).unwrap();
    run(&mut engine, 3);
    assert_eq!(factors(&engine), alone(0.3, 3));
    // Slack changes what workers wait for, and not the grid.
    set(&mut engine, 0.1, 3).unwrap();
    assert_eq!(engine.plan().slack, Some(3));
    run(&mut engine, 6);
    assert!(factors(&engine).iter().all(|value| value.is_finite()));
}

#[test]
fn what_needs_another_grid_is_refused() {
    let source = ratings();
    let config = Config { dims: 7, ..Config::default() };
    let mut engine = factorization(&source, 2, config);
    let of = |workers, batch, dims| (in_place::sequence(Config { dims, ..config }, batch), settings(workers, dims + 2));
    for (sequence, settings) in [of(1, 6000, 7), of(2, 500, 7), of(2, 6000, 20)] {
        let refused = engine.reconfigure(&source, sequence, &settings);
        assert!(matches!(refused, Err(Error::OtherGrid)), "{refused:?}");
    }
    run(&mut engine, 2);
    let mut other = factorization(&source, 2, config);
    run(&mut other, 2);
    assert_eq!(factors(&engine), factors(&other), "what was refused changed nothing");
}

#[test]
fn a_checkpoint_is_of_the_branch_in_the_engine() {
    let source = ratings();
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
    assert_eq!(factors(&loaded), factors(&engine));
}

#[test]
fn topics_of_tokens_are_the_branchs_own() {
    let mut random = SplitMix::new(5, 0);
    let mut list = EdgeList { num_left: 60, num_right: 80, ..EdgeList::default() };
    for document in 0..60 {
        for word in 0..80 {
            if random.below(4) == 0 {
                list.left.push(document);
                list.right.push(word);
                list.data.push(1 + random.below(3) as u32);
            }
        }
    }
    let source = GroupedEdges::new(list, &[Side::Right]);
    let tokens = Tokens::count(&source).unwrap();
    let config = lda::Config::new(8);
    let make = || {
        let source = Source::slices(&source, edge_len, fill_edge);
        let mut engine = Engine::new(source, config.dense(&tokens), &settings(2, 8)).unwrap();
        engine.set_global(config.topics(80));
        engine
    };
    // Counts follow from the topics of tokens, and the next ones from both.
    let state = |engine: &Engine<Lda<[f32], [f32], u16>>| {
        let words = engine.on(Right);
        (0..80).flat_map(|word| words.sync(word).to_vec()).collect::<Vec<f32>>()
    };
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
    let mut random = SplitMix::new(7, 0);
    let (left, right) = (0..5000).map(|_| (random.below(300) as u32, random.below(300) as u32)).unzip();
    let list = EdgeList { num_left: 300, num_right: 300, square: true, left, right, data: vec![(); 5000] };
    let edges = GroupedEdges::new(list, &[Side::Right]);
    let sequence = pagerank::sequence(Damping::DEFAULT, edges.num_edges() as u64);
    let offsets = edges.offsets(Side::Left);
    let links = |page: usize| offsets[page + 1] - offsets[page];
    let start = Start::new(Damping::DEFAULT, 300, &[], &links);
    let mut engine = Engine::new(&edges, sequence, &settings(2, 1)).unwrap();
    engine.set_global(start.state());
    engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
    let state = |engine: &Engine<PageRank>| {
        let view = engine.on(Right);
        (0..300).map(|page| format!("{:?} {:?} {:?}", view.master(page), view.sync(page), engine.global())).collect()
    };
    run(&mut engine, 2);
    let two: Vec<String> = state(&engine);
    let mut parent: Branch<PageRank> = engine.fork().unwrap();
    run(&mut engine, 4);
    let four: Vec<String> = state(&engine);
    engine.switch(&mut parent).unwrap();
    assert_eq!(state(&engine), two);
    run(&mut engine, 4);
    assert_eq!(state(&engine), four);
}

#[test]
fn what_is_known_of_features_belongs_to_a_branch() {
    let mut random = SplitMix::new(9, 0);
    let mut list = EdgeList { num_left: 150, num_right: 40, ..EdgeList::default() };
    for sample in 0..150 {
        for feature in 0..40 {
            if random.below(5) == 0 {
                list.left.push(sample);
                list.right.push(feature);
                list.data.push(random.unit() as f32 - 0.5);
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
