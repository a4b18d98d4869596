"""Sparse logistic regression."""

import json
import numbers
import warnings
from collections.abc import Mapping

import numpy as np

from . import _input, _megagrid
from ._base import Estimator, whole
from ._sklearn import ClassifierMixin, ConvergenceWarning


class SparseLogisticRegression(ClassifierMixin, Estimator):
    """Logistic regression with few features.

    Minimizes the sum of the samples' log losses + l1 · \\|w\\|₁ + l2 / 2 · \\|w\\|². A fit that converged has a certificate: no model's
    objective is below ``report_["result"]["metrics"]["bound"]``. Of more than two classes each is told from the rest by a model of its own,
    or all are fitted together. `fit` reads values in single precision, as the command and all that reads a path do; what predicts takes
    those of a matrix as they are. Subtract a constant from values that are large and differ by little, such as times in seconds.

    Parameters
    ----------
    l1 : float, list of float or "path", default=1.0
        Weight of \\|w\\|₁; scikit-learn's ``C`` is ``1 / l1``. Of several each begins from the model of the one before, the largest
        first. The model is the last or, with `holdout` or ``fit(path, test=...)``, the one that does best on those samples. "path": twenty
        that follow from the samples, with either of these. With `l2` it may be 0: ridge regression, and ``C`` is ``1 / l2``.
    l2 : float, default=0.0
        Weight of \\|w\\|²/2, in addition: an elastic net.
    fit_intercept : bool, default=True
        Whether there is an intercept, which has no penalty.
    multinomial : bool, default=False
        Whether more than two classes are fitted together, so that their chances have a sum of 1 (softmax).
    normalize : bool, default=False
        Whether samples are scaled to unit length.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, which multiply those of samples; a class that a dict does not name weighs 1.
    holdout : float or None, default=None
        Part of the samples that is kept to measure ``test_log_loss`` on, by their `sample_weight`; `class_weight` counts for training only.
    patience : int or None, default=None
        Worse measurements in a row on those that end the fit, whose model is the best; None: they end nothing.
    max_iter : int, default=2000
        Passes over the features at most, for each class and l1.
    tol : float, default=1e-6
        The fit ends when the objective is known to be within this part of the optimum's.
    tune : bool or dict, default=False
        True: the fit finds the blocks of features and their delay on the way, by short trials on branches of the run, as ``megagrid tune`` does. A dict says what is tuned
        and between which values: a list, or a range as the command has it, ``{"blocks": [20, 50]}``. The record of all trials is
        ``report_["tuning"]``. Trials are compared by seconds, so that another fit may find another setting.
    n_jobs : int or None, default=None
        Threads; None: all cores. With another number a fit is a little different, whatever `random_state` is.
    random_state : int, RandomState or None, default=None
        Decides what is kept for testing; None: as 1. With the same one and as many threads a fit is the same.
    verbose : int, default=0
        Whether progress is shown.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Of two classes one row, whose scores are above 0 for the second.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    l1_ : float
        The l1 of the model.
    path_ : list of dict
        Not of a model that was loaded: what is known of the model of each l1 of the fit, the largest first: ``l1``, ``objective``, ``bound``, ``nonzeros``, ``iterations``. Of
        several with `holdout` or ``fit(path, test=...)`` also ``test_log_loss``, ``test_accuracy`` and ``test_auc``, or, where each of more
        than two classes is told from the rest, ``test_class_log_loss``, the mean over classes.
    calibration_ : ndarray of shape (0, 2), (1, 2) or (n_classes, 2)
        Slope and offset of the lines by which scores were calibrated (``fit(path, calibrate=True)``); they are in the weights already.
    classes_ : ndarray of shape (n_classes,)
        Those of a path are numbers if all labels are, else words.
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
        "multinomial": "+multinomial",
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
        multinomial=False,
        normalize=False,
        class_weight=None,
        holdout=None,
        patience=None,
        max_iter=2000,
        tol=1e-6,
        tune=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(locals())

    @whole
    def fit(self, X, y=None, sample_weight=None, *, callback=None, **reading):
        """Fit to samples.

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n_samples, n_features), or a path
            A path is one to labelled samples in any format that the command reads; it has no ``y``.
        y : array of shape (n_samples,)
            Classes, two or more.
        sample_weight : array of shape (n_samples,) or None
            Weights, 0 or above.
        callback : callable or None
            Gets each iteration as a dict; the fit ends where it returns True.
        **reading : how a path is read
            ``format="libsvm"``, ``positive=[1, "spam"]``, ``test="unseen.libsvm"``, ``columns="text=body,label=stars"``
            (``weight=COLUMN`` names what samples weigh), ``lower_case=True``, ``split="punctuation"``, ``bigrams=True``, ``hash_bits=18``, as the command's options.

        Returns
        -------
        SparseLogisticRegression
            The estimator.
        """
        words = self._words() + self._reading(reading, _input.is_path(X))
        if _input.is_path(X):
            if y is not None or sample_weight is not None:
                raise ValueError("labels and weights of samples that are read from a path stand in the file; columns='label=y,weight=w' names those of a table")
            words += self._class_weights(None)
            self.__dict__.pop("classes_", None)
            self._forget()
            return self._fit(lambda watched: _megagrid.regression(X, None, None, words, watched), callback)
        matrix = self._matrix(X, reset=True)
        self.classes_, which = _input.labels(y, matrix.shape[0], self)
        words += self._class_weights(_input.plain(self.classes_))
        labels = np.ascontiguousarray(which, dtype=np.uint32), len(self.classes_)
        weights = _input.sample_weights(sample_weight, matrix.shape[0])
        weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float32)
        if weights is not None and weights.any():
            sums = np.bincount(which, weights, len(self.classes_))
            if (sums == 0).any():
                raise ValueError(f"all samples of class {self.classes_[sums.argmin()]} weigh 0; leave the class out, or weigh some of them")
        self._fit(lambda watched: _megagrid.regression(matrix.parts, labels, weights, words, watched), callback)
        # Only by now it is known that no index of a sparse matrix is damaged.
        self._warn_of_coarse(matrix)
        return self

    def _warn_of_coarse(self, matrix):
        """Warn where values of a feature are large and differ by little."""
        coarse = matrix.coarse()
        if len(coarse):
            names = self.__dict__.get("feature_names_in_", range(self.n_features_in_))
            text = ", ".join(str(names[feature]) for feature in coarse[:3]) + (f" and {len(coarse) - 3} more" if len(coarse) > 3 else "")
            text += ": values of a feature differ by less than single precision tells apart at their size; subtract a constant"
            warnings.warn(text, UserWarning, stacklevel=4)

    def _class_weights(self, classes):
        """Write the weights of classes as the command's option: classes are called by their numbers there, those of a path by their names."""
        weights = self.class_weight
        if weights is None:
            return []
        if isinstance(weights, str):
            if weights != "balanced":
                raise ValueError(f"class_weight is {weights!r}; expected 'balanced', a dict or None")
            return ["--class-weight=balanced"]
        if not isinstance(weights, Mapping):
            raise TypeError(f"class_weight is {weights!r}; expected 'balanced', a dict or None")
        unknown = set() if classes is None else set(weights) - set(classes)
        # A part of the samples may lack a class; where others have no weight, a name is wrong.
        if unknown and not set(classes) <= set(weights):
            raise ValueError(f"class_weight names {unknown}, which are no classes of y")
        weights = {one: weight for one, weight in weights.items() if one not in unknown}
        names = {one: one if classes is None else classes.index(one) for one in weights}
        for one, weight in weights.items():
            if not (isinstance(weight, numbers.Real) and 0 < weight <= np.finfo(np.float32).max):
                raise ValueError(f"class_weight of {one!r} is {weight!r}; expected a number above 0")
        pairs = [f"{names[one]}={float(weight)!r}" for one, weight in weights.items()]
        return [f"--class-weight={','.join(pairs)}"] if pairs else []

    def _keep(self, found):
        self.coef_ = found["weights"]
        self.intercept_ = found["intercepts"]
        self.calibration_ = found["calibration"]
        self.path_ = [
            {"l1": one["l1"], **one["certificate"], "iterations": one["iterations"], **one["tested"]} for one in json.loads(found["path"])
        ]
        penalties = self.report_["config"]["l1"]
        self.l1_ = self.report_["result"]["metrics"].get("l1", min(penalties))
        if "classes_" not in self.__dict__:
            self.classes_ = _input.classes_of_names(found["classes"])
        if "n_features_in_" not in self.__dict__:
            self._know(self.coef_.shape[1], [str(name) for name in found["names"]])
        # The last of a path may end otherwise than the one that is the model.
        converged = len(self.path_) > 1 and next((one["has_converged"] for one in json.loads(found["path"]) if one["l1"] == self.l1_), False)
        most, tol = (self.report_["config"][name] for name in ("iterations", "tolerance"))
        if self.report_["result"]["ended_by"] == "iterations" and most <= self.n_iter_ and tol > 0 and not converged:
            text = f"not converged to tol={tol} within {most} iterations; try a larger max_iter, or scale the values"
            warnings.warn(text, ConvergenceWarning, stacklevel=5)

    def decision_function(self, X):
        """Return the score w·x + b of each sample: above 0 it is of the second of two classes; of more a score for each.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        self._check_fitted()
        if _input.is_path(X):
            of_classes = _input.names_of_classes(self.classes_), self.coef_, self.intercept_.tolist()
            scores = _megagrid.scores_of_file(X, self._names(), *of_classes, json.dumps(self._config()))
            return scores[:, 0] if scores.shape[1] == 1 else scores
        matrix = self._matrix(X)
        scores = np.asarray(matrix.operand @ self.coef_.T)
        if self.report_["config"]["normalize"]:
            # Squares of small whole numbers would not be numbers of their type.
            values = matrix.operand.astype(np.float64)
            squares = values.multiply(values) if matrix.sparse is not None else np.square(values)
            lengths = np.sqrt(np.asarray(squares.sum(axis=1))).reshape(-1, 1)
            scores = scores / np.where(lengths > 0, lengths, 1.0)
        scores = scores + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X):
        """Return the chances of the classes: of more than two those that each has against the rest, scaled to a sum of 1, or those of a softmax.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X):
        """Return the logarithms of the chances of the classes, which are numbers also where a chance is too small to be one.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.logaddexp(0, np.column_stack([scores, -scores]))
        logs = scores if self.report_["config"].get("multinomial") else -np.logaddexp(0, -scores)
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

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
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def save(self, directory):
        """Write a model directory, which the command reads: ``megagrid predict``.

        Parameters
        ----------
        directory : path
            One that is not there yet.
        """
        self._check_fitted()
        record, names = self._record(classes=_input.plain(self.classes_)), _input.names_of_classes(self.classes_)
        coef = np.ascontiguousarray(self.coef_, dtype=np.float64)
        lines = self.intercept_.tolist(), [tuple(line) for line in self.calibration_.tolist()]
        _megagrid.save_linear(directory, record, self._checksum, self._names(), names, coef, lines)

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
            model._know(weights.shape[1], [str(name) for name in names])
        else:
            number = features if isinstance(features, int) else len(features)
            place = None if isinstance(features, int) else {name: at for at, name in enumerate(features)}
            places = np.asarray(names, dtype=np.int64) if place is None else [place[str(name)] for name in names]
            dense = np.zeros((weights.shape[0], number))
            dense[:, places] = weights
            weights = dense
            model._know(number, None if place is None else features)
        model.coef_, model.intercept_, model.calibration_ = weights, found["intercepts"], found["calibration"]
        classes = config.get("classes")
        model.classes_ = _input.classes_of_names(found["classes"]) if classes is None else np.array(classes)
        model.class_weight = _weights_of_classes(config, _input.plain(model.classes_))
        # Of a path the directory says which one it is of.
        penalties = model.report_["config"]["l1"]
        model.l1_ = model.report_["result"]["metrics"].get("l1", min(penalties))
        model.n_iter_ = 0
        return model

    def _config(self):
        """Return how the model came about. Files that come later are tables where it knows columns of a data frame, and not of a path."""
        config = self.report_["config"]
        return {"format": "table", **config} if "feature_names_in_" in self.__dict__ else config

    def _record(self, **more):
        names = self.__dict__.get("feature_names_in_")
        features = self.n_features_in_ if names is None else [str(name) for name in names]
        return super()._record(**{**self._config(), **more, "features": features})


def _weights_of_classes(config, classes):
    """Return `class_weight` of a configuration, which calls the classes of a path by their names, and those of a matrix by their numbers."""
    weights = config.get("class_weight")
    if weights is None or "=" not in weights:
        return weights
    found = {}
    for pair in weights.split(","):
        name, weight = pair.rsplit("=", 1)
        if "input" not in config:
            name = classes[int(name)]
        elif not any(isinstance(one, str) for one in classes):
            name = _input.classes_of_names([name]).item()
        found[name] = float(weight)
    return found
