"""What all estimators share: parameters as options of the command, fits that can be watched and ended, and features by name."""

import functools
import json
import logging
import numbers
import operator
import os
import re
import warnings
from collections.abc import Mapping

import numpy as np

from . import _input
from ._report import Report
from ._sklearn import BaseEstimator, NotFittedError

# Seconds between looks at the keyboard, and how long an iteration may take to end after Ctrl-C.
_LOOK, _PATIENCE = 0.05, 0.1

# What the command says of how settings are found.
_OF_TUNING = ("tune", "tuned", "searcher", "budget", "trials", "no_retune", "time")

_LOGGER = logging.getLogger("megagrid")

__all__ = ["Estimator", "NotFittedError", "train", "words"]


def words(options, values):
    """Write parameters as the command's options.

    `options` maps a parameter to an option; one that begins with ``+`` is given where the parameter is true, one that begins with
    ``-`` where it is false.
    """
    found = []
    for name, option in options.items():
        value = values[name]
        if option[0] in "+-":
            if bool(value) == (option[0] == "+"):
                found.append(f"--{option[1:]}")
        elif value is not None:
            found.append(f"--{option}={_text(name, value)}")
    return found


def _text(name, value):
    value = _number(value)
    if isinstance(value, (list, tuple, np.ndarray)) and len(value) > 0:
        texts = [_text(name, one) for one in value]
        if any("," in text for text in texts):
            raise ValueError(f"{name} is {value!r}: what has a comma in it cannot be named in a list")
        return ",".join(texts)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, numbers.Real)):
        raise TypeError(f"{name} is {value!r}, expected a number")
    if isinstance(value, numbers.Integral):
        return str(int(value))
    return value if isinstance(value, str) else repr(float(value))


def _number(value):
    """Return what an array without dimensions holds, and anything else as it is."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _values(name, values):
    """Write what a parameter is tuned between: one value, several, or a range as the command has it."""
    values = _number(values)
    if not isinstance(values, (str, numbers.Real)):
        try:
            values = list(values)
        except TypeError:
            raise TypeError(f"tune[{name!r}] is {values!r}, expected values or a range, \"log:1e-3..1\" say") from None
        if not values:
            raise ValueError(f"tune[{name!r}] has no values, expected one or more")
    return _text(f"tune[{name!r}]", values)


def tuning(tune, options):
    """Write what is tuned as the command's options: nothing, what the algorithm gains most by, or values of parameters."""
    if tune is None or isinstance(tune, (bool, np.bool_)):
        return ["--tuned"] if tune else []
    if not isinstance(tune, Mapping):
        raise TypeError(f"tune is {tune!r}, expected True, False or a dict of parameters and their values")
    found = ["--tuned"]
    for name, values in tune.items():
        option = {**options, "n_jobs": "workers"}.get(name, name).lstrip("+-")
        found.append(f"--tune={option.replace('_', '-')}={_values(name, values)}")
    return found


def how(n_jobs, random_state):
    """Write the number of threads and the seed as the command's options."""
    found = []
    if n_jobs is not None and n_jobs != -1:
        if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
            raise ValueError(f"n_jobs is {n_jobs!r}, expected a number of threads, or None for all cores")
        found.append(f"--workers={num_threads(n_jobs)}")
    if random_state is not None:
        if hasattr(random_state, "randint"):
            random_state = random_state.randint(2**31)
        elif hasattr(random_state, "integers"):
            random_state = random_state.integers(2**31)
        if not isinstance(random_state, numbers.Integral) or random_state < 0:
            raise ValueError(f"{random_state!r} cannot be used to seed a run; expected a whole number, 0 or above")
        found.append(f"--seed={int(random_state)}")
    return found


def wanted(n):
    """Return how many are asked for, a whole number that is not negative."""
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"n is {n!r}, expected a whole number") from None
    if n < 0:
        raise ValueError(f"n is {n}, expected 0 or more")
    return n


def num_threads(n_jobs):
    """Return a number of threads; None: all cores."""
    if n_jobs is None or n_jobs == -1:
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


class Interrupted(Exception):
    """A run was left before its end: the exception that did it, and the run, which ends after its iteration."""

    def __init__(self, cause, run):
        super().__init__(cause)
        self.cause, self.run = cause, run


def train(begin, options, callback=None, verbose=0, most=None):
    """Run to the end, with the interpreter free for other threads.

    `begin` starts a run when it is told whether somebody looks at each iteration. `callback` gets each iteration as a dict, and ends
    the run where it returns True.
    """
    with _bar(verbose, most) as show:
        log = _log if _LOGGER.isEnabledFor(logging.DEBUG) else None
        looks = [look for look in (callback, show, log) if look is not None]
        try:
            run = begin(bool(looks))
        except ValueError as error:
            raise ValueError(_in_python(str(error), options)) from None
        try:
            while not run.has_ended:
                text = run.next(_LOOK)
                if text and any([look(json.loads(text)) for look in looks]):
                    run.end()
        except BaseException as cause:
            run.end()
            run.wait(_PATIENCE)
            raise Interrupted(cause, run) from None
    try:
        return run.result()
    except ValueError as error:
        raise ValueError(_in_python(str(error), options)) from None


def _log(iteration):
    _LOGGER.debug("iteration %d: objective %s, %s", iteration["iteration"], iteration["objective"], iteration["metrics"])


def _in_python(text, options):
    """Name options in an error as Python has them."""
    for name, option in options.items():
        option = option.lstrip("+-")
        text = re.sub(rf"'?--{option}(?![\w-])( <[^>]*>)?'?", name, text)
        text = re.sub(rf"^{option} is ", f"{name} is ", text)
    # Options of reading and tuning have their own names. What is within a word, as in a path, is none.
    return re.sub(r"(?<![^\s'\"`(\[,;])'?--([a-z][a-z0-9-]*)( <[^>]*>)?'?", lambda found: found[1].replace("-", "_"), text)


class _bar:
    """A bar of progress, by tqdm where it is installed, else a line for each iteration; nothing where nobody wants it."""

    def __init__(self, verbose, most):
        self.verbose, self.most, self.bar = verbose, most, None

    def __enter__(self):
        if not self.verbose:
            return None
        try:
            from tqdm.auto import tqdm

            self.bar = tqdm(total=self.most, unit="it")
        except ImportError:
            self.bar = None
        return self.show

    def show(self, iteration):
        found = {**iteration["metrics"]}
        if iteration["objective"] is not None:
            found["objective"] = iteration["objective"]
        text = "  ".join(f"{name} {value:.5g}" for name, value in found.items())
        if self.bar is None:
            print(f"iteration {iteration['iteration']}  {text}")
        else:
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update(iteration["iteration"] - self.bar.n)

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()


def whole(fit):
    """Have a fit that fails leave the estimator as it was; one that is interrupted leaves what was trained so far, if anything was."""

    @functools.wraps(fit)
    def fitted(self, *args, **kwargs):
        before = self.__dict__.copy()
        try:
            return fit(self, *args, **kwargs)
        except Interrupted as interrupted:
            # What was trained so far stays, whatever ended it; it is known when the run has ended.
            self._pending = interrupted.run, before
            if interrupted.run.has_ended:
                self._settle()
            raise interrupted.cause from None
        except BaseException as error:
            # Ctrl-C before a run began is a failure; after that neither the earlier model stays nor half of the new one.
            if isinstance(error, Exception) or self.__dict__.get("report_") is before.get("report_"):
                self._restore(before)
            else:
                self._drop()
            raise

    return fitted


class Estimator(BaseEstimator):
    """Parameters as options of the command, fits that can be watched and ended, and features by name."""

    # Parameters by the names of the command's options; see `words`.
    _OPTIONS = {}

    def _words(self):
        found = words(self._OPTIONS, self.get_params(deep=False)) + how(self.n_jobs, self.random_state)
        return found + tuning(self.tune, self._OPTIONS)

    def _set(self, given):
        """Keep what a constructor was given, by the names of its parameters."""
        vars(self).update({name: value for name, value in given.items() if name != "self"})

    def _reading(self, reading, is_path=True):
        """Write how a path is read as the command's options."""
        if reading and not is_path:
            raise TypeError(f"{', '.join(reading)}: this says how a path is read, and X is none")
        of_tuning = [] if self.tune else [name for name in reading if name in _OF_TUNING]
        if of_tuning:
            raise TypeError(f"{', '.join(of_tuning)}: this says how settings are found; ask for it with tune=True or a dict")
        given = [(name.replace("_", "-"), value) for name, value in reading.items() if value is not False]
        return [f"--{name}" if value is True else f"--{name}={_text(name, value)}" for name, value in given]

    def _fit(self, begin, callback):
        """Train, and keep what comes of it, or of what was trained before an interrupt."""
        self.__dict__.pop("_pending", None)

        def begun(is_watched):
            run = begin(is_watched)
            # The model of another fit is not to stand beside these data, where this one is interrupted.
            self._drop()
            return run

        options = {**self._OPTIONS, "n_jobs": "workers", "random_state": "seed"}
        self._take(train(begun, options, callback, self.verbose, self.max_iter))
        return self

    def _restore(self, before):
        """Be as before a fit, with parameters that were set since."""
        params = self.get_params(deep=False)
        self.__dict__.clear()
        self.__dict__.update({**before, **params})

    def _drop(self):
        """Keep nothing of an earlier fit but what is known of the data."""
        known = ("n_features_in_", "feature_names_in_", "classes_")
        for name in [name for name in self.__dict__ if name[0] != "_" and name[-1] == "_" and name not in known]:
            del self.__dict__[name]

    def _settle(self):
        """Keep what comes of an interrupted run, once its iteration has ended; of nothing that was trained, what there was before."""
        if "_pending" not in self.__dict__:
            return
        run, before = self._pending
        while not run.wait(_LOOK):
            pass
        del self._pending
        try:
            found = run.result()
        except Exception as error:
            self._restore(before)
            # A search of settings that was not over is no failure.
            if not isinstance(error, InterruptedError):
                warnings.warn(f"the fit that was interrupted failed, and changed nothing: {error}", stacklevel=3)
            return
        if json.loads(found["record"])["result"]["iterations"] == 0:
            self._restore(before)
        else:
            self._take(found)

    def __getattr__(self, name):
        if name.endswith("_") and not name.startswith("_") and "_pending" in self.__dict__:
            self._settle()
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _take(self, found):
        """Keep a run's record, and its model."""
        self.report_ = Report.read(found["record"])
        # What follows from the data is not what was asked for.
        asked = {name: getattr(self, name) for name in self._OPTIONS}
        self._asked_for = {name: value for name, value in asked.items() if value is None or isinstance(value, str)}
        self._checksum = found["checksum"]
        self.n_iter_ = self.report_["result"]["iterations"]
        self._keep(found)
        ended_by = self.report_["result"]["ended_by"]
        _LOGGER.info("%s: %d iterations, ended by %s", type(self).__name__, self.n_iter_, ended_by)

    def _keep(self, found):
        raise NotImplementedError

    def __sklearn_is_fitted__(self):
        self._settle()
        return "_state" in self.__dict__ or "report_" in self.__dict__

    def _check_fitted(self):
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using "
                "this estimator."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self):
        self._settle()
        parent = getattr(super(), "__getstate__", None)
        return parent() if parent else self.__dict__.copy()

    def _matrix(self, X, reset=False, repeats=False):
        """Check a matrix, and that its features are those that the estimator knows, or let it know them."""
        X = _input.table(X)
        names = _input.feature_names(X)
        if not reset:
            self._check_names(names)
        matrix = _input.Matrix(X, self, repeats=repeats)
        if reset:
            self._know(matrix.shape[1], names)
        elif matrix.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input."
            )
        return matrix

    def _forget(self):
        """Know no features: a path says which there are."""
        self.__dict__.pop("n_features_in_", None)
        self.__dict__.pop("feature_names_in_", None)

    def _know(self, number, names):
        self.n_features_in_ = number
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _check_names(self, names):
        known = self.__dict__.get("feature_names_in_")
        if names is None:
            if known is not None:
                text = f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names"
                warnings.warn(text, UserWarning, stacklevel=4)
            return
        if known is None:
            text = f"X has feature names, but {type(self).__name__} was fitted without feature names"
            warnings.warn(text, UserWarning, stacklevel=4)
            return
        if len(names) == len(known) and (names == known).all():
            return
        text = "The feature names should match those that were passed during fit.\n"
        unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
        for found, what in ((unseen, "Feature names unseen at fit time"), (missing, "Feature names seen at fit time, yet now missing")):
            if found:
                listed = "".join(f"- {name}\n" for name in found[:5]) + ("- ...\n" if len(found) > 5 else "")
                text += f"{what}:\n{listed}"
        if not unseen and not missing:
            text += "Feature names must be in the same order as they were in fit.\n"
        raise ValueError(text)

    def _names(self):
        """Return the names of features, as a model's directory has them."""
        names = self.__dict__.get("feature_names_in_")
        if names is not None and len(set(names)) < len(names):
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            raise ValueError(f"two features are called {twice!r}; a model's directory and files of samples know them by their names")
        return np.arange(self.n_features_in_, dtype=np.uint64) if names is None else [str(name) for name in names]

    def _record(self, **more):
        """Return the record, with what a model's directory has to tell the package."""
        # Of a fit that was given none it has what the algorithm does then.
        patience = None if self.patience is None else int(self.patience)
        given = self.__dict__.get("_asked_for", {})
        record = {**self.report_, "config": {**self.report_["config"], **more, "patience": patience, "asked_for": given}}
        return json.dumps(record)

    @classmethod
    def _of_manifest(cls, found):
        """Make an estimator with the parameters that a model was trained with."""
        manifest = json.loads(found["manifest"])
        config, params = manifest["config"], {}
        for name, option in cls._OPTIONS.items():
            key = option.lstrip("+-").replace("-", "_")
            key = key.removeprefix("no_") if option[0] == "-" else key
            if key in config:
                value = config[key]
                params[name] = value[0] if isinstance(value, list) and len(value) == 1 else value
        asked_for = config.get("asked_for") or {}
        params.update((name, value) for name, value in asked_for.items() if name in cls._OPTIONS)
        # 1 is what a run without a seed has.
        if config.get("seed", 1) != 1:
            params["random_state"] = config["seed"]
        estimator = cls(**params)
        estimator._asked_for = asked_for
        estimator.report_ = Report(
            command=manifest["kind"],
            config=config,
            input={**manifest["data"], "test_edges": 0},
            machine={"workers": 0, "vector": "", "memory_estimate_bytes": 0, "memory_bytes": 0},
            staleness={},
            peak_rss_bytes=None,
            megagrid=manifest["megagrid"],
            phases={"load": 0.0, "partition": 0.0, "plan": 0.0, "train": 0.0, "evaluate": 0.0},
            iterations=[],
            result={"objective": None, "metrics": manifest["metrics"], "iterations": 0, "ended_by": "load",
                    "edges_per_second": None, "imbalance": None},
        )
        estimator._checksum = int(manifest["data"]["checksum"].removeprefix("xxh3:"), 16)
        return estimator, config
