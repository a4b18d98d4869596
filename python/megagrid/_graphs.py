"""Scores of the vertices of graphs."""

import json
import warnings
from typing import NamedTuple

import numpy as np

from . import _input, _megagrid
from ._base import Interrupted, how, train, words
from ._ids import are_numbered, array_of, coded, ids_of
from ._sklearn import ConvergenceWarning


class Ranks(NamedTuple):
    """Vertices and their scores, the best first."""

    ids: np.ndarray
    scores: np.ndarray


def pagerank(
    graph,
    *,
    damping=0.85,
    weights=False,
    undirected=False,
    personalization=None,
    max_iter=100,
    tol=1e-6,
    n_jobs=None,
    verbose=0,
    callback=None,
):
    """Rank the vertices of a directed graph: how often a surfer is on each page who follows links.

    Parameters
    ----------
    graph : square sparse matrix or array, tuple (sources, targets), graph of networkx or igraph, or a path
        A value that is not 0 is a link from its row to its column. Sources and targets are whole numbers or texts. An edge of an
        undirected graph is a link either way.
    damping : float, default=0.85
        The chance of following a link instead of restarting.
    weights : bool or str, default=False
        Whether links have weights, 0 or above, by which a page divides its score: the values of a matrix, the attribute `weight` of
        edges (networkx: 1 where there is none), a third column of a tuple, or of a file. If False, a link is a link. A text is the name of
        another attribute of edges.
    undirected : bool, default=False
        Whether each link goes both ways; one from a vertex to itself is one. Links that repeat, also the other way round, add up.
    personalization : dict, series or array, or a list of these, default=None
        The vertices at which the surfer restarts, with their weights, 0 or above; the index of a series of pandas names them, and an array has one for each row of a matrix, or each
        vertex of a graph of networkx or igraph. Vertices without links lead there, too, as in networkx. None: all vertices, equally likely.
        A list: vertices are ranked for each of its members, all in one run.
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
        Of a list of personalizations a list, with one of these for each; `Ranks` then have the vertices in the order of their mean scores.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import pagerank
    >>> links = np.array([[0, 1, 1], [0, 0, 1], [1, 0, 0]])
    >>> pagerank(links).round(3)
    array([0.388, 0.215, 0.397], dtype=float32)
    >>> pagerank(links, personalization={1: 1}).round(3)
    array([0.327, 0.289, 0.384], dtype=float32)
    >>> [scores.round(3) for scores in pagerank(links, personalization=[{1: 1}, {0: 1, 2: 3}])][0]
    array([0.327, 0.289, 0.384], dtype=float32)
    >>> pagerank(np.array([[0, 3, 1], [0, 0, 1], [1, 0, 0]]), weights=True).round(3)
    array([0.359, 0.279, 0.363], dtype=float32)
    >>> pagerank((["a", "b", "a"], ["b", "c", "c"])).ids.tolist()
    ['c', 'b', 'a']
    """
    options = {"damping": "damping", "max_iter": "iterations", "tol": "tolerance"}
    graph = _Graph(graph, _attribute(weights, graph))
    given = words(options, {"damping": damping, "max_iter": max_iter, "tol": tol}) + how(n_jobs, None)
    given += ["--weights"] * bool(weights) + ["--undirected"] * bool(undirected and graph.is_directed)
    sets = restart = None
    if isinstance(personalization, list) and any(isinstance(one, (dict, np.ndarray)) or _is_series(one) for one in personalization):
        sets = [graph.restart(one) for one in personalization]
    else:
        restart = graph.restart(personalization)

    def begin(watched):
        return _megagrid.pagerank(graph.parts, restart, sets, given, watched)

    found = _run(begin, options, callback, verbose, max_iter)
    names, scores = found["ranks"]
    if sets is None:
        return graph.scores((names, scores))
    return [graph.scores((names, np.ascontiguousarray(of_set))) for of_set in found["sets"].T]


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
        found = train(begin, options, callback, verbose, most)
    except Interrupted as interrupted:
        raise interrupted.cause from None
    record = json.loads(found["record"])
    result, tol = record["result"], record["config"]["tolerance"]
    residual = result["metrics"].get("residual")
    advice = {"iterations": "try a larger max_iter", "tolerance": "single precision comes no nearer"}.get(result["ended_by"])
    if advice and residual is not None and residual > tol > 0:
        text = f"the residual is {residual:.3g}, above tol={tol}, after {result['iterations']} iterations; {advice}"
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
    return found


class _Graph:
    """A graph as the compiled part takes it, and how scores of it are given back."""

    def __init__(self, graph, weighted=None):
        self.ids, self.is_networkx = None, hasattr(graph, "adj") and hasattr(graph, "is_directed")
        self.is_directed = True
        if _input.is_path(graph):
            self.parts = graph
        elif self.is_networkx:
            self.ids = list(graph)
            number = {node: at for at, node in enumerate(self.ids)}
            ends = np.fromiter((number[end] for edge in graph.edges() for end in edge), dtype=np.int64).reshape(-1, 2)
            values = [weight for *_, weight in graph.edges(data=weighted, default=1)] if weighted else None
            self._of_edges(ends, values, len(self.ids), graph.is_directed())
        elif hasattr(graph, "get_edgelist") and hasattr(graph, "vcount"):
            ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
            if weighted and weighted not in graph.es.attributes():
                raise ValueError(f"the links of the graph have no attribute {weighted}")
            self._of_edges(ends, graph.es[weighted] if weighted else None, graph.vcount(), graph.is_directed())
        elif isinstance(graph, tuple) and len(graph) in (2, 3):
            sources, targets = (array_of(ends) for ends in graph[:2])
            if sources.shape != targets.shape or sources.ndim != 1:
                raise ValueError(f"sources have the shape {sources.shape} and targets {targets.shape}; expected two columns")
            if bool(weighted) != (len(graph) == 3):
                raise ValueError("links with weights are a tuple (sources, targets, weights); pass it with weights=True, or two columns")
            if len(sources) == 0:
                raise ValueError("the graph has no link")
            kinds = {sources.dtype.kind, targets.dtype.kind}
            if len(kinds) == 2 and kinds <= set("iubUSOT"):
                sources, targets = sources.astype(object), targets.astype(object)
            numbers, self.ids = coded(np.concatenate([sources, targets]), "vertices", 2 * len(sources))
            values = graph[2] if weighted else None
            self._of_ends(numbers[: len(sources)], numbers[len(sources) :], values, len(self.ids))
        else:
            _check_labels(graph)
            self._of_matrix(_input.Matrix(graph, name="graph", repeats=True), weighted)

    def _of_matrix(self, matrix, weighted):
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"the graph has the shape {matrix.shape}, expected a square matrix")
        values = matrix.values[matrix.values != 0]
        if values.size == 0:
            raise ValueError("the graph has no link: all values are 0, or none is stored")
        if weighted:
            _check_weights(values)
        elif values.min() != values.max():
            text = "the values of links count nothing: a link is a link; with weights=True they are weights"
            warnings.warn(text, UserWarning, stacklevel=4)
        self.parts = matrix.parts

    def _of_edges(self, ends, values, number, is_directed):
        if len(ends) == 0:
            raise ValueError("the graph has no link")
        self.is_directed = is_directed
        if not is_directed:
            once = ends[:, 0] != ends[:, 1]
            ends = np.concatenate([ends, ends[once, ::-1]])
            values = None if values is None else np.concatenate([values, np.asarray(values)[once]])
        self._of_ends(ends[:, 0], ends[:, 1], values, number)

    def _of_ends(self, sources, targets, values, number):
        if values is not None:
            values = np.ascontiguousarray(_input.column(values, "weights", len(sources)))
            _check_weights(values)
        self.parts = np.ascontiguousarray(sources), np.ascontiguousarray(targets), values, (number, number)

    def restart(self, personalization):
        """Return vertices, by the names that the compiled part knows, with their weights."""
        if personalization is None:
            return None
        if _is_series(personalization) and not are_numbered(personalization.index):
            personalization = personalization.to_dict()
        if not isinstance(personalization, dict):
            weights = _input.column(personalization, "personalization")
            if not isinstance(self.parts, (tuple, np.ndarray)) or (self.ids is not None and not self.is_networkx):
                raise TypeError("personalization is an array, which has no ids; expected a dict from ids to weights")
            number = len(self.ids) if self.is_networkx else self._rows()
            if len(weights) != number:
                raise ValueError(f"personalization has {len(weights)} weights, and the graph {number} vertices")
            return [(str(at), float(weights[at])) for at in np.flatnonzero(weights)]
        if self.ids is None:
            return [(str(vertex), float(weight)) for vertex, weight in personalization.items()]
        place = {one: at for at, one in enumerate(self.ids if self.is_networkx else self.ids.tolist())}
        unknown = [one for one in personalization if one not in place]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no vertex of the graph")
        return [(str(place[vertex]), float(weight)) for vertex, weight in personalization.items()]

    def _rows(self):
        return self.parts.shape[0] if isinstance(self.parts, np.ndarray) else self.parts[-1][0]

    def scores(self, ranked):
        """Give scores back as the graph was given."""
        names, scores = ranked
        if isinstance(self.parts, (tuple, np.ndarray)) and (self.ids is None or self.is_networkx):
            by_number = np.empty_like(scores)
            by_number[names] = scores
            return dict(zip(self.ids, by_number.tolist())) if self.is_networkx else by_number
        return Ranks(ids_of(names) if self.ids is None else self.ids[names], scores)


def _attribute(weights, graph):
    """Return the attribute that has the weights of links; None: a link is a link."""
    if isinstance(weights, str):
        if hasattr(graph, "adj") or hasattr(graph, "get_edgelist"):
            return weights
        raise TypeError(f"weights is {weights!r}, and only graphs of networkx and igraph have attributes; expected True or False")
    if not isinstance(weights, (bool, int, np.bool_)):
        raise TypeError(f"weights is of type {type(weights).__name__}, expected True or False: weights are values of the graph, or its third column")
    return "weight" if weights else None


def _is_series(one):
    return hasattr(one, "index") and hasattr(one, "to_dict")


def _check_labels(graph):
    """Refuse a data frame whose rows and columns are called otherwise, or in another order: each stands for a vertex."""
    if not _input.is_frame(graph) or not hasattr(graph, "index"):
        return
    rows, columns = list(graph.index), list(graph.columns)
    if rows != columns and not are_numbered(rows) and not are_numbered(columns):
        raise ValueError("rows and columns of the frame are not the same vertices in the same order; graph.reindex(index=ids, columns=ids) makes them so")


def _check_weights(values):
    if values.size > 0 and values.min() < 0:
        raise ValueError(f"the weight of a link is {values.min()}; expected 0 or above")
