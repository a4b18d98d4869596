"""Matrix factorization of ratings."""

import numpy as np

from . import _input, _megagrid
from ._base import whole
from ._pairs import Entries, check_columns, check_no_target
from ._recommender import Factors


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
        of ratings as they are. None: the power of two at or below their standard deviation, 1 for stars.
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
        ``report_["tuning"]``. With the same `random_state` and as many threads such a fit is the same.
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
        self._set(locals())

    @whole
    def fit(self, X, y=None, *, callback=None, **reading):
        """Factorize ratings.

        Parameters
        ----------
        X : matrix of shape (n_users, n_items), a tuple (users, items, ratings) or a data frame of columns, or a path
            Each value that a sparse matrix stores is a rating; of a dense one 0 is none. Users and items of columns are
            whole numbers or texts. Columns of a data frame are called user, item and rating, or as a file may call them; of another data
            frame, one of users by items, ids are the index and the columns. A path is one to ratings in any format that the command reads.
        y : None
            Ignored beside a matrix, as in a pipeline; ratings are in X.
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
        return self._factorize(self._taken(X), y, reading, callback)

    def _trained(self):
        return bool(self.report_["config"]["biases"]), (float(self.report_["config"]["lambda"]), None)

    def score(self, X, y=None):
        """Return minus the root of the mean squared error of ratings.

        Parameters
        ----------
        X : matrix or columns as for `fit`
            Rows and columns of a matrix are what they were in the matrix of `fit`; where that had columns or a path, their numbers are ids.
        y : None
            As in `fit`.

        Returns
        -------
        float
        """
        self._check_fitted()
        X = self._taken(X)
        check_no_target(X, y)
        check_columns(X, (3,))
        if isinstance(X, tuple):
            users, items, ratings = X
            ratings = _input.column(ratings, "ratings", len(users))
            foreseen = self.predict_pairs(users, items)
        else:
            is_placed = self._column_ids is not None and not _input.is_frame(X)
            entries = Entries(X, self._matrix(X, repeats=True) if is_placed else _input.Matrix(X, self, repeats=True))
            if is_placed and entries.matrix.shape[0] > len(self.user_ids_):
                raise ValueError(f"X has {entries.matrix.shape[0]} users, and the model knows {len(self.user_ids_)}")
            rows, columns, ratings = entries.values
            foreseen = self._foreseen(self._at_rows(entries)[rows], self._at_columns(entries)[columns])
        return -float(np.sqrt(np.mean(np.square(foreseen - ratings, dtype=np.float64))))
