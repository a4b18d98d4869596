//! Several processes against one: the same bits, the same promises, and one end. Processes are threads here, with connections of
//! their own.

use std::collections::VecDeque;
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use megagrid_geeps::Error;
use megagrid_geeps::apps::Application;
use megagrid_geeps::apps::network::Optimizer;
use megagrid_geeps::device::Cpu;
use megagrid_geeps::processes::Processes;
use megagrid_geeps::run::{Epoch, Finish, Run, State, train_together};

use crate::data::{RUN, bits, factorization, network, trained};
use crate::training::budgets;

/// Where bytes go to a process, and come from it.
type Ends = (Sender<Vec<u8>>, Receiver<Vec<u8>>);

/// One of several processes.
pub struct One {
    process: usize,
    processes: usize,
    /// Of the first one to all others, of the others to the first.
    others: Mutex<Vec<Ends>>,
    sockets: Mutex<VecDeque<Vec<Option<TcpStream>>>>,
}

fn gone(process: usize) -> Error {
    Error::Process { process, problem: "it has ended".to_owned() }
}

impl Processes for One {
    fn process(&self) -> usize {
        self.process
    }

    fn processes(&self) -> usize {
        self.processes
    }

    fn gather(&self, mine: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let others = self.others.lock().expect("no test panics with it");
        if self.process > 0 {
            return others[0].0.send(mine).map(|()| None).map_err(|_| gone(0));
        }
        let received = others.iter().enumerate().map(|(at, (_, from))| from.recv().map_err(|_| gone(at + 1)));
        std::iter::once(Ok(mine)).chain(received).collect::<Result<_, _>>().map(Some)
    }

    fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>, Error> {
        let others = self.others.lock().expect("no test panics with it");
        if self.process > 0 {
            return others[0].1.recv().map_err(|_| gone(0));
        }
        for (at, (to, _)) in others.iter().enumerate() {
            to.send(mine.clone()).map_err(|_| gone(at + 1))?;
        }
        Ok(mine)
    }

    fn sockets(&self) -> Result<Vec<Option<TcpStream>>, Error> {
        let next = self.sockets.lock().expect("no test panics with it").pop_front();
        Ok(next.expect("as many as were made"))
    }
}

/// Makes processes that know each other.
fn processes(count: usize) -> Vec<One> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are ports");
    let address = listener.local_addr().expect("it is bound");
    let mut all: Vec<One> = (0..count)
        .map(|process| One { process, processes: count, others: Mutex::default(), sockets: Mutex::default() })
        .collect();
    for _ in 0..2 {
        let mut sockets: Vec<Vec<Option<TcpStream>>> = (0..count).map(|_| (0..count).map(|_| None).collect()).collect();
        for (one, two) in (0..count).flat_map(|two| (0..two).map(move |one| (one, two))) {
            sockets[one][two] = Some(TcpStream::connect(address).expect("it listens"));
            sockets[two][one] = Some(listener.accept().expect("one has connected").0);
        }
        for (one, sockets) in all.iter_mut().zip(sockets) {
            one.sockets.get_mut().expect("nobody has it").push_back(sockets);
        }
    }
    let (first, others) = all.split_first_mut().expect("one at least");
    for other in others {
        let ((to, received), (answer, answered)) = (channel(), channel());
        first.others.get_mut().expect("nobody has it").push((to, answered));
        other.others.get_mut().expect("nobody has it").push((answer, received));
    }
    all
}

/// What a process ends with, its epochs and the state after each.
pub type Outcome = Result<(Finish, Vec<(Epoch, State)>), Error>;

/// Trains in several processes, and returns what each ends with.
pub fn together(count: usize, application: &impl Application, run: Run, from: Option<&State>) -> Vec<Outcome> {
    let all = processes(count);
    std::thread::scope(|scope| {
        let train = |one: One| {
            scope.spawn(move || {
                let mut after = Vec::new();
                let mut report = |epoch: &Epoch, take: megagrid_geeps::run::Take<'_>| {
                    after.push((epoch.clone(), take().expect("the devices are there")));
                    ControlFlow::Continue(())
                };
                let device = |_| Ok(Arc::new(Cpu::new()) as _);
                let finish = train_together(&one, application, &run, device, from.cloned(), &mut report)?;
                assert!(one.process == 0 || after.is_empty(), "the first process reports");
                Ok((finish, after))
            })
        };
        let threads: Vec<_> = all.into_iter().map(train).collect();
        threads.into_iter().map(|thread| thread.join().expect("no process panics")).collect()
    })
}

/// Returns what the first process ends with, where nothing can go wrong in any.
pub fn first(outcomes: Vec<Outcome>) -> (Finish, Vec<(Epoch, State)>) {
    let all: Result<Vec<_>, _> = outcomes.into_iter().collect();
    all.unwrap_or_else(|error| panic!("{error}")).swap_remove(0)
}

fn any_number_of_processes_trains_the_same(application: &impl Application, workers: usize) {
    let budgets = budgets(application, workers);
    let run = Run { workers, ..RUN };
    let (expected, epochs) = trained(application, run);
    for (count, budget) in [(2, budgets[0]), (2, budgets[4]), (workers, budgets[2])] {
        let (found, after) = first(together(count, application, Run { budget, ..run }, None));
        assert_eq!(bits(&found), bits(&expected), "{count} processes, budget {budget}");
        for ((found, _), expected) in after.iter().zip(&epochs) {
            assert_eq!(found.loss.to_bits(), expected.loss.to_bits());
            assert_eq!((found.workers.len(), &found.measured), (workers, &expected.measured));
        }
        assert!(found.staleness.keys().eq(&[-1]), "bulk synchronous reads are fresh: {:?}", found.staleness);
        assert_eq!((found.epochs, found.resident_bytes.len()), (run.epochs, workers));
        for (from, sent) in found.links.iter().enumerate() {
            assert!(sent.iter().enumerate().all(|(to, &bytes)| (bytes > 0) == (from != to)), "{:?}", found.links);
        }
    }
}

#[test]
fn networks_are_the_same_in_any_number_of_processes() {
    any_number_of_processes_trains_the_same(&network(4, Optimizer::Sgd), 4);
    any_number_of_processes_trains_the_same(&network(4, Optimizer::AdaGrad), 4);
}

#[test]
fn factors_are_the_same_in_any_number_of_processes() {
    any_number_of_processes_trains_the_same(&factorization(4), 4);
}

#[test]
fn a_state_goes_on_in_another_number_of_processes() {
    let application = network(4, Optimizer::AdaGrad);
    let run = Run { workers: 4, epochs: 4, ..RUN };
    let (whole, all) = first(together(1, &application, run, None));
    for (before, after) in [(1, 2), (2, 4), (4, 1)] {
        let (_, some) = first(together(before, &application, Run { epochs: 2, ..run }, None));
        let (_, state) = some.last().expect("there are two");
        assert_eq!(*state, all[1].1, "after {before} processes");
        let (rest, _) = first(together(after, &application, run, Some(state)));
        assert_eq!(bits(&rest), bits(&whole), "{before} processes, then {after}");
    }
}

#[test]
fn workers_have_to_be_shared_equally() {
    let run = Run { workers: 3, ..RUN };
    for outcome in together(2, &network(3, Optimizer::Sgd), run, None) {
        let error = outcome.expect_err("three are none of two processes'");
        assert_eq!(error.to_string(), "workers is 3; expected 1 to 4096, as many in each of 2 processes");
    }
}
