//! Training that goes on from a state is the training that did not end.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use megagrid_geeps::Error;
use megagrid_geeps::apps::Application;
use megagrid_geeps::apps::network::Optimizer;
use megagrid_geeps::device::Device;
use megagrid_geeps::run::{Epoch, Finish, Run, State, train};

use crate::data::{Make, RUN, bits, factorization, network, on_cpu};
use crate::faults::Failing;
use crate::training::budgets;

/// Trains, and returns the state after each epoch.
fn from(
    application: &impl Application,
    run: Run,
    state: Option<State>,
) -> Result<(Finish, Vec<(Epoch, State)>), Error> {
    from_on(on_cpu, application, run, state)
}

fn from_on(
    device: Make,
    application: &impl Application,
    run: Run,
    state: Option<State>,
) -> Result<(Finish, Vec<(Epoch, State)>), Error> {
    let mut after = Vec::new();
    let finish = train(application, &run, device, state, &mut |epoch, take| {
        after.push((epoch.clone(), take().expect("the devices are there")));
        ControlFlow::Continue(())
    })?;
    Ok((finish, after))
}

fn goes_on_as_if_it_had_not_ended(device: Make, application: &impl Application, workers: usize) {
    let staging = device(0).expect("there is one").staging_bytes();
    let from = |application, run, state| from_on(device, application, run, state);
    let run = Run { workers, epochs: 5, ..RUN };
    let (whole, all) = from(application, run, None).expect("nothing can go wrong");
    // Memory may be another one afterwards.
    for budget in budgets(application, workers).into_iter().map(|budget| budget + staging) {
        let (_, some) = from(application, Run { epochs: 2, budget, ..run }, None).expect("enough");
        let (_, state) = &some[1];
        assert_eq!(*state, all[1].1, "budget {budget}");
        for budget in [budget, run.budget] {
            let (rest, more) = from(application, Run { budget, ..run }, Some(state.clone())).expect("enough");
            assert_eq!(bits(&rest), bits(&whole));
            assert_eq!(more.iter().map(|(epoch, _)| epoch.epoch).collect::<Vec<_>>(), [3, 4, 5]);
            for ((found, state), (expected, as_expected)) in more.iter().zip(&all[2..]) {
                assert_eq!((found.loss.to_bits(), &found.measured), (expected.loss.to_bits(), &expected.measured));
                assert_eq!(state, as_expected);
            }
        }
    }
}

#[test]
fn networks_go_on_as_if_they_had_not_ended() {
    goes_on_as_if_it_had_not_ended(on_cpu, &network(1, Optimizer::Sgd), 1);
    goes_on_as_if_it_had_not_ended(on_cpu, &network(2, Optimizer::AdaGrad), 2);
}

#[test]
fn factors_go_on_as_if_they_had_not_ended() {
    goes_on_as_if_it_had_not_ended(on_cpu, &factorization(2), 2);
}

/// Histories are local data that last: pinned and swapped, they go back to where they were.
#[cfg(feature = "gpu")]
#[test]
fn networks_on_a_gpu_go_on_as_if_they_had_not_ended() {
    goes_on_as_if_it_had_not_ended(crate::gpu::on_gpu, &network(2, Optimizer::AdaGrad), 2);
}

#[test]
fn only_what_lasts_is_in_a_state() {
    let state = |optimizer| {
        let (_, mut after) = from(&network(2, optimizer), Run { workers: 2, ..RUN }, None).expect("enough");
        after.swap_remove(0).1
    };
    assert_eq!(state(Optimizer::Sgd).locals, [vec![], vec![]] as [Vec<Vec<f32>>; 2]);
    let with_histories = state(Optimizer::AdaGrad);
    for histories in &with_histories.locals {
        let lens = histories.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lens.len(), with_histories.values.len(), "one a layer: {lens:?}");
        assert!(histories.iter().flatten().any(|&value| value > 0.0));
    }
}

/// What was saved before a device is lost is good: training that goes on from it ends as if nothing had been lost.
#[test]
fn the_last_state_before_a_device_is_lost_is_good() {
    let (application, run) = (network(2, Optimizer::AdaGrad), Run { workers: 2, epochs: 5, ..RUN });
    let (whole, _) = from(&application, run, None).expect("enough");
    let saved = Mutex::new(None);
    let device = |worker| Ok(Arc::new(Failing::lost_at(if worker == 1 { 150 } else { u64::MAX })) as Arc<dyn Device>);
    let error = train(&application, &run, device, None, &mut |epoch, take| {
        *saved.lock().expect("nobody panics") = Some((epoch.epoch, take().expect("the devices are there")));
        ControlFlow::Continue(())
    });
    assert!(matches!(error, Err(Error::DeviceLost { .. })), "{error:?}");
    let (epoch, state) = saved.into_inner().expect("nobody panics").expect("an epoch was done");
    assert!((1..5).contains(&epoch), "the device is lost in the middle: {epoch}");
    let (rest, _) = from(&application, run, Some(state)).expect("enough");
    assert_eq!(bits(&rest), bits(&whole));
}

#[test]
fn a_state_at_the_end_trains_no_more() {
    let application = network(1, Optimizer::Sgd);
    let (whole, all) = from(&application, RUN, None).expect("enough");
    let (rest, more) = from(&application, RUN, all.last().map(|(_, state)| state.clone())).expect("enough");
    assert_eq!((bits(&rest), more), (bits(&whole), vec![]));
}

#[test]
fn states_of_other_trainings_are_refused() {
    let run = Run { workers: 2, ..RUN };
    let (_, mut all) = from(&network(2, Optimizer::AdaGrad), run, None).expect("enough");
    let state = all.swap_remove(0).1;
    let refused = |state: State, expected: &str| {
        let error = from(&network(2, Optimizer::AdaGrad), run, Some(state)).expect_err("it is another");
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(State { values: vec![], ..state.clone() }, "it has 0 tables instead of 3");
    refused(State { locals: vec![], ..state.clone() }, "it has 0 workers instead of 2");
    refused(State { locals: vec![vec![]; 2], ..state.clone() }, "it has 0 local data of a worker instead of 3");
    let mut short = state.clone();
    short.locals[1][2].pop();
    refused(short, "has 51 values instead of 52");
    let mut short = state;
    short.values[0].pop();
    refused(short, "255 first values were given for table weights 1, which has 256");
}
