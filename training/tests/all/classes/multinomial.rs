//! Classes that are fitted together.

use megagrid_training::blockpg::{Linear, LinearOptions, Predict, Prediction, Regression, SampleOptions};
use megagrid_training::{Error, Job, Model, Processes, RunOptions, Trained, train};

use super::{CLASSES, Made, apart, bits, how, in_pieces, weights};

const PENALTIES: [[f64; 2]; 3] = [[1.5, 0.0], [0.3, 0.7], [0.0, 1.0]];

impl Made {
    /// Returns the weights of classes, the intercept last, and the objective: steps along the gradient of all weights at a time, with Nesterov's
    /// extrapolation, restarted when it leads uphill.
    fn together(&self, of_class: &[f64], penalties: [f64; 2]) -> (Vec<Vec<f64>>, f64) {
        let columns = self.features() + 1;
        let rows: Vec<Vec<f64>> = self.values.iter().map(|row| row.iter().copied().chain([1.0]).collect()).collect();
        let of = |sample: usize| f64::from(self.weights[sample]) * of_class[self.classes[sample] as usize];
        let penalties = |feature: usize| if feature + 1 == columns { [0.0; 2] } else { penalties };
        let step = 1.0 / (0.5 * largest(&rows, of) + penalties(0)[1]);
        let mut w = vec![vec![0.0; columns]; CLASSES];
        let (mut before, mut pace) = (w.clone(), 1.0_f64);
        loop {
            let next_pace = 0.5 * (1.0 + (1.0 + 4.0 * pace * pace).sqrt());
            let forward = |(w, b): (&f64, &f64)| w + (pace - 1.0) / next_pace * (w - b);
            let ahead: Vec<Vec<f64>> =
                w.iter().zip(&before).map(|(w, b)| w.iter().zip(b).map(forward).collect()).collect();
            let (gradient, _) = self.slopes(&rows, of, &ahead);
            let (mut next, mut uphill, mut moved) = (ahead.clone(), 0.0, 0.0_f64);
            for (class, next) in next.iter_mut().enumerate() {
                for (feature, next) in next.iter_mut().enumerate() {
                    let ([l1, l2], from) = (penalties(feature), ahead[class][feature]);
                    let goal = from - step * (gradient[class][feature] + l2 * from);
                    *next = (goal.abs() - step * l1).max(0.0) * goal.signum();
                    uphill += (from - *next) * (*next - w[class][feature]);
                    moved = moved.max((*next - from).abs());
                }
            }
            if moved < 1e-11 {
                let (_, loss) = self.slopes(&rows, of, &next);
                let penalty = |(feature, w): (usize, &f64)| {
                    let [l1, l2] = penalties(feature);
                    l1 * w.abs() + 0.5 * l2 * w * w
                };
                let penalty: f64 = next.iter().flat_map(|of_class| of_class.iter().enumerate().map(penalty)).sum();
                return (next, loss + penalty);
            }
            pace = if uphill > 0.0 { 1.0 } else { next_pace };
            (before, w) = (w, next);
        }
    }

    /// Returns the slopes of the loss, and the loss.
    fn slopes(&self, rows: &[Vec<f64>], of: impl Fn(usize) -> f64, w: &[Vec<f64>]) -> (Vec<Vec<f64>>, f64) {
        let (mut slopes, mut loss) = (vec![vec![0.0; rows[0].len()]; CLASSES], 0.0);
        for (sample, row) in rows.iter().enumerate() {
            let own = self.classes[sample] as usize;
            let scores: Vec<f64> = w.iter().map(|w| row.iter().zip(w).map(|(x, w)| x * w).sum()).collect();
            let all: f64 = scores.iter().map(|score: &f64| score.exp()).sum();
            loss += of(sample) * (all.ln() - scores[own]);
            for (class, slopes) in slopes.iter_mut().enumerate() {
                let slope = of(sample) * (scores[class].exp() / all - f64::from(u8::from(class == own)));
                slopes.iter_mut().zip(row).for_each(|(sum, x)| *sum += slope * x);
            }
        }
        (slopes, loss)
    }
}

/// Returns the largest eigenvalue of Σ c x xᵀ, a little above, by the power method.
fn largest(rows: &[Vec<f64>], of: impl Fn(usize) -> f64) -> f64 {
    let (mut direction, mut length) = (vec![1.0; rows[0].len()], 0.0);
    for _ in 0..300 {
        let mut next = vec![0.0; direction.len()];
        for (sample, row) in rows.iter().enumerate() {
            let along: f64 = of(sample) * row.iter().zip(&direction).map(|(x, d)| x * d).sum::<f64>();
            next.iter_mut().zip(row).for_each(|(sum, x)| *sum += along * x);
        }
        length = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        direction = next.iter().map(|x| x / length).collect();
    }
    1.02 * length
}

fn options([l1, l2]: [f64; 2]) -> LinearOptions {
    LinearOptions { l1: vec![l1].into(), l2, multinomial: true, tolerance: 1e-10, ..LinearOptions::default() }
}

fn run(workers: usize) -> RunOptions {
    RunOptions { workers: Some(workers), ..RunOptions::default() }
}

/// Returns by how much the weights of each class are above those of the first, which is what chances tell.
fn above_first(weights: &[Vec<f64>]) -> Vec<f64> {
    weights.iter().flat_map(|one| one.iter().zip(&weights[0]).map(|(a, b)| a - b)).collect()
}

fn all_weights(model: &Linear) -> Vec<Vec<f64>> {
    (0..CLASSES).map(|class| weights(model, class)).collect()
}

#[test]
fn weights_are_those_of_a_dense_implementation() {
    for (are_alike, blocks, workers) in [(false, None, 1), (true, None, 2), (false, Some(3), 2)] {
        let made = Made::new(if are_alike { 20 } else { 12 }, are_alike, 5);
        for penalties in PENALTIES {
            let Trained { record, model, .. } =
                made.trained(LinearOptions { blocks, ..options(penalties) }, &how(), &run(workers));
            let (model, case) = (model.unwrap(), format!("alike {are_alike}, {blocks:?} blocks, {penalties:?}"));
            assert_eq!((&record.result.ended_by[..], model.is_multinomial), ("tolerance", true), "{case}");
            let (naive, least) = made.together(&[1.0, 2.5, 1.0, 0.5], penalties);
            let (objective, bound) = (record.result.objective.unwrap(), record.result.metrics["bound"]);
            // Weights of samples times those of classes are rounded to 32 bits.
            assert!((objective / least - 1.0).abs() < 1e-7, "{case}: {objective}, least {least}");
            assert!((bound / objective - 1.0).abs() < 1.1e-10, "{case}: {objective}, not below {bound}");
            let found = all_weights(&model);
            let distance = apart(&above_first(&found), &above_first(&naive));
            assert!(distance < 1e-4, "{case}: {distance} apart");
            // What all classes share is where the penalty is least, and of intercepts nothing.
            let sizes = |of: &[Vec<f64>]| {
                let penalized = of.iter().flat_map(|one| &one[..made.features()]);
                penalized.map(|w| penalties[0] * w.abs() + 0.5 * penalties[1] * w * w).sum::<f64>()
            };
            assert!(sizes(&found) < sizes(&naive) + 1e-4, "{case}");
            assert!(model.intercepts.iter().sum::<f64>().abs() < 1e-9, "{case}: {:?}", model.intercepts);
        }
    }
}

#[test]
fn a_path_and_an_earlier_model_lead_to_the_same_weights() {
    let made = Made::new(12, false, 6);
    let [path, last] = [vec![4.0, 2.0, 1.0], vec![1.0]]
        .map(|l1| made.trained(LinearOptions { l1: l1.into(), ..options([1.0, 0.2]) }, &how(), &run(1)));
    let [a, b] = [&path, &last].map(|trained| trained.model.as_ref().unwrap());
    assert!(apart(&a.weights, &b.weights) < 1e-4);
    let text = Model::findings(a);
    assert_eq!(text.lines().filter(|line| line.contains("objective")).count(), 3, "{text}");
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("model");
    megagrid_training::model::save(b, &directory, &last.record, last.checksum).unwrap();
    let from = RunOptions { from: Some(directory), ..run(1) };
    let again = made.trained(LinearOptions { l1: vec![1.0].into(), ..options([1.0, 0.2]) }, &how(), &from);
    assert!(apart(&again.model.unwrap().weights, &b.weights) < 1e-4);
    let [short, long] = [&again.record, &last.record].map(|record| record.result.iterations);
    assert!(short < long, "{short} iterations, {long} from nothing");
}

#[test]
fn a_run_that_is_continued_ends_at_the_same_bits_whichever_turn_it_was_in() {
    for (are_alike, blocks, workers) in [(false, None, 1), (true, None, 2), (false, Some(3), 2)] {
        let made = Made::new(if are_alike { 20 } else { 12 }, are_alike, 12);
        let options = LinearOptions { l1: vec![2.0, 0.7].into(), blocks, iterations: 6, ..options([1.0, 0.0]) };
        let whole = made.trained(options.clone(), &how(), &run(workers));
        for pieces in [2, 7, 19] {
            let joined = in_pieces(&made, pieces, &options, &how(), &run(workers));
            assert_eq!(bits(&joined), bits(&whole), "alike {are_alike}, pieces of {pieces}");
            assert_eq!(joined.record.result.objective, whole.record.result.objective);
        }
    }
}

#[test]
fn the_best_iteration_on_test_data_is_kept() {
    let made = Made::new(12, false, 13);
    let options = LinearOptions { l1: vec![1e-3].into(), tolerance: 0.0, iterations: 30, ..options([1.0, 0.0]) };
    let stops = RunOptions { patience: Some(4), ..run(1) };
    let kept = SampleOptions { holdout: Some(0.5), class_weight: None, ..how() };
    let Trained { record, model, .. } = made.trained(options, &kept, &stops);
    assert_eq!(record.result.ended_by, "patience");
    // After each round.
    let losses: Vec<f64> =
        record.iterations.iter().filter_map(|one| one.metrics.get("test_log_loss").copied()).collect();
    assert!(losses.len() >= 5 && losses.len() * CLASSES < record.iterations.len());
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let (model, test) = (model.unwrap(), made.samples(&kept, &stops).unwrap().test.unwrap());
    let scores: Vec<Vec<f64>> = (0..CLASSES).map(|k| test.scores(model.of(k), model.intercepts[k]).unwrap()).collect();
    let loss = |(sample, &label): (usize, &u32)| {
        let all: f64 = scores.iter().map(|of_class| of_class[sample].exp()).sum();
        f64::from(test.weights[sample]) * (all.ln() - scores[label as usize][sample])
    };
    let total: f64 = test.weights.iter().map(|&weight| f64::from(weight)).sum();
    let mean = test.labels.iter().enumerate().map(loss).sum::<f64>() / total;
    assert!((mean - best).abs() < 1e-12, "{mean}, and {best} of {losses:?}");
}

#[test]
fn a_model_that_is_read_again_has_the_chances_of_a_softmax() {
    let (made, place) = (Made::new(12, false, 7), tempfile::tempdir().unwrap());
    let Trained { record, model, checksum } = made.trained(options([0.5, 0.0]), &how(), &run(1));
    let (model, directory) = (model.unwrap(), place.path().join("model"));
    megagrid_training::model::save(&model, &directory, &record, checksum).unwrap();
    let (read, _) = megagrid_training::model::load::<Linear>(&directory).unwrap();
    let values = [(3, 0.5), (0, -1.0)];
    let sample = values.map(|(feature, x): (usize, f32)| (feature.to_string(), x)).to_vec();
    let answers = Model::answer(&read, &Predict { samples: vec![sample] }).unwrap();
    let Prediction::OfClasses { class, probabilities } = &answers[0] else { panic!("{answers:?}") };
    let all = all_weights(&model);
    let score = |w: &Vec<f64>| w[12] + values.iter().map(|&(feature, x)| w[feature] * f64::from(x)).sum::<f64>();
    let powers: Vec<f64> = all.iter().map(|w| score(w).exp()).collect();
    let sum: f64 = powers.iter().sum();
    assert!(probabilities.iter().zip(&powers).all(|((_, chance), power)| (chance - power / sum).abs() < 1e-12));
    let most = (0..CLASSES).max_by(|&a, &b| powers[a].total_cmp(&powers[b])).unwrap();
    assert_eq!(class, &model.classes[most]);
}

#[test]
fn lines_of_scores_against_the_rest_are_refused() {
    let made = Made::new(12, false, 8);
    let calibrate = SampleOptions { holdout: Some(0.3), calibrate: true, ..how() };
    let samples = made.samples(&calibrate, &run(1)).unwrap();
    let job =
        Job::<Regression>::new(samples, serde_json::json!({}), options([1.0, 0.0]), &run(1), &Processes::default());
    let message = job.map(drop).unwrap_err().to_string();
    assert!(message.contains("--calibrate") && message.contains("--multinomial"), "{message}");
}

#[test]
fn a_training_under_way_has_a_model() {
    let (made, place) = (Made::new(12, false, 8), tempfile::tempdir().unwrap());
    let checkpoints = megagrid_training::CheckpointOptions {
        checkpoint: Some(place.path().join("run")),
        checkpoint_every: Some(5),
        resume: None,
    };
    let run = RunOptions { checkpoint_model: true, checkpoints, ..run(1) };
    let (samples, processes) = (made.samples(&how(), &run).unwrap(), Processes::default());
    let job = Job::<Regression>::new(samples, serde_json::json!({}), options([1.0, 0.0]), &run, &processes);
    let trained: Result<_, Error> = job.and_then(|job| train(job, &processes, &()));
    assert!(trained.is_ok(), "{:?}", trained.err().map(|error| error.to_string()));
}
