//! Classes that are told from the rest.

use megagrid_training::blockpg::{ClassWeights, Linear, LinearOptions, Prediction, Regression, SampleOptions, Samples};
use megagrid_training::{Algorithm, Job, Model, Processes, RunOptions, Trained};

use super::{CLASSES, Made, SAMPLES, apart, bits, how, in_pieces, weights};

impl Made {
    /// Returns the weights that tell a class from the rest, the intercept last.
    fn naive(&self, class: u32, of_class: &[f64], [l1, l2]: [f64; 2]) -> Vec<f64> {
        let columns = self.features() + 1;
        let rows: Vec<Vec<f64>> = self.values.iter().map(|row| row.iter().copied().chain([1.0]).collect()).collect();
        let of = |sample: usize| f64::from(self.weights[sample]) * of_class[self.classes[sample] as usize];
        let squares: f64 = rows.iter().enumerate().map(|(i, row)| of(i) * row.iter().map(|x| x * x).sum::<f64>()).sum();
        let step = 1.0 / (0.25 * squares + l2);
        let (mut w, mut before, mut pace) = (vec![0.0; columns], vec![0.0; columns], 1.0_f64);
        loop {
            // Nesterov's extrapolation, restarted when it leads uphill.
            let next_pace = 0.5 * (1.0 + (1.0 + 4.0 * pace * pace).sqrt());
            let ahead: Vec<f64> = w.iter().zip(&before).map(|(w, b)| w + (pace - 1.0) / next_pace * (w - b)).collect();
            let mut gradient = vec![0.0; columns];
            for (sample, row) in rows.iter().enumerate() {
                let label = if self.classes[sample] == class { 1.0 } else { -1.0 };
                let margin = label * row.iter().zip(&ahead).map(|(x, w)| x * w).sum::<f64>();
                let slope = -label * of(sample) / (1.0 + margin.exp());
                gradient.iter_mut().zip(row).for_each(|(sum, x)| *sum += slope * x);
            }
            let next: Vec<f64> = (0..columns)
                .map(|j| {
                    let [l1, l2] = if j + 1 == columns { [0.0; 2] } else { [l1, l2] };
                    let goal = ahead[j] - step * (gradient[j] + l2 * ahead[j]);
                    (goal.abs() - step * l1).max(0.0) * goal.signum()
                })
                .collect();
            if apart(&ahead, &next) < 1e-12 {
                return next;
            }
            let uphill: f64 = (0..columns).map(|j| (ahead[j] - next[j]) * (next[j] - w[j])).sum();
            pace = if uphill > 0.0 { 1.0 } else { next_pace };
            (before, w) = (w, next);
        }
    }
}

#[test]
fn each_class_is_told_from_the_rest_as_by_a_dense_implementation() {
    for (are_alike, workers) in [(false, 1), (true, 2)] {
        let made = Made::new(if are_alike { 20 } else { 12 }, are_alike, 5);
        for penalties in [[1.5, 0.0], [0.3, 0.7], [0.0, 1.0]] {
            let [l1, l2] = penalties;
            let options = LinearOptions { l1: vec![l1].into(), l2, tolerance: 1e-11, ..LinearOptions::default() };
            let run = RunOptions { workers: Some(workers), ..RunOptions::default() };
            let Trained { record, model, .. } = made.trained(options, &how(), &run);
            let model = model.unwrap();
            assert_eq!((model.intercepts.len(), model.classes.join("")), (CLASSES, "abcd".to_owned()));
            assert_eq!(record.result.ended_by, "tolerance");
            let (objective, bound) = (record.result.objective.unwrap(), record.result.metrics["bound"]);
            assert!((bound / objective - 1.0).abs() < 1e-10, "{objective}, not below {bound}");
            for class in 0..CLASSES {
                let naive = made.naive(class as u32, &[1.0, 2.5, 1.0, 0.5], penalties);
                let apart = apart(&weights(&model, class), &naive);
                assert!(apart < 1e-4, "alike {are_alike}, {penalties:?}, class {class}: {apart} apart");
            }
        }
    }
}

#[test]
fn a_path_ends_at_the_model_of_its_last_penalty() {
    let made = Made::new(12, false, 6);
    let run = RunOptions { workers: Some(1), ..RunOptions::default() };
    let [path, last] = [vec![4.0, 2.0, 1.0], vec![1.0]].map(|l1| {
        let options = LinearOptions { l1: l1.into(), tolerance: 1e-10, ..LinearOptions::default() };
        made.trained(options, &how(), &run)
    });
    let [path_model, last_model] = [&path, &last].map(|trained| trained.model.as_ref().unwrap());
    for class in 0..CLASSES {
        assert!(apart(&weights(path_model, class), &weights(last_model, class)) < 1e-4);
    }
    let text = megagrid_training::Model::findings(path_model);
    assert_eq!(text.lines().filter(|line| line.contains("objective")).count(), 3, "{text}");
    let [a, b] = [&path, &last].map(|trained| trained.record.result.objective.unwrap());
    assert!((a / b - 1.0).abs() < 1e-9);
}

#[test]
fn a_model_that_is_read_again_says_the_same() {
    let (made, place) = (Made::new(12, false, 7), tempfile::tempdir().unwrap());
    let run = RunOptions { workers: Some(1), ..RunOptions::default() };
    let Trained { record, model, checksum } = made.trained(LinearOptions::default(), &how(), &run);
    let (model, directory) = (model.unwrap(), place.path().join("model"));
    megagrid_training::model::save(&model, &directory, &record, checksum).unwrap();
    let (read, _) = megagrid_training::model::load::<Linear>(&directory).unwrap();
    let sample: Vec<(String, f32)> =
        [("3", 0.5), ("0", -1.0), ("unknown", 9.0)].map(|(n, x)| (n.to_owned(), x)).to_vec();
    let question = megagrid_training::blockpg::Predict { samples: vec![sample, Vec::new()] };
    let [before, after] = [&model, &read].map(|model| megagrid_training::Model::answer(model, &question).unwrap());
    for (before, after) in before.iter().zip(&after) {
        let Prediction::OfClasses { class, probabilities } = before else { panic!("{before:?}") };
        let Prediction::OfClasses { class: again, probabilities: others } = after else { panic!("{after:?}") };
        assert_eq!(class, again);
        let pairs = probabilities.iter().zip(others);
        assert!(pairs.clone().all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-12), "{before:?}, then {after:?}");
        assert_eq!(pairs.count(), CLASSES);
    }
    let Prediction::OfClasses { class, probabilities } = model.prediction(&[1e4, 1e4 + 1.0, -1e4, 0.0]) else {
        panic!()
    };
    assert!(class == "b" && (probabilities[0].1 - 0.4).abs() < 1e-12, "{probabilities:?}");
    let Prediction::OfClasses { class, probabilities } = model.prediction(&[-1e4, -1e4 - 1.0, -2e4, -1e4 + 1.0]) else {
        panic!()
    };
    assert!(class == "d" && probabilities[3].1 > probabilities[0].1, "{probabilities:?}");
    let chances = model.chances(&[0.3, -2.0, 1.0, -800.0]);
    assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-12 && chances[2] > chances[0], "{chances:?}");
    let text = serde_json::to_value(&before).unwrap();
    assert!(text[0]["class"].is_string() && text[0]["probabilities"]["a"].is_number(), "{text}");
}

#[test]
fn calibrated_scores_are_a_line_of_the_scores_that_were_fitted() {
    let made = Made::new(12, false, 11);
    let run = RunOptions { workers: Some(1), ..RunOptions::default() };
    let options = || LinearOptions { l1: vec![0.01].into(), ..LinearOptions::default() };
    let kept = SampleOptions { holdout: Some(0.4), ..how() };
    let plain = made.trained(options(), &kept, &run).model.unwrap();
    let calibrate = SampleOptions { calibrate: true, ..kept.clone() };
    let model = made.trained(options(), &calibrate, &run).model.unwrap();
    assert_eq!((plain.calibration.len(), model.calibration.len()), (0, CLASSES));
    let test = made.samples(&kept, &run).unwrap().test.unwrap();
    for (class, line) in model.calibration.iter().enumerate() {
        let scores = |of: &Linear| test.scores(of.of(class), of.intercepts[class]).unwrap();
        let before = scores(&plain);
        let expected: Vec<f64> = before.iter().map(|score| line.slope * score + line.offset).collect();
        assert!(apart(&scores(&model), &expected) < 1e-9);
        let loss = |scores: &[f64]| {
            let signs = test.labels.iter().map(|&of| if of as usize == class { 1.0 } else { -1.0 });
            scores.iter().zip(signs).map(|(score, sign)| (-sign * score).exp().ln_1p()).sum::<f64>()
        };
        assert!(loss(&expected) < loss(&before), "class {class}: {} after {}", loss(&expected), loss(&before));
    }
}

#[test]
fn what_is_not_there_is_not_calibrated_on() {
    let (mut made, run) = (Made::new(12, false, 11), RunOptions::default());
    let refused = |samples: Samples| {
        let processes = Processes::default();
        let job = Job::<Regression>::new(samples, serde_json::json!({}), LinearOptions::default(), &run, &processes);
        job.map(drop).unwrap_err().to_string()
    };
    let calibrate = |holdout| SampleOptions { holdout, calibrate: true, ..how() };
    let nothing = refused(made.samples(&calibrate(None), &run).unwrap());
    assert!(nothing.contains("--calibrate") && nothing.contains("--holdout"), "{nothing}");
    made.classes.iter_mut().for_each(|class| *class = (*class).min(2));
    // The only sample of class d is trained on: else the samples are refused.
    let samples = (0..SAMPLES).find_map(|sample| {
        let before = std::mem::replace(&mut made.classes[sample], 3);
        let samples = made.samples(&calibrate(Some(0.2)), &run);
        made.classes[sample] = before;
        samples.ok()
    });
    let class = refused(samples.unwrap());
    assert!(class.contains("of class d there is none"), "{class}");
}

#[test]
fn what_several_models_cannot_have_is_refused() {
    let made = Made::new(12, false, 8);
    let run = RunOptions { checkpoint_model: true, ..RunOptions::default() };
    let (samples, processes) = (made.samples(&how(), &run).unwrap(), Processes::default());
    let tuned = Regression::check_run(&samples, &LinearOptions::default(), &RunOptions::default(), true)
        .unwrap_err()
        .to_string();
    assert!(tuned.contains("4 classes") && tuned.contains("--positive"), "{tuned}");
    let job = Job::<Regression>::new(samples, serde_json::json!({}), LinearOptions::default(), &run, &processes);
    let served = job.map(drop).unwrap_err().to_string();
    assert!(served.contains("--checkpoint-model") && served.contains("4 classes"), "{served}");
}

#[test]
fn a_run_that_is_continued_ends_at_the_same_bits_whichever_class_it_was_in() {
    for (are_alike, blocks, workers) in [(false, None, 1), (true, None, 2), (false, Some(3), 2)] {
        let made = Made::new(if are_alike { 20 } else { 12 }, are_alike, 12);
        let options = LinearOptions { l1: vec![2.0, 0.7].into(), blocks, iterations: 6, ..LinearOptions::default() };
        let run = RunOptions { workers: Some(workers), ..RunOptions::default() };
        let whole = made.trained(options.clone(), &how(), &run);
        for pieces in [1, 2, 5, 9] {
            let joined = in_pieces(&made, pieces, &options, &how(), &run);
            assert_eq!(bits(&joined), bits(&whole), "alike {are_alike}, pieces of {pieces}");
            assert_eq!(joined.record.result.objective, whole.record.result.objective);
            let findings = |trained: &Trained<Regression>| Model::findings(trained.model.as_ref().unwrap());
            assert_eq!(findings(&joined), findings(&whole), "alike {are_alike}, pieces of {pieces}");
        }
    }
}

#[test]
fn each_class_keeps_its_best_iteration_on_test_data() {
    const PATIENCE: usize = 2;
    for (are_alike, seed) in [(false, 13), (true, 14)] {
        let made = Made::new(if are_alike { 20 } else { 12 }, are_alike, seed);
        let options =
            LinearOptions { l1: vec![1e-3].into(), tolerance: 0.0, iterations: 40, ..LinearOptions::default() };
        let run = RunOptions { workers: Some(1), patience: Some(PATIENCE as u64), ..RunOptions::default() };
        let kept = SampleOptions { holdout: Some(0.5), class_weight: None, ..how() };
        let whole = made.trained(options.clone(), &kept, &run);
        let (model, test) = (whole.model.unwrap(), made.samples(&kept, &run).unwrap().test.unwrap());
        let tested = whole.record.iterations.iter().map(|iteration| iteration.metrics["test_class_log_loss"]);
        let mut tested = tested.collect::<Vec<f64>>().into_iter().peekable();
        for class in 0..CLASSES {
            // A class ends with as many worse iterations as there is patience, or with all.
            let (mut losses, mut best) = (Vec::new(), 0);
            while losses.len() < 40 && losses.len() <= best + PATIENCE {
                losses.push(tested.next().unwrap());
                best = (0..losses.len()).rev().min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap();
            }
            let scores = test.scores(model.of(class), model.intercepts[class]).unwrap();
            let signs = test.labels.iter().map(|&of| if of as usize == class { 1.0 } else { -1.0 });
            let of = scores.iter().zip(signs).map(|(score, sign): (&f64, f64)| (-sign * score).exp().ln_1p());
            let weights = test.weights.iter().map(|&weight| f64::from(weight));
            let loss = of.zip(weights.clone()).map(|(loss, weight)| weight * loss).sum::<f64>() / weights.sum::<f64>();
            assert!((loss - losses[best]).abs() < 1e-12, "class {class}: {loss}, and {best} of {losses:?}");
        }
        assert_eq!(tested.next(), None);
        assert_eq!(whole.record.result.ended_by, "patience");
        let joined = in_pieces(&made, 3, &options, &kept, &run);
        let joined_model = joined.model.unwrap();
        assert_eq!((&joined_model.weights, &joined_model.intercepts), (&model.weights, &model.intercepts));
        assert_eq!(joined.record.result.metrics, whole.record.result.metrics);
    }
}

#[test]
fn a_class_that_nothing_is_left_of_is_named() {
    let mut made = Made::new(12, false, 9);
    made.classes.iter_mut().for_each(|class| *class = (*class).min(2));
    let unknown = SampleOptions { class_weight: Some(ClassWeights::Balanced), ..how() };
    let message = made.samples(&unknown, &RunOptions::default()).map(drop).unwrap_err().to_string();
    assert!(message.contains("no sample of class d is left"), "{message}");
    made.classes.fill(2);
    let message = made.samples(&unknown, &RunOptions::default()).map(drop).unwrap_err().to_string();
    assert!(message.contains("all 240 samples have the label c"), "{message}");
}

#[test]
fn a_class_that_needs_more_iterations_is_told_of_whichever_it_is() {
    let run = RunOptions { workers: Some(1), ..RunOptions::default() };
    // With each class as the last one.
    for turn in 0..CLASSES as u32 {
        let mut made = Made::new(12, false, 10);
        made.classes.iter_mut().for_each(|class| *class = (*class + turn) % CLASSES as u32);
        let mut iterations = 0;
        loop {
            iterations += 1;
            let options = LinearOptions { iterations, ..LinearOptions::default() };
            let Trained { record, model, .. } = made.trained(options, &how(), &run);
            if record.result.ended_by == "tolerance" {
                assert!(megagrid_training::Model::has_converged(&model.unwrap()), "{iterations} iterations");
                break;
            }
            assert_eq!(record.result.ended_by, "iterations");
        }
        assert!(iterations > 1);
    }
}

#[test]
fn a_class_of_one_sample_is_a_class() {
    let mut made = Made::new(12, false, 10);
    made.classes.iter_mut().for_each(|class| *class = (*class).min(2));
    made.classes[17] = 3;
    let Trained { record, model, .. } = made.trained(LinearOptions::default(), &how(), &RunOptions::default());
    assert_eq!((&record.result.ended_by[..], model.unwrap().classes.len()), ("tolerance", CLASSES));
}
