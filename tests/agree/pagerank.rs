//! PageRank.

use std::ops::ControlFlow;
use std::sync::Arc;

use megagrid_algorithms::pagerank::{Damping, PageRank, Start, sequence};
use megagrid_baselines::apps::pagerank::{Job, run};
use megagrid_baselines::{Peers, Processes, Run, System, list_by};
use megagrid_engine::{Engine, Settings};
use megagrid_partition::strategy::NAMES;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side, SplitMix};
use megagrid_stages::Right;

use super::{assert_processes_agree, assert_systems_agree, skewed};

const ITERATIONS: u64 = 10;

/// Links from each of three groups of pages to the next group, some of them repeated; some pages link nowhere. As the groups differ in
/// size, scores go round for long: where they have settled, what is left of the residual is rounding.
fn graph() -> EdgeList<()> {
    let groups = [0..200, 200..280, 280..300_u32];
    let mut random = SplitMix::new(8, 0);
    let mut list = EdgeList { num_left: 300, num_right: 300, square: true, ..EdgeList::default() };
    for link in 0..3000 {
        let (from, to) = (&groups[link % 3], &groups[(link + 1) % 3]);
        list.left.push(from.start + random.below(from.len() as u64 - 3) as u32);
        list.right.push(to.start + skewed(&mut random, to.len()));
        list.data.push(());
    }
    list
}

fn megagrid(list: &EdgeList<()>, damping: Damping) -> Vec<f64> {
    let source = GroupedEdges::new(list.clone(), &[Side::Left, Side::Right]);
    let sequence = sequence(damping, list.left.len() as u64);
    let offsets = source.offsets(Side::Left);
    let out_degree = |page: usize| (offsets[page + 1] - offsets[page]) as f64;
    let start = Start::new(damping, list.num_left, None, &out_degree);
    let settings = Settings { workers: 1, ..Settings::default() };
    let mut engine = Engine::<PageRank>::new(&source, sequence, &settings).unwrap();
    engine.set_global(start.state());
    engine.init(Right, |page, first| (*first.master, *first.sync) = start.page(page));
    let mut found = Vec::new();
    let between = |engine: &mut Engine<PageRank>, _: &_| {
        found.push(engine.global().residual);
        Ok(false)
    };
    engine.run_until(ITERATIONS, between).unwrap();
    found
}

#[test]
fn residuals_agree_on_all_systems() {
    let source = GroupedEdges::new(graph(), &[Side::Left, Side::Right]);
    let graph = list_by(&source, Side::Left, |&()| ()).unwrap();
    let damping = Damping::DEFAULT;
    let megagrid = megagrid(&graph, damping);
    let job = Job { graph: &graph, damping };
    assert_systems_agree((&System::ALL, ""), &megagrid, 1e-5, |system, of, report| run(system, &job, of, report));
    assert_processes_agree("", &megagrid, [&NAMES, &NAMES], |system, of, report| run(system, &job, of, report));
}

/// One of two processes, whose other one sends what nobody expects.
struct Odd(Vec<u8>);

impl Peers for Odd {
    fn process(&self) -> usize {
        0
    }

    fn processes(&self) -> usize {
        2
    }

    fn all_gather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        Ok(vec![mine.clone(), mine])
    }

    fn exchange(&self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        Ok(vec![parts[0].clone(), self.0.clone()])
    }
}

#[test]
fn messages_that_are_none_end_the_run() {
    let job = Job { graph: &graph(), damping: Damping::DEFAULT };
    for (system, sent) in [(System::Gas, 0), (System::Gas, 3), (System::GasFaithful, 3), (System::GasFaithful, 4000)] {
        let processes = Processes::new(Arc::new(Odd(vec![255; sent])));
        let of = Run { processes, cut: Some("random"), ..Run::default() };
        let refused = run(system, &job, &of, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
        assert!(refused.contains("another process"), "{system}, {sent} bytes: {refused}");
    }
}
