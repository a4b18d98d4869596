//! Users whom training has not seen, against gradient descent on what is minimized for each, and a full sort of all items.

use std::collections::HashSet;

use megagrid_datasets::{Dataset, Dictionary, Draw, Share, split_by_user, split_users};
use megagrid_partition::{EdgeList, SplitMix};
use megagrid_training::als::{AlsOptions, Feedback, ImplicitFactorization, Recommender};
use megagrid_training::mf::{FactorOptions, Factorization, Factors, Holdout, Ratings};
use megagrid_training::{Algorithm, Job, Processes, RunOptions, Trained, train};

const USERS: usize = 90;
const ITEMS: usize = 45;
const SEED: u64 = 7;
const TOP: usize = 5;
const OF_USERS: Holdout = Holdout::Users { users: Share::Part(0.3), share: Share::Number(3) };

/// Ratings from 1 to 5, which users of a kind give alike; some users have two ratings.
fn ratings() -> Dataset<f32> {
    let mut random = SplitMix::new(4, 0);
    let mut edges = EdgeList { num_left: USERS, num_right: ITEMS, ..EdgeList::default() };
    for user in 0..USERS {
        for item in 0..ITEMS {
            let is_alike = user % 3 == item % 3;
            let is_rated = if user % 10 == 9 { item < 2 } else { random.below(10) < if is_alike { 6 } else { 2 } };
            if is_rated {
                edges.push(user as u32, item as u32, if is_alike { 3.0 } else { 1.0 } + random.below(3) as f32);
            }
        }
    }
    let names = |count: usize| Dictionary::from_integers((0..count as u64).map(|name| name * 3 + 1).collect());
    Dataset { edges, left_names: names(USERS), right_names: Some(names(ITEMS)) }
}

/// Later for items of higher numbers, with equal times.
fn times() -> Vec<f64> {
    ratings().edges.right.iter().map(|&item| f64::from(item / 4)).collect()
}

fn trained<A: Algorithm>(data: A::Data, options: A::Options, workers: usize) -> Trained<A> {
    let run = RunOptions { workers: Some(workers), patience: Some(0), ..RunOptions::default() };
    let processes = Processes::default();
    let job = Job::<A>::new(data, serde_json::json!({}), options, &run, &processes).unwrap();
    train(job, &processes, &()).unwrap()
}

fn als() -> AlsOptions {
    AlsOptions { dims: 6, iterations: 4, lambda: 0.05, alpha: Some(3.0), nu: 0.7, ..AlsOptions::default() }
}

fn mf() -> FactorOptions {
    FactorOptions { dims: 4, iterations: 4, lambda: Some(0.05), ..FactorOptions::default() }
}

/// Minimizes Σ w (t − p·x)² + ρ |p|² by gradient descent, in double precision; a term is x, t and w.
fn minimum(terms: &[(Vec<f64>, f64, f64)], rho: f64) -> Vec<f64> {
    let mut row = vec![0.0; terms[0].0.len()];
    let bound = rho + terms.iter().map(|(x, _, w)| w * x.iter().map(|x| x * x).sum::<f64>()).sum::<f64>();
    for _ in 0..20_000 {
        let mut gradient: Vec<f64> = row.iter().map(|p| rho * p).collect();
        for (x, target, weight) in terms {
            let error = row.iter().zip(x).map(|(p, x)| p * x).sum::<f64>() - target;
            gradient.iter_mut().zip(x).for_each(|(sum, x)| *sum += weight * error * x);
        }
        row.iter_mut().zip(&gradient).for_each(|(p, gradient)| *p -= gradient / bound);
    }
    row
}

/// Recall and NDCG of the best items by a full sort.
fn quality(scores: &[f64], seen: &HashSet<u32>, relevant: &HashSet<u32>) -> [f64; 2] {
    let mut order: Vec<u32> = (0..scores.len() as u32).filter(|item| !seen.contains(item)).collect();
    order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]).then(a.cmp(&b)));
    let gain = |place: usize| 1.0 / (place as f64 + 2.0).log2();
    let hits: Vec<usize> = (0..TOP.min(order.len())).filter(|&place| relevant.contains(&order[place])).collect();
    let most = TOP.min(relevant.len());
    let ideal: f64 = (0..most).map(gain).sum();
    [hits.len() as f64 / most as f64, hits.into_iter().map(gain).sum::<f64>() / ideal]
}

/// What is known of each user whom training has not seen, and what he is tested on, by the items of the training data.
type Told = (Vec<(u32, f32)>, Vec<(u32, f32)>);

fn told(train: &Dataset<f32>, known: &Dataset<f32>, test: &Dataset<f32>) -> Vec<Told> {
    let of_user = |part: &Dataset<f32>, user: usize| -> Vec<(u32, f32)> {
        let ends = part.edges.left.iter().zip(&part.edges.right).zip(&part.edges.data);
        let of_user = ends.filter(|((of, _), _)| **of as usize == user);
        let by_name = |item: u32| train.right_names().find(&part.right_names().name(item));
        of_user.filter_map(|((_, &item), &value)| Some((by_name(item)?, value))).collect()
    };
    let all = (0..known.left_names.len()).map(|user| (of_user(known, user), of_user(test, user)));
    all.filter(|(known, test)| !known.is_empty() && !test.is_empty()).collect()
}

fn items(of: &[(u32, f32)]) -> HashSet<u32> {
    of.iter().map(|&(item, _)| item).collect()
}

fn mean<const N: usize>(of: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|at| of.iter().map(|one| one[at]).sum::<f64>() / of.len() as f64)
}

fn rows(of: &[f32], dims: usize) -> Vec<Vec<f64>> {
    of.chunks_exact(dims).map(|row| row.iter().map(|&value| f64::from(value)).collect()).collect()
}

fn by(times: Option<&[f64]>) -> Draw<'_> {
    Draw { times, seed: SEED, above: None }
}

fn parts(times: Option<&[f64]>) -> [Dataset<f32>; 3] {
    split_users(&ratings(), Share::Part(0.3), Share::Number(3), by(times)).unwrap()
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-4, "{what}: {found}, not {expected}");
}

#[test]
fn implicit_feedback_places_them_at_the_minimum() {
    for times in [None, Some(times())] {
        let [train, known, test] = parts(times.as_deref());
        let held = || Ratings::held_out(ratings(), Some(OF_USERS), by(times.as_deref())).unwrap();
        let feedback = |ratings| Feedback::new(ratings, Some(2.5)).unwrap().ranked(Some(TOP)).unwrap();
        let found = trained::<ImplicitFactorization>(feedback(held()), als(), 2);
        // Training is as if those users were not there.
        let without = feedback(Ratings::new(train.clone(), None, SEED).unwrap());
        let [Recommender(model), Recommender(expected)] =
            [found.model, trained::<ImplicitFactorization>(without, als(), 2).model].map(Option::unwrap);
        assert_eq!(model.model, expected.model);

        let (all, options) = (rows(&model.model.items, 6), als());
        let is_feedback = |of: &[(u32, f32)]| of.iter().copied().filter(|pair| pair.1 > 2.5).collect::<Vec<_>>();
        let qualities = told(&train, &known, &test).into_iter().filter_map(|(known, test)| {
            let (liked, relevant) = (items(&is_feedback(&known)), items(&is_feedback(&test)));
            if liked.is_empty() || relevant.is_empty() {
                return None;
            }
            let alpha = f64::from(options.config().alpha);
            let term = |(item, row): (u32, &Vec<f64>)| {
                let is_liked = f64::from(u8::from(liked.contains(&item)));
                (row.clone(), is_liked, 1.0 / alpha + is_liked)
            };
            let terms: Vec<_> = (0..).zip(&all).map(term).collect();
            let count = all.len() as f64 / alpha + liked.len() as f64;
            let row = minimum(&terms, f64::from(options.lambda) * count.powf(f64::from(options.nu)));
            let scores: Vec<f64> = all.iter().map(|item| row.iter().zip(item).map(|(p, q)| p * q).sum()).collect();
            Some(quality(&scores, &items(&known), &relevant))
        });
        let qualities: Vec<[f64; 2]> = qualities.collect();
        assert!(qualities.len() > 15, "{} users", qualities.len());
        let ([recall, ndcg], metrics) = (mean(&qualities), found.record.result.metrics);
        close(metrics["test_recall"], recall, "recall");
        close(metrics["test_ndcg"], ndcg, "ndcg");
        assert!(recall > 1.5 * TOP as f64 / ITEMS as f64, "better than chance: {recall}");
    }
}

#[test]
fn ratings_place_them_at_the_minimum() {
    let [train, known, test] = parts(None);
    let held = Ratings::held_out(ratings(), Some(OF_USERS), by(None)).unwrap().ranked(Some(TOP)).unwrap();
    let found = trained::<Factorization>(held, mf(), 1);
    let Factors { model, .. } = found.model.unwrap();
    let without = trained::<Factorization>(Ratings::new(train.clone(), None, SEED).unwrap(), mf(), 1);
    assert_eq!(model, without.model.unwrap().model);
    let all: Vec<Vec<f64>> = rows(&model.items, 4).into_iter().map(|row| [row, vec![1.0]].concat()).collect();
    let of_item = |item: usize| f64::from(model.mean) + f64::from(model.item_biases[item]);
    let (mut qualities, mut squares, mut tested) = (Vec::new(), 0.0, 0.0);
    for (known, test) in told(&train, &known, &test) {
        let term = |&(item, rating): &(u32, f32)| {
            let item = item as usize;
            (all[item].clone(), f64::from(rating) - of_item(item), 1.0)
        };
        let row =
            minimum(&known.iter().map(term).collect::<Vec<_>>(), f64::from(mf().config().lambda) * known.len() as f64);
        let product = |item: &[f64]| row.iter().zip(item).map(|(p, q)| p * q).sum::<f64>();
        let scores: Vec<f64> = (0..).zip(&all).map(|(at, item)| of_item(at) + product(item)).collect();
        qualities.push(quality(&scores, &items(&known), &items(&test)));
        squares += test.iter().map(|&(item, rating)| (f64::from(rating) - scores[item as usize]).powi(2)).sum::<f64>();
        tested += test.len() as f64;
    }
    let ([recall, ndcg], metrics) = (mean(&qualities), found.record.result.metrics);
    close(metrics["test_rmse"], (squares / tested).sqrt(), "rmse");
    close(metrics["test_recall"], recall, "recall");
    close(metrics["test_ndcg"], ndcg, "ndcg");
}

#[test]
fn the_latest_feedback_is_what_is_tested() {
    let held = Ratings::held_out(ratings(), Some(Holdout::PerUser(Share::Number(2))), by(Some(&times()))).unwrap();
    let [_, test] = split_by_user(&ratings(), Share::Number(2), by(Some(&times()))).unwrap();
    let expected = test.edges.left.iter().zip(&test.edges.right).zip(&test.edges.data);
    let mut expected: Vec<_> = expected.map(|((&user, &item), &value)| (user, item, value)).collect();
    expected.sort_by_key(|&(user, ..)| user);
    assert_eq!(held.test.known(), expected);
}

#[test]
fn what_leaves_nobody_to_test_is_told() {
    let held = |holdout, times: Option<&[f64]>| {
        Ratings::held_out(ratings(), Some(holdout), by(times)).unwrap_err().to_string()
    };
    let users = |users, share| Holdout::Users { users, share };
    for (holdout, times, expected) in [
        (users(Share::Number(USERS), Share::Number(1)), None, "90 of 90 users leaves none"),
        (users(Share::Number(5), Share::Number(ITEMS)), None, "no user has ratings of enough items to keep 45 of them"),
        (users(Share::Part(1.5), Share::Number(1)), None, "holdout 1.5 is out of range"),
        (Holdout::PerUser(Share::Number(1)), Some(&[1.0, 2.0][..]), "2 times of "),
    ] {
        let error = held(holdout, times);
        assert!(error.starts_with(expected), "{error}");
    }
    // Items that nobody else has rated.
    let mut edges = EdgeList { num_left: 4, num_right: 8, ..EdgeList::default() };
    (0..8).for_each(|item| edges.push(item / 2, item, 1.0));
    let names = |count| Dictionary::from_integers((0..count).collect());
    let own = Dataset { edges, left_names: names(4), right_names: Some(names(8)) };
    let holdout = users(Share::Number(2), Share::Number(1));
    let error = Ratings::held_out(own, Some(holdout), by(None)).unwrap_err().to_string();
    assert!(error.starts_with("of the 2 ratings that the 2 held out users are tested on"), "{error}");
}
