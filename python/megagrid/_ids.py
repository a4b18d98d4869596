"""Ids of users, items and vertices: whole numbers or texts."""

import re
from numbers import Integral

import numpy as np

from . import _input


def array_of(ids):
    """Make an array of ids. Where texts are in a list it is one of objects: NumPy would make a text of whatever else is among them."""
    if isinstance(ids, (list, tuple)) and any(isinstance(one, (str, bytes)) for one in ids):
        return np.array(ids, dtype=object)
    return np.asarray(ids)


def coded(ids, name, length):
    """Number ids in their order; return the numbers, and the ids."""
    ids = array_of(ids)
    if ids.ndim != 1 or len(ids) != length:
        raise ValueError(f"{name} have the shape {ids.shape}, expected one id for each of {length} ratings")
    if ids.dtype.kind == "f" and np.isnan(ids).any() and (np.isnan(ids) | (ids == np.floor(ids))).all():
        # What whole numbers become where one is missing.
        raise ValueError(f"{name} have none at place {int(np.isnan(ids).argmax())}; leave out what has no id")
    if ids.dtype.kind not in "iubUSOT":
        raise TypeError(f"{name} are {ids.dtype}, expected whole numbers or texts")
    if ids.dtype.kind == "S":
        ids = _decoded(ids)
    if ids.dtype.kind in "OT":
        ids = ids.astype(object)
        whole = _whole_objects(ids)
        if whole is None:
            return _coded_objects(ids, name)
        ids = whole
    if ids.dtype.kind == "b":
        # As a model's directory has them.
        ids = ids.astype(np.int64)
    if ids.dtype.kind == "u" and length and ids.max() < 2**63:
        ids = ids.astype(np.int64)
    if length and ids.dtype.kind in "iu" and 0 <= ids.min() and ids.max() < 4 * length + 1024:
        # Numbers without large gaps are counted, which sorts nothing.
        occurs = np.zeros(int(ids.max()) + 1, dtype=bool)
        occurs[ids] = True
        known = np.flatnonzero(occurs)
        if len(known) == len(occurs):
            return np.ascontiguousarray(ids, dtype=np.int64 if ids.dtype.itemsize > 4 else np.int32), known
        return (np.cumsum(occurs, dtype=np.int32) - 1)[ids], known
    known, numbers = np.unique(ids, return_inverse=True)
    return numbers.astype(np.int64, copy=False), known


def _coded_objects(ids, name):
    """Number objects by their texts, as `coded` does; the longest of them does not make all as long."""
    texts, others, numbers = {}, set(), np.empty(len(ids), dtype=np.int64)
    for at, one in enumerate(ids):
        if not isinstance(one, str):
            if _input.is_missing(one):
                raise ValueError(f"{name} have none at place {at}, but {one!r}; leave out what has no id")
            is_text, one = isinstance(one, bytes), text_of(one)
            if not is_text:
                others.add(one)
        numbers[at] = texts.setdefault(one, len(texts))
    both = others and next((one for one in ids if isinstance(one, str) and one in others), None)
    if both:
        raise ValueError(f"{name} have {both!r} as a text and as something else, which would be one; make all of them texts, or numbers")
    known = sorted(texts)
    place = np.empty(len(known), dtype=np.int64)
    place[[texts[text] for text in known]] = np.arange(len(known))
    return place[numbers], _texts(known)


def text_of(one):
    """Return the text of an id; bytes are UTF-8, as in a file."""
    if not isinstance(one, bytes):
        return str(one)
    try:
        return one.decode()
    except UnicodeDecodeError:
        raise ValueError(f"the id {one!r} is no UTF-8; decode ids before") from None


def _decoded(ids):
    return _texts([text_of(one) for one in ids.flat]).reshape(ids.shape)


def looked_for(ids, are_numbers):
    """Return ids that are looked for, among numbers or texts."""
    ids = np.asarray(ids)
    if ids.dtype.kind not in "OTS":
        return ids
    ids = ids.astype(object)
    whole = _whole_objects(ids) if are_numbers else None
    return _decoded(ids) if whole is None else whole


def of_labels(labels):
    """Return the labels of a frame's rows or columns as ids; None where they are no ids: not unique, or of another kind."""
    ids = np.asarray(labels)
    if ids.dtype.kind in "OT":
        ids = ids.astype(object)
        whole = _whole_objects(ids)
        if whole is None and not all(isinstance(one, str) for one in ids):
            return None
        ids = _texts(ids.tolist()) if whole is None else whole
    if ids.ndim != 1 or ids.dtype.kind not in "iuUO" or len(np.unique(ids)) < len(ids):
        return None
    return ids_of(ids) if ids.dtype.kind in "iu" else ids


def labels_as(labels, are_texts):
    """Return labels as texts or as whole numbers, as which they were written and read; None where they are only numbered, or no numbers."""
    if (labels.dtype.kind in "UO") == are_texts:
        return labels
    if are_texts:
        return None if are_numbered(labels) else labels.astype(str)
    numbers = whole_of_names(labels.tolist())
    return None if isinstance(numbers, list) else numbers


def are_numbered(labels):
    """Tell whether labels are 0, 1, 2 and so on, which a data frame has where nothing else is said."""
    return np.array_equal(labels, np.arange(len(labels)))


def _whole_objects(ids):
    """Return objects that all are whole numbers as such; None if others are among them, or no type has them all."""
    if not all(isinstance(one, Integral) and not isinstance(one, bool) for one in ids.flat):
        return None
    least, most = min(ids.flat, default=0), max(ids.flat, default=0)
    if -(2**63) <= least and most < 2**63:
        return ids.astype(np.int64)
    return ids.astype(np.uint64) if 0 <= least and most < 2**64 else None


def _texts(texts):
    """Make an array of texts; of objects, where in another all would be as long as one that is much longer."""
    longest, total = max(map(len, texts), default=0), sum(map(len, texts))
    return np.array(texts, dtype=object if longest * len(texts) > 4 * total + 4096 else str)


def ids_of(names):
    """Make an array of names, numbers of 64 bits where all are numbers."""
    if isinstance(names, list):
        return _texts(names)
    ids = np.asarray(names)
    return ids.astype(np.int64) if ids.dtype.kind == "i" or len(ids) == 0 or ids.max() < 2**63 else ids


def names_of(ids):
    """Return the names by which a model's directory has ids."""
    if ids.dtype.kind in "iub" and (len(ids) == 0 or ids.min() >= 0):
        return ids.astype(np.uint64)
    return [str(one) for one in ids]


def whole_of_names(names):
    """Return names as the numbers that they were, unless others have joined them."""
    if not isinstance(names, list) or not all(re.fullmatch("0|-?[1-9][0-9]{0,18}", name) for name in names):
        return names
    numbers = _whole_objects(np.array([int(name) for name in names], dtype=object))
    return names if numbers is None else numbers
