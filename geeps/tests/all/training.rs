//! The same bits whatever is pinned, fetched ahead and repeated; bytes as planned.

use megagrid_geeps::apps::Application;
use megagrid_geeps::apps::factorization::{self, Factorization};
use megagrid_geeps::apps::network::{self, Network, Optimizer};
use megagrid_geeps::memory::{Moves, Plan};
use megagrid_geeps::run::{Run, record};
use megagrid_geeps::{Consistency, Error};

use crate::data::{self, Make, RUN, bits, network, on_cpu, ratings, samples, trained, try_train_on};

/// Budgets from the least of all workers to what pins everything.
pub fn budgets(application: &impl Application, workers: usize) -> Vec<u64> {
    let of_worker = |worker| {
        let (trace, _) = record(application, worker).expect("the application is in order");
        (Plan::least_budget(&trace), Plan::full_budget(&trace))
    };
    let (least, full): (Vec<u64>, Vec<u64>) = (0..workers).map(of_worker).unzip();
    let [least, full] = [least, full].map(|budgets| budgets.into_iter().max().expect("there are workers"));
    (0..=4).map(|quarter| least + (full - least) * quarter / 4).collect()
}

fn any_budget_gives_the_same_bits(application: &impl Application, workers: usize) {
    let run = Run { workers, ..RUN };
    let (expected, epochs) = trained(application, run);
    for budget in budgets(application, workers) {
        for prefetch in [true, false] {
            let (found, again) = trained(application, Run { budget, prefetch, ..run });
            assert_eq!(bits(&found), bits(&expected), "budget {budget}, prefetch {prefetch}");
            let losses = |epochs: &[megagrid_geeps::run::Epoch]| {
                epochs.iter().map(|epoch| epoch.loss.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(losses(&again), losses(&epochs));
            assert!(found.resident_bytes.iter().all(|&bytes| bytes <= budget), "{:?}", found.resident_bytes);
        }
    }
}

#[test]
fn a_network_is_the_same_at_any_budget() {
    any_budget_gives_the_same_bits(&network(1, Optimizer::Sgd), 1);
}

#[test]
fn local_data_that_last_are_the_same_at_any_budget() {
    any_budget_gives_the_same_bits(&network(2, Optimizer::AdaGrad), 2);
}

#[test]
fn factors_are_the_same_at_any_budget() {
    any_budget_gives_the_same_bits(&data::factorization(1), 1);
    any_budget_gives_the_same_bits(&data::factorization(3), 3);
}

/// A worker that has all ratings in one batch reads each row once an epoch, and sends its updates summed.
#[test]
fn servers_are_sent_a_row_of_a_batch_once() {
    let settings = factorization::Settings { dims: 5, workers: 1, batch: 1 << 20, step: 0.05, lambda: 0.01, seed: 2 };
    let factorization = Factorization::new(ratings(), settings).expect("settings are in range");
    for budget in budgets(&factorization, 1) {
        let (_, epochs) = trained(&factorization, Run { budget, ..RUN });
        let sent: u64 = epochs.iter().map(|epoch| epoch.sent_bytes).sum();
        assert_eq!(sent, RUN.epochs * 2 * 4 * 5 * (30 + 20), "budget {budget}");
    }
}

/// Trains at several budgets, and holds what moves and what is taken to the plans.
pub fn bytes_are_as_planned(device: Make, application: &impl Application, workers: usize) {
    let staging = device(0).expect("there is one").staging_bytes();
    for budget in budgets(application, workers).into_iter().map(|budget| budget + staging) {
        let run = Run { workers, budget, ..RUN };
        let (finish, epochs) = try_train_on(application, run, device).unwrap_or_else(|error| panic!("{error}"));
        let plans: Vec<Plan> = (0..workers)
            .map(|worker| Plan::new(record(application, worker).expect("in order").0, budget, staging).expect("enough"))
            .collect();
        let iterations = run.epochs * application.iterations();
        let mut planned = Moves::default();
        for (worker, plan) in plans.iter().enumerate() {
            let mut own = Moves::default();
            (0..iterations).for_each(|iteration| own += plan.moves(iteration));
            let [up, down] = own.by_direction();
            assert_eq!(finish.device_moves[worker], [up + plan.start_bytes(), down], "as the device counts");
            assert_eq!(finish.resident_bytes[worker], plan.resident_bytes());
            planned += own;
        }
        // Within the run an epoch has what was fetched ahead for the next one.
        let mut moved = Moves::default();
        epochs.iter().for_each(|epoch| moved += epoch.moves);
        assert_eq!(moved, planned, "budget {budget}");
    }
}

#[test]
fn bytes_that_move_are_those_of_the_plan() {
    bytes_are_as_planned(on_cpu, &network(1, Optimizer::Sgd), 1);
    bytes_are_as_planned(on_cpu, &network(3, Optimizer::AdaGrad), 3);
    bytes_are_as_planned(on_cpu, &network(2, Optimizer::Momentum { momentum: 0.9 }), 2);
    bytes_are_as_planned(on_cpu, &data::factorization(2), 2);
}

#[test]
fn four_workers_are_the_same_bit_by_bit_twice() {
    for optimizer in [Optimizer::Sgd, Optimizer::AdaGrad, Optimizer::Momentum { momentum: 0.9 }] {
        let run = Run { workers: 4, ..RUN };
        let [one, two] = [0, 1].map(|_| trained(&network(4, optimizer), run));
        assert_eq!(bits(&one.0), bits(&two.0));
        assert_eq!(one.0.staleness.keys().copied().collect::<Vec<_>>(), [-1], "bulk synchronous reads are fresh");
    }
}

/// Trains a model whose parameters are at least four times the budget.
pub fn four_times_the_budget(device: Make) {
    let settings = network::Settings {
        hidden: vec![32; 30],
        workers: 1,
        batch: 8,
        step: 0.05,
        optimizer: Optimizer::Sgd,
        seed: 1,
    };
    let deep = Network::new(samples(40), settings).expect("settings are in range");
    let model_bytes = 4 * deep.first_values().expect("they fit").iter().map(Vec::len).sum::<usize>() as u64;
    let (trace, _) = record(&deep, 0).expect("in order");
    let budget = Plan::least_budget(&trace);
    assert!(model_bytes >= 4 * budget, "{model_bytes} bytes of parameters, a budget of {budget}");
    // What copies take is the device's own.
    let budget = budget + device(0).expect("there is one").staging_bytes();
    let trained = |run| try_train_on(&deep, run, device).unwrap_or_else(|error| panic!("{error}"));
    let (finish, epochs) = trained(Run { budget, epochs: 4, ..RUN });
    assert!(finish.resident_bytes[0] <= budget);
    assert_eq!(bits(&finish), bits(&trained(Run { epochs: 4, ..RUN }).0));
    assert!(epochs.iter().all(|epoch| epoch.loss.is_finite()));
}

#[test]
fn a_model_of_four_times_the_budget_trains() {
    four_times_the_budget(on_cpu);
}

#[test]
fn training_learns() {
    for consistency in [Consistency::Bsp, Consistency::Ssp { slack: 1 }, Consistency::Async] {
        let run = Run { workers: 2, epochs: 40, consistency, ..RUN };
        let (_, epochs) = trained(&network(2, Optimizer::Sgd), run);
        let accuracy = epochs[39].measured.metrics["accuracy"];
        assert!(accuracy > 0.9, "{consistency:?}: {accuracy}");
        let (_, epochs) = trained(&data::factorization(2), Run { epochs: 200, ..run });
        let rmse = epochs[199].measured.metrics["train_rmse"];
        assert!(rmse < 0.1, "{consistency:?}: {rmse}");
    }
}

/// Trains with a step that is far too large.
pub fn ends_where_the_loss_is_no_number(device: Make) {
    let settings =
        network::Settings { hidden: vec![20], workers: 2, batch: 10, step: 1e30, optimizer: Optimizer::Sgd, seed: 1 };
    let network = Network::new(samples(100), settings).expect("settings are in range");
    let run = Run { workers: 2, epochs: 5, ..RUN };
    let error = try_train_on(&network, run, device).expect_err("the step is too large");
    assert!(matches!(error, Error::Diverged { epoch: 1, .. }), "{error}");
    assert!(error.to_string().ends_with("try a smaller --step"), "{error}");
}

#[test]
fn a_loss_that_is_no_number_ends_the_run_and_says_where() {
    ends_where_the_loss_is_no_number(on_cpu);
}

#[test]
fn settings_out_of_range_are_named() {
    let settings =
        network::Settings { hidden: vec![], workers: 4, batch: 26, step: 0.1, optimizer: Optimizer::Sgd, seed: 1 };
    let error = Network::new(samples(100), settings).expect_err("four batches of 26 are 104");
    assert_eq!(error.to_string(), "batch is 26; expected 1 to 25, as 4 workers share 100 samples");
}
