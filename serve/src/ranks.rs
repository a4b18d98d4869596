//! Models of `pagerank` and `hits`: the best vertices, and the places of some.

use megagrid_datasets::Lookup;
use megagrid_training::graph::Ranked;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Refusal;
use crate::questions::{Answers, Name, Scored, checked, checked_number, parsed, ten};

/// Vertices in the order of their scores; of hits also in that of hubs.
pub struct OfVertices {
    ranked: Ordered,
    hubs: Option<Ordered>,
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
        Self { ranked: ordered(ranked), hubs: hubs.map(ordered) }
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
            let Top { number, hubs } = parsed(body)?;
            let best = self.order(hubs)?.of.top(checked_number(number)?);
            let scored = best.into_iter().map(|one| Scored { id: one.name, score: one.score });
            return Ok(json!(scored.collect::<Vec<_>>()));
        }
        let Rank { vertices, hubs } = parsed(body)?;
        checked("the number of vertices", vertices.len())?;
        let Ordered { of, lookup } = self.order(hubs)?;
        let place = |Name(name): &Name| {
            let unknown = || format!("\"{name}\" is not among the {} vertices of the model", of.names.len());
            let at = lookup.find(name).ok_or_else(|| Refusal::Unknown(unknown()))?;
            Ok(json!({ "id": name, "place": at + 1, "score": of.scores[at as usize] }))
        };
        Ok(json!(vertices.iter().map(place).collect::<Result<Vec<Value>, Refusal>>()?))
    }
}
