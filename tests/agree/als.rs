//! Matrix factorization of implicit feedback.

use std::ops::ControlFlow;

use megagrid_algorithms::als::{Als, Config, Gramians, sequence};
use megagrid_baselines::apps::als::{Job, run};
use megagrid_baselines::{Run, System};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::{EdgeList, GroupedEdges, Side, SplitMix};
use megagrid_stages::Right;

use super::{assert_processes_agree, assert_systems_agree, skewed};

const ITERATIONS: u64 = 6;

/// Feedback of skewed users on items of a kind of theirs; some pairs are repeated, and the last users and items have none.
fn feedback() -> EdgeList<f32> {
    let (users, items) = (120, 70);
    let mut random = SplitMix::new(6, 0);
    let mut list = EdgeList { num_left: users + 3, num_right: items + 2, ..EdgeList::default() };
    for _ in 0..2500 {
        let (user, item) = (skewed(&mut random, users), skewed(&mut random, items));
        let is_of_kind = user % 4 == item % 4 || random.below(5) == 0;
        if is_of_kind {
            list.push(user, item, [0.5, 1.0, 3.0][random.below(3) as usize]);
        }
    }
    list
}

/// Trains with Megagrid; returns the objectives.
fn megagrid(list: &EdgeList<f32>, config: Config) -> Vec<f64> {
    let source = GroupedEdges::new(list.clone(), &[Side::Left, Side::Right]);
    let settings = Settings { workers: 1, dims: config.dims, ..Settings::default() };
    let sequence = sequence(config, [list.num_left, list.num_right]);
    let mut engine = Engine::<Als>::new(&source, sequence, &settings).unwrap();
    let init = |item: usize, row: &mut [f32]| config.init_item(1, item, row);
    engine.set_global(Gramians::new(&config, list.num_right, init));
    engine.init(Right, |item, first| init(item, first.sync));
    let mut found = Vec::new();
    let between = |engine: &mut Engine<Als>, _: &_| {
        found.push(engine.global().objective(&config));
        Ok(false)
    };
    engine.run_until(ITERATIONS, between).unwrap();
    found
}

#[test]
fn objectives_agree_on_all_systems() {
    let feedback = feedback();
    // One block of padded rows; two, the last of which is shorter; all dimensions at once.
    for (dims, block) in [(8, 16), (24, 16), (24, 24)] {
        let config = Config { dims, block, lambda: 0.02, alpha: 4.0, nu: 0.8, ..Config::default() };
        let megagrid = megagrid(&feedback, config);
        assert!(megagrid[5] < 0.9 * megagrid[0], "it learns: {megagrid:?}");
        let (job, what) = (Job { feedback: &feedback, config }, format!("{dims} dimensions in blocks of {block}"));
        assert_systems_agree((&System::ALL, &what), &megagrid, 1e-5, |system, of, report| {
            run(system, &job, of, report)
        });
        assert_processes_agree(&what, &megagrid, [&["random"], &["random"]], |system, of, report| {
            run(system, &job, of, report)
        });
    }
}

#[test]
fn slack_and_steps_by_servers_are_refused() {
    let job = Job { feedback: &feedback(), config: Config::default() };
    let slack = Run { slack: 1, ..Run::default() };
    let steps = Run { server_steps: true, ..Run::default() };
    for (of, advice) in [(slack, "take a slack of 0"), (steps, "matrix factorization in place has it")] {
        for system in System::ALL {
            let refused = run(system, &job, &of, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
            assert!(refused.contains(system.name()) && refused.contains(advice), "{refused}");
        }
    }
}
