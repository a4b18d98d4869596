"""Scores of the vertices of graphs."""

import warnings
from typing import NamedTuple

import numpy as np

from . import _input, _megagrid
from ._base import Interrupted, how, train, words
from ._factors import _coded, _ids


class Ranks(NamedTuple):
    """Vertices and their scores, the best first."""

    ids: np.ndarray
    scores: np.ndarray


def pagerank(graph, *, damping=0.85, restart=None, max_iter=100, tol=1e-6, n_jobs=None, verbose=0, callback=None):
    """Rank the vertices of a directed graph: how often a surfer is on each page who follows links.

    Parameters
    ----------
    graph : square sparse matrix or array, tuple (sources, targets), graph of networkx or igraph, or a path
        A value that is not 0 is a link from its row to its column, of which the size counts nothing. Sources and targets are any
        numbers or texts. An edge of an undirected graph is a link either way.
    damping : float, default=0.85
        The chance of following a link instead of restarting.
    restart : list or None, default=None
        Vertices at which the surfer restarts; None: all.
    max_iter : int, default=100
        Iterations at most.
    tol : float, default=1e-6
        It ends when an iteration changes the scores by no more than this in total.
    n_jobs : int or None, default=None
        Threads; None: all cores.
    verbose : int, default=0
        Whether progress is shown.
    callback : callable or None
        Gets each iteration as a dict; the run ends where it returns True.

    Returns
    -------
    ndarray, dict or Ranks
        The score of each row of a matrix or vertex of igraph; of each node of networkx by its name; else `Ranks`, the best first. Scores sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import pagerank
    >>> links = np.array([[0, 1, 1], [0, 0, 1], [1, 0, 0]])
    >>> pagerank(links).round(3)
    array([0.388, 0.215, 0.397], dtype=float32)
    >>> pagerank((["a", "b", "a"], ["b", "c", "c"])).ids.tolist()
    ['c', 'b', 'a']
    """
    options = {"damping": "damping", "restart": "restart", "max_iter": "iterations", "tol": "tolerance"}
    graph = _Graph(graph)
    given = {"damping": damping, "restart": graph.numbers(restart), "max_iter": max_iter, "tol": tol}
    given = words(options, given) + how(n_jobs, None)
    found = _run(lambda watched: _megagrid.pagerank(graph.parts, given, watched), options, callback, verbose, max_iter)
    return graph.scores(found["ranks"])


def hits(graph, *, max_iter=100, tol=1e-6, n_jobs=None, verbose=0, callback=None):
    """Find the hubs and authorities of a directed graph.

    An authority is what good hubs link to, a hub links to good authorities.

    Parameters
    ----------
    graph, max_iter, n_jobs, verbose, callback : as for `pagerank`
    tol : float, default=1e-6
        It ends when an iteration changes the unit vectors of hubs and authorities by no more than this.

    Returns
    -------
    hubs, authorities : ndarray, dict or Ranks
        As of `pagerank`. The squares of the scores of all hubs, and of all authorities, sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import hits
    >>> hubs, authorities = hits(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    >>> int(hubs.argmax()), int(authorities.argmax())
    (0, 2)
    """
    options = {"max_iter": "iterations", "tol": "tolerance"}
    graph = _Graph(graph)
    given = words(options, {"max_iter": max_iter, "tol": tol}) + how(n_jobs, None)
    found = _run(lambda watched: _megagrid.hits(graph.parts, given, watched), options, callback, verbose, max_iter)
    return graph.scores(found["hubs"]), graph.scores(found["authorities"])


def _run(begin, options, callback, verbose, most):
    try:
        return train(begin, options, callback, verbose, most)
    except Interrupted as interrupted:
        raise interrupted.cause from None


class _Graph:
    """A graph as the compiled part takes it, and how scores of it are given back."""

    def __init__(self, graph):
        self.ids, self.is_networkx = None, hasattr(graph, "adj") and hasattr(graph, "is_directed")
        if _input.is_path(graph):
            self.parts = graph
        elif self.is_networkx:
            self.ids = list(graph)
            number = {node: at for at, node in enumerate(self.ids)}
            ends = np.fromiter((number[end] for edge in graph.edges() for end in edge), dtype=np.int64).reshape(-1, 2)
            self._of_edges(ends, len(self.ids), graph.is_directed())
        elif hasattr(graph, "get_edgelist") and hasattr(graph, "vcount"):
            ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
            self._of_edges(ends, graph.vcount(), graph.is_directed())
        elif isinstance(graph, tuple) and len(graph) == 2:
            sources, targets = (np.asarray(ends) for ends in graph)
            if sources.shape != targets.shape or sources.ndim != 1:
                raise ValueError(f"sources have the shape {sources.shape} and targets {targets.shape}; expected two columns")
            if len(sources) == 0:
                raise ValueError("the graph has no link")
            numbers, self.ids = _coded(np.concatenate([sources, targets]), "vertices", 2 * len(sources))
            self.parts = self._of_ends(numbers[: len(sources)], numbers[len(sources) :], len(self.ids))
        else:
            self._of_matrix(_input.Matrix(graph, name="graph", repeats=True))

    def _of_matrix(self, matrix):
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"the graph has the shape {matrix.shape}, expected a square matrix")
        values = matrix.values[matrix.values != 0]
        if values.size == 0:
            raise ValueError("the graph has no link: all values are 0, or none is stored")
        if values.min() != values.max():
            warnings.warn("the values of links count nothing: a link is a link", UserWarning, stacklevel=4)
        self.parts = matrix.parts

    def _of_edges(self, ends, number, is_directed):
        if len(ends) == 0:
            raise ValueError("the graph has no link")
        if not is_directed:
            loops = ends[:, 0] == ends[:, 1]
            ends = np.concatenate([ends, ends[~loops, ::-1]])
        self.parts = self._of_ends(ends[:, 0], ends[:, 1], number)

    def _of_ends(self, sources, targets, number):
        return np.ascontiguousarray(sources), np.ascontiguousarray(targets), None, (number, number)

    def numbers(self, vertices):
        """Return vertices by the names that the compiled part knows."""
        if vertices is None or self.ids is None:
            return None if vertices is None else [str(one) for one in vertices]
        place = {one: at for at, one in enumerate(self.ids if self.is_networkx else self.ids.tolist())}
        unknown = [one for one in vertices if one not in place]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no vertex of the graph")
        return [str(place[one]) for one in vertices]

    def scores(self, ranked):
        """Give scores back as the graph was given."""
        names, scores = ranked
        if isinstance(self.parts, (tuple, np.ndarray)) and (self.ids is None or self.is_networkx):
            by_number = np.empty_like(scores)
            by_number[names] = scores
            return dict(zip(self.ids, by_number.tolist())) if self.is_networkx else by_number
        return Ranks(_ids(names) if self.ids is None else self.ids[names], scores)
