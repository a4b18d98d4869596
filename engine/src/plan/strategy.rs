//! Strategies: how edges are placed on processes.
//!
//! | strategy | columns for right vertices of low, and of high degree |
//! |---|---|
//! | `bicut` | 1 and 1, or P and P: one side's vertices are whole, as the stages want it |
//! | `grid` | about √P and √P |
//! | `hybrid` | P and 1: edges into hubs are with their left ends; what counts as a hub is such that the fewest bytes cross |
//! | `mixed` | P and whatever lets the fewest bytes cross |
//! | `auto` | whichever of these takes the least time as far as degrees tell |

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How edges are placed on processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Vertices of one side keep all their edges in one process.
    #[default]
    BiCut,
    /// Vertices of both sides have theirs in a row, or a column, of processes.
    Grid,
    /// Right vertices keep theirs in one process; those of hubs are where their left ends are.
    Hybrid,
    /// Right vertices keep theirs in one process; those of hubs are in a part of all.
    Mixed,
    /// The one of these that takes the least time, as far as degrees tell.
    Auto,
}

impl Strategy {
    /// All strategies by name.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("bicut", Self::BiCut),
        ("grid", Self::Grid),
        ("hybrid", Self::Hybrid),
        ("mixed", Self::Mixed),
        ("auto", Self::Auto),
    ];

    /// Returns the strategy's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, one)| *one).ok_or(())
    }
}
