//! What stays where edges come and go: what edges carry, what vertices have room for; and what is refused.

use megagrid_datasets::Edges;
use megagrid_engine::virtual_cluster::{Costs, Link, Model, VirtualCluster};
use megagrid_engine::{Engine, Error, Peers, Settings, Source};
use megagrid_partition::SplitMix;
use megagrid_stages::{Combine, Context, Left, Read, Right, Sequence, Side, Update, program, vertex};
use serde::{Deserialize, Serialize};

use crate::append::{Flow, Graph, Tried, state};
use crate::made::{Counts, run, settings};
use crate::processes::local;

/// The ends of edges, and what these carry.
#[derive(Default, Serialize, Deserialize)]
pub struct Seen(Vec<(u32, u32, Vec<u16>)>);

impl Combine for Seen {
    fn combine(&mut self, from: &mut Self) {
        self.0.append(&mut from.0);
    }
}

vertex! {
    /// Its synced data are its id.
    pub struct Origin { sync: u32 }
}
vertex! {
    /// Its mirror data are its id, and its counts are of visits.
    pub struct Target { sync: Counts, mirror: u32 }
}
program! { pub struct Many { left: Origin, right: Target, edge: [u16], worker: Seen } }

fn in_groups(_: Read<Origin>, to: Update<Target>, items: &mut [u16], cx: &mut Context<Many>) {
    to.sync.0[cx.iteration as usize % 3] += 1;
    items.iter_mut().for_each(|item| *item += cx.iteration as u16);
}

fn in_pairs(_: Update<Origin>, to: Update<Target>, items: &mut [u16], cx: &mut Context<Many>) {
    to.sync.0[cx.iteration as usize % 3] += 1;
    items.iter_mut().for_each(|item| *item += cx.iteration as u16);
}

fn see(from: Read<Origin>, to: Read<Target>, items: &mut [u16], cx: &mut Context<Many>) {
    cx.worker.0.push((*from.sync, *to.mirror, items.to_vec()));
}

/// An edge's ends, and the number that its one to three items begin as.
type Edge = (u32, u32, u32);

fn source<'s>(edges: &'s Edges<u32>, capacities: &'s [u32]) -> Source<'s, u32, Many> {
    let len = |number: &u32| *number as usize % 3 + 1;
    Source::slices(edges, len, |&number, items| items.fill(number as u16)).capacities(None, Some(capacities))
}

fn edges(number: u32, left: u32, right: u32) -> Vec<Edge> {
    let mut random = SplitMix::new(number.into(), 0);
    (0..number).map(|at| (random.below(left.into()) as u32, random.below(right.into()) as u32, at)).collect()
}

/// What edges are to carry, whose items grew by so much since they came.
fn carried(edges: &[Edge], grown: u16) -> Vec<(u32, u32, Vec<u16>)> {
    let of = |&(left, right, number): &Edge| (left, right, vec![number as u16 + grown; number as usize % 3 + 1]);
    edges.iter().map(of).collect()
}

fn check_many(engine: &mut Engine<Many>, edges: &[(u32, u32, Vec<u16>)], visits: &dyn Fn(u32) -> u32) {
    engine.collect().unwrap();
    let [mut found, mut expected] = [engine.total(see).unwrap().0, edges.to_vec()];
    [&mut found, &mut expected].into_iter().for_each(|edges| edges.sort());
    assert_eq!(found, expected);
    let targets = engine.on(Right);
    let is_first = engine.plan().processes.this == 0;
    for (id, counts) in (0..).zip(targets.iter()).filter(|_| is_first) {
        assert_eq!(counts.0.iter().sum::<u32>(), visits(id), "target {id}");
    }
}

/// Edges carry slices, and vertices have capacities, which grow.
fn slices_and_entries(settings: &Settings, in_groups_of_vertices: bool) {
    let old = edges(900, 70, 40);
    let (all, small) = (Edges::bipartite(70, 40, old.clone()).unwrap(), [3; 40]);
    let source_of_all = source(&all, &small);
    let mut engine = match in_groups_of_vertices {
        true => Engine::new(source_of_all, Sequence::new().exchange(in_groups), settings),
        false => Engine::new(source_of_all, Sequence::new().exchange(in_pairs), settings),
    }
    .unwrap();
    let number = |engine: &mut Engine<Many>| {
        engine.init(Left, |id, first| *first.sync = id as u32);
        engine.init(Right, |id, first| *first.mirror = id as u32);
    };
    number(&mut engine);
    run(&mut engine, 3);
    let degree = |edges: &[Edge], id: u32| edges.iter().filter(|edge| edge.1 == id).count() as u32;
    check_many(&mut engine, &carried(&old, 6), &|id| 3 * degree(&old, id));

    let more = edges(200, 75, 41);
    let (come, large) = (Edges::bipartite(75, 41, more.clone()).unwrap(), [5; 41]);
    assert_eq!(engine.append(source(&come, &large)).unwrap(), [70..75, 40..41]);
    number(&mut engine);
    run(&mut engine, 5);
    let visits = |id| 5 * degree(&old, id) + 2 * degree(&more, id);
    check_many(&mut engine, &[carried(&old, 15), carried(&more, 9)].concat(), &visits);
    assert!(engine.on(Right).iter().all(|counts| counts.0.len() == 5));

    engine.remove(&come).unwrap();
    let is_left = |old: &&Edge| !more.iter().any(|gone| (gone.0, gone.1) == (old.0, old.1));
    let left: Vec<Edge> = old.iter().filter(is_left).copied().collect();
    check_many(&mut engine, &carried(&left, 15), &visits);
}

#[test]
fn slices_and_entries_stay() {
    for workers in 1..=3 {
        [true, false].into_iter().for_each(|in_groups| slices_and_entries(&settings(workers, 1), in_groups));
    }
}

#[test]
fn slices_and_entries_stay_with_several_processes() {
    for (processes, workers) in [(2, 1), (2, 2), (3, 1)] {
        for in_groups in [true, false] {
            local::run(processes, |peers| slices_and_entries(&Settings { peers, ..settings(workers, 1) }, in_groups));
        }
    }
}

#[test]
fn a_virtual_cluster_keeps_its_edges() {
    let links = Graph { is_square: true, vertices: [9, 9], edges: vec![(0, 1, 1.0), (1, 8, 2.0)] };
    let model = Model { link: Link::default(), costs: Costs::Clock(1.0), jitter: 0.0, seed: 1 };
    VirtualCluster::new(2, model).run(|peers| {
        let settings = Settings { peers: Some(peers as std::sync::Arc<dyn Peers>), ..settings(1, 3) };
        let mut engine = Engine::<Flow>::new(&links.all(), Flow::sequence(), &settings).unwrap();
        assert!(matches!(engine.append(&links.all()), Err(Error::VirtualEdges)));
        assert!(matches!(engine.remove(&links.all()), Err(Error::VirtualEdges)));
    });
}

#[test]
fn what_cannot_come_or_go_is_refused_and_changes_nothing() {
    let links = Graph { is_square: true, vertices: [3, 3], edges: vec![(0, 1, 1.0), (1, 2, 2.0), (1, 2, 3.0)] };
    let mut engine = Engine::<Flow>::new(&links.all(), Flow::sequence(), &settings(2, 3)).unwrap();
    engine.init(Right, Flow::first);
    let before = state(&engine);
    for (gone, ends) in [((0, 2), [0, 2]), ((1, 0), [1, 0])] {
        let gone = links.of(vec![(0, 1, 0.0), (gone.0, gone.1, 0.0)]);
        let error = engine.remove(&gone).unwrap_err();
        assert!(matches!(error, Error::NoEdge { left, right } if [left, right] == ends), "{error}");
    }
    let error = engine.remove(&Edges::square(9, [(7, 1)]).unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no edge from left vertex 7 to right vertex 1; nothing was removed; name edges that are there"
    );
    let bipartite = Edges::bipartite(3, 3, [(0, 1, 1.0)]).unwrap();
    assert!(matches!(engine.append(&bipartite), Err(Error::Squareness { .. })));
    assert!(matches!(engine.remove(&bipartite), Err(Error::Squareness { .. })));
    assert_eq!(state(&engine), before);
    let result = engine.run_until(3, |engine, _| engine.append(&links.all()).map(|_| false));
    assert!(matches!(result, Err(Error::Running)), "{result:?}");
    assert_eq!(engine.plan().edges, 3);
    // All that join two ends go, and a change without edges is none.
    engine.remove(&links.of(vec![(1, 2, 0.0)])).unwrap();
    assert_eq!(engine.plan().edges, 1);
    engine.append(&links.of(vec![])).unwrap();
    assert_eq!(engine.plan().edges, 1);
}

#[test]
fn capacities_are_those_of_all_vertices() {
    let all = Edges::bipartite(4, 2, [(0, 0, 1_u32), (3, 1, 2)]).unwrap();
    let mut engine = Engine::new(source(&all, &[3, 4]), Sequence::new().exchange(in_groups), &settings(1, 1)).unwrap();
    let more = Edges::bipartite(4, 3, [(0, 2, 1_u32)]).unwrap();
    let without = Source::slices(&more, |_| 1, |_, _| {});
    assert!(matches!(engine.append(without), Err(Error::NoCapacities)));
    for (capacities, found) in [(&[3, 4][..], 2), (&[3, 3, 3], 3)] {
        let error = engine.append(source(&more, capacities)).unwrap_err();
        assert!(
            matches!(error, Error::Capacities { side: Side::Right, vertices: 3, found: n } if n == found),
            "{error}"
        );
    }
    engine.append(source(&more, &[3, 4, 3])).unwrap();
    // No vertex comes: those that there are keep their capacities.
    engine.append(Source::slices(&more, |_| 1, |_, _| {})).unwrap();
    assert!(engine.on(Right).iter().map(|counts| counts.0.len()).eq([3, 4, 3]));
}

#[test]
fn branches_end_where_edges_change() {
    let links = Graph { is_square: true, vertices: [3, 3], edges: vec![(0, 1, 1.0), (1, 2, 2.0)] };
    let mut engine = Engine::<Flow>::new(&links.all(), Flow::sequence(), &settings(1, 3)).unwrap();
    engine.init(Right, Flow::first);
    let [mut one, other] = [engine.fork().unwrap(), engine.fork().unwrap()];
    engine.append(&links.all()).unwrap();
    assert!(matches!(engine.switch(&mut one), Err(Error::BranchOfOtherEdges)));
    engine.free(other);
    let before = state(&engine);
    let mut branch = engine.fork().unwrap();
    run(&mut engine, 2);
    engine.switch(&mut branch).unwrap();
    assert_eq!((engine.iterations(), state(&engine)), (0, before));
}
