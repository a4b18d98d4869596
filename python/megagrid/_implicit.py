"""Matrix factorization of implicit feedback."""

import numpy as np

from . import _input, _megagrid
from ._base import whole
from ._pairs import check_no_target, of_frame
from ._recommender import Factors


class ImplicitALS(Factors):
    """Factors of users and items that rank what a user may want, from clicks, plays or purchases.

    What a user has not used counts as little interest: the weight of a pair is 1, and 1 + alpha * value where there is a value. The
    loss is that of Hu, Koren and Volinsky (2008). What is minimized is the loss divided by alpha, and in it the squares of a row's numbers,
    weighed by ``reg * (others / alpha + occurrences) ** nu``; by alternating least squares, block of dimensions by block (iALS++, Rendle
    and others 2021).

    Parameters
    ----------
    n_factors : int, default=32
        Length of a user's and an item's vector.
    block : int, default=16
        Dimensions that are solved for at once, a multiple of 16; at least `n_factors`: all, which is plain iALS.
    reg : float, default=0.003
        Weight of the regularizer, beside the loss divided by `alpha`.
    alpha : float or None, default=None
        Weight of a unit of feedback against a pair without. None: 10 over the mean of the feedback, so that counts and seconds are learned as
        well as single signs.
    nu : float, default=1.0
        How the regularizer's weight grows with how often a user or an item occurs: with (others / alpha + occurrences) ** nu.
    ratings_above : float or None, default=None
        Ratings above this are feedback of 1, others are none; None: the values are the feedback.
    half_life : float, str or None, default=None
        Feedback counts half of what it is worth after this long, counted from the newest of the times, which are the fourth column or one of a
        path: a number in their unit, or where they are dates or seconds ``"30d"``, ``"12h"``, ``"90min"``, ``"2w"``; None: age does not matter.
    holdout : float or None, default=None
        Part of the feedback that is kept to measure ``test_ndcg`` and other metrics on: the model is that of the best iteration.
    holdout_per_user : int, float or None, default=None
        Instead, N of each user who has more, or this part of each user's.
    holdout_last : int, float or None, default=None
        The same, of the latest of each user; with columns the fourth is that of times.
    holdout_users : int, float or None, default=None
        N whole users, or this part of them, whom the model does not see: it is told the feedback that `holdout_per_user` or
        `holdout_last` does not keep, and is tested on what they keep; None of both: a fifth of each.
    ranking : int or None, default=None
        Of how many of the best items those are; None: 10.
    patience : int or None, default=None
        Worse measurements in a row on those that end the fit; None: 5.
    max_iter : int, default=16
        Times that all users and all items are solved for.
    tol : float, default=0.0
        The fit ends when the objective changes by no more than this part of itself; 0: never.
    tune : bool or dict, default=False
        True: the fit finds the size of a block on the way, by short trials on branches of the run, as ``megagrid tune`` does. A dict says what is tuned
        and between which values: a list, or a range as the command has it, ``{"block": [16, 32]}``. The record of all trials is
        ``report_["tuning"]``. Trials are compared by seconds, so that another fit may find another setting.
    n_jobs : int or None, default=None
        Threads; None: all cores. With another number a fit is a little different, whatever `random_state` is.
    random_state : int, RandomState or None, default=None
        Decides first values and what is kept for testing; None: as 1. With the same one and as many threads a fit is the same.
    verbose : int, default=0
        Whether progress is shown.

    Attributes
    ----------
    user_factors_ : ndarray of shape (n_users, n_factors)
    item_factors_ : ndarray of shape (n_items, n_factors)
    user_ids_, item_ids_ : ndarray
        What the rows of the factors stand for: the ids that the feedback had, or the numbers of rows and columns.
    n_iter_, n_features_in_ : int
    report_ : Report
        The record of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import ImplicitALS
    >>> users = ["ann", "ann", "bob", "bob", "bob", "cy", "cy", "dee", "dee", "dee"]
    >>> items = ["tea", "rye", "tea", "rye", "oat", "gin", "rum", "gin", "rum", "ale"]
    >>> model = ImplicitALS(4).fit((users, items, np.ones(10)))
    >>> model.recommend("ann", 1, without=["tea", "rye"])[0].tolist()
    ['oat']
    >>> model.similar_items("gin", 1)[0].tolist()
    ['rum']
    """

    _KIND, _begin = "als", staticmethod(_megagrid.implicit)
    _OPTIONS = {
        "n_factors": "dims",
        "block": "block",
        "reg": "lambda",
        "alpha": "alpha",
        "nu": "nu",
        "ratings_above": "ratings-above",
        "half_life": "half-life",
        "holdout": "holdout",
        "holdout_per_user": "holdout-per-user",
        "holdout_last": "holdout-last",
        "holdout_users": "holdout-users",
        "ranking": "ranking",
        "patience": "patience",
        "max_iter": "iterations",
        "tol": "tolerance",
    }

    def __init__(
        self,
        n_factors=32,
        *,
        block=16,
        reg=0.003,
        alpha=None,
        nu=1.0,
        ratings_above=None,
        half_life=None,
        holdout=None,
        holdout_per_user=None,
        holdout_last=None,
        holdout_users=None,
        ranking=None,
        patience=None,
        max_iter=16,
        tol=0.0,
        tune=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(locals())

    @whole
    def fit(self, X, y=None, *, callback=None, **reading):
        """Factorize feedback.

        Parameters
        ----------
        X : matrix of shape (n_users, n_items), a tuple (users, items), (users, items, values) or (users, items, values, times) of columns, a data frame, or a path
            Values are 0 or above: how often or how long a user has used an item; those of pairs (users, items) are 1. Users and items of columns are whole numbers or
            texts, times numbers or dates. Columns of a data frame are called user, item, rating and time, or as a file may call them; of
            another data frame, one of users by items, ids are the index and the columns. A path is one to ratings in any format that the command reads.
        y : None
            Ignored beside a matrix, as in a pipeline; values are in X.
        callback : callable or None
            Gets each iteration as a dict; the fit ends where it returns True.
        **reading : how a path is read
            ``format="parquet"``, ``columns="user=2,item=1,time=4"``,
            ``test="unseen.csv"``, as the command's options.

        Returns
        -------
        ImplicitALS
            The estimator.
        """
        X, times = of_frame(X, 4), None
        if isinstance(X, tuple) and len(X) == 4:
            X, times = X[:3], _input.times(X[3], len(X[2]))
        check_no_target(X, y)
        if isinstance(X, tuple) and len(X) == 3 and self.ratings_above is None:
            values = _input.column(X[2], "ratings")
            if values.size and values.min() < 0:
                at = int(values.argmin())
                user, item = (str(np.asarray(ids, dtype=object)[at]) for ids in X[:2])
                raise ValueError(f'feedback of user "{user}" on item "{item}" is {values[at]:g}, expected 0 or above, or ratings with ratings_above=X')
        begin = self._begin
        return self._factorize(_with_values(X), y, reading, callback, lambda parts, words, watched: begin(parts, times, words, watched))

    @classmethod
    def _of_manifest(cls, found):
        estimator, config = super()._of_manifest(found)
        try:
            # Without a unit it was given as a number.
            estimator.half_life = None if estimator.half_life is None else float(estimator.half_life)
        except ValueError:
            pass
        return estimator, config

    def _matrix(self, X, reset=False, repeats=False):
        matrix = super()._matrix(X, reset, repeats)
        if reset and self.ratings_above is None and matrix.values.size and matrix.values.min() < 0:
            raise ValueError("Negative values in data passed to ImplicitALS.fit; feedback is 0 or above, or ratings with ratings_above=X")
        return matrix

    def _taken(self, X):
        return _with_values(super()._taken(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.ratings_above is None
        return tags

    def _trained(self):
        config = self.report_["config"]
        above = config.get("ratings_above")
        weights = float(config["alpha"]), float(config["nu"]), None if above is None else float(above)
        return False, (float(config["lambda"]), weights)


def _with_values(X):
    """Give pairs of users and items, which are feedback of 1, a column of values. A list is a matrix, as everywhere in scikit-learn."""
    return (*X, np.ones(len(X[0]))) if isinstance(X, tuple) and len(X) == 2 else X
