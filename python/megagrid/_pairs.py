"""Pairs of users and items as people have them: columns, data frames of columns, and matrices whose rows and columns have ids."""

import functools
import warnings

import numpy as np

from . import _input, _megagrid
from ._ids import of_labels

# What columns of users and items, of values and of times are called, in any case: as in the header of a file.
_ENDS, _VALUES, _TIMES = _megagrid.rating_columns()

# Rows from which a dense matrix may be taken for a table of pairs, and different numbers in each of its first two columns.
_MANY_ROWS, _MANY_IDS = 100, 20


def of_frame(X, most):
    """Return the columns of a data frame that are called as those of a file, so many at most, and anything else as it is.

    They are users and items, values where a column has them, and times where one has these as well.
    """
    X = _input.table(X)
    if not _input.is_frame(X):
        return X
    names = [name.lower() if isinstance(name, str) else None for name in X.columns]
    ends = next((ends for ends in _ENDS if set(ends) <= set(names)), None)
    if ends is None:
        return X
    places = [names.index(end) for end in ends]
    if most == 2:
        return tuple(_input.column_of_frame(X, at) for at in places)
    value = next((names.index(name) for name in _VALUES if name in names), None)
    if value is None and len(names) > 2 and 2 not in places and names[2] not in _TIMES:
        value = 2
    if value is None and len(names) > 2:
        known = ", ".join(_VALUES)
        raise ValueError(f"no column of the data frame is called {known}; pass columns as a tuple: (users, items, values), or pairs (users, items)")
    time = next((names.index(name) for name in _TIMES if name in names), None)
    places += [value] if value is not None else []
    places += [time] if time is not None else []
    return tuple(_input.column_of_frame(X, at) for at in places[:most])


def check_columns(X, lengths):
    """Refuse a tuple that is neither of so many columns, nor a matrix."""
    forms = {2: "(users, items)", 3: "(users, items, values)", 4: "(users, items, values, times)"}
    if isinstance(X, tuple) and len(X) not in lengths:
        expected = " or ".join(forms[length] for length in lengths)
        more = "; ImplicitALS.fit also takes (users, items) and (users, items, values, times)"
        raise ValueError(f"a tuple of {len(X)} columns, expected {expected}{more}")


def check_no_target(X, y):
    """Refuse y where it would be dropped; beside a matrix it is ignored, as in pipelines of scikit-learn."""
    if y is None:
        return
    if isinstance(X, tuple) or _input.is_path(X):
        what = "a path says which column has the ratings" if _input.is_path(X) else "ratings are the third of the columns"
        raise ValueError(f"y is given, and would be ignored: {what}; pass X=(users, items, ratings) without y")
    shape = np.shape(X)
    if len(shape) == 2 and shape[1] == 2 and len(X) >= _MANY_ROWS and np.shape(y)[:1] == shape[:1] and _are_whole(np.asarray(X)):
        raise ValueError(
            f"X is a matrix of {shape[0]} users by 2 items, and y would be ignored; where rows of X are pairs of a user and an item, pass "
            "X=(X[:, 0], X[:, 1], y)"
        )


def warn_of_triples(values):
    """Say that a dense matrix looks like a table, of which each row has a user, an item, and perhaps a rating and a time."""
    rows, columns = values.shape
    if not 2 <= columns <= 4 or rows < _MANY_ROWS or not _are_whole(values[:, :2]):
        return
    if min(len(np.unique(values[:, at])) for at in (0, 1)) > _MANY_IDS:
        warnings.warn(
            f"X is taken for a matrix of {rows} users by {columns} items; where each row has a user, an item and a rating, pass a tuple of "
            "columns: (X[:, 0], X[:, 1], X[:, 2])",
            UserWarning,
            stacklevel=6,
        )


def _are_whole(values):
    return values.dtype.kind in "iuf" and bool((values >= 0).all() and (values == np.rint(values)).all())


class Entries:
    """The values of a matrix, and the ids that a data frame gives its rows and columns.

    Attributes
    ----------
    matrix : Matrix
    row_ids, column_ids : ndarray of ids, or None
        The index and the columns of a data frame; None where there is none, or where its labels are no ids.
    """

    def __init__(self, X, matrix):
        self.matrix, is_frame = matrix, _input.is_frame(X)
        self.row_ids = of_labels(X.index) if is_frame and hasattr(X, "index") else None
        self.column_ids = of_labels(list(X.columns)) if is_frame else None

    @functools.cached_property
    def values(self):
        """Return rows, columns and values: all that a sparse matrix stores, of a dense one those that are not 0."""
        matrix = self.matrix
        if matrix.sparse is None:
            rows, columns = np.nonzero(matrix.values)
            return rows, columns, matrix.values[rows, columns]
        stored = matrix.sparse.tocoo()
        return stored.row, stored.col, stored.data
