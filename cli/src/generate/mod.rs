//! `megagrid generate`: data sets with a known answer, and the answer beside them.

mod output;

use std::path::PathBuf;

use megagrid_datasets::synthetic::{ClicksSettings, CorpusSettings, LatticeSettings, RatingsSettings, RmatSettings};
use serde::Serialize;

use output::make;

/// Makes a data set from a seed, and writes beside it the answer that training should find.
///
/// OUT is text, or a cache where its name ends in .mgrid. What was planted is in the directory of the same name that
/// ends in .truth: arrays as .npy, settings and the error that no model can go below in truth.json.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  megagrid generate ratings ratings.tsv --edges 1000000\n  megagrid generate rmat links.mgrid"
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Rmat(Rmat),
    Lattice(Lattice),
    Ratings(Ratings),
    Corpus(Corpus),
    Clicks(Clicks),
}

/// A directed graph with skewed degrees, by recursive matrices (R-MAT).
///
/// The text holds one edge a line: two ids, a tab between them. Nothing is planted, so there is no .truth.
#[derive(clap::Args, Serialize)]
#[command(after_help = "Example:\n  megagrid generate rmat graph.txt --scale 20 --clean")]
struct Rmat {
    /// What to write.
    #[serde(skip)]
    output: PathBuf,
    /// The graph has 2^SCALE vertices, some of them without edges; 1 to 31.
    #[arg(long, default_value_t = RmatSettings::default().scale)]
    scale: u32,
    /// Edges for each vertex, those counted that --clean removes.
    #[arg(long, value_name = "N", default_value_t = RmatSettings::default().edge_factor)]
    edge_factor: usize,
    /// Chance that both ends are in the lower half.
    #[arg(long, default_value_t = RmatSettings::default().a, allow_negative_numbers = true)]
    a: f64,
    /// Chance that only the target is in the upper half.
    #[arg(long, default_value_t = RmatSettings::default().b, allow_negative_numbers = true)]
    b: f64,
    /// Chance that only the source is in the upper half.
    #[arg(long, default_value_t = RmatSettings::default().c, allow_negative_numbers = true)]
    c: f64,
    /// Remove duplicates and self loops, and shuffle the ids, which otherwise tell degrees.
    #[arg(long)]
    clean: bool,
    /// Picks one of the graphs of these settings.
    #[arg(long, default_value_t = RmatSettings::default().seed)]
    seed: u64,
}

/// A directed graph without hubs, as roads are: a lattice of which some links are missing.
///
/// The text holds one edge a line: two ids, a tab between them. Vertices are numbered row by row. Nothing is planted, so there is no
/// .truth.
#[derive(clap::Args, Serialize)]
#[command(after_help = "Example:\n  megagrid generate lattice roads.txt --rows 1200 --columns 1200")]
struct Lattice {
    /// What to write.
    #[serde(skip)]
    output: PathBuf,
    /// Rows of vertices.
    #[arg(long, value_name = "N", default_value_t = LatticeSettings::default().rows)]
    rows: usize,
    /// Vertices of a row.
    #[arg(long, value_name = "N", default_value_t = LatticeSettings::default().columns)]
    columns: usize,
    /// The chance that a link is there: each vertex may have one to each of those beside, above and below it.
    #[arg(long, value_name = "CHANCE", default_value_t = LatticeSettings::default().kept, allow_negative_numbers = true)]
    kept: f64,
    /// Picks one of the graphs of these settings.
    #[arg(long, default_value_t = LatticeSettings::default().seed)]
    seed: u64,
}

/// Ratings with planted factors: mean + user · item + noise, no pair twice.
///
/// The text holds one rating a line: user, item, rating, tabs between them. Row n of users.npy and items.npy is the
/// factor of the user and item called n + 1.
#[derive(clap::Args, Serialize)]
#[command(after_help = "Example:\n  megagrid generate ratings ratings.tsv --left 48000 --right 17770 --edges 10000000")]
struct Ratings {
    /// What to write.
    #[serde(skip)]
    output: PathBuf,
    /// Users.
    #[arg(long, value_name = "N", default_value_t = RatingsSettings::default().num_users)]
    left: usize,
    /// Items.
    #[arg(long, value_name = "N", default_value_t = RatingsSettings::default().num_items)]
    right: usize,
    /// Ratings.
    #[arg(long, value_name = "N", default_value_t = RatingsSettings::default().num_ratings)]
    edges: usize,
    /// Length of the planted factors.
    #[arg(long, value_name = "K", default_value_t = RatingsSettings::default().latent_dim)]
    dims: usize,
    /// The planted mean.
    #[arg(long, default_value_t = RatingsSettings::default().mean, allow_negative_numbers = true)]
    mean: f64,
    /// Standard deviation of user · item.
    #[arg(long, default_value_t = RatingsSettings::default().signal, allow_negative_numbers = true)]
    signal: f64,
    /// Standard deviation of the noise: no model can have a smaller RMSE on unseen ratings.
    #[arg(long, default_value_t = RatingsSettings::default().noise, allow_negative_numbers = true)]
    noise: f64,
    /// Skew of the items: the chance of the n-th most rated is proportional to 1 / n^EXPONENT.
    #[arg(long, value_name = "EXPONENT", default_value_t = RatingsSettings::default().item_exponent, allow_negative_numbers = true)]
    zipf: f64,
    /// Skew of the users, likewise.
    #[arg(long, value_name = "EXPONENT", default_value_t = RatingsSettings::default().user_exponent, allow_negative_numbers = true)]
    user_zipf: f64,
    /// Round ratings to multiples of this: 0.5 for half stars [default: none].
    #[arg(long, value_name = "STEP", allow_negative_numbers = true)]
    round: Option<f64>,
    /// Picks one of the data sets of these settings.
    #[arg(long, default_value_t = RatingsSettings::default().seed)]
    seed: u64,
}

/// Documents with planted topics, made as latent Dirichlet allocation has it.
///
/// The text is a UCI bag of words, with its vocabulary beside it in vocab.NAME.txt. topics.npy holds the chance of each
/// word in each topic, mixtures.npy that of each topic in each document.
#[derive(clap::Args, Serialize)]
#[command(after_help = "Example:\n  megagrid generate corpus docword.news.txt --documents 20000 --topics 50")]
struct Corpus {
    /// What to write.
    #[serde(skip)]
    output: PathBuf,
    /// Documents.
    #[arg(long, value_name = "N", default_value_t = CorpusSettings::default().num_documents)]
    documents: usize,
    /// Words to draw from.
    #[arg(long, value_name = "N", default_value_t = CorpusSettings::default().num_words)]
    vocabulary: usize,
    /// Planted topics.
    #[arg(long, value_name = "K", default_value_t = CorpusSettings::default().num_topics)]
    topics: usize,
    /// Mean number of tokens in a document.
    #[arg(long, value_name = "TOKENS", default_value_t = CorpusSettings::default().mean_length, allow_negative_numbers = true)]
    mean_length: f64,
    /// Concentration of each topic in a document.
    #[arg(long, default_value_t = CorpusSettings::default().alpha, allow_negative_numbers = true)]
    alpha: f64,
    /// Mean concentration of a word in a topic.
    #[arg(long, default_value_t = CorpusSettings::default().beta, allow_negative_numbers = true)]
    beta: f64,
    /// Skew of the words: the n-th concentration is proportional to 1 / n^EXPONENT.
    #[arg(long, value_name = "EXPONENT", default_value_t = CorpusSettings::default().word_exponent, allow_negative_numbers = true)]
    zipf: f64,
    /// Picks one of the corpora of these settings.
    #[arg(long, default_value_t = CorpusSettings::default().seed)]
    seed: u64,
}

/// Labelled samples of binary features with planted sparse weights: clicks on advertisements, say.
///
/// The text is LIBSVM, labels -1 and 1. Entry n of weights.npy is the weight of the feature called n + 1.
#[derive(clap::Args, Serialize)]
#[command(after_help = "Example:\n  megagrid generate clicks clicks.libsvm --samples 100000 --features 20000")]
struct Clicks {
    /// What to write.
    #[serde(skip)]
    output: PathBuf,
    /// Samples.
    #[arg(long, value_name = "N", default_value_t = ClicksSettings::default().num_samples)]
    samples: usize,
    /// Features to draw from.
    #[arg(long, value_name = "N", default_value_t = ClicksSettings::default().num_features)]
    features: usize,
    /// Mean number of draws of a feature for a sample; one that is drawn again counts once.
    #[arg(long, value_name = "N", default_value_t = ClicksSettings::default().mean_features, allow_negative_numbers = true)]
    mean_features: f64,
    /// Skew of the features: the chance of feature n is proportional to 1 / n^EXPONENT.
    #[arg(long, value_name = "EXPONENT", default_value_t = ClicksSettings::default().feature_exponent, allow_negative_numbers = true)]
    zipf: f64,
    /// Share of the features whose weight is not 0, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = ClicksSettings::default().density, allow_negative_numbers = true)]
    density: f64,
    /// Standard deviation of those weights.
    #[arg(long, value_name = "X", default_value_t = ClicksSettings::default().weight_deviation, allow_negative_numbers = true)]
    weight_std: f64,
    /// Expected share of labels 1, above 0 and below 1.
    #[arg(long, value_name = "SHARE", default_value_t = ClicksSettings::default().click_rate, allow_negative_numbers = true)]
    click_rate: f64,
    /// Picks one of the data sets of these settings.
    #[arg(long, default_value_t = ClicksSettings::default().seed)]
    seed: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Rmat(args) => make(&args.output, args, || args.settings().generate()),
        What::Lattice(args) => make(&args.output, args, || args.settings().generate()),
        What::Ratings(args) => make(&args.output, args, || args.settings().generate()),
        What::Corpus(args) => make(&args.output, args, || args.settings().generate()),
        What::Clicks(args) => make(&args.output, args, || args.settings().generate()),
    }
}

impl Rmat {
    fn settings(&self) -> RmatSettings {
        let Self { scale, edge_factor, a, b, c, clean, seed, .. } = *self;
        RmatSettings { scale, edge_factor, a, b, c, simplify: clean, shuffle_ids: clean, seed }
    }
}

impl Lattice {
    fn settings(&self) -> LatticeSettings {
        let Self { rows, columns, kept, seed, .. } = *self;
        LatticeSettings { rows, columns, kept, seed }
    }
}

impl Ratings {
    fn settings(&self) -> RatingsSettings {
        RatingsSettings {
            num_users: self.left,
            num_items: self.right,
            num_ratings: self.edges,
            latent_dim: self.dims,
            mean: self.mean,
            signal: self.signal,
            noise: self.noise,
            user_exponent: self.user_zipf,
            item_exponent: self.zipf,
            round_to: self.round,
            seed: self.seed,
        }
    }
}

impl Corpus {
    fn settings(&self) -> CorpusSettings {
        CorpusSettings {
            num_documents: self.documents,
            num_words: self.vocabulary,
            num_topics: self.topics,
            mean_length: self.mean_length,
            alpha: self.alpha,
            beta: self.beta,
            word_exponent: self.zipf,
            seed: self.seed,
        }
    }
}

impl Clicks {
    fn settings(&self) -> ClicksSettings {
        ClicksSettings {
            num_samples: self.samples,
            num_features: self.features,
            mean_features: self.mean_features,
            feature_exponent: self.zipf,
            density: self.density,
            weight_deviation: self.weight_std,
            click_rate: self.click_rate,
            seed: self.seed,
        }
    }
}
