//! What models of factors answer: the best items of users, vertices that are alike, and rows of people whom a model has not seen.

use std::sync::{Arc, OnceLock};

use megagrid_algorithms::als::Config;
use megagrid_algorithms::least_squares::Solver;
use megagrid_algorithms::mf::Model;
use megagrid_algorithms::search::Found;
use megagrid_partition::Side;
use megagrid_training::fold_in::{Placing, Rule};
use megagrid_training::mf::{Recommendations, Similar};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::run::pool;

/// Factors of a side, `[vertices, dims]`, and biases.
pub type Rows<'py> = (PyReadonlyArray2<'py, f32>, PyReadonlyArray1<'py, f32>);

/// Rows of factors that Python has checked, and where lists of them end.
type Numbers<'py> = PyReadonlyArray1<'py, i64>;

fn ids(numbers: &Numbers<'_>) -> Vec<u32> {
    numbers.as_array().iter().map(|&number| number as u32).collect()
}

/// The mean rating, and the unit of ratings in training.
pub type Scale = (f32, f32);

/// Takes factors as Python has them. Without biases the model has none.
pub fn model((mean, unit): Scale, users: &Rows<'_>, items: &Rows<'_>, has_biases: bool) -> Model {
    let flat = |rows: &Rows<'_>| rows.0.as_array().iter().copied().collect::<Vec<f32>>();
    let biases = |rows: &Rows<'_>| if has_biases { rows.1.as_array().to_vec() } else { Vec::new() };
    Model {
        dims: users.0.as_array().ncols(),
        mean,
        unit,
        users: flat(users),
        items: flat(items),
        user_biases: biases(users),
        item_biases: biases(items),
    }
}

/// Rows, one of each question, and the scores of what they name; -1 and no number where there is nothing left.
type Tables<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

/// A model that is asked. What an answer needs is packed when it is asked for first.
#[pyclass(frozen, module = "megagrid._megagrid")]
pub struct Answers {
    model: Arc<Model>,
    range: Option<[f32; 2]>,
    recommendations: OnceLock<Recommendations<Arc<Model>>>,
    similar: [OnceLock<Similar>; 2],
}

#[pymethods]
impl Answers {
    #[new]
    fn new(mean: f32, range: Option<[f32; 2]>, users: Rows<'_>, items: Rows<'_>) -> Self {
        let model = Arc::new(model((mean, 1.0), &users, &items, true));
        Self { model, range, recommendations: OnceLock::new(), similar: Default::default() }
    }

    /// Returns the `number` best items of users. Items of user `n` that are left out, ascending, are `items[ends[n - 1]..ends[n]]`.
    fn recommend<'py>(
        &self,
        py: Python<'py>,
        users: Numbers<'_>,
        number: usize,
        left_out: (Numbers<'_>, Numbers<'_>),
        threads: Option<usize>,
    ) -> PyResult<Tables<'py>> {
        let (users, ends, items) = (ids(&users), ids(&left_out.0), ids(&left_out.1));
        let find = || {
            let recommendations =
                self.recommendations.get_or_init(|| Recommendations::new(Arc::clone(&self.model), self.range));
            let begin = |at: usize| if at == 0 { 0 } else { ends[at - 1] as usize };
            recommendations.of(&users, number, |at| &items[begin(at)..ends[at] as usize])
        };
        asked(py, users.len(), (number, self.model.items.len() / self.model.dims), threads, find)
    }

    /// Returns the `number` users, or items, that are most like each of some.
    fn similar<'py>(
        &self,
        py: Python<'py>,
        is_users: bool,
        rows: Numbers<'_>,
        number: usize,
        threads: Option<usize>,
    ) -> PyResult<Tables<'py>> {
        let rows = ids(&rows);
        let side = if is_users { Side::Left } else { Side::Right };
        let all = if is_users { &self.model.users } else { &self.model.items }.len() / self.model.dims;
        let find = || self.similar[side as usize].get_or_init(|| Similar::new(&self.model, side)).to(&rows, number);
        asked(py, rows.len(), (number, all), threads, find)
    }
}

/// What the rows of people minimize: λ, and of feedback α, ν and what ratings have to be above.
type Trained = (f32, Option<(f32, f32, Option<f32>)>);

/// Rows and biases of people, and of whom nothing counts.
type Placed<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<bool>>);

/// Places people among the items of a model. What person `n` rated is `rated[ends[n - 1]..ends[n]]`.
#[pyfunction]
#[pyo3(signature = (scale, items, has_biases, trained, ends, rated, values, threads))]
#[allow(clippy::too_many_arguments, reason = "Python has them apart")]
pub fn place<'py>(
    py: Python<'py>,
    scale: Scale,
    items: Rows<'_>,
    has_biases: bool,
    trained: Trained,
    ends: Numbers<'_>,
    rated: Numbers<'_>,
    values: PyReadonlyArray1<'_, f32>,
    threads: Option<usize>,
) -> PyResult<Placed<'py>> {
    let (model, (lambda, feedback)) = (model(scale, &items, &items, has_biases), trained);
    let dims = model.dims;
    let rule = match feedback {
        None => Rule::Ratings { lambda },
        Some((alpha, nu, above)) => {
            Rule::Feedback { config: Config { dims, lambda, alpha, nu, ..Config::default() }, above }
        }
    };
    let (ends, rated, values) = (ids(&ends), ids(&rated), values.as_array().to_vec());
    let pairs: Vec<(u32, f32)> = rated.into_iter().zip(values).collect();
    let pool = pool(threads)?;
    let placed = py.detach(|| {
        let placing = Placing::new(&model, rule);
        let begin = |at: usize| if at == 0 { 0 } else { ends[at - 1] as usize };
        let one = |room: &mut Solver, at: usize| placing.place(room, &pairs[begin(at)..ends[at] as usize]);
        pool.install(|| (0..ends.len()).into_par_iter().map_init(Solver::default, one).collect::<Result<Vec<_>, f32>>())
    });
    let placed = placed.map_err(|value| {
        PyValueError::new_err(format!("feedback is {value}; expected 0 or a number above, or ratings_above=X"))
    })?;
    let (mut rows, mut biases, mut is_known) = (Vec::with_capacity(placed.len() * dims), Vec::new(), Vec::new());
    for person in placed {
        is_known.push(person.is_some());
        let (row, bias) = person.unwrap_or_else(|| (vec![0.0; dims], 0.0));
        rows.extend(row);
        biases.push(bias);
    }
    let shape = [biases.len(), dims];
    let rows = PyArray1::from_vec(py, rows).reshape(shape)?;
    Ok((rows, PyArray1::from_vec(py, biases), PyArray1::from_vec(py, is_known)))
}

/// Finds the answers of some questions without the interpreter's lock.
fn asked<'py>(
    py: Python<'py>,
    questions: usize,
    (number, all): (usize, usize),
    threads: Option<usize>,
    find: impl FnOnce() -> Vec<Vec<Found>> + Send,
) -> PyResult<Tables<'py>> {
    let (pool, number) = (pool(if questions == 1 { Some(1) } else { threads })?, number.min(all));
    let tables = py.detach(|| {
        let (mut ids, mut scores) = (vec![-1; questions * number], vec![f32::NAN; questions * number]);
        for (at, found) in pool.install(find).into_iter().enumerate() {
            for (place, (id, score)) in found.into_iter().enumerate() {
                (ids[at * number + place], scores[at * number + place]) = (i64::from(id), score);
            }
        }
        (ids, scores)
    });
    let shape = [questions, number];
    Ok((PyArray1::from_vec(py, tables.0).reshape(shape)?, PyArray1::from_vec(py, tables.1).reshape(shape)?))
}
