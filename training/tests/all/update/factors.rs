//! `mf` and `als`.

use std::collections::HashMap;
use std::path::PathBuf;

use megagrid_partition::{Side, SplitMix};
use megagrid_training::als::{AlsOptions, FeedbackOptions, ImplicitFactorization};
use megagrid_training::input::Source;
use megagrid_training::mf::{FactorOptions, Factorization, Factors, Gradient, RatingOptions};
use megagrid_training::tune::{TuneOptions, Tuned, tune};
use megagrid_training::update::{self, Changes, Place};
use megagrid_training::{Error, Options, Processes, RunOptions, model, train};

use super::{Desk, added, assert_near, by_default, refused, removed, run};

const USERS: u64 = 300;
const ITEMS: u64 = 120;

/// Ratings that two factors and biases explain, with noise, each pair once, in an order of their own.
fn ratings() -> Vec<String> {
    let mut random = SplitMix::new(7, 0);
    let mut pairs: Vec<u64> = (0..USERS * ITEMS).collect();
    random.shuffle(&mut pairs);
    let wave = |n: u64, by: f64| (n as f64 * by).sin();
    let rating = |pair: u64| {
        let (user, item) = (pair / ITEMS, pair % ITEMS);
        let noise = SplitMix::new(9, pair).unit() - 0.5;
        let product = wave(user, 0.7) * wave(item, 0.9) + wave(user, 1.3) * wave(item, 0.4);
        format!("u{user},i{item},{:.3}\n", 3.0 + product + 0.3 * wave(item, 2.1) + noise)
    };
    pairs.into_iter().take(15_000).map(rating).collect()
}

fn desk() -> Desk<Factorization> {
    Desk::new(FactorOptions { dims: 4, lambda: Some(0.02), ..FactorOptions::default() }, by_default::<RatingOptions>)
}

fn rmse(factors: &Factors, test: &[String]) -> f64 {
    let squares = test.iter().map(|line| {
        let [user, item, rating] = line.trim().split(',').collect::<Vec<_>>().try_into().unwrap();
        let id = |side, name| factors.find(side, name).ok();
        let predicted = factors.predict(id(Side::Left, user), id(Side::Right, item));
        (f64::from(predicted) - rating.parse::<f64>().unwrap()).powi(2)
    });
    (squares.sum::<f64>() / test.len() as f64).sqrt()
}

fn names(factors: &Factors, side: Side) -> Vec<String> {
    factors.names.get(side).unwrap().iter().map(|name| name.into_owned()).collect()
}

#[test]
fn a_hundredth_of_new_ratings_costs_no_more_than_itself_and_no_quality() {
    let (desk, all) = (desk(), ratings());
    let (test, rest) = all.split_at(2000);
    let (new, old) = rest.split_at(rest.len() / 100);
    let (directory, before) = desk.train(&desk.write("old.csv", old));
    let (_, full) = desk.train(&desk.write("all.csv", rest));
    let updated = desk.update(&directory, &added(desk.write("new.csv", new))).unwrap();
    let steps =
        |record: &megagrid_training::record::Record| record.iterations.iter().map(|one| one.updates).sum::<u64>();
    assert!(steps(&updated.record) * 50 <= steps(&full.record));
    let [updated, full, before] = [updated, full, before].map(|trained| trained.model.unwrap());
    let [updated_rmse, full_rmse] = [&updated, &full].map(|model| rmse(model, test));
    assert!(updated_rmse < full_rmse + 0.005, "{updated_rmse} and {full_rmse}");
    // Rows keep their places, and those of users without new ratings their values.
    assert_eq!(names(&before, Side::Left), names(&updated, Side::Left)[..before.model.user_biases.len()]);
    let touched: Vec<&str> = new.iter().map(|line| line.split(',').next().unwrap()).collect();
    let rows = |factors: &Factors, user: &str| {
        let row = factors.find(Side::Left, user).unwrap() as usize;
        factors.model.users[row * 4..][..4].to_vec()
    };
    let moved = names(&before, Side::Left).into_iter().filter(|user| rows(&before, user) != rows(&updated, user));
    let mut moved: Vec<String> = moved.collect();
    let mut expected: Vec<String> = touched.into_iter().map(str::to_owned).collect();
    moved.sort();
    expected.sort();
    expected.dedup();
    assert_eq!(moved, expected);
    let (read, manifest) = model::load::<Factors>(&directory).unwrap();
    assert_eq!((read.model, read.squares), (updated.model, updated.squares));
    assert_eq!((manifest.data.edges, manifest.data.left), (rest.len(), USERS as usize));
}

#[test]
fn a_hundred_updates_in_a_row_are_near_one_training() {
    let (desk, all) = (desk(), ratings());
    let (test, rest) = all.split_at(2000);
    let (new, old) = rest.split_at(rest.len() / 10);
    let (directory, _) = desk.train(&desk.write("old.csv", old));
    let full = desk.train(&desk.write("all.csv", rest)).1.model.unwrap();
    for (number, lines) in new.chunks(new.len() / 100).enumerate() {
        desk.update(&directory, &added(desk.write(&format!("new-{number}.csv"), lines))).unwrap();
    }
    let (updated, manifest) = model::load::<Factors>(&directory).unwrap();
    assert_eq!(manifest.data.edges, rest.len());
    let [updated_rmse, full_rmse] = [&updated, &full].map(|model| rmse(model, test));
    assert!(updated_rmse < full_rmse + 0.02, "{updated_rmse} and {full_rmse}");
    // The manifest has all that changed: taking something back finds it again.
    let gone = desk.write("gone.csv", &new[..5]);
    let trained = desk.update(&directory, &removed(gone)).unwrap();
    assert_eq!(trained.record.input.edges, rest.len() - 5);
}

#[test]
fn new_users_and_items_get_rows_behind_the_others() {
    let (desk, all) = (desk(), ratings());
    let (directory, before) = desk.train(&desk.write("old.csv", &all));
    let lines =
        (0..40).map(|item| format!("ann,i{item},4.5\n")).chain(["ann,tea,1\n".to_owned(), "u3,tea,2\n".to_owned()]);
    let updated =
        desk.update(&directory, &added(desk.write("new.csv", &lines.collect::<Vec<_>>()))).unwrap().model.unwrap();
    let before = before.model.unwrap();
    for (side, name) in [(Side::Left, "ann"), (Side::Right, "tea")] {
        assert_eq!(updated.find(side, name).unwrap() as usize, names(&before, side).len());
    }
    let of = |user: &str, item: &str| {
        updated.predict(updated.find(Side::Left, user).ok(), updated.find(Side::Right, item).ok())
    };
    let mean = (0..40).map(|item| of("ann", &format!("i{item}"))).sum::<f32>() / 40.0;
    assert!((4.0..5.0).contains(&mean), "{mean}");
    assert!(of("u3", "tea") < 2.5 && of("ann", "tea") < mean - 0.5, "{} and {}", of("u3", "tea"), of("ann", "tea"));
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_and_the_model_stays() {
    let (desk, all) = (desk(), ratings());
    let old = desk.write("old.csv", &all[..5000]);
    let (directory, _) = desk.train(&old);
    let files = || -> HashMap<_, _> {
        let entries = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    };
    let before = files();
    let told = |changes: &Changes, parts: &[&str]| {
        let said = refused(desk.update(&directory, changes));
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    };
    let bad = desk.write("bad.csv", &["u1,i1,3\n".to_owned(), "u2,i1,much\n".to_owned()]);
    told(&added(bad), &["bad.csv:2", "much"]);
    let gone = desk.write("gone.csv", &["u1,nothing,3\n".to_owned()]);
    told(&removed(gone), &["gone.csv", "\"u1\" with \"nothing\"", "not in the data"]);
    let other = desk.write("other.csv", &all[..4000]);
    told(&Changes { data: Some(other), ..added(old.clone()) }, &["4000 edges", "trained on 5000", "--data"]);
    std::fs::rename(&old, desk.path("moved.csv")).unwrap();
    told(&removed(desk.write("gone.csv", &all[..1])), &["old.csv", "No such file"]);
    assert_eq!(files(), before);
    let moved = Changes { data: Some(desk.path("moved.csv")), ..removed(desk.write("gone.csv", &all[..1])) };
    assert_eq!(desk.update(&directory, &moved).unwrap().record.input.edges, 4999);
    let feedback = Desk::<ImplicitFactorization>::new(AlsOptions::default(), by_default::<FeedbackOptions>);
    assert!(refused(feedback.update(&directory, &added(old))).contains("a model of kind mf, expected als"));
}

#[test]
fn a_model_of_data_in_memory_goes_on_with_what_is_new_and_asks_for_all_else() {
    let (desk, all) = (desk(), ratings());
    let (directory, mut trained) = desk.train(&desk.write("old.csv", &all[..5000]));
    trained.record.config.as_object_mut().unwrap().remove("input");
    std::fs::remove_dir_all(&directory).unwrap();
    model::save(trained.model.as_ref().unwrap(), &directory, &trained.record, trained.checksum).unwrap();
    for (name, from) in [("monday.csv", 5000), ("tuesday.csv", 5100)] {
        desk.update(&directory, &added(desk.write(name, &all[from..from + 100]))).unwrap();
    }
    assert!(model::manifest(&directory).unwrap().config.get("input").is_none());
    let back = removed(desk.write("gone.csv", &all[..1]));
    let said = refused(desk.update(&directory, &back));
    assert!(said.contains("data in memory") && said.contains("--data"), "{said}");
    let named = Changes { data: Some(desk.write("all.csv", &all[..5200])), ..back };
    assert_eq!(desk.update(&directory, &named).unwrap().record.input.edges, 5199);
}

#[test]
fn what_was_kept_for_testing_is_trained_on_by_the_first_update_on_all() {
    let how = || RatingOptions { holdout: Some(0.2), ..by_default() };
    let desk = Desk::<Factorization>::new(desk().options, how);
    let all = ratings();
    let (directory, _) = desk.train(&desk.write("old.csv", &all[..1000]));
    desk.update(&directory, &added(desk.write("first.csv", &all[1000..1010]))).unwrap();
    desk.update(&directory, &added(desk.write("second.csv", &all[1010..1020]))).unwrap();
    let edges = |gone: &str, at: usize| {
        let gone = desk.write(gone, &all[at..at + 5]);
        desk.update(&directory, &removed(gone)).unwrap().record.input.edges
    };
    assert_eq!([edges("gone.csv", 0), edges("more.csv", 5)], [1015, 1010]);
}

#[test]
fn who_has_no_ratings_any_more_has_no_values() {
    let (desk, all) = (desk(), ratings());
    let (directory, _) = desk.train(&desk.write("old.csv", &all[..5000]));
    let of_user: Vec<String> = all[..5000].iter().filter(|line| line.starts_with("u7,")).cloned().collect();
    let gone = desk.write("gone.csv", &of_user);
    let updated = desk.update(&directory, &removed(gone)).unwrap().model.unwrap();
    let user = updated.find(Side::Left, "u7").unwrap() as usize;
    assert_eq!((&updated.model.users[user * 4..][..4], updated.model.user_biases[user]), (&[0.0; 4][..], 0.0));
}

#[test]
fn a_model_that_began_at_another_keeps_its_rows_in_updates() {
    let (desk, all) = (desk(), ratings());
    let of = |users: std::ops::Range<u64>| {
        let is_one = |line: &&String| users.contains(&line[1..line.find(',').unwrap()].parse().unwrap());
        all.iter().filter(is_one).cloned().collect::<Vec<_>>()
    };
    let (first, _) = desk.train(&desk.write("jan.csv", &of(0..20)));
    let later = Source::new(desk.write("feb.csv", &of(20..40)));
    let (directory, _) = desk.train_on(later, &RunOptions { from: Some(first), ..run() });
    let row = |user: &str| {
        let factors = model::load::<Factors>(&directory).unwrap().0;
        factors.model.users[factors.find(Side::Left, user).unwrap() as usize * 4..][..4].to_vec()
    };
    let before = row("u3");
    // On new ratings only, then on all, which those of the first training are not among, then on all that are named.
    let (gone, more) = (of(20..21)[..2].to_vec(), of(21..22)[..2].to_vec());
    desk.update(&directory, &added(desk.write("mar.csv", &of(40..45)))).unwrap();
    desk.update(&directory, &removed(desk.write("gone.csv", &gone))).unwrap();
    desk.update(&directory, &removed(desk.write("more.csv", &more))).unwrap();
    assert_eq!(row("u3"), before);
    assert!(before.iter().any(|&value| value != 0.0));
    let left: Vec<String> =
        of(20..45).into_iter().filter(|line| !gone.contains(line) && !more.contains(line)).collect();
    // Who is taken back is nobody any more, whoever else is kept.
    let last: Vec<String> = left.iter().filter(|line| line.starts_with("u30,")).cloned().collect();
    let named = Changes { data: Some(desk.write("all.csv", &left)), ..removed(desk.write("last.csv", &last)) };
    desk.update(&directory, &named).unwrap();
    assert_eq!((row("u3"), row("u30")), (before, vec![0.0; 4]));
}

#[test]
fn an_update_goes_on_with_the_batch_that_was_tuned() {
    let options = FactorOptions { dims: 2, gradient: Gradient::Batch, iterations: 20, ..FactorOptions::default() };
    let desk = Desk::<Factorization>::new(options, by_default::<RatingOptions>);
    let old = desk.write("old.csv", &ratings()[..2000]);
    let directory = old.with_extension("model");
    let tuning = TuneOptions { tune: vec!["batch=300,700".to_owned()], ..TuneOptions::default() };
    let Tuned { trained, options, .. } =
        tune(desk.job(&old, &run()).unwrap(), &tuning, &Processes::default(), &()).unwrap();
    model::save(trained.model.as_ref().unwrap(), &directory, &trained.record, trained.checksum).unwrap();
    let gone = removed(desk.write("gone.csv", &ratings()[..5]));
    let (job, _) = update::read::<Factorization>(&directory, &gone, Ok, run()).unwrap();
    assert!(options.batch.is_some(), "{options:?}");
    assert_eq!((job.options.batch, job.options.work_per_clock), (options.batch, None));
}

#[test]
fn whose_ratings_were_taken_back_begin_anew_when_others_come() {
    let (desk, all) = (desk(), ratings());
    let (directory, _) = desk.train(&desk.write("old.csv", &all[..5000]));
    let of_both = all[..5000].iter().filter(|line| line.starts_with("u7,") || line.contains(",i3,")).cloned();
    desk.update(&directory, &removed(desk.write("gone.csv", &of_both.collect::<Vec<_>>()))).unwrap();
    let before = model::load::<Factors>(&directory).unwrap().0;
    let back = desk.write("back.csv", &["u7,i3,1\n".to_owned()]);
    let updated = desk.update(&directory, &added(back)).unwrap().model.unwrap();
    let rows = |of: &Factors| {
        let (user, item) = (of.find(Side::Left, "u7").unwrap() as usize, of.find(Side::Right, "i3").unwrap() as usize);
        (user, item, of.model.users[user * 4..][..4].to_vec(), of.model.items[item * 4..][..4].to_vec())
    };
    let (user, item, ..) = rows(&before);
    assert_eq!(rows(&before), (user, item, vec![0.0; 4], vec![0.0; 4]));
    // Of two that are 0 none would ever move.
    let (user_now, item_now, of_user, of_item) = rows(&updated);
    assert_eq!((user_now, item_now), (user, item));
    assert!([of_user, of_item].iter().flatten().all(|&value| value != 0.0));
}

#[test]
fn a_file_of_changes_is_taken_once_and_stays_as_it_was() {
    let (desk, all) = (desk(), ratings());
    let (directory, _) = desk.train(&desk.write("old.csv", &all[..5000]));
    let today = desk.write("today.csv", &all[5000..5010]);
    desk.update(&directory, &added(today.clone())).unwrap();
    let again = refused(desk.update(&directory, &added(today)));
    assert!(again.contains("today.csv") && again.contains("keep each day's file"), "{again}");
    desk.write("today.csv", &all[5010..5015]);
    let changed = refused(desk.update(&directory, &removed(desk.write("gone.csv", &all[..1]))));
    assert!(changed.contains("today.csv") && changed.contains("--data"), "{changed}");
}

#[test]
fn a_pipe_is_not_read_again() {
    let (desk, all) = (desk(), ratings());
    let (directory, _) = desk.train(&desk.write("old.csv", &all[..5000]));
    let manifest = model::manifest_path(&directory);
    let mut changed: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    changed["config"]["input"] = "/dev/fd/63".into();
    std::fs::write(&manifest, changed.to_string()).unwrap();
    let said = refused(desk.update(&directory, &removed(desk.write("gone.csv", &all[..1]))));
    assert!(said.contains("/dev/fd/63") && said.contains("was read from a pipe; name the data with --data"), "{said}");
}

#[test]
fn what_else_is_in_a_directory_is_not_replaced_nor_what_another_wrote() {
    let (desk, all) = (desk(), ratings());
    let (directory, _) = desk.train(&desk.write("old.csv", &all[..5000]));
    let place = Place::Same(directory.clone());
    place.check().unwrap();
    let read = |name: &str| {
        let (job, before) = update::read::<Factorization>(&directory, &added(desk.path(name)), Ok, run()).unwrap();
        (before, train(job, &Processes::default(), &()).unwrap())
    };
    desk.write("first.csv", &all[5000..5010]);
    desk.write("second.csv", &all[5010..5020]);
    let (first, second) = (read("first.csv"), read("second.csv"));
    first.0.save(&first.1, &place).unwrap();
    let late: Result<(), Error> = second.0.save(&second.1, &place);
    assert!(refused(late).contains("replaced the model meanwhile"));
    let notes = directory.join("notes.txt");
    std::fs::write(&notes, "mine").unwrap();
    let said = refused(place.check());
    assert!(said.contains("notes.txt") && said.contains("is no file of the model"), "{said}");
    let late = read("second.csv");
    refused(late.0.save(&late.1, &place));
    assert!(notes.exists());
}

#[test]
fn implicit_feedback_goes_on_with_all_data() {
    let options = AlsOptions { dims: 8, ..AlsOptions::default() };
    let desk = Desk::<ImplicitFactorization>::new(options.with("iterations", 4.into()).unwrap(), || FeedbackOptions {
        ratings_above: Some(3.2),
        ..by_default()
    });
    let all = ratings();
    let (new, old) = all.split_at(150);
    let (directory, before) = desk.train(&desk.write("old.csv", old));
    let full = desk.train(&desk.write("all.csv", &all)).1;
    let updated = desk.update(&directory, &added(desk.write("new.csv", new))).unwrap();
    let objective = |trained: &megagrid_training::record::Record| trained.result.objective.unwrap();
    // Further iterations on the same data can only make it smaller; the first begins where the model ended.
    assert!(objective(&updated.record) < objective(&full.record) * 1.001);
    let first = updated.record.iterations[0].objective.unwrap();
    assert_near(first, objective(&before.record), 0.05, "the first iteration");
    let [before, updated] = [before, updated].map(|trained| trained.model.unwrap().0);
    assert_eq!(names(&before, Side::Right), names(&updated, Side::Right));
}

#[test]
fn ages_count_from_the_newest_feedback_after_an_update() {
    let options = AlsOptions { dims: 8, alpha: Some(10.0), ..AlsOptions::default() };
    let desk = Desk::<ImplicitFactorization>::new(options.with("iterations", 3.into()).unwrap(), || FeedbackOptions {
        half_life: Some("100".parse().unwrap()),
        ..by_default()
    });
    // What is new is later by more than a half-life.
    let line =
        |at: usize, line: &String| format!("{},{}\n", line.trim(), if at < 4000 { at / 8 } else { 700 + at / 8 });
    let all: Vec<String> = ratings()[..4400].iter().enumerate().map(|(at, rating)| line(at, rating)).collect();
    let write =
        |name: &str, lines: &[String]| desk.write(name, &[&["user,item,rating,time\n".to_owned()], lines].concat());
    let (directory, _) = desk.train(&write("old.csv", &all[..4000]));
    // As if all had been there, and training had begun at the model.
    let anew = |data: PathBuf| {
        let run = RunOptions { from: Some(directory.clone()), ..run() };
        train(desk.job(&data, &run).unwrap(), &Processes::default(), &()).unwrap().record.result.objective.unwrap()
    };
    let expected = anew(write("all.csv", &all));
    let new = write("new.csv", &all[4000..]);
    let updated = desk.update(&directory, &added(new)).unwrap();
    assert_near(updated.record.result.objective.unwrap(), expected, 1e-6, "after an update");
    // Where the newest is taken back, all others are younger again.
    let expected = anew(write("less.csv", &all[..4200]));
    let gone = write("gone.csv", &all[4200..]);
    let updated = desk.update(&directory, &removed(gone)).unwrap();
    assert_near(updated.record.result.objective.unwrap(), expected, 1e-5, "after some were taken back");
    let untimed = desk.write("untimed.csv", &["user,item,rating\n".to_owned(), "u1,i1,3\n".to_owned()]);
    let said = refused(desk.update(&directory, &added(untimed)));
    assert!(said.contains("untimed.csv") && said.contains("no column is called time"), "{said}");
}
