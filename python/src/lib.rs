//! The compiled part of the Python package `megagrid`: arrays in, arrays out. Estimators are written in Python on top of it.
//!
//! | module | what |
//! |---|---|
//! | `matrix` | arrays of NumPy and SciPy as edges |
//! | `fit` | data and options become a run |
//! | `run` | a run under way, on threads of its own |
//! | `models`, `topics` | trained models as arrays |
//! | `answers` | what models of factors answer |
//! | `directory` | the command's model directories |
//! | `names` | names of vertices, and rows in their order |
//! | `error` | errors and panics as exceptions |

mod answers;
mod directory;
mod error;
mod fit;
mod matrix;
mod models;
mod names;
mod run;
mod topics;

/// The module.
#[pyo3::pymodule]
mod _megagrid {
    #[pymodule_export]
    use crate::answers::{Answers, place};
    #[pymodule_export]
    use crate::fit::{factors, hits, implicit, pagerank, regression, topics};
    #[pymodule_export]
    use crate::models::{load_factors, load_linear, load_topics, save_factors, save_linear, scores_of_file};
    #[pymodule_export]
    use crate::names::rating_columns;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::topics::Topics;
}
