//! What a virtual iteration finds: which accesses there are, in which order, and what is held at a time.

use crate::device::{Cost, padded};
use crate::table::{LocalId, RowList, RowsId, TableId, Tables};

/// What is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Parameters.
    Read(RowsId),
    /// A buffer for updates.
    PreUpdate(RowsId),
    /// Local data, with their values or without.
    Local {
        /// Which.
        local: LocalId,
        /// Whether their values are needed.
        fetch: bool,
    },
}

/// What is written by posts: a table, by updates, or local data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// A table, by its number.
    Table(usize),
    /// Local data, by their number.
    Local(usize),
}

/// A call of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An access, the next one by number.
    Access(What),
    /// The post of an access.
    Post {
        /// Its number within the iteration.
        access: usize,
        /// Whether what is in the buffer is kept.
        save: bool,
    },
    /// The end of a clock of a table.
    Clock(TableId),
    /// Values that the application copies to the device by itself.
    Upload(usize),
    /// Values that the application copies to the host by itself.
    Download(usize),
    /// Commands.
    Compute(Cost),
}

impl Event {
    /// Tells whether later iterations have to have it in the same place.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(self, Self::Access(_) | Self::Post { .. } | Self::Clock(_))
    }
}

/// What is held at a time, between two places of an iteration where nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// The accesses, by number.
    pub accesses: Vec<usize>,
}

/// Local data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// What it is called in plans and messages.
    pub name: String,
    /// How many values.
    pub len: usize,
}

/// An iteration as the application goes through it: what is the same in every one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub(crate) tables: Tables,
    pub(crate) lists: Vec<RowList>,
    pub(crate) locals: Vec<Local>,
    pub(crate) events: Vec<Event>,
    /// Every access, and whether its post keeps what is in the buffer.
    pub(crate) accesses: Vec<(What, bool)>,
    pub(crate) layers: Vec<Layer>,
}

impl Trace {
    /// Returns the tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the local data that last from one iteration to the next: those whose values are fetched first.
    #[must_use]
    pub fn lasting(&self) -> Vec<LocalId> {
        let first = |local: usize| {
            self.accesses.iter().find_map(|&(what, _)| match what {
                What::Local { local: LocalId(of), fetch } if of == local => Some(fetch),
                _ => None,
            })
        };
        (0..self.locals.len()).filter(|&local| first(local) == Some(true)).map(LocalId).collect()
    }

    /// Returns what is held at a time.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns an access by its number within an iteration.
    #[must_use]
    pub fn access(&self, number: usize) -> What {
        self.accesses[number].0
    }

    /// Returns the table that an access is about; none of local data.
    fn table_of(&self, what: What) -> Option<TableId> {
        match what {
            What::Read(rows) | What::PreUpdate(rows) => Some(self.lists[rows.0].table),
            What::Local { .. } => None,
        }
    }

    /// Returns what the post of an access writes, and a later access reads.
    pub(crate) fn home(&self, what: What) -> Home {
        match what {
            What::Local { local, .. } => Home::Local(local.0),
            What::Read(rows) | What::PreUpdate(rows) => Home::Table(self.lists[rows.0].table.0),
        }
    }

    /// Returns the values of an access, without padding.
    #[must_use]
    pub fn len_of(&self, what: What) -> usize {
        match what {
            What::Read(rows) | What::PreUpdate(rows) => self.lists[rows.0].len(),
            What::Local { local, .. } => self.locals[local.0].len,
        }
    }

    /// Returns the values of a layer, each access padded.
    #[must_use]
    pub fn layer_len(&self, layer: usize) -> usize {
        self.layers[layer].accesses.iter().map(|&access| padded(self.len_of(self.access(access)))).sum()
    }

    /// Says what an access is.
    #[must_use]
    pub fn describe(&self, what: What) -> String {
        match what {
            What::Read(rows) => format!("read of {}", self.rows_name(rows)),
            What::PreUpdate(rows) => format!("update of {}", self.rows_name(rows)),
            What::Local { local, fetch } => {
                format!("{}{}", self.locals[local.0].name, if fetch { "" } else { " without its values" })
            }
        }
    }

    fn rows_name(&self, rows: RowsId) -> &str {
        &self.tables.get(self.lists[rows.0].table).name
    }

    /// Says what a layer is: its number, from 1, and what is held in it.
    #[must_use]
    pub fn describe_layer(&self, layer: usize) -> String {
        let held: Vec<String> =
            self.layers[layer].accesses.iter().map(|&access| self.describe(self.access(access))).collect();
        format!("layer {} of {} ({})", layer + 1, self.layers.len(), held.join(", "))
    }

    pub(crate) fn describe_event(&self, event: &Event) -> String {
        match *event {
            Event::Access(what) => self.describe(what),
            Event::Post { access, save } => {
                let what = self.access(access);
                let kept = if save || self.table_of(what).is_some() { "" } else { " without saving" };
                format!("post of the {}{kept}", self.describe(what))
            }
            Event::Clock(table) => format!("clock of {}", self.tables.get(table).name),
            Event::Upload(_) | Event::Download(_) | Event::Compute(_) => "work".to_owned(),
        }
    }
}
