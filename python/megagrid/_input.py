"""What users pass: matrices of all kinds, data frames and paths, checked, without needless copies."""

import os
import re
import sys
import warnings

import numpy as np

from ._sklearn import DataConversionWarning

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_UINT32_MAX = 2**32 - 1


def is_path(X):
    """Tell whether data is named by a path."""
    return isinstance(X, (str, os.PathLike))


def is_sparse(X):
    """Tell whether data is a sparse matrix or array of SciPy, without importing it."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def is_frame(X):
    """Tell whether data is a data frame of pandas or polars, or one like them."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy") and not isinstance(X, np.ndarray)


class _Table:
    """What is asked of a data frame here, of a table of pyarrow."""

    def __init__(self, table):
        self.table, self.columns = table, table.column_names

    def to_numpy(self):
        if not self.columns:
            return np.empty((self.table.num_rows, 0))
        return np.column_stack([column.to_numpy() for column in self.table.columns])


def table(X):
    """Return a data frame for a table that offers itself by the Arrow PyCapsule interface only, and anything else as it is.

    A stream can be read once: what is returned takes the place of `X`.
    """
    if is_frame(X) or not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")):
        return X
    # A single column, as of pyarrow.Array, is an array.
    if hasattr(X, "__array__") and not (hasattr(X, "columns") or hasattr(X, "schema")):
        return X
    try:
        import pyarrow

        return _Table(pyarrow.table(X))
    except ImportError:
        pass
    try:
        import polars

        return polars.DataFrame(X)
    except ImportError:
        pass
    if hasattr(X, "__array__"):
        return X
    raise TypeError(f"X is a {type(X).__name__}, a table of Arrow; install pyarrow or polars to read it, or pass a NumPy array")


def column_of_frame(X, at):
    """Return a column of a data frame by its place."""
    if isinstance(X, _Table):
        return X.table.column(at)
    return X.iloc[:, at] if hasattr(X, "iloc") else X[:, at]


def feature_names(X):
    """Return the names of a data frame's columns; None where there are none, or they are no texts."""
    if not is_frame(X):
        return None
    names = np.asarray(list(X.columns), dtype=object)
    kinds = sorted({type(name).__name__ for name in names})
    if kinds == ["str"]:
        return names
    if "str" in kinds:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types. If you want feature names to be stored and validated, you must "
            "convert them all to strings, by using X.columns = X.columns.astype(str) for example. Otherwise you can remove "
            "feature / column names from your input data, or convert them all to a non-string data type."
        )
    return None


def _numbers(values, name):
    """Return values with a type that the library reads where they are."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "c":
        raise ValueError(f"Complex data not supported\n{values!r}\n")
    if kind in "OUSV":
        return np.asarray(values.astype(np.float64))
    if kind not in "fiub":
        raise TypeError(f"{name} holds {values.dtype}, expected numbers")
    if kind == "f":
        wanted = values.dtype if size in (4, 8) else (np.float32 if size < 4 else np.float64)
    elif kind == "b" or size < 4:
        wanted = np.int32
    else:
        wanted = values.dtype if kind == "i" else (np.int64 if size == 4 else np.float64)
    # A field of packed records may begin anywhere.
    return np.require(values, np.dtype(wanted).newbyteorder("="), "A")


def _check_finite(values, name):
    if values.dtype.kind != "f" or values.size == 0:
        return
    with np.errstate(all="ignore"):
        most = max(float(values.max()), -float(values.min()))
    if most <= _FLOAT32_MAX:
        return
    if np.isnan(values).any():
        raise ValueError(f"Input {name} contains NaN.")
    raise ValueError(f"Input {name} contains infinity or a value too large for dtype('float32').")


class Matrix:
    """A matrix that has been checked; `repeats` tells whether values in one place count each, as ratings and links do.

    Attributes
    ----------
    parts : what the compiled part of the package takes
    shape : tuple of two int
    values : ndarray of the values that are there
    """

    def __init__(self, X, estimator=None, name="X", repeats=False):
        who = "" if estimator is None else f" by {type(estimator).__name__}"
        X = table(X)
        if is_frame(X):
            X = _of_frame(X)
        if is_sparse(X):
            self._take_sparse(X, name, repeats)
        else:
            self._take_dense(X, name)
        rows, columns = self.shape
        for number, of in ((rows, "sample(s)"), (columns, "feature(s)")):
            if number == 0:
                raise ValueError(
                    f"Found array with 0 {of} (shape=({rows}, {columns})) while a minimum of 1 is required{who}."
                )
        _check_finite(self.values, name)

    def _take_sparse(self, X, name, repeats):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D input, got input with shape {X.shape}. Reshape your data.")
        X = X if X.format in ("csr", "csc", "coo") else X.tocsr()
        # A place that is there twice holds the sum, unless each value counts.
        if not repeats and X.format == "coo":
            X = X.tocsr()
        if not repeats and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self.shape = tuple(int(number) for number in X.shape)
        self.values = np.ascontiguousarray(_numbers(X.data, name))
        self.sparse = X
        if X.format == "coo":
            self.parts = (_ids(X.row), _ids(X.col), self.values, self.shape)
        else:
            self.parts = (X.format == "csc", _ids(X.indptr), _ids(X.indices), self.values, self.shape)

    def _take_dense(self, X, name):
        X = np.asarray(X)
        if X.ndim < 2:
            kind = "1D array" if X.ndim == 1 else "scalar array"
            raise ValueError(
                f"Expected 2D array, got {kind} instead:\narray={X}.\nReshape your data either using array.reshape(-1, 1) if "
                "your data has a single feature or array.reshape(1, -1) if it contains a single sample."
            )
        if X.ndim > 2:
            raise ValueError(f"Found array with dim {X.ndim}. {name} expected <= 2.")
        # Single precision has all these numbers: no larger copy is made.
        is_small = X.dtype.kind == "b" or X.dtype.kind in "iu" and X.dtype.itemsize <= 2
        X = X.astype(np.float32) if is_small else _numbers(X, name)
        self.shape = X.shape
        self.values = self.parts = X if X.dtype.kind == "f" else X.astype(np.float64)
        self.sparse = None

    @property
    def operand(self):
        """Return what can be multiplied."""
        return self.values if self.sparse is None else self.sparse

    def coarse(self):
        """Return the columns whose values single precision hardly tells apart: fewer than 256 of its steps lie between them."""
        rows, columns = self.shape
        full, values = np.arange(columns), self.values
        if self.sparse is not None:
            # A column that is not full has zeros, from which other values are far enough.
            is_csc = self.sparse.format == "csc"
            counts = np.diff(self.sparse.indptr) if is_csc else np.bincount(self.sparse.indices, minlength=columns)
            full = np.flatnonzero(counts == rows)
            values = self.sparse[:, full].toarray()
        least, greatest = (ends.astype(np.float64) for ends in (values.min(axis=0), values.max(axis=0)))
        # What is no number of single precision is refused later.
        with np.errstate(all="ignore"):
            steps = np.spacing(np.maximum(np.abs(least), np.abs(greatest)).astype(np.float32))
            return full[(least < greatest) & (greatest - least < 256 * steps)]

    def check_counts(self, where):
        """Refuse what is below 0 or too large for a count, and say so where values are no whole numbers."""
        if self.values.size == 0:
            return self
        if self.values.min() < 0:
            raise ValueError(f"Negative values in data passed to {where}")
        if self.values.max() > _UINT32_MAX:
            raise ValueError(f"{where} counts up to {_UINT32_MAX}, and the largest value is {self.values.max()}")
        if self.values.dtype.kind == "f" and (self.values != np.rint(self.values)).any():
            warnings.warn(f"{where} counts words: values are rounded to whole numbers", UserWarning, stacklevel=3)
        return self


def _ids(ids):
    wanted = np.int32 if ids.dtype.itemsize <= 4 and ids.dtype.kind == "i" else np.int64
    return np.ascontiguousarray(ids, dtype=wanted)


def _of_frame(X):
    if hasattr(X, "sparse") and all(hasattr(kind, "fill_value") for kind in X.dtypes):
        return X.sparse.to_coo().tocsr()
    for name, kind in dict(getattr(X, "schema", ())).items():
        # Polars would make numbers of them.
        if kind.is_temporal():
            raise TypeError(f"column {name!r} of X holds {kind}, expected numbers")
    for name, kind in zip(X.columns, getattr(X, "dtypes", ())):
        # Pandas would, beside a column of an extension type; those of pyarrow have kinds as NumPy's.
        if getattr(kind, "kind", "") in ("M", "m"):
            raise TypeError(f"column {name!r} of X holds {kind}, expected numbers")
    if any(hasattr(kind, "na_value") for kind in getattr(X, "dtypes", ())):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return X.to_numpy()


def is_missing(one):
    """Tell whether an object stands for nothing: None, or what pandas and NumPy have in its place."""
    return one is None or type(one).__name__ in ("NAType", "NaTType") or isinstance(one, (float, np.floating)) and one != one


def column(values, name, length=None):
    """Return a column of numbers."""
    if hasattr(getattr(values, "dtype", None), "na_value") and hasattr(values, "to_numpy"):
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(values)
    if values.ndim != 1:
        raise ValueError(f"{name} has the shape {values.shape}, expected one dimension")
    if length is not None and len(values) != length:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[length, len(values)]}")
    values = _numbers(values, name)
    _check_finite(values, name)
    return values


def _numbers_or_dates(values):
    """Read texts and objects: all numbers, or all dates."""
    for kind in (np.float64, "datetime64[us]"):
        try:
            with warnings.catch_warnings():
                # Dates with a zone are taken as they are in UTC.
                warnings.filterwarnings("ignore", "no explicit representation of timezones")
                if kind != np.float64:
                    values = np.array([np.datetime64("NaT") if is_missing(one) else one for one in values], dtype=object)
                return values.astype(kind)
        except (ValueError, TypeError, OverflowError):
            pass
    raise ValueError("times are neither numbers nor dates; expected dates as 2026-11-25 or 2026-11-25T08:30:00")


def times(values, length):
    """Return a column of times as numbers: dates as seconds since 1970."""
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:
        values = getattr(values, "dt", values).tz_convert(None)
    values = np.asarray(values)
    if values.dtype.kind in "OSU":
        values = _numbers_or_dates(values)
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise ValueError("times contains NaT")
        dates = values.astype("datetime64[us]")
        is_finer = np.datetime_data(values.dtype)[0] in ("ns", "ps", "fs", "as")
        if not is_finer and (dates.astype(values.dtype) != values).any():
            raise ValueError(f"times are {values.dtype} out of the range of microseconds; give them as numbers")
        values = dates.astype(np.int64) / 1e6
    return np.ascontiguousarray(column(values, "times", length), dtype=np.float64)


# As many as the library takes.
_MOST_CLASSES = 1000


def labels(y, length, estimator):
    """Return the classes, two or more, and which one each sample has."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if y.dtype.kind == "T":
        y = y.astype(object)
    if y.ndim == 2 and y.shape[1] == 1:
        text = "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,)."
        warnings.warn(text, DataConversionWarning, stacklevel=3)
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if len(y) != length:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[length, len(y)]}")
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{y!r}\n")
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise ValueError(f"Input y contains {'NaN' if np.isnan(y).any() else 'infinity'}.")
        if (y != np.rint(y)).any():
            raise ValueError("Unknown label type: continuous. Maybe you are trying to fit a classifier to a regression target")
    if y.dtype.kind == "O":
        _check_labels(y)
    elif y.dtype.kind not in "biufU":
        raise TypeError(f"y holds {y.dtype}, expected numbers or texts")
    classes, which = np.unique(y, return_inverse=True)
    if len(classes) > _MOST_CLASSES:
        raise ValueError(
            f"y holds {len(classes)} classes, expected {_MOST_CLASSES} at most. Unknown label type: is it a regression target? Cut it "
            "into ranges."
        )
    if len(classes) < 2:
        raise ValueError(f"y holds 1 class, {classes[0]!r}; expected two classes or more to tell apart")
    return classes, which


def _check_labels(y):
    """Refuse objects that are no classes, or that a model's directory could not hold."""
    for one in y:
        if isinstance(one, str):
            continue
        if is_missing(one):
            raise ValueError("Input y contains NaN.")
        if not isinstance(_plain(one), (bool, int, float)):
            raise TypeError(f"y holds {one!r}, a {type(one).__name__}; expected numbers or texts")


def _plain(one):
    return one.item() if isinstance(one, np.generic) else one


def plain(classes):
    """Return classes as numbers and texts of Python, which JSON has."""
    return [_plain(one) for one in classes.tolist()]


def names_of_classes(classes):
    """Return the names by which a text has classes: whole numbers without a point."""
    return [str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in plain(classes)]


# A number as the library reads one of a file: Python's also have underscores, and digits of other scripts.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def classes_of_names(names):
    """Return classes as numbers where all are; whole numbers that floats do not tell apart are words."""
    if not all(_NUMBER.fullmatch(name) for name in names):
        return np.array(names)
    numbers = np.array([float(name) for name in names])
    if not (np.abs(numbers) < 2**53).all():
        return np.array(names)
    return numbers.astype(np.int64) if (numbers == np.rint(numbers)).all() else numbers


def sample_weights(weights, length):
    """Return the weights of samples; None where all are 1."""
    if weights is None:
        return None
    weights = np.asarray(weights)
    if weights.ndim == 0:
        weights = np.full(length, weights)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != length:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(length,)}!")
    weights = _numbers(weights, "sample_weight").astype(np.float64)
    _check_finite(weights, "sample_weight")
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to sample_weight")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights
