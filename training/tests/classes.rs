//! Logistic regression of many classes against a dense implementation: proximal gradient steps on all weights, in f64.

use megagrid_datasets::{Dataset, Dictionary, Labels, Samples as Labelled};
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_training::blockpg::{
    ClassWeights, Classes, Linear, LinearOptions, Prediction, Regression, SampleOptions, Samples,
};
use megagrid_training::{Algorithm, Error, Job, Processes, Reading, RunOptions, Trained, train};

const SAMPLES: usize = 240;
const CLASSES: usize = 4;
const NAIVE_STEPS: usize = 6000;
/// l1 and l2.
const PENALTIES: [[f64; 2]; 3] = [[1.5, 0.0], [0.3, 0.7], [0.0, 1.0]];

/// Dense values, classes that follow from them with some noise, and weights of samples.
struct Made {
    values: Vec<Vec<f64>>,
    classes: Vec<u32>,
    weights: Vec<f32>,
}

impl Made {
    /// Where features are alike, Newton's method fits them; else they descend.
    fn new(features: usize, are_alike: bool, seed: u64) -> Self {
        let mut random = SplitMix::new(seed, 0);
        let mut uniform = || random.unit() - 0.5;
        let planted: Vec<Vec<f64>> = (0..CLASSES).map(|_| (0..features).map(|_| 4.0 * uniform()).collect()).collect();
        let mixtures: Vec<[f64; 3]> = (0..features).map(|_| [(); 3].map(|()| uniform())).collect();
        let mut made = Self { values: Vec::new(), classes: Vec::new(), weights: Vec::new() };
        for _ in 0..SAMPLES {
            let hidden = [(); 3].map(|()| 3.0 * uniform());
            let row: Vec<f64> = mixtures
                .iter()
                .map(|parts| {
                    let mixed = parts.iter().zip(hidden).map(|(part, value)| part * value).sum::<f64>();
                    // A value that is 0 is an edge that is not there.
                    let value = if are_alike { mixed + 0.1 * uniform() } else { uniform() };
                    f64::from(if !are_alike && uniform() < 0.0 { 0.0 } else { value as f32 })
                })
                .collect();
            let score = |weights: &Vec<f64>| weights.iter().zip(&row).map(|(w, x)| w * x).sum::<f64>();
            let scores: Vec<f64> = planted.iter().map(|weights| score(weights) + uniform()).collect();
            let best = (0..CLASSES).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
            made.values.push(row);
            made.classes.push(best as u32);
            made.weights.push(1.0 + uniform() as f32);
        }
        made
    }

    fn features(&self) -> usize {
        self.values[0].len()
    }

    fn samples(&self, how: &SampleOptions, run: &RunOptions) -> Result<Samples, Error> {
        self.labelled(&["a", "b", "c", "d"], how, run)
    }

    fn labelled(&self, names: &[&str], how: &SampleOptions, run: &RunOptions) -> Result<Samples, Error> {
        let classes = names.iter().map(ToString::to_string).collect();
        let mut edges = EdgeList { num_left: SAMPLES, num_right: self.features(), ..EdgeList::default() };
        for (sample, row) in self.values.iter().enumerate() {
            for (feature, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                edges.push(sample as u32, feature as u32, x as f32);
            }
        }
        let names = |first: u64, count: usize| Dictionary::from_integers((first..first + count as u64).collect());
        let data = Dataset { edges, left_names: names(1, SAMPLES), right_names: Some(names(0, self.features())) };
        let labels = Labels { classes, of: self.classes.clone() };
        let reading =
            Reading { command: Regression::NAME, seed: run.seed, degree_order: true, cluster: None, readers: None };
        Samples::of(Labelled { data, labels }, Some(&self.weights), how, &reading)
    }

    /// The same of the first two classes only, without weights of classes.
    fn two_classes(&self, run: &RunOptions) -> Samples {
        let four = self.samples(&SampleOptions { class_weight: None, ..how() }, run);
        // Classes without a sample are refused.
        assert!(four.is_err());
        self.labelled(&["a", "b"], &SampleOptions { class_weight: None, ..how() }, run).unwrap()
    }

    fn trained(&self, options: LinearOptions, how: &SampleOptions, run: &RunOptions) -> Trained<Regression> {
        let (processes, origin) = (Processes::default(), serde_json::json!({}));
        let samples = self.samples(how, run).unwrap();
        train(Job::<Regression>::new(samples, origin, options, run, &processes).unwrap(), &processes, &()).unwrap()
    }

    /// Returns the weights of models by proximal gradient steps, the intercept last. `slopes` makes of a sample's scores and class the slopes of its
    /// loss by the scores.
    fn naive(
        &self,
        models: usize,
        of_class: &[f64],
        [l1, l2]: [f64; 2],
        slopes: impl Fn(&[f64], u32) -> Vec<f64>,
    ) -> Vec<Vec<f64>> {
        let columns = self.features() + 1;
        let rows: Vec<Vec<f64>> = self.values.iter().map(|row| row.iter().copied().chain([1.0]).collect()).collect();
        let of = |sample: usize| f64::from(self.weights[sample]) * of_class[self.classes[sample] as usize];
        // No curvature is larger than that of the largest eigenvalue, which the power method finds from below.
        let mut direction = vec![1.0; columns];
        let mut largest = 0.0;
        for _ in 0..200 {
            let mut next = vec![0.0; columns];
            for (sample, row) in rows.iter().enumerate() {
                let along: f64 = of(sample) * row.iter().zip(&direction).map(|(x, d)| x * d).sum::<f64>();
                next.iter_mut().zip(row).for_each(|(sum, x)| *sum += along * x);
            }
            largest = next.iter().map(|x| x * x).sum::<f64>().sqrt();
            direction = next.iter().map(|x| x / largest).collect();
        }
        let step = 1.0 / (1.02 * 0.5 * largest + l2);
        let mut w = vec![vec![0.0; columns]; models];
        let (mut before, mut pace) = (w.clone(), 1.0_f64);
        for _ in 0..NAIVE_STEPS {
            // Nesterov's extrapolation, restarted when it leads uphill.
            let next_pace = 0.5 * (1.0 + (1.0 + 4.0 * pace * pace).sqrt());
            let forward = |(w, b): (&f64, &f64)| w + (pace - 1.0) / next_pace * (w - b);
            let ahead: Vec<Vec<f64>> =
                w.iter().zip(&before).map(|(w, b)| w.iter().zip(b).map(forward).collect()).collect();
            let mut gradient = vec![vec![0.0; columns]; models];
            for (sample, row) in rows.iter().enumerate() {
                let score = |w: &Vec<f64>| row.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
                let scores: Vec<f64> = ahead.iter().map(score).collect();
                for (slope, gradient) in slopes(&scores, self.classes[sample]).iter().zip(&mut gradient) {
                    gradient.iter_mut().zip(row).for_each(|(sum, x)| *sum += of(sample) * slope * x);
                }
            }
            let mut next = ahead.clone();
            let mut uphill = 0.0;
            for (k, next) in next.iter_mut().enumerate() {
                for (j, next) in next.iter_mut().enumerate() {
                    let [l1, l2] = if j + 1 == columns { [0.0; 2] } else { [l1, l2] };
                    let goal = ahead[k][j] - step * (gradient[k][j] + l2 * ahead[k][j]);
                    *next = (goal.abs() - step * l1).max(0.0) * goal.signum();
                    uphill += (ahead[k][j] - *next) * (*next - w[k][j]);
                }
            }
            pace = if uphill > 0.0 { 1.0 } else { next_pace };
            (before, w) = (w, next);
        }
        w
    }
}

/// The slopes of the loss where each class has a model that tells it from the rest.
fn apart_from_the_rest(scores: &[f64], class: u32) -> Vec<f64> {
    let slope = |(k, score): (usize, &f64)| 1.0 / (1.0 + (-score).exp()) - f64::from(u8::from(k == class as usize));
    scores.iter().enumerate().map(slope).collect()
}

/// The slopes of the loss where classes share their chances.
fn shared(scores: &[f64], class: u32) -> Vec<f64> {
    let all: f64 = scores.iter().map(|score| score.exp()).sum();
    let slope = |(k, score): (usize, &f64)| score.exp() / all - f64::from(u8::from(k == class as usize));
    scores.iter().enumerate().map(slope).collect()
}

/// Returns the weights of a model by number of the feature, the intercept last.
fn weights(linear: &Linear, model: usize) -> Vec<f64> {
    let mut found = vec![0.0; linear.features.len() + 1];
    for (at, name) in linear.features.iter().enumerate() {
        found[name.parse::<usize>().unwrap()] = linear.of(model)[at];
    }
    found[linear.features.len()] = linear.intercepts[model];
    found
}

fn how() -> SampleOptions {
    SampleOptions {
        positive: Vec::new(),
        normalize: false,
        intercept: true,
        sample_weights: None,
        class_weight: Some("b=2.5,d=0.5".parse().unwrap()),
        test: None,
        holdout: None,
    }
}

fn apart(found: &[f64], expected: &[f64]) -> f64 {
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Takes off weights of each feature but the intercept what is between the second and the third class.
fn take_off_what_is_free(weights: &mut [Vec<f64>]) {
    for feature in 0..weights[0].len() - 1 {
        let mut of_classes: Vec<f64> = weights.iter().map(|weights| weights[feature]).collect();
        of_classes.sort_by(f64::total_cmp);
        let middle = 0.5 * (of_classes[1] + of_classes[2]);
        weights.iter_mut().for_each(|weights| weights[feature] -= middle);
    }
}

#[test]
fn weights_are_those_of_a_dense_implementation() {
    for (are_alike, workers) in [(false, 1), (true, 2)] {
        let made = Made::new(if are_alike { 12 } else { 9 }, are_alike, 5);
        let run = RunOptions { workers: Some(workers), ..RunOptions::default() };
        let kinds =
            [(Classes::Ovr, apart_from_the_rest as fn(&[f64], u32) -> Vec<f64>), (Classes::Multinomial, shared)];
        for ((classes, slopes), penalties) in kinds.into_iter().flat_map(|kind| PENALTIES.map(|of| (kind, of))) {
            let [l1, l2] = penalties;
            let options = LinearOptions { l1: vec![l1], l2, classes, tolerance: 1e-10, ..LinearOptions::default() };
            let Trained { record, model, .. } = made.trained(options, &how(), &run);
            let (model, case) = (model.unwrap(), format!("alike {are_alike}, {classes:?}, {penalties:?}"));
            assert_eq!((model.intercepts.len(), model.classes.join("")), (CLASSES, "abcd".to_owned()));
            assert_eq!(record.result.ended_by, "tolerance", "{case}");
            let (objective, bound) = (record.result.objective.unwrap(), record.result.metrics["bound"]);
            assert!((bound / objective - 1.0).abs() < 2e-10, "{case}: {objective}, not below {bound}");
            let mut naive = made.naive(CLASSES, &[1.0, 2.5, 1.0, 0.5], penalties, slopes);
            // What all classes share of an intercept is free.
            let mean = |of: &dyn Fn(usize) -> f64| (0..CLASSES).map(of).sum::<f64>() / CLASSES as f64;
            let last = made.features();
            let shift = match classes {
                Classes::Ovr => 0.0,
                Classes::Multinomial => mean(&|class| naive[class][last]) - mean(&|class| model.intercepts[class]),
            };
            let mut found: Vec<Vec<f64>> = (0..CLASSES).map(|class| weights(&model, class)).collect();
            if classes == Classes::Multinomial && l2 == 0.0 {
                // Nor does |w|₁ tell what four classes share of a weight, between the second and the third.
                [&mut found, &mut naive].into_iter().for_each(|all| take_off_what_is_free(all));
            }
            for (class, (found, mut naive)) in found.into_iter().zip(naive).enumerate() {
                naive[last] -= shift;
                let apart = apart(&found, &naive);
                assert!(apart < 1e-4, "{case}, class {class}: {apart} apart");
            }
        }
    }
}

#[test]
fn two_classes_that_share_their_chances_are_those_of_one_model() {
    // With l2 the weights of both are half of those of one model with half of the penalty, and opposite.
    let mut made = Made::new(9, false, 11);
    made.classes.iter_mut().for_each(|class| *class %= 2);
    let run = RunOptions { workers: Some(1), ..RunOptions::default() };
    let [two, one] = [(Classes::Multinomial, 1.0), (Classes::Ovr, 0.5)].map(|(classes, l2)| {
        let options = LinearOptions { l1: vec![0.0], l2, classes, tolerance: 1e-11, ..LinearOptions::default() };
        let processes = Processes::default();
        let samples = made.two_classes(&run);
        let job = Job::<Regression>::new(samples, serde_json::json!({}), options, &run, &processes).unwrap();
        train(job, &processes, &()).unwrap()
    });
    let [a, b] = [&two, &one].map(|trained| trained.record.result.objective.unwrap());
    assert!((a / b - 1.0).abs() < 1e-9, "{a}, {b}");
    let [two, one] = [two, one].map(|trained| trained.model.unwrap());
    assert_eq!((two.intercepts.len(), one.intercepts.len()), (2, 1));
    let [first, second] = [0, 1].map(|class| weights(&two, class));
    let opposite: Vec<f64> = first.iter().map(|w| -w).collect();
    assert!(apart(&opposite, &second) < 1e-6);
    let doubled: Vec<f64> = second.iter().map(|w| 2.0 * w).collect();
    assert!(apart(&doubled, &weights(&one, 0)) < 1e-4);
}

#[test]
fn a_path_ends_at_the_model_of_its_last_penalty() {
    let made = Made::new(12, false, 6);
    let run = RunOptions { workers: Some(1), ..RunOptions::default() };
    for classes in [Classes::Ovr, Classes::Multinomial] {
        let [path, last] = [vec![4.0, 2.0, 1.0], vec![1.0]].map(|l1| {
            let options = LinearOptions { l1, l2: 0.2, classes, tolerance: 1e-10, ..LinearOptions::default() };
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
    let chances = model.chances(&[0.3, -2.0, 1.0, -800.0]);
    assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-12 && chances[2] > chances[0], "{chances:?}");
    let text = serde_json::to_value(&before).unwrap();
    assert!(text[0]["class"].is_string() && text[0]["probabilities"]["a"].is_number(), "{text}");
}

#[test]
fn what_several_models_cannot_have_is_refused() {
    let made = Made::new(12, false, 8);
    let refused = |run: RunOptions| {
        let samples = made.samples(&how(), &run).unwrap();
        let processes = Processes::default();
        let job = Job::<Regression>::new(samples, serde_json::json!({}), LinearOptions::default(), &run, &processes);
        job.map(drop).unwrap_err().to_string()
    };
    let patience = refused(RunOptions { patience: Some(3), ..RunOptions::default() });
    assert!(patience.contains("--patience") && patience.contains("4 classes"), "{patience}");
    let resume = refused(RunOptions { resume: Some("x".into()), ..RunOptions::default() });
    assert!(resume.contains("--resume"), "{resume}");
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
fn a_class_of_one_sample_is_a_class() {
    let mut made = Made::new(12, false, 10);
    made.classes.iter_mut().for_each(|class| *class = (*class).min(2));
    made.classes[17] = 3;
    let Trained { record, model, .. } = made.trained(LinearOptions::default(), &how(), &RunOptions::default());
    assert_eq!((&record.result.ended_by[..], model.unwrap().classes.len()), ("tolerance", CLASSES));
}
