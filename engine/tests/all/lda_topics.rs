//! Topic models find planted topics, and tell of documents and words what these say.

use megagrid_algorithms::lda::{Config, FoldIn, Model, Occurrences, Prior, Sampler, Topics};
use megagrid_datasets::synthetic::{CorpusSettings, SyntheticCorpus};
use megagrid_engine::Settings;
use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
use megagrid_stages::simd::Level;

use crate::lda::{FITTED, PLANTED, SAMPLERS, WORDS, config, last, planted, planted_chance, settings, train};

#[test]
fn planted_topics_are_found_by_every_sampler_at_every_level() {
    let edges = planted(1000, 4);
    for sampler in SAMPLERS {
        for (level, workers) in Level::available().into_iter().zip([1, 2, 3]) {
            let settings = Settings { level, ..settings(workers) };
            let model = last(&edges, sampler, &config(FITTED), &settings, 60).model;
            assert_eq!(recovered(&model, PLANTED, planted_chance), PLANTED, "{sampler:?} {level}");
        }
    }
}

/// Corpora as the model has them, where Gibbs sampling may stay with two planted topics in one and another in halves: with
/// a fifth more topics than planted it seldom does.
#[test]
fn topics_of_generated_corpora_are_recovered() {
    let (mut found, mut all) = (Vec::new(), 0);
    for seed in 1..=2 {
        let made = CorpusSettings { seed, ..CorpusSettings::default() }.generate().unwrap();
        for sampler in SAMPLERS {
            let config = config(made.truth.num_topics * 6 / 5);
            let model = last(&made.corpus.data.edges, sampler, &config, &settings(2), 120).model;
            found.push(recovered_of(&made, &model));
            all += made.truth.num_topics;
        }
    }
    assert!(found.iter().sum::<usize>() * 100 >= all * 95, "{found:?} of {all} topics");
}

/// Fits half as many more topics than planted and gives these up after half of the iterations; what it finds.
fn recovered_with_as_many_topics(corpus: CorpusSettings, sampler: Sampler, iterations: u64) -> usize {
    let made = corpus.generate().unwrap();
    let planted = made.truth.num_topics;
    let config = Config { prior: Prior::Symmetric, ..config(planted) }.with_extra_topics(planted / 2, iterations);
    let mut found = 0;
    let edges = &made.corpus.data.edges;
    train(edges, sampler, &config, Some(planted), &settings(2), iterations, |iteration, look| {
        let state = look();
        let topics = if iteration > iterations / 2 { planted } else { config.num_topics };
        let Model { topics: Topics { totals, .. }, documents, .. } = &state.model;
        assert_eq!(totals.len(), topics);
        // Rounding may leave a token with a topic that was given up.
        assert!(totals.iter().sum::<i64>() + 2 >= made.corpus.num_tokens as i64);
        assert!(documents.topics.iter().all(|&topic| usize::from(topic) < topics));
        assert!(state.log_likelihood.is_finite());
        if iteration == iterations {
            found = recovered_of(&made, &state.model);
        }
    });
    found
}

#[test]
fn nearly_all_of_twenty_topics_are_recovered_with_twenty() {
    for sampler in [Sampler::Dense, Sampler::Sparse] {
        let corpus = CorpusSettings { num_documents: 2000, num_topics: 20, ..CorpusSettings::default() };
        let found = recovered_with_as_many_topics(corpus, sampler, 120);
        assert!(found >= 19, "{sampler:?}: {found} of 20 topics");
    }
}

fn recovered_of(made: &SyntheticCorpus, model: &Model) -> usize {
    let num_words = made.corpus.data.edges.num_right;
    let chance = |topic: usize, word: usize| f64::from(made.truth.topics[topic * num_words + word]);
    recovered(model, made.truth.num_topics, chance)
}

/// Counts the planted topics that a trained topic has a cosine above 0.9 with.
fn recovered(model: &Model, planted: usize, chance: impl Fn(usize, usize) -> f64) -> usize {
    let num_words = model.words.len();
    let mut rows = vec![vec![0.0; num_words]; model.topics.num_topics()];
    let counts = (0..num_words).flat_map(|word| model.words.row(word).map(move |entry| (word, entry)));
    counts.for_each(|(word, (topic, count))| rows[usize::from(topic)][word] = f64::from(count));
    let is_recovered = |&topic: &usize| {
        let truth: Vec<f64> = (0..num_words).map(|word| chance(topic, word)).collect();
        rows.iter().any(|row| cosine(row, &truth) > 0.9)
    };
    (0..planted).filter(is_recovered).count()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

#[test]
fn new_documents_are_given_their_topics_and_words_are_foreseen() {
    let model = last(&planted(1000, 7), Sampler::Dense, &config(FITTED), &settings(2), 60).model;
    let of_topic = |topic: usize| (0..20).map(|rank| ((topic * 30 + rank) as u32, 2)).collect::<Vec<_>>();
    for topic in 0..PLANTED {
        let chances = FoldIn::default().chances(&model, &of_topic(topic));
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let row = |fitted: usize| -> Vec<f64> {
            let count =
                |word| model.words.row(word).find(|e| usize::from(e.0) == fitted).map_or(0.0, |e| f64::from(e.1));
            (0..WORDS).map(count).collect()
        };
        // A planted topic may have been found twice, there are more to fit than planted.
        let truth: Vec<f64> = (0..WORDS).map(|word| planted_chance(topic, word)).collect();
        let found = (0..FITTED).filter(|&fitted| cosine(&row(fitted), &truth) > 0.8);
        assert!(found.map(|fitted| chances[fitted]).sum::<f64>() > 0.6, "{topic}: {chances:?}");
    }
    // A document without words, or with unknown words only, has the prior.
    for words in [&[][..], &[(WORDS as u32 + 5, 3)][..]] {
        assert!(
            FoldIn::default().chances(&model, words).iter().all(|&chance| (chance - 1.0 / FITTED as f64).abs() < 1e-9)
        );
    }
    let test = by_document(&planted(200, 8));
    let perplexity = FoldIn::default().perplexity(&model, &test, 2);
    assert_eq!(perplexity, FoldIn::default().perplexity(&model, &test, 1));
    // A topic has an entropy of about exp(3.5) words, two topics in the mean; the vocabulary 300.
    assert!((30.0..90.0).contains(&perplexity), "{perplexity}");
}

fn by_document(edges: &EdgeList<u32>) -> Vec<Vec<(u32, u32)>> {
    let mut documents = vec![Vec::new(); edges.num_left];
    for edge in 0..edges.data.len() {
        documents[edges.left[edge] as usize].push((edges.right[edge], edges.data[edge]));
    }
    documents
}

#[test]
fn top_words_of_found_topics_are_coherent() {
    let edges = planted(1000, 9);
    let model = last(&edges, Sampler::Sparse, &config(PLANTED), &settings(2), 60).model;
    let top: Vec<Vec<u32>> =
        model.top_words(10).into_iter().map(|list| list.into_iter().map(|(word, _)| word).collect()).collect();
    let source = GroupedEdges::new(edges, &[Side::Right]);
    let mut occurrences = Occurrences::new(1000);
    for word in 0..source.num_vertices(Side::Right) {
        source.visit_rows(Side::Right, word..word + 1, &mut |documents, _| occurrences.push(documents)).unwrap();
    }
    let mean =
        |lists: &[Vec<u32>]| lists.iter().map(|words| occurrences.coherence(words)).sum::<f64>() / lists.len() as f64;
    let mixed: Vec<Vec<u32>> = (0..10).map(|n| top.iter().map(|list| list[n]).collect()).collect();
    assert!(mean(&top) > 0.3 && mean(&top) > mean(&mixed) + 0.3, "{} {}", mean(&top), mean(&mixed));
}
