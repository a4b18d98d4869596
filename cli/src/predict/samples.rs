//! The probabilities of samples.

use std::collections::BTreeMap;

use megagrid_algorithms::blockpg::{Quality, likeliest};
use megagrid_datasets::output::Column;
use megagrid_datasets::{Dictionary, Format, Labels, Role, Samples, read_unlabelled};
use megagrid_training::blockpg::{Linear, read_samples, warn_of_absent};
use megagrid_training::input::Source;
use megagrid_training::model;

use super::args::Args;
use crate::data::write_findings;
use crate::output;
use crate::progress::Progress;

/// Features that a line to the user names.
const LISTED: usize = 5;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let progress = Progress::spinner(false, "reading");
    let (model, manifest) = model::load::<Linear>(&args.model)?;
    let mut source = Source::as_trained(&args.input, &manifest.config);
    source.columns = args.columns.clone().or(source.columns);
    let is_cache = matches!(Format::detect(&args.input), Ok(Format::Cache));
    let mut samples = match (is_cache, args.quality) {
        // Its labels were chosen when it was made.
        (true, _) => read_samples(&mut Source::new(&args.input), &[], model.words)?,
        (false, true) => read_samples(&mut source, &model.positive, model.words)?,
        (false, false) => {
            let data = read_unlabelled(&args.input, source.layout(), model.words.tokenizer(), &model.features)?;
            Samples::new(data, Labels::default())
        }
    };
    if !args.quality {
        samples.labels = Labels::default();
    }
    drop(progress);
    let are_strange = tell_of_strangers(&model, &samples);
    let are_words = source.columns.as_ref().is_some_and(|roles| roles.has(Role::Text));
    if model.hash_bits.is_none() && !are_words && !are_strange {
        tell_of_other_kinds(&model.features, samples.data.right_names());
        if !is_cache {
            warn_of_absent(&source, &model.features)?;
        }
    }
    let order: Vec<u64> = samples.data.left_names.iter().map(|name| name.parse().unwrap_or(0)).collect();
    let weights = samples.weights.clone();
    let (scores, labels) = model.scores(samples)?;
    if args.quality {
        let quality = model.quality(&scores, &labels, &weights);
        return write_quality(args, &quality);
    }
    // A cache has its samples in another order than the text that it was made of.
    let mut rows: Vec<(u64, &[f64])> = order.into_iter().zip(scores.chunks(model.intercepts.len())).collect();
    rows.sort_by_key(|row| row.0);
    let chances: Vec<Vec<f64>> = rows.iter().map(|(_, scores)| model.chances(scores)).collect();
    let is_of_two = model.classes.len() == 2;
    if is_of_two && !args.output.is_named() {
        let text: String = chances.iter().map(|chances| format!("{:.9}\n", chances[1])).collect();
        return output::print(&text);
    }
    let titles: Vec<String> = model.classes.iter().map(|class| format!("probability_{class}")).collect();
    let of = |class: usize| Column::F64(chances.iter().map(|chances| chances[class]).collect());
    let mut piece = vec![("sample", Column::U64(rows.iter().map(|row| row.0).collect()))];
    if !is_of_two {
        let class = |(_, scores): &(u64, &[f64])| model.classes[likeliest(scores)].clone();
        piece.push(("class", Column::Strings(rows.iter().map(class).collect())));
    }
    // The chance of the second of two classes says that of the first.
    piece.extend(titles.iter().enumerate().skip(usize::from(is_of_two)).map(|(at, title)| (&title[..], of(at))));
    args.output.write(std::iter::once(Ok(piece)))
}

/// Says so where no feature of samples has a weight, and what is written is the same for all; returns whether that is so.
fn tell_of_strangers(model: &Linear, samples: &Samples) -> bool {
    let theirs = samples.data.right_names();
    let is_strange = model.hash_bits.is_none() && !theirs.is_empty() && !model.features.is_empty();
    let are_strange = is_strange && theirs.translate(&model.features).iter().all(Option::is_none);
    if are_strange {
        let first = |names: &Dictionary| names.iter().take(LISTED).collect::<Vec<_>>().join(", ");
        let (found, known) = (first(theirs), first(&model.features));
        eprintln!("megagrid: no feature of the samples ({found} …) has a weight in the model ({known} …)");
    }
    are_strange
}

/// Says so where a value of a column is a number to the model and a category of the samples, or the other way round: it counts nothing.
fn tell_of_other_kinds(known: &Dictionary, found: &Dictionary) {
    let names = [known, found];
    let [of_known, of_found] = names.map(categories);
    if of_known.is_empty() && of_found.is_empty() {
        return;
    }
    let [known, found] = names.map(|names| names.lookup());
    let is_only_number = |column: &str| known.find(column).is_some() && !of_known.contains_key(column);
    let texts = of_found.iter().filter(|(column, _)| is_only_number(column));
    let are_numbers = |column: &str| known.find(column).is_none() && found.find(column).is_some();
    let numbers = of_known.iter().filter(|(column, _)| are_numbers(column));
    let pairs = texts.map(|(column, category)| format!("{category} where the model has {column}"));
    let pairs = pairs.chain(numbers.map(|(column, category)| format!("{column} where the model has {category}")));
    let pairs: Vec<String> = pairs.take(LISTED).collect();
    if !pairs.is_empty() {
        eprintln!("megagrid: the samples have {}; such values count nothing", pairs.join(", "));
    }
}

/// Returns columns that hold categories, and the first category of each, as features are called.
fn categories(names: &Dictionary) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for name in names.iter() {
        if let Some((column, _)) = name.split_once('=') {
            found.entry(column.to_owned()).or_insert_with(|| name.to_string());
        }
    }
    found
}

/// Says how good predictions are; the area under the curve where there are two classes.
fn write_quality(args: &Args, quality: &Quality) -> anyhow::Result<()> {
    let Quality { auc, log_loss, accuracy } = *quality;
    let mut text = format!("log_loss {log_loss:.6}\naccuracy {accuracy:.6}\n");
    let mut found = serde_json::json!({ "log_loss": log_loss, "accuracy": accuracy });
    if auc.is_finite() {
        text.insert_str(0, &format!("auc {auc:.6}\n"));
        found["auc"] = auc.into();
    }
    write_findings(args.output.json.as_deref(), &found, &text)
}
