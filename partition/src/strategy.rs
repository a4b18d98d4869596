//! Vertex-cut strategies: which partition each edge goes to.
//!
//! | name | edges of a vertex stay together | looks at | source |
//! |---|---|---|---|
//! | `random` | none | the edge | Gonzalez et al., OSDI 2012 |
//! | `grid` | in a row or column of partitions | the edge | Jain et al., GRADES 2013 |
//! | `hdrf` | of low degree | all edges so far | Petroni et al., CIKM 2015 |
//! | `hybrid` | at right vertices of low degree | degrees | Chen et al., EuroSys 2015 |
//! | `bicut` | of one side | the vertex | Chen et al., APSys 2014 |
//! | `aweto` | of one side | all edges so far | Chen et al., APSys 2014 |

mod aweto;
mod bicut;
mod grid;
mod hdrf;
mod hybrid;
mod random;
mod rule;

pub use aweto::Aweto;
pub use bicut::BiCut;
pub use grid::Grid;
pub use hdrf::Hdrf;
pub use hybrid::Hybrid;
pub use random::Random;
pub use rule::Strategy;

use crate::Error;

/// The names that [`by_name`] knows.
pub const NAMES: [&str; 6] = ["random", "grid", "hdrf", "hybrid", "bicut", "aweto"];

/// Returns a strategy with its default parameters.
///
/// # Errors
/// Where the name is not one of [`NAMES`].
///
/// # Examples
/// ```
/// use megagrid_partition::strategy;
///
/// assert_eq!(strategy::by_name("hdrf", 1)?.name(), "hdrf");
/// assert!(strategy::by_name("metis", 1).is_err());
/// # Ok::<(), megagrid_partition::Error>(())
/// ```
pub fn by_name(name: &str, seed: u64) -> Result<Box<dyn Strategy>, Error> {
    Ok(match name {
        "random" => Box::new(Random { seed }),
        "grid" => Box::new(Grid { seed }),
        "hdrf" => Box::new(Hdrf),
        "hybrid" => Box::new(Hybrid { threshold: Hybrid::THRESHOLD, seed }),
        "bicut" => Box::new(BiCut { seed, favourite: None }),
        "aweto" => Box::new(Aweto { favourite: None }),
        _ => return Err(Error::UnknownStrategy { found: name.to_string(), known: &NAMES }),
    })
}
