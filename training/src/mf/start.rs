//! Where training of factors starts: at the rows of an earlier model, by the names of vertices.

use std::collections::HashMap;
use std::sync::Arc;

use megagrid_algorithms::fold_in::{FoldIn, Folded, Loss};
use megagrid_algorithms::least_squares::Solver;
use megagrid_algorithms::mf::Model;
use megagrid_datasets::{Edges, Names};
use megagrid_partition::{EdgeSource, Side};

use super::model::Factors;
use crate::Error;
use crate::error::reading;

/// Rows of an earlier model for the vertices of data.
#[derive(Debug)]
pub struct Start {
    model: Factors,
    /// Which row of the model each user, and each item, of the data has; none where that row is empty, as after all ratings were taken back.
    rows: [Vec<Option<u32>>; 2],
    /// Rows of users, and of items, that the model does not know, by their ratings on what it knows.
    folded: [HashMap<usize, Folded>; 2],
    /// Rows of the model's users, and items, that have no values any more where the data do not have them.
    forgotten: [Vec<u32>; 2],
    /// Whether nothing that the data do not have has values any more.
    forgets_others: bool,
}

/// A row of an earlier model.
pub struct Known<'s> {
    /// The factor.
    pub factor: &'s [f32],
    /// The bias; 0 without.
    pub bias: f32,
    /// The sum of mean squared gradients that steps adapt to; 0 where the model does not know.
    pub squares: f32,
}

impl<'s> Known<'s> {
    fn of(model: &'s Factors, side: Side, row: usize) -> Self {
        let Factors { model, squares, .. } = model;
        let (factors, biases) = match side {
            Side::Left => (&model.users, &model.user_biases),
            Side::Right => (&model.items, &model.item_biases),
        };
        let squares = squares.as_ref().map_or(0.0, |both| both[side as usize][row]);
        let bias = biases.get(row).copied().unwrap_or(0.0);
        Self { factor: &factors[row * model.dims..][..model.dims], bias, squares }
    }

    /// Tells whether nothing was learned of it, or all of it was forgotten.
    fn is_empty(&self) -> bool {
        self.bias == 0.0 && self.squares == 0.0 && self.factor.iter().all(|&value| value == 0.0)
    }
}

impl Start {
    /// Finds the vertices of data in a model.
    ///
    /// # Errors
    /// Another length of factors, biases where there are to be none, or none where there are to be some; names that cannot be read.
    pub fn new(model: Factors, names: &Names, dims: usize, has_biases: bool) -> Result<Self, Error> {
        if model.model.dims != dims {
            let found = model.model.dims;
            return Err(Error::Missing(format!(
                "its factors have {found} dims, and now they are to have {dims}; give --dims {found}"
            )));
        }
        let with = |is: bool| if is { "with" } else { "without" };
        let had_biases = !model.model.item_biases.is_empty();
        if had_biases != has_biases {
            let problem =
                format!("it was trained {} biases, and now it is to be {} them", with(had_biases), with(has_biases));
            return Err(Error::Missing(problem));
        }
        // An empty row would stay so: a product with it has no gradient.
        let of_known = |side, row: &Option<u32>| row.filter(|&row| !Known::of(&model, side, row as usize).is_empty());
        let rows = |side| {
            let found = names.get(side)?.translate(&*model.names.get(side)?);
            Ok::<_, Error>(found.iter().map(|row| of_known(side, row)).collect())
        };
        let rows = [rows(Side::Left)?, rows(Side::Right)?];
        Ok(Self { model, rows, folded: Default::default(), forgotten: Default::default(), forgets_others: false })
    }

    /// Solves for the rows of users and items that the model does not know, where it knows the other ends of their ratings, which are
    /// grouped by items: they start at the minimum of the objective, not at small random values.
    ///
    /// # Errors
    /// Ratings that cannot be read.
    pub fn fold_in(&mut self, ratings: &Edges<f32>, lambda: f32) -> Result<(), Error> {
        let knows_all = self.rows.iter().flatten().all(Option::is_some);
        // Where processes hold a part of the ratings each, none sees all of a user.
        if knows_all || ratings.held_offsets() != ratings.offsets(Side::Right) {
            return Ok(());
        }
        let mut rated: [HashMap<usize, Vec<(u32, f32)>>; 2] = Default::default();
        for item in 0..ratings.num_vertices(Side::Right) {
            let visit = &mut |users: &[u32], values: &[f32]| {
                for (&user, &value) in users.iter().zip(values) {
                    match (self.rows[0][user as usize], self.rows[1][item]) {
                        (None, Some(row)) => rated[0].entry(user as usize).or_default().push((row, value)),
                        (Some(row), None) => rated[1].entry(item).or_default().push((row, value)),
                        _ => {}
                    }
                }
            };
            ratings.visit_rows(Side::Right, item..item + 1, visit).map_err(reading)?;
        }
        let own = &self.model.model;
        let turned = Model {
            users: own.items.clone(),
            items: own.users.clone(),
            user_biases: own.item_biases.clone(),
            item_biases: own.user_biases.clone(),
            ..*own
        };
        let loss = Loss::Ratings { lambda };
        for (side, (model, rated)) in [own, &turned].into_iter().zip(rated).enumerate() {
            let (solve, mut solver) = (FoldIn::new(model, loss), Solver::default());
            self.folded[side] = rated.into_iter().map(|(at, rated)| (at, solve.solve(&mut solver, &rated))).collect();
        }
        Ok(())
    }

    /// Has users and items of ratings that were taken back keep their places in the model, but none of their values where the data have no
    /// other rating of them.
    ///
    /// # Errors
    /// Names that cannot be read.
    pub fn forget(&mut self, taken_back: &[Arc<Names>]) -> Result<(), Error> {
        for names in taken_back {
            for side in [Side::Left, Side::Right] {
                let found = names.get(side)?.translate(&*self.model.names.get(side)?);
                self.forgotten[side as usize].extend(found.into_iter().flatten());
            }
        }
        Ok(())
    }

    /// Has users and items without ratings in the data keep their places in the model, but none of their values: the data are all that
    /// there are.
    pub fn forget_others(&mut self) {
        self.forgets_others = true;
    }

    /// Returns the mean that the model's predictions begin with.
    #[must_use]
    pub fn mean(&self) -> f32 {
        self.model.model.mean
    }

    /// Returns the unit that the model's ratings were counted in.
    #[must_use]
    pub fn unit(&self) -> f32 {
        self.model.model.unit
    }

    /// Returns the row of a vertex of the data, if the model knows it, or enough of it.
    #[must_use]
    pub fn row(&self, side: Side, vertex: usize) -> Option<Known<'_>> {
        match self.rows[side as usize][vertex] {
            Some(row) => Some(Known::of(&self.model, side, row as usize)),
            None => {
                let (factor, bias) = self.folded[side as usize].get(&vertex)?;
                Some(Known { factor, bias: *bias, squares: 0.0 })
            }
        }
    }

    /// Puts rows that were trained in the places that they have in the earlier model, and those of new vertices behind. What was not
    /// trained stays as it was, or is forgotten.
    ///
    /// # Errors
    /// Names that cannot be read.
    pub fn with(&self, trained: Factors) -> Result<Factors, Error> {
        let (before, now) = (&self.model, &trained);
        let sides = [Side::Left, Side::Right].map(|side| {
            let (old, new) = (before.names.get(side)?, now.names.get(side)?);
            Ok::<_, Error>(old.extended(&new))
        });
        let [(users, user_ids), (items, item_ids)] = match sides {
            [Ok(users), Ok(items)] => [users, items],
            [Err(error), _] | [_, Err(error)] => return Err(error),
        };
        let (old, new) = (&before.model, &now.model);
        let ids = [(&users, &user_ids), (&items, &item_ids)];
        let both = |side: Side, old: &[f32], new: &[f32], width: usize| {
            let (names, ids) = ids[side as usize];
            let mut all = if self.forgets_others { Vec::new() } else { old.to_vec() };
            all.resize(if new.is_empty() { 0 } else { names.len() * width }, 0.0);
            if !new.is_empty() {
                let forgotten = self.forgotten[side as usize].iter().map(|&row| row as usize);
                forgotten.for_each(|row| all[row * width..][..width].fill(0.0));
            }
            for (&id, row) in ids.iter().zip(new.chunks_exact(width)) {
                all[id as usize * width..][..width].copy_from_slice(row);
            }
            all
        };
        let [left, right] = [Side::Left, Side::Right];
        let squares = before.squares.as_ref().zip(now.squares.as_ref());
        let squares = squares.map(|(old, new)| [both(left, &old[0], &new[0], 1), both(right, &old[1], &new[1], 1)]);
        let model = Model {
            users: both(left, &old.users, &new.users, old.dims),
            items: both(right, &old.items, &new.items, old.dims),
            user_biases: both(left, &old.user_biases, &new.user_biases, 1),
            item_biases: both(right, &old.item_biases, &new.item_biases, 1),
            ..*new
        };
        // The ratings of a model from before it had a range may be outside of those that are new.
        let of_both = |[a, b]: [f32; 2]| now.range.map_or([a, b], |[c, d]| [a.min(c), b.max(d)]);
        let range = if self.forgets_others { now.range } else { before.range.map(of_both) };
        Ok(Factors { model, names: Arc::new(Names::new(users, Some(items))), range, squares })
    }
}

#[cfg(test)]
mod tests {
    use megagrid_datasets::Dictionary;
    use megagrid_partition::{EdgeList, GroupedEdges};

    use super::*;

    fn factors(users: &[&str], items: &[&str], first: f32) -> Factors {
        let numbers = |rows: usize| (0..rows * 2).map(|at| first + at as f32).collect();
        let model = Model {
            dims: 2,
            mean: 3.0,
            unit: 1.0,
            users: numbers(users.len()),
            items: numbers(items.len()),
            user_biases: vec![first; users.len()],
            item_biases: vec![-first; items.len()],
        };
        let names = Names::new(Dictionary::from_strings(users), Some(Dictionary::from_strings(items)));
        let squares = Some([vec![first * 2.0; users.len()], vec![first * 3.0; items.len()]]);
        Factors { model, names: Arc::new(names), range: Some([1.0, first]), squares }
    }

    #[test]
    fn rows_keep_their_places_and_new_ones_come_behind() {
        let (old, new) = (factors(&["a", "b", "c"], &["x"], 10.0), factors(&["d", "b"], &["x", "y"], 50.0));
        let start = Start::new(old, &new.names, 2, true).unwrap();
        assert!(start.row(Side::Left, 0).is_none() && start.row(Side::Right, 1).is_none());
        let known = start.row(Side::Left, 1).unwrap();
        assert_eq!((known.factor, known.bias, known.squares), (&[12.0, 13.0][..], 10.0, 20.0));
        let all = start.with(new).unwrap();
        let names = |side| all.names.get(side).unwrap().iter().map(|name| name.into_owned()).collect::<Vec<_>>();
        assert_eq!(
            (names(Side::Left), names(Side::Right)),
            (vec!["a".into(), "b".into(), "c".into(), "d".into()], vec!["x".into(), "y".into()])
        );
        assert_eq!(all.model.users, [10.0, 11.0, 52.0, 53.0, 14.0, 15.0, 50.0, 51.0]);
        assert_eq!(
            (&all.model.items, all.model.user_biases.as_slice()),
            (&vec![50.0, 51.0, 52.0, 53.0], &[10.0, 50.0, 10.0, 50.0][..])
        );
        assert_eq!(
            (all.squares.unwrap(), all.range),
            ([vec![20.0, 100.0, 20.0, 100.0], vec![150.0, 150.0]], Some([1.0, 50.0]))
        );
    }

    #[test]
    fn what_the_data_do_not_have_is_forgotten_where_they_are_all() {
        let (old, new) = (factors(&["a", "b"], &["x"], 10.0), factors(&["b"], &["x"], 5.0));
        let mut start = Start::new(old, &new.names, 2, true).unwrap();
        start.forget_others();
        let all = start.with(new).unwrap();
        assert_eq!((all.model.users, all.model.user_biases), (vec![0.0, 0.0, 5.0, 6.0], vec![0.0, 5.0]));
        assert_eq!((all.squares.unwrap()[0].as_slice(), all.range), (&[0.0, 10.0][..], Some([1.0, 5.0])));
    }

    #[test]
    fn what_was_taken_back_is_forgotten_where_nothing_else_is_there() {
        let (old, new) = (factors(&["a", "b", "c"], &["x"], 10.0), factors(&["b"], &["x"], 5.0));
        let gone = Names::new(Dictionary::from_strings(["c", "b", "z"]), Some(Dictionary::from_strings(["x"])));
        let mut start = Start::new(old, &new.names, 2, true).unwrap();
        start.forget(&[Arc::new(gone)]).unwrap();
        let all = start.with(new).unwrap();
        assert_eq!(
            (all.model.users, all.model.user_biases),
            (vec![10.0, 11.0, 5.0, 6.0, 0.0, 0.0], vec![10.0, 5.0, 0.0])
        );
        assert_eq!((all.model.items, all.squares.unwrap()[0].clone()), (vec![5.0, 6.0], vec![20.0, 10.0, 0.0]));
    }

    #[test]
    fn a_row_that_is_empty_is_known_as_little_as_none() {
        let mut old = factors(&["a", "b"], &["x", "y"], 10.0);
        old.model.users[..2].fill(0.0);
        old.model.user_biases[0] = 0.0;
        let names = Arc::clone(&old.names);
        let known = |old: &Factors| Start::new(old.clone(), &names, 2, true).unwrap().row(Side::Left, 0).is_some();
        // Its squares are left: something was learned.
        assert!(known(&old));
        old.squares.as_mut().unwrap()[0][0] = 0.0;
        assert!(!known(&old));
        // What its ratings say of it is known then.
        let mut start = Start::new(old.clone(), &names, 2, true).unwrap();
        let ratings = EdgeList {
            num_left: 2,
            num_right: 2,
            left: vec![0, 0],
            right: vec![0, 1],
            data: vec![4.0, 1.0],
            square: false,
        };
        start.fold_in(&Edges::Grouped(GroupedEdges::new(ratings, &[Side::Right])), 0.1).unwrap();
        assert!(start.row(Side::Left, 0).is_some_and(|known| !known.is_empty()));
        old.squares = None;
        assert!(!known(&old));
    }

    #[test]
    fn a_model_of_another_form_is_refused() {
        let model = || factors(&["a"], &["x"], 1.0);
        let refused = |dims, biases| Start::new(model(), &model().names, dims, biases).unwrap_err().to_string();
        assert_eq!(refused(3, true), "its factors have 2 dims, and now they are to have 3; give --dims 2");
        assert_eq!(refused(2, false), "it was trained with biases, and now it is to be without them");
    }
}
