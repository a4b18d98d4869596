//! How well a model ranks items that it has not seen its users with.
//!
//! For each user the items are put in order of their scores, without those that training saw, ties by id. Of the first k, with R the
//! items of the user that were kept for testing, other than those, and h_j = 1 where the jth is one of R:
//!
//! | metric | of a user |
//! |---|---|
//! | recall | Σ_j h_j / min(k, \|R\|) |
//! | NDCG | Σ_j h_j / log₂(j + 1) over Σ_{j ≤ min(k, \|R\|)} 1 / log₂(j + 1) |
//! | MAP | Σ_j h_j (h_1 + … + h_j) / j over min(k, \|R\|) |
//! | MRR | 1 / the first j with h_j = 1; 0 without |
//! | hit rate | 1 if there is one, else 0 |
//!
//! Each is the mean over users with R not empty; recall is that of Liang, Krishnan, Hoffman and Jebara 2018, so that 1 can be reached.
//! Coverage is the part of all items that are among the first k of some user.

use std::ops::Range;

use megagrid_partition::{EdgeList, EdgeSource, GroupedEdges, Side};
use megagrid_stages::simd::Level;

use crate::search::Index;

/// Users to rank items for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queries {
    /// The users, ascending.
    pub users: Vec<u32>,
    /// Items of each that were kept for testing and are not seen, ascending; none of these is empty.
    pub relevant: Lists,
    /// Items of each that training saw, ascending.
    pub seen: Lists,
}

/// A list of items for each of some users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    /// Where the list of each ends.
    ends: Vec<usize>,
    items: Vec<u32>,
}

impl Lists {
    /// Makes lists for this many users of pairs of a user's number and an item.
    ///
    /// # Panics
    /// Where a number is not below that of the users.
    #[must_use]
    pub fn new(users: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Self {
        let (left, right): (Vec<u32>, Vec<u32>) = pairs.unzip();
        let num_right = right.iter().max().map_or(0, |&most| most as usize + 1);
        let list = EdgeList { num_left: users, num_right, square: false, data: vec![(); left.len()], left, right };
        let by_user = GroupedEdges::new(list, &[Side::Left]);
        let mut lists = Self { ends: Vec::with_capacity(users), items: Vec::with_capacity(by_user.num_edges()) };
        for user in 0..users {
            let (items, _) = by_user.row(Side::Left, user);
            lists.push(items.chunk_by(|a, b| a == b).map(|same| same[0]));
        }
        lists
    }

    /// Adds the list of the next user.
    fn push(&mut self, items: impl Iterator<Item = u32>) {
        self.items.extend(items);
        self.ends.push(self.items.len());
    }

    /// Returns the list of a user, by its number.
    #[must_use]
    pub fn of(&self, user: usize) -> &[u32] {
        let begin = user.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[begin..self.ends[user]]
    }
}

impl Queries {
    /// Makes them of pairs of a user and an item: those to test on, and those that training saw, of which others than the users of the
    /// first are left out. A pair that training saw is none to test on.
    pub fn new(test: impl Iterator<Item = (u32, u32)>, seen: impl Iterator<Item = (u32, u32)>) -> Self {
        let test: Vec<_> = test.collect();
        let most = test.iter().map(|&(user, _)| user as usize + 1).max().unwrap_or(0);
        let mut is_asked = vec![false; most];
        test.iter().for_each(|&(user, _)| is_asked[user as usize] = true);
        let seen = Lists::new(most, seen.filter(|&(user, _)| is_asked.get(user as usize) == Some(&true)));
        let test = Lists::new(most, test.into_iter());
        let mut queries = Self::default();
        for user in 0..most {
            let (test, seen) = (test.of(user), seen.of(user));
            let is_new = |item: &u32| seen.binary_search(item).is_err();
            if test.iter().any(is_new) {
                queries.relevant.push(test.iter().copied().filter(is_new));
                queries.seen.push(seen.iter().copied());
                queries.users.push(user as u32);
            }
        }
        queries
    }
}

/// Sums over users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of each metric, in the order of [`METRICS`].
    sums: [f64; METRICS.len()],
    users: usize,
    /// Items that were among the first of a user, a bit each.
    shown: Vec<u64>,
}

/// The metrics that are means over users.
pub const METRICS: [&str; 5] = ["recall", "ndcg", "map", "mrr", "hit_rate"];

impl Sums {
    /// Takes in a user's first items, best first, of which these are `relevant`.
    fn add(&mut self, best: &[u32], relevant: &[u32], k: usize) {
        let most = k.min(relevant.len());
        let gain = |place: usize| 1.0 / (place as f64 + 1.0).log2();
        let (mut hits, mut gains, mut precisions, mut first) = (0.0, 0.0, 0.0, 0.0);
        for (item, place) in best.iter().zip(1..) {
            if relevant.binary_search(item).is_ok() {
                hits += 1.0;
                gains += gain(place);
                precisions += hits / place as f64;
                first = if hits == 1.0 { 1.0 / place as f64 } else { first };
            }
            let (word, bit) = (*item as usize / 64, item % 64);
            if self.shown.len() <= word {
                self.shown.resize(word + 1, 0);
            }
            self.shown[word] |= 1 << bit;
        }
        let of_user = [
            hits / most as f64,
            gains / (1..=most).map(gain).sum::<f64>(),
            precisions / most as f64,
            first,
            f64::from(u8::from(hits > 0.0)),
        ];
        self.sums.iter_mut().zip(of_user).for_each(|(sum, one)| *sum += one);
        self.users += 1;
    }

    /// Adds the sums over other users.
    #[must_use]
    pub fn and(mut self, more: &Self) -> Self {
        self.sums.iter_mut().zip(more.sums).for_each(|(sum, one)| *sum += one);
        self.users += more.users;
        self.shown.resize(self.shown.len().max(more.shown.len()), 0);
        self.shown.iter_mut().zip(&more.shown).for_each(|(shown, more)| *shown |= more);
        self
    }

    /// Returns the means over users, in the order of [`METRICS`].
    #[must_use]
    pub fn means(&self) -> [f64; METRICS.len()] {
        self.sums.map(|sum| sum / self.users.max(1) as f64)
    }

    /// Returns the part of all items that were shown.
    #[must_use]
    pub fn coverage(&self, items: usize) -> f64 {
        let shown: u32 = self.shown.iter().map(|word| word.count_ones()).sum();
        f64::from(shown) / items.max(1) as f64
    }
}

/// A model whose scores are products of rows.
#[derive(Clone, Copy, Debug)]
pub struct Ranking<'i, U> {
    /// Rows of users.
    pub users: U,
    /// Rows of all items.
    pub items: &'i Index,
    /// Of how many items the best are asked for.
    pub k: usize,
}

impl<'r, U: Fn(usize) -> &'r [f32]> Ranking<'_, U> {
    /// Ranks items for some of the users, by number.
    pub fn of(&self, level: Level, queries: &Queries, numbers: Range<usize>) -> Sums {
        let user = |number: usize, row: &mut [f32]| {
            row.copy_from_slice(&(self.users)(queries.users[number] as usize)[..row.len()]);
        };
        let found = self.items.best(level, numbers.clone(), user, self.k, |number| queries.seen.of(number));
        let mut sums = Sums::default();
        for (number, best) in numbers.zip(found) {
            let best: Vec<u32> = best.iter().map(|&(item, _)| item).collect();
            sums.add(&best, queries.relevant.of(number), self.k);
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use megagrid_partition::SplitMix;

    use super::*;

    /// As the table of the module says, in the plainest way: a full sort, sets, sums place by place.
    fn naive(scores: &[Vec<f32>], test: &[(u32, u32)], seen: &[(u32, u32)], k: usize) -> ([f64; 5], f64) {
        let items = scores[0].len();
        let (mut totals, mut users, mut shown) = ([0.0; 5], 0.0, HashSet::new());
        for (user, scores) in scores.iter().enumerate() {
            let of = |pairs: &[(u32, u32)]| -> HashSet<u32> {
                pairs.iter().filter(|pair| pair.0 as usize == user).map(|pair| pair.1).collect()
            };
            let seen = of(seen);
            let relevant = &of(test) - &seen;
            if relevant.is_empty() {
                continue;
            }
            let mut order: Vec<u32> = (0..items as u32).filter(|item| !seen.contains(item)).collect();
            order.sort_by(|&a, &b| scores[b as usize].partial_cmp(&scores[a as usize]).unwrap().then(a.cmp(&b)));
            order.truncate(k);
            shown.extend(order.iter().copied());
            let hit: Vec<f64> = order.iter().map(|item| f64::from(u8::from(relevant.contains(item)))).collect();
            let most = k.min(relevant.len()) as f64;
            let (mut dcg, mut ideal, mut precision) = (0.0, 0.0, 0.0);
            for j in 1..=k {
                let discount = (j as f64 + 1.0).ln() / 2.0_f64.ln();
                ideal += if j as f64 <= most { 1.0 / discount } else { 0.0 };
                if let Some(h) = hit.get(j - 1) {
                    dcg += h / discount;
                    precision += h * hit[..j].iter().sum::<f64>() / j as f64;
                }
            }
            let first = hit.iter().position(|&h| h > 0.0);
            let of_user = [
                hit.iter().sum::<f64>() / most,
                dcg / ideal,
                precision / most,
                first.map_or(0.0, |at| 1.0 / (at as f64 + 1.0)),
                first.map_or(0.0, |_| 1.0),
            ];
            totals.iter_mut().zip(of_user).for_each(|(total, one)| *total += one);
            users += 1.0;
        }
        (totals.map(|total| total / users), shown.len() as f64 / items as f64)
    }

    #[test]
    fn metrics_are_those_of_a_full_sort() {
        let mut random = SplitMix::new(7, 0);
        let (users, items) = (40, 300);
        // Few values, so that there are ties.
        let mut rows = |count| -> Vec<[f32; 16]> {
            (0..count).map(|_| std::array::from_fn(|_| random.below(4) as f32 - 1.0)).collect()
        };
        let (user_rows, item_rows) = (rows(users), rows(items));
        let mut pairs = |count, below: usize| -> Vec<(u32, u32)> {
            let pair = |_| (random.below(below as u64) as u32, random.below(items as u64) as u32);
            BTreeSet::from_iter((0..count).map(pair)).into_iter().collect()
        };
        // The last users have no test items; some have seen nearly all.
        let (test, mut seen) = (pairs(200, users - 5), pairs(400, users));
        seen.extend((0..295).map(|item| (3, item)));
        // Some pairs are in both.
        seen.extend(&test[..20]);
        let scores: Vec<Vec<f32>> = user_rows
            .iter()
            .map(|p| item_rows.iter().map(|q| p.iter().zip(q).map(|(a, b)| a * b).sum()).collect())
            .collect();
        let queries = Queries::new(test.iter().copied(), seen.iter().copied());
        for k in [1, 5, 10, 1000] {
            let index = Index::new(16, items, |item, row| row.copy_from_slice(&item_rows[item]));
            let ranking = Ranking { users: |user: usize| &user_rows[user][..], items: &index, k };
            for level in Level::available() {
                let parts = [0..7, 7..queries.users.len()].map(|part| ranking.of(level, &queries, part));
                let sums = parts.iter().fold(Sums::default(), |sums, part| sums.and(part));
                let (means, coverage) = naive(&scores, &test, &seen, k);
                for ((found, expected), name) in sums.means().iter().zip(means).zip(METRICS) {
                    assert!((found - expected).abs() < 1e-12, "{name}@{k}: {found}, not {expected}");
                }
                assert!((sums.coverage(items) - coverage).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_ranking_with_all_relevant_items_first_is_perfect() {
        let mut sums = Sums::default();
        sums.add(&[4, 2, 9], &[2, 4], 3);
        assert_eq!(sums.means(), [1.0; 5]);
        sums.add(&[7, 1, 3], &[2], 3);
        assert_eq!(sums.means(), [0.5; 5]);
        assert_eq!(sums.coverage(12), 0.5);
    }
}
