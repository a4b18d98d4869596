//! Models of `pagerank` and `hits`: the best vertices, and the places of some.

use megagrid_datasets::Lookup;
use megagrid_training::graph::Ranked;
use megagrid_training::model::best;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Refusal;
use crate::questions::{Answers, Name, Scored, checked_number, checked_together, parsed, ten};

/// Vertices in the order of their scores; of hits also in that of hubs, of several sets of restarts with the scores of each.
pub struct OfVertices {
    ranked: Ordered,
    hubs: Option<Ordered>,
    sets: Vec<Vec<f32>>,
}

struct Ordered {
    of: Ranked,
    lookup: Lookup,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Top {
    #[serde(default = "ten")]
    number: usize,
    /// The best hubs instead of the best authorities.
    #[serde(default)]
    hubs: bool,
    /// The best of one set, from 1.
    #[serde(default)]
    set: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rank {
    vertices: Vec<Name>,
    #[serde(default)]
    hubs: bool,
}

impl OfVertices {
    /// Takes vertices as they are ranked, and perhaps as hubs.
    pub fn new(ranked: Ranked, hubs: Option<Ranked>) -> Self {
        let ordered = |of: Ranked| Ordered { lookup: of.names.lookup(), of };
        Self { ranked: ordered(ranked), hubs: hubs.map(ordered), sets: Vec::new() }
    }

    /// Takes the scores of each set of vertices to restart at, in the order of the vertices.
    pub fn with_sets(self, sets: Vec<Vec<f32>>) -> Self {
        Self { sets, ..self }
    }

    /// Returns the best of a set, from 1.
    fn best_of_set(&self, set: usize, number: usize) -> Result<Vec<Scored>, Refusal> {
        let unknown = || match self.sets.len() {
            0 => "the model has no sets; rank with pagerank --restart-sets".to_owned(),
            sets => format!("there is no set {set}; the model has the sets 1 to {sets}"),
        };
        let scores = set.checked_sub(1).and_then(|at| self.sets.get(at)).ok_or_else(|| Refusal::Bad(unknown()))?;
        let name = |at| self.ranked.of.names.name(at).into_owned();
        let best = best((0..).zip(scores.iter().copied()), number);
        Ok(best.into_iter().map(|(at, score)| Scored { id: name(at), score: score.into() }).collect())
    }

    fn order(&self, hubs: bool) -> Result<&Ordered, Refusal> {
        match (hubs, &self.hubs) {
            (false, _) => Ok(&self.ranked),
            (true, Some(hubs)) => Ok(hubs),
            (true, None) => Err(Refusal::Bad("a model of pagerank has no hubs; train one with hits".to_owned())),
        }
    }
}

impl Answers for OfVertices {
    fn questions(&self) -> &'static [&'static str] {
        &["top", "rank"]
    }

    fn answer(&self, question: &str, body: &[u8]) -> Result<Value, Refusal> {
        if question == "top" {
            let Top { number, hubs, set } = parsed(body)?;
            let (order, number) = (self.order(hubs)?, checked_number(number)?);
            if let Some(set) = set {
                return Ok(json!(self.best_of_set(set, number)?));
            }
            let best = order.of.top(number);
            let scored = best.into_iter().map(|one| Scored { id: one.name, score: one.score });
            return Ok(json!(scored.collect::<Vec<_>>()));
        }
        let Rank { vertices, hubs } = parsed(body)?;
        checked_together("the number of vertices", vertices.len(), 1 + self.sets.len())?;
        let Ordered { of, lookup } = self.order(hubs)?;
        let place = |Name(name): &Name| {
            let unknown = || format!("\"{name}\" is not among the {} vertices of the model", of.names.len());
            let at = lookup.find(name).ok_or_else(|| Refusal::Unknown(unknown()))?;
            let mut found = json!({ "id": name, "place": at + 1, "score": of.scores[at as usize] });
            if !self.sets.is_empty() {
                found["sets"] = self.sets.iter().map(|scores| scores[at as usize]).collect();
            }
            Ok(found)
        };
        Ok(json!(vertices.iter().map(place).collect::<Result<Vec<Value>, Refusal>>()?))
    }
}
