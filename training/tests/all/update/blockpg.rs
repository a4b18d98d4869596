//! `blockpg`.

use std::fmt::Write;

use megagrid_datasets::Format;
use megagrid_partition::SplitMix;
use megagrid_training::blockpg::{LinearOptions, Prediction, Regression, SampleOptions};
use megagrid_training::tune::{TuneOptions, Tuned, tune};
use megagrid_training::{Processes, RunOptions, model, update};

use super::{Desk, added, assert_near, by_default, refused, removed, run};

/// Samples whose labels follow from their features, but for noise. Later ones have features that the first have not.
fn samples(number: usize) -> Vec<String> {
    let sample = |at: usize| {
        let mut random = SplitMix::new(5, at as u64);
        let (mut score, mut line) = (random.unit() - 0.5, String::new());
        for feature in 0..40 + at / 50 {
            if random.below(4) > 0 {
                continue;
            }
            let value = (random.unit() * 8.0).round() / 8.0 + 0.125;
            score += value * ((feature as f64) * 1.7).sin();
            write!(line, " {}:{value}", feature + 1).unwrap();
        }
        format!("{}{line}\n", if score > 0.0 { "+1" } else { "-1" })
    };
    (0..number).map(sample).collect()
}

#[test]
fn samples_that_arrive_give_the_objective_of_a_training_on_all() {
    for intercept in [false, true] {
        let how = if intercept {
            || SampleOptions { intercept: true, normalize: true, ..by_default() }
        } else {
            by_default::<SampleOptions>
        };
        let desk = Desk::<Regression>::new(
            LinearOptions { l1: vec![3.0, 1.0].into(), tolerance: 1e-7, ..LinearOptions::default() },
            how,
        );
        let all = samples(1500);
        let (old, new) = all.split_at(1485);
        let full = desk.train(&desk.write("all.libsvm", &all)).1;
        let (directory, _) = desk.train(&desk.write("old.libsvm", old));
        let updated = desk.update(&directory, &added(desk.write("new.libsvm", new))).unwrap();
        let objective = |record: &megagrid_training::record::Record| record.result.objective.unwrap();
        assert_near(objective(&updated.record), objective(&full.record), 1e-6, intercept);
        assert_eq!(updated.record.input.left, 1500);
        // One update after the other.
        let (first, second) = (desk.write("first.libsvm", &new[..7]), desk.write("second.libsvm", &new[7..]));
        std::fs::remove_dir_all(&directory).unwrap();
        let (directory, _) = desk.train(&desk.path("old.libsvm"));
        desk.update(&directory, &added(first)).unwrap();
        let updated = desk.update(&directory, &added(second)).unwrap();
        assert_near(objective(&updated.record), objective(&full.record), 1e-6, intercept);
    }
}

/// Gives samples one of three classes, by their numbers: the third comes with the last of them.
fn in_classes(samples: &[String], third_from: usize) -> Vec<String> {
    let class = |(at, sample): (usize, &String)| {
        let (sign, rest) = sample.trim_end().split_once(' ').unwrap_or((sample.trim_end(), ""));
        let class = if at >= third_from && at % 3 == 0 {
            "7"
        } else if sign == "+1" {
            "3"
        } else {
            "2"
        };
        format!("{class} {rest}\n")
    };
    samples.iter().enumerate().map(class).collect()
}

#[test]
fn a_class_that_arrives_gets_weights() {
    let options = LinearOptions { tolerance: 1e-7, ..LinearOptions::default() };
    for third_from in [0, 280] {
        let how = || SampleOptions { intercept: true, normalize: true, ..by_default() };
        let desk = Desk::<Regression>::new(options.clone(), how);
        let all = in_classes(&samples(330), third_from);
        let (old, new) = all.split_at(280);
        let (old, new) = (desk.write("old.libsvm", old), desk.write("new.libsvm", new));
        let full = desk.train(&desk.write("all.libsvm", &all)).1.record.result.objective.unwrap();
        let (directory, _) = desk.train(&old);
        let updated = desk.update(&directory, &added(new)).unwrap();
        assert_near(updated.record.result.objective.unwrap(), full, 1e-6, third_from);
        assert_eq!(updated.model.unwrap().classes, ["2", "3", "7"]);
    }
}

#[test]
fn a_calibrated_model_is_updated_to_one_that_is_not() {
    let options = || LinearOptions { tolerance: 1e-7, ..LinearOptions::default() };
    let how = || SampleOptions { intercept: true, holdout: Some(0.3), calibrate: true, ..by_default() };
    let desk = Desk::<Regression>::new(options(), how);
    let all = samples(330);
    let (directory, trained) = desk.train(&desk.write("old.libsvm", &all[..280]));
    assert_eq!(trained.model.unwrap().calibration.len(), 1);
    let updated = desk.update(&directory, &added(desk.write("new.libsvm", &all[280..]))).unwrap();
    let whole = Desk::<Regression>::new(options(), || SampleOptions { intercept: true, ..by_default() });
    let full = whole.train(&whole.write("all.libsvm", &all)).1.record.result.objective.unwrap();
    assert_near(updated.record.result.objective.unwrap(), full, 1e-6, "all");
    assert!(updated.model.unwrap().calibration.is_empty());
}

#[test]
fn a_model_of_other_classes_is_nothing_to_begin_from() {
    let desk = Desk::<Regression>::new(LinearOptions::default(), by_default::<SampleOptions>);
    let (directory, _) = desk.train(&desk.write("old.libsvm", &in_classes(&samples(300), 0)));
    let run = RunOptions { from: Some(directory), ..run() };
    let said = refused(desk.job(&desk.write("signs.libsvm", &samples(300)), &run));
    assert!(said.contains("is of the classes 2, 3, 7, and the samples of -1, 1"), "{said}");
}

#[test]
fn values_of_one_feature_in_a_sample_count_as_one() {
    // The first feature of each sample once more.
    let repeated = |sample: &String| {
        let second = sample.split_whitespace().nth(1).unwrap_or("1:0");
        format!("{} {second}\n", sample.trim_end())
    };
    let all: Vec<String> = samples(310).iter().map(repeated).collect();
    for normalize in [false, true] {
        let how =
            if normalize { || SampleOptions { normalize: true, ..by_default() } } else { by_default::<SampleOptions> };
        let options = LinearOptions { tolerance: 1e-7, ..LinearOptions::default() };
        let desk = Desk::<Regression>::new(options, how);
        let full = desk.train(&desk.write("all.libsvm", &all)).1.record;
        let (directory, _) = desk.train(&desk.write("old.libsvm", &all[..280]));
        let mut last = None;
        for (name, new) in [("first.libsvm", &all[280..300]), ("second.libsvm", &all[300..])] {
            last = Some(desk.update(&directory, &added(desk.write(name, new))).unwrap());
        }
        let updated = last.unwrap();
        assert_near(updated.record.result.objective.unwrap(), full.result.objective.unwrap(), 1e-6, normalize);
        assert_eq!(updated.record.input.edges, full.input.edges);

        // A sample by the names of its features says what a sample of a file says.
        let model = updated.model.unwrap();
        let file = megagrid_datasets::parse_samples(all.concat().as_bytes(), Format::Libsvm, &[]).unwrap();
        let (scores, _) = model.scores(file).unwrap();
        for (sample, score) in all.iter().zip(scores) {
            let pair = |pair: &'_ str| pair.split_once(':').map(|(name, x)| (name.to_owned(), x.parse().unwrap()));
            let features: Vec<(String, f64)> = sample.split_whitespace().skip(1).filter_map(pair).collect();
            let lookup = model.features.lookup();
            let found = model.predict(features.iter().map(|(name, x)| (&name[..], *x)), |name| lookup.find(name));
            let expected = model.prediction(&[score]);
            let (Prediction::OfSecond(found), Prediction::OfSecond(expected)) = (found, expected) else {
                panic!("two classes");
            };
            assert_near(found, expected, 1e-6, sample);
        }
    }
}

#[test]
fn an_update_goes_on_with_the_blocks_that_were_tuned() {
    let options = LinearOptions { iterations: 20, blocks: Some(3), ..LinearOptions::default() };
    let desk = Desk::<Regression>::new(options, by_default);
    let old = desk.write("old.libsvm", &samples(300));
    let directory = old.with_extension("model");
    let tuning = TuneOptions { tune: vec!["blocks=2,5".to_owned()], ..TuneOptions::default() };
    let Tuned { trained, options, .. } =
        tune(desk.job(&old, &run()).unwrap(), &tuning, &Processes::default(), &()).unwrap();
    model::save(trained.model.as_ref().unwrap(), &directory, &trained.record, trained.checksum).unwrap();
    assert!(options.blocks.is_some() && options.batch.is_none(), "{options:?}");
    let new = desk.write("new.libsvm", &samples(10));
    let (job, _) = update::read::<Regression>(&directory, &added(new), Ok, run()).unwrap();
    assert_eq!((job.options.blocks, job.options.batch), (options.blocks, None));
}

#[test]
fn samples_are_not_removed() {
    let desk = Desk::<Regression>::new(LinearOptions::default(), by_default::<SampleOptions>);
    let old = desk.write("old.libsvm", &samples(300));
    let (directory, _) = desk.train(&old);
    assert!(refused(desk.update(&directory, &removed(old))).contains("samples have no names"));
}

#[test]
fn weights_of_samples_are_not_updated() {
    let desk = Desk::<Regression>::new(LinearOptions::default(), by_default::<SampleOptions>);
    let (directory, _) = desk.train(&desk.write("old.libsvm", &samples(300)));
    let manifest = model::manifest_path(&directory);
    let mut changed: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    changed["config"]["sample_weights"] = "weights.txt".into();
    std::fs::write(&manifest, changed.to_string()).unwrap();
    let said = refused(desk.update(&directory, &added(desk.write("new.libsvm", &samples(10)))));
    assert!(said.contains("--sample-weights") && said.contains("--from"), "{said}");
}
