//! Models of `pagerank` and `hits`: the best vertices, and the places of some.

use megagrid_datasets::Lookup;
use megagrid_training::graph::Ranked;
use serde::Deserialize;

use crate::Refusal;
use crate::questions::{Answer, Answers, Name, Placed, Scored, checked_number, checked_together, parsed, ten};

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
    /// Takes vertices as they are ranked, perhaps as hubs, and the scores of each set of vertices to restart at, in the order of the
    /// vertices.
    pub fn new(ranked: Ranked, hubs: Option<Ranked>, sets: Vec<Vec<f32>>) -> Self {
        let ordered = |of: Ranked| Ordered { lookup: of.names.lookup(), of };
        Self { ranked: ordered(ranked), hubs: hubs.map(ordered), sets }
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

    fn answer(&self, question: &str, body: &[u8]) -> Result<Answer<'_>, Refusal> {
        if question == "top" {
            let Top { number, hubs, set } = parsed(body)?;
            let (order, number) = (self.order(hubs)?, checked_number(number)?);
            let best = match set {
                Some(set) => {
                    let best = self.ranked.of.top_of_set(&self.sets, set, number);
                    best.map_err(|error| Refusal::Bad(error.to_string()))?
                }
                None => order.of.top(number),
            };
            let scored = best.into_iter().map(|one| Scored { id: one.name.into(), score: one.score });
            return Ok(Answer::Best(scored.collect()));
        }
        let Rank { vertices, hubs } = parsed(body)?;
        checked_together("the number of vertices", vertices.len(), 1 + self.sets.len())?;
        let Ordered { of, lookup } = self.order(hubs)?;
        let place = |Name(name): Name| {
            let unknown = || format!("\"{name}\" is not among the {} vertices of the model", of.names.len());
            let at = lookup.find(&name).ok_or_else(|| Refusal::Unknown(unknown()))?;
            let score = |scores: &[f32]| f64::from(scores[at as usize]);
            let sets = self.sets.iter().map(|scores| score(scores)).collect();
            Ok(Placed { id: name, place: at + 1, score: score(&of.scores), sets })
        };
        Ok(Answer::Places(vertices.into_iter().map(place).collect::<Result<_, Refusal>>()?))
    }
}
