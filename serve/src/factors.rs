//! Models of `mf` and `als`: recommendations, also for people whom the model has not seen, similar vertices, predictions.

use std::sync::Arc;

use megagrid_algorithms::least_squares::Solver;
use megagrid_algorithms::mf::Model;
use megagrid_algorithms::search::Found;
use megagrid_datasets::{Dictionary, Lookup};
use megagrid_partition::Side;
use megagrid_training::fold_in::{Placing, Rule};
use megagrid_training::mf::{Factors, Recommendations, Similar};
use megagrid_training::model::Manifest;
use serde::Deserialize;
use serde_json::json;

use crate::questions::{
    Answer, Answers, Name, Scored, checked, checked_number, checked_together, checked_value, parsed, ten,
};
use crate::{Error, Refusal};

/// A model of factors, with what its answers need.
pub struct OfFactors {
    sides: [Vertices; 2],
    recommendations: Recommendations<Arc<Model>>,
    placing: Placing<Arc<Model>>,
    similar: [Similar; 2],
    factors: Arc<Model>,
    range: Option<[f32; 2]>,
}

/// The users or the items.
struct Vertices {
    what: &'static str,
    names: Arc<Dictionary>,
    lookup: Lookup,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recommend {
    /// Users of the model.
    #[serde(default)]
    users: Vec<Name>,
    /// People by what they rated: pairs of an item and a value.
    #[serde(default)]
    people: Vec<Vec<(Name, f32)>>,
    #[serde(default = "ten")]
    number: usize,
    /// Items to leave out.
    #[serde(default)]
    exclude: Vec<Name>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alike {
    #[serde(default)]
    items: Vec<Name>,
    #[serde(default)]
    users: Vec<Name>,
    #[serde(default = "ten")]
    number: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    text: String,
    /// Among the users, not the items.
    #[serde(default)]
    users: bool,
    #[serde(default = "ten")]
    number: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Predict {
    /// Pairs of a user and an item.
    pairs: Vec<(Name, Name)>,
}

impl OfFactors {
    /// Takes a model and what it says about itself.
    ///
    /// # Errors
    /// Names that cannot be read.
    pub fn new(factors: Factors, manifest: &Manifest) -> Result<Self, Error> {
        let Factors { model, names, range, .. } = factors;
        let vertices = |what, side| {
            let names = names.get(side)?;
            Ok::<_, megagrid_training::Error>(Vertices {
                what,
                lookup: names.lookup(),
                names: Arc::new((*names).clone()),
            })
        };
        let sides = [vertices("user", Side::Left)?, vertices("item", Side::Right)?];
        let factors = Arc::new(model);
        Ok(Self {
            sides,
            recommendations: Recommendations::new(Arc::clone(&factors), range),
            placing: Placing::new(Arc::clone(&factors), Rule::of(manifest, factors.dims)),
            similar: [Side::Left, Side::Right].map(|side| Similar::new(&factors, side)),
            factors,
            range,
        })
    }

    fn recommend(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Recommend { users, people, number, exclude } = parsed(body)?;
        let items = &self.sides[1];
        let mut excluded: Vec<u32> = exclude.iter().filter_map(|name| items.lookup.find(&name.0)).collect();
        excluded.sort_unstable();
        excluded.dedup();
        match (users.is_empty(), people.is_empty()) {
            (false, true) => {
                let number = checked_together("the number of users", users.len(), number)?;
                let ids = self.sides[0].find_all(&users)?;
                Ok(items.answers(&self.recommendations.of(&ids, number, |_| &excluded)))
            }
            (true, false) => self.recommend_to(&people, number, &excluded),
            _ => Err(Refusal::Bad("name users, or people by what they rated, and not both".to_owned())),
        }
    }

    /// What people rated is left out; what the model does not know of it counts for nothing. Who rated nothing that it knows gets no item.
    fn recommend_to(
        &self,
        people: &[Vec<(Name, f32)>],
        number: usize,
        excluded: &[u32],
    ) -> Result<Answer<'_>, Refusal> {
        let number = checked_together("the number of people", people.len(), number)?;
        let (items, mut room) = (&self.sides[1], Solver::default());
        let (mut placed, mut left_out, mut of) = (Vec::new(), Vec::new(), Vec::new());
        let mut num_known = 0;
        for (person, rated) in (1_usize..).zip(people) {
            let mut known = Vec::with_capacity(rated.len());
            for (item, value) in rated {
                let value = checked_value(item, *value)?;
                known.extend(items.lookup.find(&item.0).map(|id| (id, value)));
            }
            let found = self.placing.place(&mut room, &known).map_err(|value| {
                Refusal::Bad(format!("person {person} has feedback {value}; expected 0 or a number above"))
            })?;
            num_known += known.len();
            let Some(found) = found else { continue };
            placed.push(found);
            of.push(person - 1);
            let mut seen: Vec<u32> = known.iter().map(|&(item, _)| item).chain(excluded.iter().copied()).collect();
            seen.sort_unstable();
            seen.dedup();
            left_out.push(seen);
        }
        if placed.is_empty() {
            let rated: usize = people.iter().map(Vec::len).sum();
            let problem = format!("nothing of what people rated counts: of {rated} items {num_known} are in the model");
            return Err(Refusal::Unknown(problem));
        }
        let mut best = vec![Vec::new(); people.len()];
        let found = self.recommendations.of_people(&placed, number, |at| &left_out[at]);
        of.into_iter().zip(found).for_each(|(person, found)| best[person] = found);
        Ok(items.answers(&best))
    }

    fn similar(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Alike { items, users, number } = parsed(body)?;
        let (side, names) = match (items.is_empty(), users.is_empty()) {
            (false, true) => (Side::Right, &items),
            (true, false) => (Side::Left, &users),
            _ => return Err(Refusal::Bad("name items or users, and not both".to_owned())),
        };
        let number = checked_together("the number of vertices", names.len(), number)?;
        let vertices = &self.sides[side as usize];
        let ids = vertices.find_all(names)?;
        Ok(vertices.answers(&self.similar[side as usize].to(&ids, number)))
    }

    fn find(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Find { text, users, number } = parsed(body)?;
        Ok(Answer::Other(json!(self.sides[usize::from(!users)].with(&text, checked_number(number)?))))
    }

    fn predict(&self, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        let Predict { pairs } = parsed(body)?;
        checked("the number of pairs", pairs.len())?;
        let predict = |(user, item): &(Name, Name)| {
            let (user, item) = (self.sides[0].find(user)?, self.sides[1].lookup.find(&item.0));
            let rating = self.factors.predict_known(Some(user), item);
            Ok(self.range.map_or(rating, |[least, greatest]| rating.max(least).min(greatest)))
        };
        Ok(Answer::Other(json!(pairs.iter().map(predict).collect::<Result<Vec<f32>, Refusal>>()?)))
    }
}

impl Vertices {
    fn find(&self, name: &Name) -> Result<u32, Refusal> {
        let Self { what, names, lookup } = self;
        let unknown = || format!("{what} \"{}\" is not among the {} {what}s of the model", name.0, names.len());
        lookup.find(&name.0).ok_or_else(|| Refusal::Unknown(unknown()))
    }

    /// Returns names that have a text in them: those first that begin with it, short ones before long ones. Time: all names.
    fn with(&self, text: &str, number: usize) -> Vec<String> {
        let text = text.to_lowercase();
        let found = |id: u32| {
            let name = self.names.name(id);
            name.to_lowercase().find(&text).map(|at| (at > 0, name.len(), name.into_owned()))
        };
        let mut found: Vec<(bool, usize, String)> = (0..self.names.len() as u32).filter_map(found).collect();
        found.sort_unstable();
        found.into_iter().take(number).map(|(_, _, name)| name).collect()
    }

    fn find_all(&self, names: &[Name]) -> Result<Vec<u32>, Refusal> {
        names.iter().map(|name| self.find(name)).collect()
    }

    fn answers(&self, all: &[Vec<Found>]) -> Answer<'_> {
        let scored = |&(id, score): &Found| Scored { id: self.names.name(id), score: score.into() };
        Answer::BestOfEach(all.iter().map(|found| found.iter().map(scored).collect()).collect())
    }
}

impl Answers for OfFactors {
    fn questions(&self) -> &'static [&'static str] {
        &["recommend", "similar", "predict", "find"]
    }

    fn answer(&self, question: &str, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        match question {
            "recommend" => self.recommend(body),
            "similar" => self.similar(body),
            "find" => self.find(body),
            _ => self.predict(body),
        }
    }
}
