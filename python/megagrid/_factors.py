"""Matrix factorization of ratings, and what it shares with that of implicit feedback."""

import copy
import warnings

import numpy as np

from . import _input, _megagrid
from ._base import Estimator, num_threads, whole
from ._ids import coded, ids_of, names_of, of_objects, whole_of_names

# Users who are answered between two looks at the keyboard, and pairs of them and items that are left out: there are as few users as these
# allow. People whose rows are found; each time the items are read.
_USERS, _PAIRS, _PEOPLE = 4096, 1 << 22, 1 << 16


class Factors(Estimator):
    """Factors of users and items, whose products are scores."""

    def _factorize(self, X, reading, callback, begin=None):
        begin = begin or self._begin
        words, self._ids = self._words() + self._reading(reading, _input.is_path(X)), None
        if _input.is_path(X):
            self._forget()
            return self._fit(lambda watched: begin(X, words, watched), callback)
        parts, stored = self._parts(X)
        if stored == 0:
            raise ValueError("there is no rating: all values are 0, or none is stored")
        return self._fit(lambda watched: begin(parts, words, watched), callback)

    def _parts(self, X):
        """Return what the compiled part takes, and the number of ratings."""
        _check_columns(X, (3,))
        if not _is_columns(X):
            matrix = self._matrix(X, reset=True, repeats=True)
            dense = matrix.sparse is None
            return matrix.parts, int(np.count_nonzero(matrix.values)) if dense else matrix.values.size
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
        users, items = ids_of(found["user_ids"]), ids_of(found["item_ids"])
        self.user_ids_, self.item_ids_ = (users, items) if self._ids is None else (self._ids[0][users], self._ids[1][items])
        self.__dict__.setdefault("n_features_in_", len(self.item_ids_))
        self.range_ = None if found["range"] is None else tuple(found["range"])
        self._places, self._answers = {}, None

    def __getstate__(self):
        return {**super().__getstate__(), "_answers": None}

    def _asked(self):
        """Return what answers, made of the factors when it is asked for first."""
        if self._answers is None:
            sides = ((self.user_factors_, self.user_biases_), (self.item_factors_, self.item_biases_))
            self._answers = _megagrid.Answers(self.mean_, self.range_, *sides)
        return self._answers

    def _at(self, ids, side):
        """Return the rows of users or items, -1 for those that are not known."""
        known = getattr(self, f"{side}_ids_")
        if side not in self._places:
            order = np.argsort(known, kind="stable")
            self._places[side] = order, known[order]
        order, ordered = self._places[side]
        ids = np.asarray(ids)
        if ids.size == 0:
            return np.empty(ids.shape, dtype=np.int64)
        if ids.dtype.kind in "OT":
            ids = of_objects(ids.astype(object), known.dtype.kind in "iub")
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

    def recommend(self, users=None, n=10, *, without=(), exclude=None):
        """Return the items that score highest for a user, for some, or for all.

        Parameters
        ----------
        users : id, array of ids, or None
            None: all, in the order of ``user_ids_``.
        n : int, default=10
        without : ids of items that nobody is shown
        exclude : matrix of users by items, or a tuple (users, items, ...) of columns
            Pairs that are left out, in the form in which `fit` takes them: what users have rated or used already. The numbers of a matrix's
            rows and columns are ids.

        Returns
        -------
        ids, scores : ndarray
            The best first. Of several users a row each: a place for which no item is left has the score NaN, and for an id -1, or "", or where
            ids have no sign the largest number of their type.
        """
        self._check_fitted()
        rows, is_one = self._rows(users, "user")
        rows, back = np.unique(rows, return_inverse=True)
        nobody, pairs = self._left_out(rows, without, exclude)

        def answer(begin, end):
            some = rows[begin:end]
            return self._asked().recommend(some, max(int(n), 0), _of_some(begin, end, pairs, nobody), num_threads(self.n_jobs))

        step = max(1, min(_USERS, _PAIRS // max(len(nobody), 1)))
        return self._told(_in_parts(len(rows), step, answer), back, is_one, self.item_ids_)

    def fold_in(self, X):
        """Return the model of other people, by what they rated or used.

        Each of them gets the row that is best for his own values where all items stand, with the regularizer that was fitted with.

        Parameters
        ----------
        X : matrix of people by items, or a tuple (people, items, values) of columns, for `ImplicitALS` also (people, items)
            In the form in which `fit` takes it. Items that the model does not know count for nothing; columns of a matrix are the numbers of
            items.

        Returns
        -------
        The estimator with the same items, whose users are those of the people of whom something counts: their ids, or numbers of rows.
        """
        self._check_fitted()
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
        other._places, other._answers = {}, None
        return other

    def _rated(self, X):
        """Return numbers of people, rows of items, values, and the ids of the people."""
        _check_columns(X, (3,))
        if _is_columns(X):
            people, items, values = X
            values = np.ascontiguousarray(_input.column(values, "values"))
            people, ids = coded(people, "people", len(values))
            if len(items) != len(values):
                raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(items), len(values)]}")
            return people, self._at(items, "item"), values, ids
        matrix = self._matrix(X, repeats=True)
        stored = None if matrix.sparse is None else matrix.sparse.tocoo()
        rows, columns = np.nonzero(matrix.values) if stored is None else (stored.row, stored.col)
        values = matrix.values[rows, columns] if stored is None else stored.data
        return rows, self._at(columns, "item"), values, np.arange(matrix.shape[0])

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
        n = min(max(int(n), 0), len(ids) - 1)

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
            users, items = self._pairs(exclude)
            known = (users >= 0) & (items >= 0) & np.isin(users, rows)
            users, items = np.searchsorted(rows, users[known]), items[known]
        if without is not None and not np.isscalar(without) and not isinstance(without, np.ndarray):
            # A set, of keys say, is no list to NumPy.
            without = list(without)
        without = np.atleast_1d(() if without is None else without)
        nobody = np.unique(self._at(without, "item"))
        order = np.lexsort((items, users))
        return nobody[nobody >= 0], (users[order], items[order])

    def _pairs(self, X):
        """Return the rows of users and items that are in a matrix or in columns."""
        _check_columns(X, (2, 3, 4))
        if isinstance(X, tuple):
            users, items = X[:2]
            if len(users) != len(items):
                raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(users), len(items)]}")
            return self._at(users, "user"), self._at(items, "item")
        matrix = self._matrix(X, repeats=True)
        if matrix.sparse is None:
            users, items = np.nonzero(matrix.values)
        else:
            stored = matrix.sparse.tocoo()
            users, items = stored.row, stored.col
        # Rows and columns are what matrices are named by.
        return self._at(users, "user"), self._at(items, "item")

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
            (names_of(getattr(self, f"{side}_ids_")), (getattr(self, f"{side}_factors_"), getattr(self, f"{side}_biases_")))
            for side in ("user", "item")
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
        model._ids, model.n_iter_ = None, 0
        model._keep(found)
        return model


class MatrixFactorization(Factors):
    """Factors of users and items that foresee ratings.

    A rating is foreseen as mean + user · item + bias of the user + bias of the item, and kept within the range of the ratings that it was fitted
    to.

    Parameters
    ----------
    n_factors : int, default=32
        Length of a user's and an item's vector.
    reg : float or None, default=None
        Weight of the regularizer, for each rating; None: 0.05, with als 0.1.
    optimizer : str, default="adagrad"
        How gradients become steps: "sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam" or "adadelta"; or "als", alternating least
        squares, which takes none: the rows of users, then those of items, are the best that there are where the others stand.
    step : float or None, default=None
        Size of a step; None: 0.03 with sgd, 0.1 with adagrad, 1 with adadelta, else 0.003.
    unit : float or None, default=None
        What ratings are divided by to be trained on, so that `reg` and `step` are good for stars and percents alike; factors and errors are
        of ratings as they are. None: a power of four near the ratings' standard deviation, 1 for stars.
    biases : bool, default=True
        Whether users and items have biases.
    mean : bool, default=True
        Whether the mean rating is subtracted first.
    holdout : float or None, default=None
        Part of the ratings that is kept to measure ``test_rmse`` on: the model is that of the best iteration.
    patience : int or None, default=None
        Worse measurements in a row on those that end the fit; None: 5.
    max_iter : int, default=20
        Passes over the ratings.
    tol : float, default=0.0
        The fit ends when the objective changes by no more than this part of itself; 0: never.
    tune : bool or dict, default=False
        True: the fit finds the step on the way, by short trials on branches of the run, as ``megagrid tune`` does. A dict says what is tuned
        and between which values: a list, or a range as the command has it, ``{"step": "log:1e-3..1"}``. The record of all trials is
        ``report_["tuning"]``. With the same `random_state` such a fit is the same.
    n_jobs : int or None, default=None
        Threads; None: all cores.
    random_state : int, RandomState or None, default=None
        Decides first values and what is kept for testing; None: as 1.
    verbose : int, default=0
        Whether progress is shown.

    Attributes
    ----------
    user_factors_ : ndarray of shape (n_users, n_factors)
    item_factors_ : ndarray of shape (n_items, n_factors)
    user_biases_, item_biases_ : ndarray
    mean_ : float
    unit_ : float
        What ratings were divided by to be trained on.
    range_ : tuple (least, greatest)
        Of the ratings; None, and nothing is kept within it, where a model directory from before has none.
    user_ids_, item_ids_ : ndarray
        What the rows of the factors stand for: the ids that ratings had, or the numbers of rows and columns.
    n_iter_, n_features_in_ : int
    report_ : Report
        The record of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import MatrixFactorization
    >>> users = np.repeat(["ann", "bob", "cy"], 3)
    >>> items = np.tile(["tea", "rye", "oat"], 3)
    >>> ratings = np.array([5, 1, 3, 4, 1, 2, 1, 5, 3])
    >>> model = MatrixFactorization(4, max_iter=100).fit((users, items, ratings))
    >>> model.recommend("ann", 1)[0].tolist()
    ['tea']
    >>> model.predict_pairs(["cy"], ["rye"]).round().tolist()
    [5.0]
    """

    _KIND, _begin = "mf", staticmethod(_megagrid.factors)
    _OPTIONS = {
        "n_factors": "dims",
        "reg": "lambda",
        "optimizer": "optimizer",
        "step": "step",
        "unit": "unit",
        "biases": "-no-biases",
        "mean": "-no-mean",
        "holdout": "holdout",
        "patience": "patience",
        "max_iter": "iterations",
        "tol": "tolerance",
    }

    def __init__(
        self,
        n_factors=32,
        *,
        reg=None,
        optimizer="adagrad",
        step=None,
        unit=None,
        biases=True,
        mean=True,
        holdout=None,
        patience=None,
        max_iter=20,
        tol=0.0,
        tune=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_factors = n_factors
        self.reg = reg
        self.optimizer = optimizer
        self.step = step
        self.unit = unit
        self.biases = biases
        self.mean = mean
        self.holdout = holdout
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol
        self.tune = tune
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @whole
    def fit(self, X, y=None, *, callback=None, **reading):
        """Factorize ratings.

        Parameters
        ----------
        X : matrix of shape (n_users, n_items), a tuple (users, items, ratings) of columns, or a path
            Each value that a sparse matrix stores is a rating; of a dense one 0 is none. Users and items of columns are
            whole numbers or texts. A path is one to ratings in any format that the command reads.
        y : ignored
        callback : callable or None
            Gets each iteration as a dict; the fit ends where it returns True.
        **reading : how a path is read
            ``format="parquet"``, ``columns="user=2,item=1"``,
            ``test="unseen.csv"``, as the command's options.

        Returns
        -------
        MatrixFactorization
            The estimator.
        """
        return self._factorize(X, reading, callback)

    def _trained(self):
        return bool(self.biases), (float(self.report_["config"]["lambda"]), None)

    def predict_pairs(self, users, items):
        """Return the ratings that are foreseen of users for items, pair by pair.

        Parameters
        ----------
        users, items : arrays of ids, of the same length
            What is foreseen for one that the model has not seen is of the other alone.

        Returns
        -------
        ndarray
        """
        self._check_fitted()
        users, items = self._at(np.atleast_1d(users), "user"), self._at(np.atleast_1d(items), "item")
        if users.shape != items.shape:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(users), len(items)]}")
        foreseen = np.full(len(users), self.mean_, dtype=np.float32)
        foreseen += np.where(users < 0, 0, self.user_biases_[users]) + np.where(items < 0, 0, self.item_biases_[items])
        known = np.flatnonzero((users >= 0) & (items >= 0))
        for part in np.array_split(known, max(1, len(known) >> 16)):
            foreseen[part] += np.einsum("ij,ij->i", self.user_factors_[users[part]], self.item_factors_[items[part]])
        return foreseen if self.range_ is None else foreseen.clip(*self.range_)

    def score(self, X, y=None):
        """Return minus the root of the mean squared error of ratings.

        Parameters
        ----------
        X : matrix or columns as for `fit`
            Row n of a matrix is the user ``user_ids_[n]``, column n the item ``item_ids_[n]``.
        y : ignored

        Returns
        -------
        float
        """
        self._check_fitted()
        _check_columns(X, (3,))
        if _is_columns(X):
            users, items, ratings = X
            ratings = _input.column(ratings, "ratings", len(users))
        else:
            matrix = self._matrix(X, repeats=True)
            stored = None if matrix.sparse is None else matrix.sparse.tocoo()
            rows, columns = np.nonzero(matrix.values) if stored is None else (stored.row, stored.col)
            ratings = matrix.values[rows, columns] if stored is None else stored.data
            if matrix.shape[0] > len(self.user_ids_):
                raise ValueError(f"X has {matrix.shape[0]} users, and the model knows {len(self.user_ids_)}")
            users, items = self.user_ids_[rows], self.item_ids_[columns]
        errors = self.predict_pairs(users, items) - ratings
        return -float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _is_columns(X):
    return isinstance(X, tuple) and len(X) == 3


def _check_columns(X, lengths):
    """Refuse a tuple that is neither of so many columns, nor a matrix."""
    forms = {2: "(users, items)", 3: "(users, items, values)", 4: "(users, items, values, times)"}
    if isinstance(X, tuple) and len(X) not in lengths:
        expected = " or ".join(forms[length] for length in lengths)
        more = "; ImplicitALS.fit also takes (users, items) and (users, items, values, times)"
        raise ValueError(f"a tuple of {len(X)} columns, expected {expected}{more}")


def _in_parts(number, step, answer):
    """Return the arrays that `answer` gives of `number` rows, asked of some after the other, so that Ctrl-C comes in between."""
    parts = [answer(at, min(at + step, number)) for at in range(0, max(number, 1), step)]
    return parts[0] if len(parts) == 1 else tuple(np.concatenate(arrays) for arrays in zip(*parts))


def _of_some(begin, end, pairs, nobody):
    """Return where the items that are left out of each of these users end, and these items, ascending for each."""
    first, to = np.searchsorted(pairs[0], [begin, end])
    users, items = pairs[0][first:to] - begin, pairs[1][first:to]
    if len(nobody) > 0:
        users = np.concatenate([users, np.repeat(np.arange(end - begin), len(nobody))])
        items = np.concatenate([items, np.tile(nobody, end - begin)])
        order = np.lexsort((items, users))
        users, items = users[order], items[order]
    ends = np.searchsorted(users, np.arange(end - begin), side="right")
    return ends.astype(np.int64), items.astype(np.int64)


def _nobody(kind):
    """Return what stands for no id."""
    if kind.kind in "USO":
        return ""
    return np.iinfo(kind).max if kind.kind == "u" else -1
