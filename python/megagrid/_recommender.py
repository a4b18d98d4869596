"""What models of factors of users and items share: how they are fitted, asked, and saved."""

import copy
import warnings

import numpy as np

from . import _input, _megagrid
from ._base import Estimator, num_threads, wanted
from ._ids import array_of, coded, ids_of, labels_as, looked_for, names_of, whole_of_names
from ._pairs import Entries, check_columns, check_no_target, of_frame, warn_of_triples

# Users who are answered between two looks at the keyboard, and pairs of them and items that are left out: there are as few users as these
# allow. People whose rows are found; each time the items are read.
_USERS, _PAIRS, _PEOPLE = 4096, 1 << 22, 1 << 16
# As few users are told from all others faster than all are looked up.
_FEW = 1024
# A list of this many items that nobody is shown is sorted among each user's own.
_SHORT = 32


class Factors(Estimator):
    """Factors of users and items, whose products are scores."""

    # What the rows and the columns of a matrix stand for; None: their numbers are ids. A fit on a matrix says so.
    _row_ids = _column_ids = None
    # Sums to which steps adapt, of users and items: the command goes on with them.
    _squares = None, None

    def _factorize(self, X, y, reading, callback, begin=None):
        begin, is_path = begin or self._begin, _input.is_path(X)
        check_no_target(X, y)
        words = self._words() + self._reading(reading, is_path)
        self._ids, self._row_ids, self._column_ids = (None, None), None, None
        if is_path:
            self._forget()
            return self._fit(lambda watched: begin(X, words, watched), callback)
        parts, stored = self._parts(X)
        if stored == 0:
            raise ValueError("there is no rating: all values are 0, or none is stored")
        return self._fit(lambda watched: begin(parts, words, watched), callback)

    def _parts(self, X):
        """Return what the compiled part takes, and the number of ratings."""
        check_columns(X, (3,))
        if not isinstance(X, tuple):
            matrix = self._matrix(X, reset=True, repeats=True)
            is_dense = matrix.sparse is None
            if is_dense:
                warn_of_triples(matrix.values)
            entries = Entries(X, matrix)
            self._ids = self._row_ids, self._column_ids = entries.row_ids, entries.column_ids
            if self._column_ids is None:
                self._column_ids = range(matrix.shape[1])
            return matrix.parts, int(np.count_nonzero(matrix.values)) if is_dense else matrix.values.size
        users, items, ratings = X
        ratings = np.ascontiguousarray(_input.column(ratings, "ratings"))
        (users, user_ids), (items, item_ids) = (coded(ids, name, len(ratings)) for ids, name in ((users, "users"), (items, "items")))
        self._ids = user_ids, item_ids
        self._know(len(item_ids), None)
        return (users, items, ratings, (len(user_ids), len(item_ids))), len(ratings)

    def _keep(self, found):
        self.mean_, self.unit_ = float(found["mean"]), float(found["unit"])
        self.user_factors_, self.item_factors_ = found["user_factors"], found["item_factors"]
        self.user_biases_, self.item_biases_ = found["user_biases"], found["item_biases"]
        self._squares = found["user_squares"], found["item_squares"]
        given = ids_of(found["user_ids"]), ids_of(found["item_ids"])
        self.user_ids_, self.item_ids_ = (ids if known is None else known[ids] for ids, known in zip(given, self._ids))
        # They are kept once.
        self._ids = None, None
        self.__dict__.setdefault("n_features_in_", len(self.item_ids_))
        self.range_ = None if found["range"] is None else tuple(found["range"])
        self._places, self._answers = {}, {}

    def __getstate__(self):
        return {**super().__getstate__(), "_answers": {}, "_places": {}}

    def _asked(self, clip=True):
        """Return what answers, made of the factors when it is asked for first."""
        scores_within = self.range_ if clip else None
        if scores_within not in self._answers:
            sides = ((self.user_factors_, self.user_biases_), (self.item_factors_, self.item_biases_))
            self._answers[scores_within] = _megagrid.Answers(self.mean_, scores_within, *sides)
        return self._answers[scores_within]

    def _at(self, ids, side):
        """Return the rows of users or items, -1 for those that are not known."""
        known = getattr(self, f"{side}_ids_")
        if side not in self._places:
            order = np.argsort(known, kind="stable")
            self._places[side] = order, known[order]
        order, ordered = self._places[side]
        ids = looked_for(ids, known.dtype.kind in "iub")
        if ids.size == 0:
            return np.empty(ids.shape, dtype=np.int64)
        if ids.dtype.kind in "iu" and known.dtype.kind in "iu" and ids.dtype.kind != known.dtype.kind:
            # Numbers of both kinds meet as floats, which do not tell large ones apart.
            limits = np.iinfo(known.dtype)
            fits = (ids >= max(limits.min, 0)) & (ids <= min(limits.max, np.iinfo(ids.dtype).max))
            at = self._at(np.where(fits, ids, 0).astype(known.dtype), side)
            return np.where(fits, at, -1)
        if ids.dtype.kind not in "iubUSO" or (ids.dtype.kind in "USO") != (known.dtype.kind in "USO"):
            raise TypeError(f"{side}s are {ids.dtype}, and the model's are {known.dtype}")
        at = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
        return np.where(ordered[at] == ids, order[at], -1)

    def predict_pairs(self, users, items, *, clip=True):
        """Return the scores of users for items, pair by pair: of `MatrixFactorization` the ratings that are foreseen.

        Parameters
        ----------
        users, items : arrays of ids, of the same length
            What is foreseen for one that the model has not seen is of the other alone; the score of `ImplicitALS` is 0.
        clip : bool, default=True
            Whether ratings are kept within ``range_``; what `ImplicitALS` finds has no range.

        Returns
        -------
        ndarray
        """
        self._check_fitted()
        users, items = np.atleast_1d(users), np.atleast_1d(items)
        for ids, what in ((users, "users"), (items, "items")):
            if ids.ndim != 1:
                raise ValueError(f"{what} have the shape {ids.shape}, expected one dimension")
            missing = np.flatnonzero([_input.is_missing(one) for one in ids]) if ids.dtype.kind in "fO" else ()
            if len(missing):
                raise ValueError(f"{what} have none at place {missing[0]}; leave out what has no id")
        users, items = self._at(users, "user"), self._at(items, "item")
        if users.shape != items.shape:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(users), len(items)]}")
        return self._foreseen(users, items, clip)

    def _foreseen(self, users, items, clip=True):
        """Return the scores of pairs of rows, -1 for what is not known."""
        foreseen = np.full(len(users), self.mean_, dtype=np.float32)
        foreseen += np.where(users < 0, 0, self.user_biases_[users]) + np.where(items < 0, 0, self.item_biases_[items])
        known = np.flatnonzero((users >= 0) & (items >= 0))
        for part in np.array_split(known, max(1, len(known) >> 16)):
            foreseen[part] += np.einsum("ij,ij->i", self.user_factors_[users[part]], self.item_factors_[items[part]])
        return foreseen.clip(*self.range_) if clip and self.range_ is not None else foreseen

    def recommend(self, users=None, n=10, *, without=(), exclude=None, clip=True):
        """Return the items that score highest for a user, for some, or for all.

        Parameters
        ----------
        users : id, array of ids, or None
            None: all, in the order of ``user_ids_``.
        n : int, default=10
        without : ids of items that nobody is shown
        exclude : matrix of users by items, a tuple (users, items, ...) or a data frame of columns
            Pairs that are left out, in the form in which `fit` takes them: what users have rated or used already. Rows and columns of a matrix
            are what they were in the matrix of `fit`; where that had columns or a path, and of a model that was loaded, their numbers are ids. A data
            frame's index and columns are ids.
        clip : bool, default=True
            Whether ratings are kept within ``range_``, at whose end items are alike; what `ImplicitALS` finds has no range.

        Returns
        -------
        ids, scores : ndarray
            The best first. Of several users a row each: a place for which no item is left has the score NaN, and for an id -1, or "", or where
            ids have no sign the largest number of their type.
        """
        self._check_fitted()
        n = wanted(n)
        rows, is_one = self._rows(users, "user")
        rows, back = np.unique(rows, return_inverse=True)
        nobody, pairs = self._left_out(rows, without, exclude)

        def answer(begin, end):
            some = rows[begin:end]
            return self._asked(clip).recommend(some, n, _of_some(begin, end, pairs, nobody), num_threads(self.n_jobs))

        step = max(1, min(_USERS, _PAIRS // max(len(nobody), 1)))
        return self._told(_in_parts(len(rows), step, answer), back, is_one, self.item_ids_)

    def fold_in(self, X):
        """Return the model of other people, by what they rated or used.

        Each of them gets the row that is best for his own values where all items stand, with the regularizer that was fitted with.

        Parameters
        ----------
        X : matrix of people by items, a tuple (people, items, values) or a data frame of columns, for `ImplicitALS` also (people, items)
            In the form in which `fit` takes it. Items that the model does not know count for nothing. Columns of a matrix are those of the
            matrix of `fit`; where that had columns or a path, and of a model that was loaded, their numbers are ids of items. A data frame's columns are
            ids, and its index is of people.

        Returns
        -------
        The estimator with the same items, whose users are those of the people of whom something counts: their ids, or numbers of rows.
        """
        self._check_fitted()
        X = self._taken(X)
        people, items, values, ids = self._rated(X)
        known = items >= 0
        if not known.all():
            unknown = len(np.unique(people[~known])), int((~known).sum())
            warnings.warn("of %d people %d values are of items that the model does not know" % unknown, stacklevel=2)
        people, items, values = people[known], items[known], values[known]
        order = np.argsort(people, kind="stable")
        ends = np.searchsorted(people[order], np.arange(len(ids)), side="right").astype(np.int64)
        factors = self.item_factors_, self.item_biases_
        of_items = items[order].astype(np.int64), np.ascontiguousarray(values[order], dtype=np.float32)

        def place(begin, end):
            first, to = (int(ends[at - 1]) if at > 0 else 0 for at in (begin, end))
            rated = (of_person[first:to] for of_person in of_items)
            return _megagrid.place((self.mean_, self.unit_), factors, *self._trained(), ends[begin:end] - first, *rated, num_threads(self.n_jobs))

        rows, biases, counts = _in_parts(len(ids), _PEOPLE, place)
        if not counts.any():
            raise ValueError(f"of none of {len(ids)} people anything counts: name items as the ratings did")
        if not counts.all():
            warnings.warn(f"{int((~counts).sum())} of {len(ids)} people have nothing that counts, and are left out", stacklevel=2)
        other = copy.copy(self)
        other.user_ids_, other.user_factors_, other.user_biases_ = ids[counts], rows[counts], biases[counts]
        other._places, other._answers, other._squares = {}, {}, (None, None)
        other._row_ids = None if isinstance(X, tuple) else ids
        return other

    def _taken(self, X):
        """Return columns, where a data frame has some, or a matrix."""
        return of_frame(X, 3)

    def _rated(self, X):
        """Return numbers of people, rows of items, values, and the ids of the people."""
        check_columns(X, (3,))
        if isinstance(X, tuple):
            people, items, values = X
            values = np.ascontiguousarray(_input.column(values, "values"))
            people, ids = coded(people, "people", len(values))
            if len(items) != len(values):
                raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(items), len(values)]}")
            return people, self._at(items, "item"), values, ids
        entries = Entries(X, _input.Matrix(X, self, repeats=True))
        rows, columns, values = entries.values
        ids = np.arange(entries.matrix.shape[0]) if entries.row_ids is None else entries.row_ids
        return rows, self._at_columns(entries)[columns], values, ids

    def _at_rows(self, entries):
        """Return the users that the rows of a matrix stand for, -1 for those that are not known."""
        number, places = entries.matrix.shape[0], self._row_ids
        ids = self._meant(number, "user", entries.row_ids, places)
        if ids is places and number > len(places):
            raise ValueError(f"X has {number} rows, and the matrix that the users are of had {len(places)}")
        # Of a matrix that a fit had some users may be kept for testing.
        return self._at_all(ids, "user", entries.values[0], self._column_ids is None or places is not None)

    def _at_columns(self, entries):
        """Return the items that the columns of a matrix stand for, -1 for those that are not known."""
        number, places = entries.matrix.shape[1], self._column_ids
        ids = self._meant(number, "item", entries.column_ids, places)
        if ids is places and number != len(places):
            raise ValueError(f"X has {number} columns, and the matrix of the fit had {len(places)}")
        return self._at_all(ids, "item", entries.values[1], True)

    def _meant(self, number, side, labels, places):
        """Return the ids of rows or columns: the labels of a data frame, or what there was in their places in the fit, or their numbers."""
        are_texts = getattr(self, f"{side}_ids_").dtype.kind in "USO"
        ids = None if labels is None else labels_as(labels, are_texts)
        if ids is not None:
            return ids
        if labels is not None and labels.dtype.kind in "UO" and not isinstance(self._column_ids, range):
            raise TypeError(
                f"X has {str(labels[0])!r} among the names of its {'rows' if side == 'user' else 'columns'}, and {side}s of the model are whole numbers; "
                "name them so, or pass columns: (users, items), or with values"
            )
        if places is not None:
            return places
        if are_texts:
            raise TypeError(f"{side}s of the model are texts, which a matrix does not name; pass columns: (users, items), or with values")
        return np.arange(number)

    def _at_all(self, ids, side, used, is_checked):
        """Return the places of ids; refuse numbers that are rather places themselves: as many as there are ids, and not the same."""
        at = self._at(ids, side)
        number = len(getattr(self, f"{side}_ids_"))
        if is_checked and len(ids) == number and (at[used] < 0).any() and np.array_equal(ids, np.arange(number)):
            what, first = "row" if side == "user" else "column", int(used[at[used] < 0].min())
            raise ValueError(
                f"X has {number} {what}s, as many as the model has {side}s, and none of them has the id {first}: the numbers of rows and "
                "columns are ids here; pass columns: (users, items), or with values"
            )
        return at

    def similar_items(self, items=None, n=10):
        """Return the items whose factors point the same way.

        Parameters
        ----------
        items : id, array of ids, or None
            None: all, in the order of ``item_ids_``.
        n : int, default=10

        Returns
        -------
        ids, cosines : ndarray
            The most similar first, without the item itself; of several items a row each.
        """
        return self._similar("item", items, n)

    def similar_users(self, users=None, n=10):
        """Return the users whose factors point the same way, as `similar_items` does of items."""
        return self._similar("user", users, n)

    def _similar(self, side, of, n):
        self._check_fitted()
        rows, is_one = self._rows(of, side)
        ids = getattr(self, f"{side}_ids_")
        # All but itself.
        n = min(wanted(n), len(ids) - 1)

        def answer(begin, end):
            return self._asked().similar(side == "user", rows[begin:end], n, num_threads(self.n_jobs))

        return self._told(_in_parts(len(rows), _USERS, answer), slice(None), is_one, ids)

    def _rows(self, ids, side):
        """Return rows of users or items, and whether it is one."""
        if ids is None:
            return np.arange(len(getattr(self, f"{side}_ids_")), dtype=np.int64), False
        rows = self._at(np.atleast_1d(ids), side)
        if (rows < 0).any():
            one, number = np.atleast_1d(ids)[rows < 0][0], len(getattr(self, f"{side}_ids_"))
            one = one.item() if hasattr(one, "item") else one
            raise ValueError(f"{side} {one!r} is not among the {number} {side}s of the model; name it as the ratings did")
        return rows, np.ndim(ids) == 0

    def _left_out(self, rows, without, exclude):
        """Return items that nobody is shown, and pairs of the places of these users and of items, in order."""
        users = items = np.empty(0, dtype=np.int64)
        if exclude is not None:
            users, items = self._pairs(exclude, rows)
            known = items >= 0
            users, items = np.searchsorted(rows, users[known]), items[known]
        if without is not None and not np.isscalar(without) and not isinstance(without, np.ndarray):
            # A set, of keys say, is no list to NumPy.
            without = list(without)
        without = np.atleast_1d(() if without is None else without)
        nobody = np.unique(self._at(without, "item"))
        order = np.lexsort((items, users))
        return nobody[nobody >= 0], (users[order], items[order])

    def _pairs(self, X, asked):
        """Return the rows of users and items, -1 for those that are not known, of pairs in a matrix or in columns: those of the users that are asked for."""
        X = of_frame(X, 2)
        check_columns(X, (2, 3, 4))
        if isinstance(X, tuple):
            users, items = X[:2]
            if len(users) != len(items):
                raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(users), len(items)]}")
            users, which = self._of_asked(users, asked)
            return users, self._at(array_of(items)[which], "item")
        entries = Entries(X, _input.Matrix(X, self, repeats=True))
        rows, columns, _ = entries.values
        users, items = self._at_rows(entries)[rows], self._at_columns(entries)[columns]
        which = np.isin(users, asked)
        return users[which], items[which]

    def _of_asked(self, users, asked):
        """Return the rows of those users that are asked for, and where they are. Of few only these are looked up, not all."""
        users = looked_for(array_of(users), self.user_ids_.dtype.kind in "iub")
        which = None
        if len(asked) <= _FEW and users.dtype.kind == self.user_ids_.dtype.kind:
            which = np.flatnonzero(np.isin(users, self.user_ids_[asked]))
            users = users[which]
        rows = self._at(users, "user")
        here = np.flatnonzero(np.isin(rows, asked))
        return rows[here], here if which is None else which[here]

    def _told(self, found, back, is_one, ids):
        """Name what was found."""
        places, scores = (table[back] for table in found)
        if is_one:
            known = places[0] >= 0
            return ids[places[0][known]], scores[0][known]
        named, missing = ids[places], places < 0
        if missing.any():
            named[missing] = _nobody(ids.dtype)
        return named, scores

    def save(self, directory):
        """Write a model directory, which the command reads: ``megagrid recommend``.

        Parameters
        ----------
        directory : path
            One that is not there yet.
        """
        self._check_fitted()
        sides = [
            (names_of(getattr(self, f"{side}_ids_")), (getattr(self, f"{side}_factors_"), getattr(self, f"{side}_biases_")), squares)
            for side, squares in zip(("user", "item"), self._squares)
        ]
        # Numbers below 0 are texts there.
        whole_ids = [side for side in ("user", "item") if getattr(self, f"{side}_ids_").dtype.kind == "i"]
        record = self._record(whole_ids=whole_ids)
        scale = self.mean_, self.unit_
        _megagrid.save_factors(self._KIND, directory, record, self._checksum, (scale, self.range_), *sides)

    @classmethod
    def load(cls, directory):
        """Read a model directory, of `save` or of the command.

        Parameters
        ----------
        directory : path

        Returns
        -------
        The estimator.
        """
        found = _megagrid.load_factors(cls._KIND, directory)
        model, config = cls._of_manifest(found)
        for side in config.get("whole_ids", ()):
            found[f"{side}_ids"] = whole_of_names(found[f"{side}_ids"])
        model._ids, model.n_iter_ = (None, None), 0
        model._keep(found)
        return model


def _in_parts(number, step, answer):
    """Return the arrays that `answer` gives of `number` rows, asked of some after the other, so that Ctrl-C comes in between."""
    parts = [answer(at, min(at + step, number)) for at in range(0, max(number, 1), step)]
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(arrays) for arrays in zip(*parts))


def _of_some(begin, end, pairs, nobody):
    """Return where the items that are left out of each of these users end, and these items, ascending for each."""
    first, to = np.searchsorted(pairs[0], [begin, end])
    users, items = pairs[0][first:to] - begin, pairs[1][first:to]
    if 0 < len(nobody) <= _SHORT:
        users = np.concatenate([users, np.repeat(np.arange(end - begin), len(nobody))])
        items = np.concatenate([items, np.tile(nobody, end - begin)])
        order = np.lexsort((items, users))
        users, items = users[order], items[order]
    ends = np.searchsorted(users, np.arange(end - begin), side="right")
    if len(nobody) > _SHORT:
        # A long list is not sorted for each: only who has more of his own needs another.
        own = [_inserted(of, nobody) if len(of) else nobody for of in np.split(items, ends[:-1])]
        ends, items = np.cumsum([len(of) for of in own]), np.concatenate(own)
    return ends.astype(np.int64), items.astype(np.int64)


def _inserted(items, into):
    """Return items, ascending, with others that are ascending."""
    at = np.searchsorted(into, items)
    new = into[np.minimum(at, len(into) - 1)] != items
    return np.insert(into, at[new], items[new])


def _nobody(kind):
    """Return what stands for no id."""
    if kind.kind in "USO":
        return ""
    return np.iinfo(kind).max if kind.kind == "u" else -1
