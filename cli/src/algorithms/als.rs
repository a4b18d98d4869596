//! `megagrid als`.

use megagrid_training::als::ImplicitFactorization;

use crate::data::Kind;
use crate::entry::Trains;

impl Trains for ImplicitFactorization {
    const KIND: Kind = Kind::Ratings;
    const ABOUT: [&'static str; 2] = [
        "Factorizes clicks, plays and purchases: finds for every user and item a vector, so that products of vectors rank what a user \
         may want",
        "The input says who used what and how much, in the third column; a pair that is not there is taken for little interest, not for \
         nothing known, as in mf. Minimizes the loss of Hu, Koren and Volinsky (2008) by alternating least squares (iALS++). The model \
         holds users.npy and items.npy ([n, dims], f32) and the ids of their rows in users.parquet and items.parquet.",
    ];
    const ENDS: [Option<&'static str>; 2] = [Some("users"), Some("items")];
    const EXAMPLES: &'static str = "Examples:
  megagrid als plays.csv --dims 64 --holdout-per-user 1 --ranking 20 --model songs
  megagrid als plays.tsv --columns time=4 --holdout-last 1 --half-life 180d
  megagrid als ratings.csv --ratings-above 3.5 --holdout-users 0.1
  megagrid recommend songs 196 --exclude plays.csv";
    const TUNED_ITERATIONS: Option<&'static str> = Some("20");
}
