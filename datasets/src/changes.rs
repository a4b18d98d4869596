//! Data that arrive and data that are taken back: edges behind those that there are, with the vertices that come with them.

use hashbrown::HashMap;
use megagrid_partition::{EdgeList, Side};
use rustc_hash::FxBuildHasher;

use crate::{Dataset, Dictionary, Samples};

impl Dictionary {
    /// Adds the names of another one that it has not, behind its own. Returns the id of each of the other's names beside all names.
    #[must_use]
    pub fn extended(&self, more: &Self) -> (Self, Vec<u32>) {
        let found = more.translate(self);
        let new: Vec<u32> = (0..).zip(&found).filter(|(_, id)| id.is_none()).map(|(at, _)| at).collect();
        let mut next = self.len() as u32..;
        let ids = found.into_iter().map(|id| id.or_else(|| next.next())).collect::<Option<_>>().unwrap_or_default();
        let new = more.reorder(&new);
        let all = match (self.as_integers(), new.as_integers()) {
            (Some(own), Some(new)) => Self::from_integers([own, new].concat()),
            _ => Self::from_strings(self.iter().chain(new.iter())),
        };
        (all, ids)
    }
}

impl<T> Dataset<T> {
    /// Adds the edges of another data set behind its own. Vertices of one name are one vertex; all keep their ids, and new ones come
    /// behind them.
    ///
    /// # Examples
    /// ```
    /// use megagrid_datasets::{Format, parse_ratings};
    ///
    /// let old = parse_ratings(b"ann tea 4\nbob rye 5\n", Format::Ratings)?;
    /// let all = old.append(parse_ratings(b"cid rye 3\n", Format::Ratings)?);
    /// assert_eq!((all.edges.left, all.edges.right), (vec![0, 1, 2], vec![0, 1, 1]));
    /// assert_eq!(all.left_names.name(2), "cid");
    /// # Ok::<(), megagrid_datasets::Error>(())
    /// ```
    #[must_use]
    pub fn append(mut self, more: Self) -> Self {
        let (left_names, left) = self.left_names.extended(&more.left_names);
        let right = self.right_names.as_ref().map(|names| names.extended(more.right_names()));
        let (right_names, right) = right.map_or((None, None), |(names, ids)| (Some(names), Some(ids)));
        let ids_of_right = right.as_ref().unwrap_or(&left);
        self.edges.left.extend(more.edges.left.iter().map(|&end| left[end as usize]));
        self.edges.right.extend(more.edges.right.iter().map(|&end| ids_of_right[end as usize]));
        self.edges.data.extend(more.edges.data);
        self.edges.num_left = left_names.len();
        self.edges.num_right = right_names.as_ref().map_or(left_names.len(), Dictionary::len);
        Self { edges: self.edges, left_names, right_names }
    }
}

impl<T: Copy> Dataset<T> {
    /// Takes all edges out that have the ends of an edge of `removed`, and the vertices that are left without any; those that had none before
    /// stay. What edges carry does not matter.
    ///
    /// # Errors
    /// The names of the ends of the first edge that is not there.
    pub fn without<U>(self, removed: &Dataset<U>) -> Result<Self, [String; 2]> {
        let left = removed.left_names.translate(&self.left_names);
        let right = removed.right_names().translate(self.right_names());
        let missing = |at: usize| {
            let names =
                [(&removed.left_names, removed.edges.left[at]), (removed.right_names(), removed.edges.right[at])];
            names.map(|(names, id)| names.name(id).into_owned())
        };
        let mut is_found = HashMap::with_capacity_and_hasher(removed.edges.num_edges(), FxBuildHasher);
        let mut is_touched = [vec![false; self.edges.num_left], vec![false; self.edges.num_right]];
        for (at, (&from, &to)) in removed.edges.left.iter().zip(&removed.edges.right).enumerate() {
            let ends = left[from as usize].zip(right[to as usize]).ok_or_else(|| missing(at))?;
            is_touched[0][ends.0 as usize] = true;
            is_touched[1][ends.1 as usize] = true;
            is_found.entry(ends).or_insert((at, false));
        }
        let mut is_kept = |(&from, &to): (&u32, &u32)| {
            // Few vertices lose an edge: others' edges are not looked up.
            let found = if is_touched[0][from as usize] { is_found.get_mut(&(from, to)) } else { None };
            found.map(|(_, found)| *found = true).is_none()
        };
        let is_kept: Vec<bool> = self.edges.left.iter().zip(&self.edges.right).map(&mut is_kept).collect();
        if let Some(at) = is_found.values().filter(|(_, found)| !found).map(|(at, _)| *at).min() {
            return Err(missing(at));
        }
        let is_square = self.right_names.is_none();
        let [left, right] = &is_touched;
        let is_touched = |side: Side, id: usize| match side {
            _ if is_square => left[id] || right[id],
            Side::Left => left[id],
            Side::Right => right[id],
        };
        Ok(self.kept_beside(&is_kept, |side, id| !is_touched(side, id)))
    }

    /// Keeps some edges, and the vertices that have one.
    pub(crate) fn kept(self, is_kept: &[bool]) -> Self {
        self.kept_beside(is_kept, |_, _| false)
    }

    /// Keeps some edges, the vertices that have one, and those that stay whether they have one or not.
    fn kept_beside(self, is_kept: &[bool], stays: impl Fn(Side, usize) -> bool) -> Self {
        let Self { edges, left_names, right_names } = self;
        let mut kept = EdgeList { square: edges.square, ..EdgeList::with_capacity(edges.num_edges()) };
        let ends = edges.left.iter().zip(&edges.right).zip(&edges.data).zip(is_kept);
        ends.filter(|(_, is_kept)| **is_kept).for_each(|(((&left, &right), &data), _)| kept.push(left, right, data));
        let (left_names, right_names) = match right_names {
            None => (used([&mut kept.left, &mut kept.right], &left_names, |id| stays(Side::Left, id)), None),
            Some(names) => (
                used([&mut kept.left], &left_names, |id| stays(Side::Left, id)),
                Some(used([&mut kept.right], &names, |id| stays(Side::Right, id))),
            ),
        };
        (kept.num_left, kept.num_right) =
            (left_names.len(), right_names.as_ref().map_or(left_names.len(), Dictionary::len));
        Self { edges: kept, left_names, right_names }
    }
}

/// Gives the vertices at some ends, and those that stay without any, the ids of their order, and returns their names.
fn used<const N: usize>(mut ends: [&mut Vec<u32>; N], names: &Dictionary, stays: impl Fn(usize) -> bool) -> Dictionary {
    let mut new: Vec<Option<u32>> = (0..names.len()).map(|id| stays(id).then_some(0)).collect();
    ends.iter().flat_map(|ends| ends.iter()).for_each(|&end| new[end as usize] = Some(0));
    let old: Vec<u32> = (0..).zip(&new).filter(|(_, is_used)| is_used.is_some()).map(|(id, _)| id).collect();
    (0..).zip(&old).for_each(|(id, &old)| new[old as usize] = Some(id));
    for end in ends.iter_mut().flat_map(|ends| ends.iter_mut()) {
        *end = new[*end as usize].unwrap_or_default();
    }
    names.reorder(&old)
}

impl Samples {
    /// Adds samples behind its own; their numbers go on.
    #[must_use]
    pub fn append(self, mut more: Self) -> Self {
        let numbers = |samples: std::ops::Range<usize>| samples.map(|sample| sample as u64 + 1).collect();
        let own = self.labels.of.len();
        more.data.left_names = Dictionary::from_integers(numbers(own..own + more.labels.of.len()));
        let are_weighted = !self.weights.is_empty() || !more.weights.is_empty();
        let weights = if are_weighted { [self.all_weights(), more.all_weights()].concat() } else { Vec::new() };
        Self { data: self.data.append(more.data), labels: self.labels.append(&more.labels), weights }
    }

    /// Returns the weight of each sample.
    fn all_weights(&self) -> Vec<f32> {
        if self.weights.is_empty() { vec![1.0; self.labels.of.len()] } else { self.weights.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, parse_graph, parse_ratings, parse_samples};

    fn ratings(text: &str) -> Dataset<f32> {
        parse_ratings(text.as_bytes(), Format::Ratings).unwrap()
    }

    /// Edges by the names of their ends, sorted.
    fn named<T: Copy + PartialOrd>(of: &Dataset<T>) -> Vec<(String, String, T)> {
        let ends = of.edges.left.iter().zip(&of.edges.right).zip(&of.edges.data);
        let name = |names: &Dictionary, id: u32| names.name(id).into_owned();
        let mut all: Vec<_> = ends
            .map(|((&left, &right), &data)| (name(&of.left_names, left), name(of.right_names(), right), data))
            .collect();
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        all
    }

    #[test]
    fn appended_ratings_are_those_of_one_text() {
        let (old, new) = ("7 i1 4\n8 i2 5\n7 i2 1\n", "9 i2 2\n7 i3 3\n7 i1 5\n");
        let all = ratings(old).append(ratings(new));
        assert_eq!(all, ratings(&[old, new].concat()));
        // Names that are no integers any more.
        let all = ratings(old).append(ratings("ann i1 4\n"));
        assert_eq!(all.left_names, Dictionary::from_strings(["7", "8", "ann"]));
        assert_eq!(named(&all), named(&ratings(&[old, "ann i1 4\n"].concat())));
    }

    #[test]
    fn appended_links_are_those_of_one_text() {
        let (old, new) = ("a b\nb c\n", "c d\ne a\na b\n");
        let [old, new, all] =
            [old, new, &[old, new].concat()].map(|text| parse_graph(text.as_bytes(), Format::Edges).unwrap());
        assert_eq!(old.append(new), all);
    }

    #[test]
    fn removed_edges_are_gone_with_vertices_that_have_no_other() {
        let all = ratings("ann tea 4\nbob rye 5\nann rye 2\nann tea 1\ncid oat 3\n");
        let left = all.clone().without(&ratings("ann tea 9\ncid oat 9\n")).unwrap();
        assert_eq!(named(&left), named(&ratings("bob rye 5\nann rye 2\n")));
        assert_eq!((left.edges.num_left, left.edges.num_right), (2, 1));
        let graph = |text: &str| parse_graph(text.as_bytes(), Format::Edges).unwrap();
        let left = graph("a b\nb c\nc a\nd a\n").without(&graph("d a\na b\n")).unwrap();
        assert_eq!(named(&left), named(&graph("b c\nc a\n")));
        assert_eq!((left.edges.num_left, left.edges.num_right, left.left_names.len()), (3, 3, 3));
    }

    #[test]
    fn vertices_that_never_had_an_edge_stay() {
        let links = b"%%MatrixMarket matrix coordinate pattern general\n5 5 4\n1 2\n2 4\n4 1\n1 4\n";
        let all = parse_graph(links, Format::MatrixMarket).unwrap();
        let graph = |text: &str| parse_graph(text.as_bytes(), Format::Edges).unwrap();
        let left = all.clone().without(&graph("1 4\n")).unwrap();
        assert_eq!((left.edges.num_left, left.edges.num_right, &left.left_names), (5, 5, &all.left_names));
        assert_eq!(named(&left), named(&graph("1 2\n2 4\n4 1\n")));
        // One that is an end of none but those that go is gone, whichever end.
        let left = all.without(&graph("1 2\n2 4\n")).unwrap();
        assert_eq!(left.left_names, Dictionary::from_integers(vec![1, 3, 4, 5]));
        assert_eq!(named(&left), named(&graph("4 1\n1 4\n")));
        let ratings = b"%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 5\n1 2 4\n3 2 1\n";
        let all = parse_ratings(ratings, Format::MatrixMarket).unwrap();
        let gone = parse_ratings(b"1 1 0\n3 2 0\n", Format::Ratings).unwrap();
        let left = all.without(&gone).unwrap();
        assert_eq!((left.left_names, left.right_names), {
            let names = |ids: &[u64]| Dictionary::from_integers(ids.to_vec());
            (names(&[1, 2]), Some(names(&[2, 3, 4])))
        });
    }

    #[test]
    fn an_edge_that_is_not_there_is_named() {
        let all = ratings("ann tea 4\nbob rye 5\n");
        for (gone, ends) in [("bob tea 4\n", ["bob", "tea"]), ("ann tea 4\ncid tea 4\n", ["cid", "tea"])] {
            assert_eq!(all.clone().without(&ratings(gone)).unwrap_err(), ends);
        }
    }

    #[test]
    fn appended_samples_are_those_of_one_text() {
        let (old, new) = ("1 2:0.5 7:1\n-1 2:3\n", "-1 5:2 7:4\n1 2:1\n");
        let [old, new, all] =
            [old, new, &[old, new].concat()].map(|text| parse_samples(text.as_bytes(), Format::Libsvm, &[]).unwrap());
        let appended = old.append(new);
        assert_eq!((&appended.labels, &appended.data.left_names), (&all.labels, &all.data.left_names));
        assert_eq!(named(&appended.data), named(&all.data));
    }
}
