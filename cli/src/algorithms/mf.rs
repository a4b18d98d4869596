//! `megagrid mf`.

use clap::{Arg, ArgAction, Command};
use megagrid_training::mf::Factorization;
use serde_json::Value;

use crate::data::Kind;
use crate::entry::{Spelling, Trains};

impl Trains for Factorization {
    const KIND: Kind = Kind::Ratings;
    const ABOUT: [&'static str; 2] = [
        "Factorizes ratings: finds for every user and item a vector, so that products of vectors predict ratings",
        "The model holds users.npy and items.npy ([n, dims], f32), the ids of their rows in users.parquet and items.parquet, \
         and biases if there are some. A prediction is: mean + user · item + biases.",
    ];
    const ENDS: [Option<&'static str>; 2] = [Some("users"), Some("items")];
    const EXAMPLES: &'static str =
        "Example:\n  megagrid mf ratings.csv --holdout 0.1 --model movies --report movies.html";
    const TUNED_ITERATIONS: Option<&'static str> = Some("100");

    /// What is the default may be said.
    fn with_more(command: Command) -> Command {
        let default = |id: &'static str, name: &'static str, help: &'static str| {
            Arg::new(id).long(name).action(ArgAction::SetTrue).overrides_with(name).help(help)
        };
        let biases = default("with-biases", "biases", "Learn a bias for each user and item, which is the default");
        let mean = default("with-mean", "mean", "Subtract the mean rating first, which is the default");
        command.args([biases, mean].map(|arg| arg.help_heading(None)))
    }

    fn spell(name: &str, value: &Value, _: &Value) -> Spelling {
        match (name, value.as_bool()) {
            ("biases", Some(false)) => Spelling::Flag("--no-biases"),
            ("mean", Some(false)) => Spelling::Flag("--no-mean"),
            ("biases" | "mean", _) => Spelling::Absent,
            _ => Spelling::Usual,
        }
    }
}
