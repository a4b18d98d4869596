//! Users whom training does not see: strong generalization, as Liang, Krishnan, Hoffman and Jebara (2018) measure it.

use megagrid_algorithms::fold_in::{FoldIn, Folded, Loss};
use megagrid_algorithms::least_squares::Solver;
use megagrid_algorithms::mf::{Model, TestSet};
use megagrid_datasets::{Dataset, Dictionary};
use rayon::prelude::*;

use crate::Error;

/// What a model is told of users whom training has not seen, before it is tested on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Unseen {
    /// Items and values of each user that count, by his number in the test data.
    known: Vec<Vec<(u32, f32)>>,
}

impl Unseen {
    /// Takes what is known of users, and what they are tested on, by the items of the training data. Others count for nothing, nor do
    /// users of whom nothing is known.
    ///
    /// # Errors
    /// Where nothing is left to test on.
    pub(super) fn new(known: &Dataset<f32>, test: &Dataset<f32>, items: &Dictionary) -> Result<(Self, TestSet), Error> {
        let ids = known.right_names().translate(items);
        let by_ids = |part: &Dataset<f32>| -> Vec<(u32, u32, f32)> {
            let ends = part.edges.left.iter().zip(&part.edges.right).zip(&part.edges.data);
            ends.filter_map(|((&user, &item), &value)| Some((user, ids[item as usize]?, value))).collect()
        };
        let mut of_users = vec![Vec::new(); known.left_names.len()];
        by_ids(known).into_iter().for_each(|(user, item, value)| of_users[user as usize].push((item, value)));
        let mut unseen = Self { known: of_users };
        let mut tested = TestSet::new(by_ids(test), Vec::new());
        unseen.keep_tested(&mut tested);
        if tested.is_empty() {
            return Err(Error::Missing(format!(
                "of the {} ratings that the {} held out users are tested on, and of what else is known of them, nothing is about items that \
                 others have rated; keep fewer users with --holdout-users",
                test.edges.num_edges(),
                unseen.known.len()
            )));
        }
        Ok((unseen, tested))
    }

    /// Gives values another meaning; those that come to 0 do not count.
    ///
    /// # Errors
    /// The first value that has none.
    pub(crate) fn set_values(&mut self, test: &mut TestSet, value: impl Fn(f32) -> Option<f32>) -> Result<(), f32> {
        for of_user in &mut self.known {
            for (_, known) in of_user.iter_mut() {
                *known = value(*known).ok_or(*known)?;
            }
            of_user.retain(|&(_, known)| known > 0.0);
        }
        self.keep_tested(test);
        Ok(())
    }

    /// Tests nobody of whom nothing is known, and keeps nothing of those who are not tested.
    fn keep_tested(&mut self, test: &mut TestSet) {
        test.retain(|&(user, ..)| !self.known[user as usize].is_empty());
        let mut is_tested = vec![false; self.known.len()];
        test.known().iter().for_each(|&(user, ..)| is_tested[user as usize] = true);
        self.known
            .iter_mut()
            .zip(&is_tested)
            .filter(|(_, is_tested)| !**is_tested)
            .for_each(|(known, _)| known.clear());
    }

    /// Returns the number of users who are tested.
    pub(super) fn num_users(&self) -> usize {
        self.known.iter().filter(|known| !known.is_empty()).count()
    }

    /// Returns what is known of users: their numbers, items and values.
    pub(super) fn known(&self) -> impl Iterator<Item = (u32, u32, f32)> {
        let of_user = |(user, known): (u32, &Vec<(u32, f32)>)| {
            known.iter().map(move |&(item, value)| (user, item, value)).collect::<Vec<_>>()
        };
        (0..).zip(&self.known).flat_map(of_user)
    }

    /// Solves for the rows of all, where the items of a model stand. The users of the model do not matter.
    pub(crate) fn fold_in(&self, model: &Model, loss: Loss) -> Vec<Folded> {
        let placing = FoldIn::new(model, loss);
        self.known.par_iter().map_init(Solver::default, |room, known| placing.solve(room, known)).collect()
    }
}
