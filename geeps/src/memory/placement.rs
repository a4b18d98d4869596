//! Algorithm 5: what is pinned in device memory.

/// What an application needs, in values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Local data, bottom layer first.
    pub locals: Vec<usize>,
    /// Tables, with the indexes of their accesses, bottom layer first.
    pub tables: Vec<usize>,
    /// What is held at a time.
    pub layers: Vec<Held>,
    /// All buffers of an iteration: more of a ring than twice these is of no use.
    pub iteration: usize,
}

/// What is held at a time, in values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Local data, by number: no buffer is needed for those that are pinned.
    pub locals: Vec<usize>,
    /// Buffers of reads and updates, which are needed also where their table is pinned.
    pub buffers: usize,
}

/// What is pinned, and what is left for access buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Which local data are pinned.
    pub locals: Vec<bool>,
    /// Which tables are pinned.
    pub tables: Vec<bool>,
    /// Values of access buffers: twice the largest layer at least.
    pub ring: usize,
}

/// A budget that is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Values that are lacking.
    pub lacking: usize,
    /// The layer that needs them.
    pub layer: usize,
}

/// Access buffers hold this many layers: the one that is computed, and the next one.
const BUFFERED_LAYERS: usize = 2;

/// Decides what is pinned with `budget` values of device memory.
///
/// The algorithm as printed pins local data of the largest layer one by one, since each makes the buffers smaller,
/// and stops at the first that does not fit. Where two layers tie for the largest, pinning data of one makes nothing
/// smaller until the other's are pinned too, and the algorithm stops too early, or finds no place at all. So all of
/// these steps are looked at, and the last one that fits is taken.
///
/// # Errors
/// A budget that no step fits.
pub fn place(need: &Need, budget: usize) -> Result<Placement, Shortage> {
    let mut pins = Pins { need, locals: vec![false; need.locals.len()], pinned: 0 };
    let mut best = None;
    let mut shortage: Option<Shortage> = None;
    loop {
        let (layer, buffers) = pins.buffers();
        let needed = pins.pinned + buffers;
        if needed <= budget {
            best = Some(pins.clone());
        } else if shortage.is_none_or(|least| needed - budget < least.lacking) {
            shortage = Some(Shortage { lacking: needed - budget, layer });
        }
        let Some(local) = pins.swapped_in(layer) else { break };
        pins.pin(local);
    }
    let mut pins = best.ok_or(shortage.unwrap_or(Shortage { lacking: 0, layer: 0 }))?;
    for local in 0..need.locals.len() {
        let mut more = pins.clone();
        more.pin(local);
        if more.pinned + more.buffers().1 <= budget {
            pins = more;
        }
    }
    let (_, buffers) = pins.buffers();
    let mut pinned = pins.pinned;
    let mut tables = vec![false; need.tables.len()];
    for (is_pinned, &len) in tables.iter_mut().zip(&need.tables) {
        *is_pinned = pinned + len + buffers <= budget;
        if *is_pinned {
            pinned += len;
        }
    }
    let most = BUFFERED_LAYERS * need.iteration;
    Ok(Placement { locals: pins.locals, tables, ring: (budget - pinned).min(most.max(buffers)) })
}

/// Local data that are pinned.
#[derive(Clone)]
struct Pins<'n> {
    need: &'n Need,
    locals: Vec<bool>,
    pinned: usize,
}

impl Pins<'_> {
    /// Returns the layer that needs most buffers, and how much all buffers are that it takes.
    fn buffers(&self) -> (usize, usize) {
        let of = |held: &Held| {
            let swapped = held.locals.iter().filter(|&&local| !self.locals[local]);
            held.buffers + swapped.map(|&local| self.need.locals[local]).sum::<usize>()
        };
        let mut largest = (0, 0);
        for (layer, held) in self.need.layers.iter().enumerate() {
            if of(held) > largest.1 {
                largest = (layer, of(held));
            }
        }
        (largest.0, BUFFERED_LAYERS * largest.1)
    }

    /// Returns the first local data of a layer that are not pinned.
    fn swapped_in(&self, layer: usize) -> Option<usize> {
        let held = self.need.layers.get(layer)?;
        held.locals.iter().copied().find(|&local| !self.locals[local])
    }

    fn pin(&mut self, local: usize) {
        if !std::mem::replace(&mut self.locals[local], true) {
            self.pinned += self.need.locals[local];
        }
    }
}
