//! Figures as inline SVG. Colours and line styles come from the page's style sheet: `s0`, `s1` and so on for what is
//! compared, `p0`, `p1` and so on for parts of a whole.

mod axes;
mod bars;
mod figure;
mod lines;
mod numbers;
mod rows;
mod timeline;

pub use axes::Scale;
pub use bars::{Series, grouped, stacked};
pub use lines::{Labels, Line, lines};
pub use numbers::{escape, precise, seconds, short};
pub use rows::{shares, values};
pub use timeline::{Stretch, timeline};
