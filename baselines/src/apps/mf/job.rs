//! What is to be factorized, and what all systems need of it.

use std::collections::BTreeMap;
use std::ops::Range;

use megagrid_algorithms::mf::in_place::Mf;
use megagrid_algorithms::mf::{Config, Objective, SquaredErrors, Sums};
use megagrid_partition::EdgeList;
use megagrid_stages::simd::{Kernel, Level};
use megagrid_stages::{Combine, Context, Exchange, Read};

use crate::Error;
use crate::job::Measured;
use crate::processes::Processes;

/// Clocks of an iteration in place: what several workers change an item by within a clock adds up, too much if that is an iteration.
pub(super) const CLOCKS: u64 = 16;

/// How factors are stepped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Rating by rating, as [`megagrid_algorithms::mf::in_place`]. Not on GAS, whose vertices change once a superstep.
    InPlace,
    /// By the gradient of all ratings, once an iteration, as [`megagrid_algorithms::mf::batch`] with one batch: on all systems.
    #[default]
    Batch,
}

/// What is to be factorized.
#[derive(Clone, Copy, Debug)]
pub struct Job<'j> {
    /// Ratings less their mean, in the unit of the parameters, in the order in which workers visit them.
    pub ratings: &'j EdgeList<f32>,
    /// Parameters.
    pub config: Config,
    /// How factors are stepped.
    pub form: Form,
}

impl Job<'_> {
    /// Sets the first values of the rows of users and items: those of vertices without ratings stay 0, but for the one that
    /// stands beside a bias.
    pub(super) fn init(
        &self,
        seed: u64,
        mut set: impl FnMut(megagrid_partition::Side, usize, &mut dyn FnMut(&mut [f32])),
    ) {
        use megagrid_partition::Side::{Left, Right};
        let Self { ratings, config, .. } = self;
        for side in [Left, Right] {
            let (ends, len) = match side {
                Left => (&ratings.left, ratings.num_left),
                Right => (&ratings.right, ratings.num_right),
            };
            let mut is_rated = vec![false; len];
            ends.iter().for_each(|&id| is_rated[id as usize] = true);
            for (id, is_rated) in is_rated.into_iter().enumerate() {
                set(side, id, &mut |row| {
                    match side {
                        Left => config.init_user(seed, id, row),
                        Right => config.init_item(seed, id, row),
                    }
                    if !is_rated {
                        row[..config.dims].fill(0.0);
                    }
                });
            }
        }
    }

    /// Measures the objective of rows of users and items, each process over the ratings of some users.
    pub(super) fn measure<'r>(
        &self,
        (processes, users, level): (&Processes, Range<usize>, Level),
        user: impl Fn(usize) -> &'r [f32],
        item: impl Fn(usize) -> &'r [f32],
    ) -> Result<Measured, Error> {
        let (mut mine, mut sums) = (Sums::default(), Sums::default());
        level.run(Measure { job: self, users, user, item, sums: &mut mine });
        processes.gather(mine)?.iter_mut().for_each(|part| sums.combine(part));
        let Objective { value, rmse } = Objective::new(sums, self.config.lambda);
        Ok((value, BTreeMap::from([("train_rmse", rmse * f64::from(self.config.unit))])))
    }
}

/// What stage functions see of the iteration before: these programs keep no running errors.
pub const NOTHING: Sums = Sums { squared_errors: 0.0, squared_norms: 0.0, ratings: 0 };

struct Measure<'m, U, I> {
    job: &'m Job<'m>,
    users: Range<usize>,
    user: U,
    item: I,
    sums: &'m mut Sums,
}

impl<'r, U: Fn(usize) -> &'r [f32], I: Fn(usize) -> &'r [f32]> Kernel for Measure<'_, U, I> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { job: Job { ratings, config, .. }, users, user, item, sums } = self;
        let mut cx: Context<'_, Mf> = Context { worker: sums, global: &NOTHING, iteration: 0, seed: 0 };
        let all = ratings.left.iter().zip(&ratings.right).zip(&ratings.data);
        for ((&left, &right), &rating) in all.filter(|((left, _), _)| users.contains(&(**left as usize))) {
            let user = Read { sync: user(left as usize), mirror: &0.0 };
            let item = Read { sync: item(right as usize), mirror: &0.0 };
            SquaredErrors(*config).exchange(user, item, &mut { rating }, &mut cx);
        }
    }
}
