"""Sparse logistic regression."""

import warnings

import numpy as np

from . import _input, _megagrid
from ._base import Estimator
from ._sklearn import ClassifierMixin, ConvergenceWarning


class SparseLogisticRegression(ClassifierMixin, Estimator):
    """Logistic regression of two classes with few features.

    Minimizes the sum of the samples' log losses + l1 · \\|w\\|₁ + l2 / 2 · \\|w\\|². A fit that converged has a certificate: no model's
    objective is below ``report_["result"]["metrics"]["bound"]``.

    Parameters
    ----------
    l1 : float or list of float, default=1.0
        Weight of \\|w\\|₁; scikit-learn's ``C`` is ``1 / l1``. Of several each begins from the model of the one before, the largest
        first, and the last is the model. With `l2` it may be 0: ridge regression, and ``C`` is ``1 / l2``.
    l2 : float, default=0.0
        Weight of \\|w\\|²/2, in addition: an elastic net.
    fit_intercept : bool, default=True
        Whether there is an intercept, which has no penalty.
    normalize : bool, default=False
        Whether samples are scaled to unit length.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, which multiply those of samples.
    holdout : float or None, default=None
        Part of the samples that is kept to measure ``test_log_loss`` on.
    patience : int or None, default=None
        Worse measurements in a row on those that end the fit, whose model is the best; None: they end nothing.
    max_iter : int, default=2000
        Passes over the features at most.
    tol : float, default=1e-6
        The fit ends when the objective is known to be within this part of the optimum's.
    n_jobs : int or None, default=None
        Threads; None: all cores.
    random_state : int, RandomState or None, default=None
        Decides what is kept for testing; None: as 1.
    verbose : int, default=0
        Whether progress is shown.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
        Those of a path are -1 and 1.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where there are names: columns of a data frame, features of a path.
    report_ : Report
        The record of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import SparseLogisticRegression
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 10))
    >>> y = (X[:, 3] > 0).astype(int)
    >>> model = SparseLogisticRegression(l1=5.0).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([3])
    >>> float(model.score(X, y)) > 0.95
    True
    """

    _OPTIONS = {
        "l1": "l1",
        "l2": "l2",
        "fit_intercept": "+intercept",
        "normalize": "+normalize",
        "holdout": "holdout",
        "patience": "patience",
        "max_iter": "iterations",
        "tol": "tolerance",
    }

    def __init__(
        self,
        l1=1.0,
        *,
        l2=0.0,
        fit_intercept=True,
        normalize=False,
        class_weight=None,
        holdout=None,
        patience=None,
        max_iter=2000,
        tol=1e-6,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.class_weight = class_weight
        self.holdout = holdout
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y=None, sample_weight=None, *, callback=None, **reading):
        """Fit to samples.

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n_samples, n_features), or a path
            A path is one to labelled samples in any format that the command reads; it has no ``y``.
        y : array of shape (n_samples,)
            Two classes.
        sample_weight : array of shape (n_samples,) or None
            Weights, 0 or above.
        callback : callable or None
            Gets each iteration as a dict; the fit ends where it returns True.
        **reading : how a path is read
            ``format="libsvm"``, ``positive=[1, 2]``, ``test="unseen.libsvm"``, as the command's options.

        Returns
        -------
        SparseLogisticRegression
            The estimator.
        """
        words = self._words() + self._reading(reading, _input.is_path(X))
        if _input.is_path(X):
            if y is not None or sample_weight is not None or self.class_weight is not None:
                raise ValueError("labels and weights of samples that are read from a path stand in the file")
            self.classes_ = np.array([-1, 1])
            self._forget()
            return self._fit(lambda watched: _megagrid.regression(X, None, None, words, watched), callback)
        matrix = self._matrix(X, reset=True)
        self.classes_, which = _input.labels(y, matrix.shape[0], self)
        signs = np.where(which == 1, np.float32(1), np.float32(-1))
        weights = self._weights(which, _input.sample_weights(sample_weight, matrix.shape[0]))
        return self._fit(lambda watched: _megagrid.regression(matrix.parts, signs, weights, words, watched), callback)

    def _weights(self, which, weights):
        of_classes = self.class_weight
        if of_classes is not None:
            if isinstance(of_classes, str):
                if of_classes != "balanced":
                    raise ValueError(f"class_weight is {of_classes!r}; expected 'balanced', a dict or None")
                sums = np.bincount(which, weights=weights, minlength=2)
                of_classes = sums.sum() / (2 * np.maximum(sums, np.finfo(float).tiny))
            else:
                unknown = set(of_classes) - set(self.classes_.tolist())
                if unknown:
                    raise ValueError(f"class_weight names {unknown}, which are no classes of y")
                of_classes = np.array([of_classes.get(one, 1.0) for one in self.classes_.tolist()])
            weights = of_classes[which] if weights is None else weights * of_classes[which]
        return None if weights is None else np.ascontiguousarray(weights, dtype=np.float32)

    def _keep(self, found):
        self.coef_ = found["weights"][np.newaxis]
        self.intercept_ = np.array([found["intercept"]])
        if "n_features_in_" not in self.__dict__:
            self._know(len(found["weights"]), [str(name) for name in found["names"]])
        if self.report_["result"]["ended_by"] == "iterations" and self.max_iter <= self.n_iter_ and self.tol > 0:
            text = f"not converged to tol={self.tol} within {self.n_iter_} iterations; try a larger max_iter, or scale the values"
            warnings.warn(text, ConvergenceWarning, stacklevel=5)

    def decision_function(self, X):
        """Return the score w·x + b of each sample: above 0 it is of the second class.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        self._check_fitted()
        if _input.is_path(X):
            names = self._names()
            return _megagrid.scores_of_file(X, names, self.coef_[0], float(self.intercept_[0]), bool(self.normalize))
        matrix = self._matrix(X)
        scores = np.asarray(matrix.operand @ self.coef_[0]).ravel()
        if self.normalize:
            squares = matrix.operand.multiply(matrix.operand) if matrix.sparse is not None else np.square(matrix.operand)
            lengths = np.sqrt(np.asarray(squares.sum(axis=1), dtype=np.float64)).ravel()
            scores = scores / np.where(lengths > 0, lengths, 1.0)
        return scores + self.intercept_[0]

    def predict_proba(self, X):
        """Return the chances of both classes.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples, 2)
        """
        scores = self.decision_function(X)
        # Neither exponential overflows.
        chances = np.exp(-np.logaddexp(0, -scores))
        return np.column_stack([1 - chances, chances])

    def predict(self, X):
        """Return the class of each sample.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        # An estimator that is not fitted has no classes yet.
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int)]

    def save(self, directory):
        """Write a model directory, which the command reads: ``megagrid predict``.

        Parameters
        ----------
        directory : path
            One that is not there yet.
        """
        self._check_fitted()
        classes = self.classes_.tolist()
        is_number = isinstance(classes[1], (int, float)) and not isinstance(classes[1], bool)
        record = self._record(classes=classes, positive=[float(classes[1])] if is_number else [])
        coef, intercept = self.coef_[0].astype(np.float64), float(self.intercept_[0])
        _megagrid.save_linear(directory, record, self._checksum, self._names(), coef, intercept)

    @classmethod
    def load(cls, directory):
        """Read a model directory, of `save` or of the command.

        Only features with a weight are in it, and are features of what is read: by their names, or by their numbers where all
        are numbers.

        Parameters
        ----------
        directory : path

        Returns
        -------
        SparseLogisticRegression
        """
        found = _megagrid.load_linear(directory)
        model, config = cls._of_manifest(found)
        names, weights, features = found["names"], found["weights"], config.get("features")
        if features is None:
            model._know(len(weights), [str(name) for name in names])
        elif isinstance(features, int):
            dense = np.zeros(features)
            dense[np.asarray(names, dtype=np.int64)] = weights
            weights = dense
            model._know(features, None)
        else:
            place = {name: at for at, name in enumerate(features)}
            dense = np.zeros(len(features))
            dense[[place[str(name)] for name in names]] = weights
            weights = dense
            model._know(len(features), features)
        model.coef_, model.intercept_ = weights[np.newaxis], np.array([found["intercept"]])
        model.classes_ = np.array(config.get("classes", [-1, 1]))
        model.n_iter_ = 0
        return model

    def _record(self, **more):
        names = self.__dict__.get("feature_names_in_")
        features = self.n_features_in_ if names is None else [str(name) for name in names]
        return super()._record(features=features, **more)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
