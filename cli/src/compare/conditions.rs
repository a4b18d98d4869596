//! How all systems of a comparison ran: in how many processes, and connected by what.

use std::collections::BTreeMap;

use clap::ValueEnum;
use megagrid_baselines::server::Gather;
use serde::Serialize;

use super::network::{KEPT, Rate};

/// How IterStore learns what an iteration accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gathering {
    /// In an iteration of accesses only, before the first one.
    #[default]
    Virtual,
    /// In the first iteration.
    First,
}

impl From<Gathering> for Gather {
    fn from(how: Gathering) -> Self {
        match how {
            Gathering::Virtual => Self::Virtual,
            Gathering::First => Self::Real,
        }
    }
}

/// How all systems ran.
#[derive(Debug, Serialize)]
pub struct Conditions {
    /// Processes of each system.
    pub processes: u16,
    /// What the link of each carries, both ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Rate>,
    /// The machine of each; empty: all run on this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// How iterstore learnt what an iteration accesses, where it ran and gathered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather: Option<Gathering>,
    /// Whether it then stored rows where they are used most; of several processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<bool>,
    /// About how many rows each process of lazytable cached, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_rows: Option<usize>,
    /// Whether lazytable requested rows when they were read only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_prefetch: bool,
    /// Whether parameter servers stepped what is shared themselves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub server_steps: bool,
    /// How gas and gas-faithful placed edges, where they ran in several processes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cuts: BTreeMap<&'static str, &'static str>,
}

impl Conditions {
    /// Says what several processes mean, what lazytable did without, and who steps.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = if self.processes == 1 { Vec::new() } else { self.notes_on_processes() };
        notes.extend(self.cached_rows.map(|rows| format!("Each process of lazytable cached about {rows} rows.")));
        if self.no_prefetch {
            notes.push("lazytable requested rows when they were read, each by itself.".to_owned());
        }
        if self.server_steps {
            notes.push(
                "Parameter servers stepped items themselves, by AdaptiveRevision: other steps than Megagrid's, whose AdaGrad has one size \
                 for a row. Compare the time to a target, not an iteration."
                    .to_owned(),
            );
        }
        notes
    }

    fn notes_on_processes(&self) -> Vec<String> {
        let connected = match (self.link, &self.hosts[..]) {
            (None, []) => "on this machine, connected over its loopback interface".to_owned(),
            (None, hosts) => format!("on {}", hosts.join(", ")),
            (Some(rate), _) => {
                format!("on this machine, each in a network namespace of its own, whose link carries {rate} each way")
            }
        };
        let mut notes = vec![format!(
            "Each system ran in {} processes {connected}. Bytes and messages are those between \
             processes: those of a client and the server beside it do not count. Of each process there are the shares of its workers' \
             time, and the bytes that it sent; of a parameter server's, that its client sent or received. Peak is the first process.",
            self.processes
        )];
        if self.link.is_some() {
            notes.push(
                "What a link carries in a millisecond goes at once after a silence, and a silence is also the time in which the objective is \
                 measured: iterations that send no more than that do not feel the rate."
                    .to_owned(),
            );
        }
        if self.link.is_some_and(|rate| rate > KEPT) {
            notes.push(format!("Links of more than {KEPT} carry less than their rate."));
        }
        notes.extend(self.placement.map(|placement| {
            let place =
                if placement { "where they are used most" } else { "where their numbers say, without placement" };
            format!("Rows of iterstore are stored {place}.")
        }));
        notes.extend(self.cuts.iter().map(|(system, cut)| format!("Edges of {system} are placed by {cut}.")));
        notes
    }

    /// Writes what differs from one process on this machine.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.processes > 1 {
            text.push_str(&format!(", {} processes", self.processes));
        }
        if !self.hosts.is_empty() {
            text.push_str(&format!(" on {}", self.hosts.join(", ")));
        }
        if let Some(rate) = self.link {
            let less = if rate > KEPT { " (which they do not reach)" } else { "" };
            text.push_str(&format!(", links of {rate}{less}"));
        }
        text
    }
}
