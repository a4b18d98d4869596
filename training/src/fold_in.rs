//! People that a model has not seen: their rows, solved for by what they rated or used, where the rows of items stand.

use std::borrow::Borrow;
use std::sync::Arc;

use megagrid_algorithms::als::Config;
use megagrid_algorithms::fold_in::{FoldIn, Folded, Loss};
use megagrid_algorithms::least_squares::Solver;
use megagrid_algorithms::mf;
use megagrid_algorithms::ranking::Lists;
use megagrid_datasets::{Dataset, Names};
use megagrid_partition::Side;
use rayon::prelude::*;

use crate::Error;
use crate::als::{FeedbackOptions, NO_FEEDBACK, Recommender, is_feedback};
use crate::mf::Factors;
use crate::model::{Manifest, Model};

/// What came of people's ratings.
#[derive(Clone, Debug)]
pub struct FoldedIn {
    /// The model, whose users are those people only.
    pub factors: Factors,
    /// The items that each of them has rated, by the user's number.
    pub rated: Lists,
    /// Items that the model does not know, and counts for nothing.
    pub unknown_items: Vec<String>,
    /// People of whom nothing is known that counts, and who are none of the users.
    pub left_out: Vec<String>,
}

/// Places people among the items of a model of `mf` or `als`.
#[derive(Clone, Debug)]
pub struct Placing<M> {
    solver: FoldIn<M>,
    rule: Rule,
}

impl<M: Borrow<mf::Model>> Placing<M> {
    /// Takes a model, and how it was trained.
    #[must_use]
    pub fn new(model: M, rule: Rule) -> Self {
        Self { solver: FoldIn::new(model, rule.loss()), rule }
    }

    /// Solves for a person by values of items. `None`: none of them counts.
    ///
    /// # Errors
    /// The first value that is no rating or no feedback.
    ///
    /// # Panics
    /// Where the model has no such item.
    pub fn place(&self, room: &mut Solver, rated: &[(u32, f32)]) -> Result<Option<Folded>, f32> {
        let values = rated.iter().map(|&(item, value)| self.rule.value(value).map(|known| (item, known)).ok_or(value));
        let mut counting = values.collect::<Result<Vec<_>, f32>>()?;
        counting.retain(|&(_, value)| self.rule.counts(value));
        Ok((!counting.is_empty()).then(|| self.solver.solve(room, &counting)))
    }
}

/// Replaces the users of a model of `mf` or `als` by the people of some ratings, or of some feedback, each of whom is solved for by his own
/// only. `manifest` is the model's, which has its λ and what else the objective needs.
///
/// # Errors
/// Ratings of which nothing counts: of unknown items only, or without feedback; feedback below 0.
pub fn fold_in(factors: Factors, manifest: &Manifest, theirs: &Dataset<f32>) -> Result<FoldedIn, Error> {
    let Factors { model, names, range, .. } = factors;
    let items = names.get(Side::Right)?;
    let ids = theirs.right_names().translate(&items);
    let rule = Rule::of(manifest, model.dims);
    let placing = Placing::new(&model, rule);
    let mut rated = vec![Vec::new(); theirs.left_names.len()];
    let ends = theirs.edges.left.iter().zip(&theirs.edges.right).zip(&theirs.edges.data);
    for ((&user, &item), &value) in ends {
        let Some(id) = ids[item as usize] else { continue };
        let value = rule.value(value).ok_or_else(|| {
            let (user, item) = (theirs.left_names.name(user), theirs.right_names().name(item));
            Error::Missing(format!("feedback of user \"{user}\" on item \"{item}\" is {value}; {NO_FEEDBACK}"))
        })?;
        rated[user as usize].push((id, value));
    }
    let counts = |user: &u32| rated[*user as usize].iter().any(|&(_, value)| rule.counts(value));
    let (known, others): (Vec<u32>, Vec<u32>) = (0..rated.len() as u32).partition(counts);
    let unknown = (0..).zip(&ids).filter(|(_, id)| id.is_none());
    let unknown_items: Vec<String> = unknown.map(|(item, _)| theirs.right_names().name(item).into_owned()).collect();
    if known.is_empty() {
        return Err(Error::Missing(match unknown_items.len() == ids.len() {
            true => format!(
                "none of the {} items is among the {} of the model; name them as its ratings did",
                ids.len(),
                items.len()
            ),
            false => "none of the values is feedback, so nothing is known of anybody".to_owned(),
        }));
    }
    let solved: Vec<Folded> = known
        .par_iter()
        .map_init(Solver::default, |room, &user| {
            let of_user = rated[user as usize].iter().copied().filter(|&(_, value)| rule.counts(value));
            placing.solver.solve(room, &of_user.collect::<Vec<_>>())
        })
        .collect();
    let biases = if model.item_biases.is_empty() { Vec::new() } else { solved.iter().map(|row| row.1).collect() };
    let users = solved.into_iter().flat_map(|row| row.0).collect();
    let pairs = (0..).zip(&known).flat_map(|(number, &user)| {
        rated[user as usize].iter().map(move |&(item, _)| (number, item)).collect::<Vec<(u32, u32)>>()
    });
    let names_of = Names::new(theirs.left_names.reorder(&known), Some((*items).clone()));
    let left_out = others.iter().map(|&user| theirs.left_names.name(user).into_owned()).collect();
    Ok(FoldedIn {
        rated: Lists::new(known.len(), pairs),
        factors: Factors {
            model: mf::Model { users, user_biases: biases, ..model },
            names: Arc::new(names_of),
            range,
            squares: None,
        },
        unknown_items,
        left_out,
    })
}

/// How a model was trained: what its users' rows minimize, and which values count.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// On ratings, by `mf`.
    Ratings {
        /// Weight of the regularizer, for each rating.
        lambda: f32,
    },
    /// On feedback, by `als`.
    Feedback {
        /// Parameters.
        config: Config,
        /// What ratings have to be above to be feedback.
        above: Option<f32>,
    },
}

impl Rule {
    /// Returns that of a model, by its manifest.
    #[must_use]
    pub fn of(manifest: &Manifest, dims: usize) -> Self {
        let number = |name: &str| manifest.option::<f32>(name);
        if manifest.kind != Recommender::KIND {
            return Self::Ratings { lambda: number("lambda") };
        }
        let [lambda, alpha, nu] = ["lambda", "alpha", "nu"].map(number);
        let config = Config { dims, lambda, alpha, nu, ..Config::default() };
        Self::Feedback { config, above: manifest.option("ratings_above") }
    }

    fn loss(&self) -> Loss {
        match *self {
            Self::Ratings { lambda } => Loss::Ratings { lambda },
            Self::Feedback { config, .. } => Loss::Feedback(config),
        }
    }

    /// Returns what a value of the input stands for; nothing where it is not allowed.
    fn value(&self, value: f32) -> Option<f32> {
        match *self {
            Self::Ratings { .. } => Some(value),
            Self::Feedback { above, .. } => is_feedback(above, value).then(|| FeedbackOptions::feedback(above, value)),
        }
    }

    fn counts(&self, value: f32) -> bool {
        matches!(self, Self::Ratings { .. }) || value > 0.0
    }
}
