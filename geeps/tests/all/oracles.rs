//! Applications against plain loops that know nothing of tables, buffers and workers.

use megagrid_geeps::apps::network::Optimizer;
use megagrid_geeps::apps::{Application, Samples};
use megagrid_geeps::run::Run;
use megagrid_partition::SplitMix;

use crate::data::{CLASSES, FEATURES, RUN, factorization, network, network_of, ratings, samples, trained};

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let room = 2e-4 * expected.abs().max(1.0);
        assert!((f64::from(found) - expected).abs() < room, "value {at} is {found}; expected {expected}");
    }
}

/// Activations of every layer, in double precision.
fn activations(params: &[Vec<f64>], dims: &[usize], x: Vec<f64>) -> Vec<Vec<f64>> {
    let mut all = vec![x];
    for (layer, params) in params.iter().enumerate() {
        let (inputs, outputs) = (dims[layer], dims[layer + 1]);
        let y = |j: usize| {
            let sum = (0..inputs).map(|i| all[layer][i] * params[i * outputs + j]).sum::<f64>();
            let z = sum + params[inputs * outputs + j];
            if layer + 2 < dims.len() { z.max(0.0) } else { z }
        };
        let next = (0..outputs).map(y).collect();
        all.push(next);
    }
    all
}

fn softmax(z: &[f64]) -> Vec<f64> {
    let sum: f64 = z.iter().map(|z| z.exp()).sum();
    z.iter().map(|z| z.exp() / sum).collect()
}

fn dense(samples: &Samples, sample: usize) -> Vec<f64> {
    let mut x = vec![0.0; samples.num_features()];
    samples.features(sample).for_each(|(feature, value)| x[feature] = f64::from(value));
    x
}

/// The mean gradient over a batch.
fn gradient(params: &[Vec<f64>], dims: &[usize], samples: &Samples, batch: &[u32]) -> Vec<Vec<f64>> {
    let mut sum: Vec<Vec<f64>> = params.iter().map(|params| vec![0.0; params.len()]).collect();
    for &sample in batch {
        let x = activations(params, dims, dense(samples, sample as usize));
        let mut error = softmax(&x[dims.len() - 1]);
        error[samples.class(sample as usize) as usize] -= 1.0;
        for layer in (0..params.len()).rev() {
            let (inputs, outputs) = (dims[layer], dims[layer + 1]);
            for j in 0..outputs {
                (0..inputs).for_each(|i| sum[layer][i * outputs + j] += x[layer][i] * error[j] / batch.len() as f64);
                sum[layer][inputs * outputs + j] += error[j] / batch.len() as f64;
            }
            let below = |i: usize| {
                let back = (0..outputs).map(|j| params[layer][i * outputs + j] * error[j]).sum::<f64>();
                if x[layer][i] > 0.0 { back } else { 0.0 }
            };
            error = (0..inputs).map(below).collect();
        }
    }
    sum
}

/// With workers' batches one after the other, all workers' step is the step of one batch.
fn descends_as_a_plain_loop_does(hidden: &[usize]) {
    let samples = samples(100);
    let dims: Vec<usize> = [&[FEATURES], hidden, &[CLASSES]].concat();
    for workers in [1, 2, 4] {
        let network = network_of(hidden, workers, Optimizer::Sgd);
        let (finish, epochs) = trained(&network, Run { workers, ..RUN });
        let exact = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        let mut params: Vec<Vec<f64>> = network.first_values().expect("they fit").into_iter().map(exact).collect();
        for epoch in 0..3 {
            let mut order: Vec<u32> = (0..100).collect();
            SplitMix::new(5, epoch).shuffle(&mut order);
            for batch in order.chunks_exact(24) {
                let gradient = gradient(&params, &dims, &samples, batch);
                for (params, gradient) in params.iter_mut().zip(gradient) {
                    params.iter_mut().zip(gradient).for_each(|(value, gradient)| *value -= 0.3 * gradient);
                }
            }
        }
        finish.values.iter().zip(&params).for_each(|(found, expected)| assert_close(found, expected));
        let loss = |sample: usize| {
            let z = activations(&params, &dims, dense(&samples, sample)).pop().expect("there is one");
            -softmax(&z)[samples.class(sample) as usize].ln()
        };
        let objective = (0..100).map(loss).sum::<f64>() / 100.0;
        let found = epochs[2].measured.objective;
        assert!((found - objective).abs() < 1e-4, "{workers} workers: {found}; expected {objective}");
    }
}

#[test]
fn a_network_descends_as_a_plain_loop_does() {
    descends_as_a_plain_loop_does(&[20, 12]);
}

#[test]
fn logistic_regression_descends_as_a_plain_loop_does() {
    descends_as_a_plain_loop_does(&[]);
}

/// AdaGrad's history is each worker's own: with one worker it is the plain one.
#[test]
fn adagrad_descends_as_a_plain_loop_does() {
    let (samples, dims) = (samples(100), [9, 20, 12, 4]);
    let network = network(1, Optimizer::AdaGrad);
    let (finish, _) = trained(&network, Run { epochs: 1, ..RUN });
    let exact = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
    let mut params: Vec<Vec<f64>> = network.first_values().expect("they fit").into_iter().map(exact).collect();
    let mut history: Vec<Vec<f64>> = params.iter().map(|params| vec![0.0; params.len()]).collect();
    let mut order: Vec<u32> = (0..100).collect();
    SplitMix::new(5, 0).shuffle(&mut order);
    for batch in order.chunks_exact(24) {
        let gradient = gradient(&params, &dims, &samples, batch);
        for ((params, history), gradient) in params.iter_mut().zip(&mut history).zip(gradient) {
            for ((value, history), gradient) in params.iter_mut().zip(history).zip(gradient) {
                *history += gradient * gradient;
                *value -= 0.3 * gradient / (history.sqrt() + 1e-6);
            }
        }
    }
    finish.values.iter().zip(&params).for_each(|(found, expected)| assert_close(found, expected));
}

/// Velocities of workers add up to that of all: with workers' batches one after the other, it is that of one batch.
#[test]
fn momentum_descends_as_a_plain_loop_does() {
    let (samples, dims) = (samples(100), [9, 20, 12, 4]);
    for workers in [1, 2, 4] {
        let network = network(workers, Optimizer::Momentum { momentum: 0.8 });
        let (finish, _) = trained(&network, Run { workers, ..RUN });
        let exact = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        let mut params: Vec<Vec<f64>> = network.first_values().expect("they fit").into_iter().map(exact).collect();
        let mut velocities: Vec<Vec<f64>> = params.iter().map(|params| vec![0.0; params.len()]).collect();
        for epoch in 0..3 {
            let mut order: Vec<u32> = (0..100).collect();
            SplitMix::new(5, epoch).shuffle(&mut order);
            for batch in order.chunks_exact(24) {
                let gradient = gradient(&params, &dims, &samples, batch);
                for ((params, velocity), gradient) in params.iter_mut().zip(&mut velocities).zip(gradient) {
                    for ((value, velocity), gradient) in params.iter_mut().zip(velocity).zip(gradient) {
                        *velocity = 0.8 * *velocity + gradient;
                        *value -= 0.3 * *velocity;
                    }
                }
            }
        }
        finish.values.iter().zip(&params).for_each(|(found, expected)| assert_close(found, expected));
    }
}

#[test]
fn factors_descend_as_a_plain_loop_does() {
    let (dims, step, lambda) = (5, 0.05, 0.01);
    for workers in [1, 3] {
        let application = factorization(workers);
        let (finish, epochs) = trained(&application, Run { workers, ..RUN });
        let mut all = ratings().all;
        let mean = all.iter().map(|rating| f64::from(rating.2)).sum::<f64>() / all.len() as f64;
        SplitMix::new(2, u64::MAX).shuffle(&mut all);
        let exact = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        let mut rows: Vec<Vec<f64>> = application.first_values().expect("they fit").into_iter().map(exact).collect();
        let batches = all.len().div_ceil(workers).div_ceil(32);
        let cut = |len: usize, parts: usize, part: usize| len * part / parts..len * (part + 1) / parts;
        for _ in 0..3 {
            for batch in 0..batches {
                let before = rows.clone();
                for worker in 0..workers {
                    let own = &all[cut(all.len(), workers, worker)];
                    for &(user, item, rating) in &own[cut(own.len(), batches, batch)] {
                        let [p, q] = [user, item].map(|row| row as usize * dims);
                        let dot: f64 = (0..dims).map(|j| before[0][p + j] * before[1][q + j]).sum();
                        let error = f64::from(rating) - mean - dot;
                        for j in 0..dims {
                            rows[0][p + j] += step * (error * before[1][q + j] - lambda * before[0][p + j]);
                            rows[1][q + j] += step * (error * before[0][p + j] - lambda * before[1][q + j]);
                        }
                    }
                }
            }
        }
        finish.values.iter().zip(&rows).for_each(|(found, expected)| assert_close(found, expected));
        let squares = all.iter().map(|&(user, item, rating)| {
            let [p, q] = [user, item].map(|row| row as usize * dims);
            (f64::from(rating) - mean - (0..dims).map(|j| rows[0][p + j] * rows[1][q + j]).sum::<f64>()).powi(2)
        });
        let rmse = (squares.sum::<f64>() / all.len() as f64).sqrt();
        let found = epochs[2].measured.metrics["train_rmse"];
        assert!((found - rmse).abs() < 1e-4, "{workers} workers: {found}; expected {rmse}");
    }
}
