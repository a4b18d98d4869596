"""Megagrid: machine learning on sparse data, on all cores.

Estimators follow the rules of scikit-learn, which is used where it is installed and is not needed:

- `SparseLogisticRegression`: weights of few features that tell two classes apart,
- `TopicModel`: topics of documents, latent Dirichlet allocation,
- `MatrixFactorization`: factors of users and items that foresee ratings,
- `ImplicitALS`: factors that rank items, from clicks, plays or purchases,
- `pagerank` and `hits`: scores of the vertices of a graph.

All take SciPy matrices, NumPy arrays, data frames, or a path to any file that the command ``megagrid`` reads.
"""

import importlib

_PLACES = {
    "SparseLogisticRegression": "linear",
    "TopicModel": "topics",
    "MatrixFactorization": "factors",
    "ImplicitALS": "implicit",
    "pagerank": "graphs",
    "hits": "graphs",
    "Ranks": "graphs",
    "Report": "report",
    "NotFittedError": "base",
}

__all__ = list(_PLACES)
__version__ = "0.1.0"


def __getattr__(name):
    # Nothing is imported before it is used: scikit-learn takes a second.
    if name in _PLACES:
        value = getattr(importlib.import_module(f"{__name__}._{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
