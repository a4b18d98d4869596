"""Topic models."""

import json

import numpy as np

from . import _input, _megagrid
from ._base import Estimator, num_threads, wanted, whole
from ._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin

# Documents that are transformed between two looks at the keyboard.
_DOCUMENTS = 1024


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Topics of documents: latent Dirichlet allocation by collapsed Gibbs sampling.

    Parameters
    ----------
    n_components : int, default=100
        Topics.
    alpha : float, str or None, default=None
        Prior weight of each topic in a document, the first where it is fitted; ``"50/K"`` is a sum that all topics share. None:
        ``"5/K"``, with a fixed prior ``"50/K"``.
    beta : float, default=0.01
        Prior weight of each word in a topic.
    prior : {"symmetric", "asymmetric", "fixed"}, default="symmetric"
        Whether alpha is fitted to the documents: one weight for all topics, one for each, or not at all.
    sampler : {"auto", "dense", "sparse", "mh"}, default="auto"
        How topics are drawn.
    extra_topics : int, default=0
        Topics to begin with in addition, which are given up after half of the iterations.
    holdout : float or None, default=None
        Part of the documents that is kept to measure ``test_perplexity`` on.
    patience : int or None, default=None
        Worse measurements in a row on those that end the fit, whose model is the best; None: 5.
    max_iter : int, default=200
        Passes over the words.
    tol : float, default=0.0
        The fit ends when the log likelihood changes by no more than this part of itself; 0: never.
    tune : bool or dict, default=False
        True: the fit finds the sampler and the work of a clock on the way, by short trials on branches of the run, as ``megagrid tune`` does. A dict says what is tuned
        and between which values: a list, or a range as the command has it, ``{"sampler": ["dense", "sparse"]}``. The record of all trials is
        ``report_["tuning"]``. Trials are compared by seconds, so that another fit may find another setting.
    n_jobs : int or None, default=None
        Threads; None: all cores. With another number a fit is a little different, whatever `random_state` is.
    random_state : int, RandomState or None, default=None
        Decides what is drawn; None: as 1. With the same one and as many threads a fit is the same.
    verbose : int, default=0
        Whether progress is shown.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Tokens of each word in each topic, with the prior's: what scikit-learn calls pseudo-counts.
    alpha_ : ndarray of shape (n_components,)
        Prior weights of topics in a document.
    coherence_ : float
        Mean coherence (NPMI) of the topics' ten top words in the documents of the fit.
    n_iter_, n_features_in_ : int
    feature_names_in_ : ndarray of str
        Words, where they are known: columns of a data frame, words of a path.
    report_ : Report
        The record of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from megagrid import TopicModel
    >>> X = np.zeros((40, 4), dtype=int)
    >>> X[:20, :2] = 5
    >>> X[20:, 2:] = 5
    >>> model = TopicModel(2, max_iter=50, random_state=1).fit(X)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [[0, 1], [2, 3]]
    >>> bool(model.transform(X[:1]).max() > 0.9)
    True
    """

    _OPTIONS = {
        "n_components": "topics",
        "alpha": "alpha",
        "beta": "beta",
        "prior": "prior",
        "sampler": "sampler",
        "extra_topics": "extra-topics",
        "holdout": "holdout",
        "patience": "patience",
        "max_iter": "iterations",
        "tol": "tolerance",
    }

    def __init__(
        self,
        n_components=100,
        *,
        alpha=None,
        beta=0.01,
        prior="symmetric",
        sampler="auto",
        extra_topics=0,
        holdout=None,
        patience=None,
        max_iter=200,
        tol=0.0,
        tune=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self._set(locals())

    @whole
    def fit(self, X, y=None, *, callback=None, **reading):
        """Find topics.

        Parameters
        ----------
        X : sparse matrix, array or data frame of shape (n_documents, n_words), or a path
            How often words occur in documents. A path is one to documents in any format that the command reads.
        y : ignored
        callback : callable or None
            Gets each iteration as a dict; the fit ends where it returns True.
        **reading : how a path is read
            ``format="text"``, ``lower_case=True``, ``split="punctuation"``, ``bigrams=True``, ``stop_words="english"``, ``min_documents=5``, ``max_documents=0.5``,
            ``min_word_length=3``, as the command's options.

        Returns
        -------
        TopicModel
            The estimator.
        """
        words = self._words() + self._reading(reading, _input.is_path(X))
        if _input.is_path(X):
            self._forget()
            return self._fit(lambda watched: _megagrid.topics(X, words, watched), callback)
        matrix = self._matrix(X, reset=True).check_counts("TopicModel.fit")
        return self._fit(lambda watched: _megagrid.topics(matrix.parts, words, watched), callback)

    def fit_transform(self, X, y=None, **fit_params):
        """Find topics, and return those of the same documents; see `fit` and `transform`."""
        # Of a table of Arrow that is a stream there is one reading.
        return super().fit_transform(_input.table(X), y, **fit_params)

    def _drop(self):
        super()._drop()
        for name in ("_topics", "_beta", "_n_features_out"):
            self.__dict__.pop(name, None)

    def _keep(self, found):
        self._topics = found["topics"]
        if "n_features_in_" not in self.__dict__:
            self._know(len(found["names"]), [str(name) for name in found["names"]])
        _, _, totals, self.alpha_, self._beta = self._topics.state
        self._n_features_out = len(totals)
        self.coherence_ = self.report_["result"]["metrics"].get("coherence_npmi", np.nan)

    @property
    def components_(self):
        """Tokens of each word in each topic, with the prior's."""
        self._settle()
        if "_topics" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'components_'")
        offsets, topics, counts = self._topics.words
        components = np.full((self._n_features_out, self.n_features_in_), self._beta, dtype=np.float64)
        words = np.repeat(np.arange(self.n_features_in_), np.diff(offsets.astype(np.int64)))
        components[topics, words] += counts
        return components

    def transform(self, X):
        """Return the topics of documents, which need not be those of the fit.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            The chances of all topics in each document.
        """
        self._check_fitted()
        threads = num_threads(self.n_jobs)
        if _input.is_path(X):
            return self._topics.mixtures_of_file(X, self._names(), json.dumps(self.report_["config"]), threads)
        matrix = self._matrix(X).check_counts("TopicModel.transform")
        rows = matrix.operand
        if matrix.sparse is not None and matrix.sparse.format == "csc":
            rows = rows.tocsr()
        parts = [rows[at : at + _DOCUMENTS] for at in range(0, matrix.shape[0], _DOCUMENTS)]
        return np.concatenate([self._topics.mixtures(_input.Matrix(part).parts, threads) for part in parts])

    def perplexity(self, X):
        """Return how well one half of each document's words foretells the other; less is better. NaN: there is nothing to foretell.

        Parameters
        ----------
        X : matrix as for `fit`

        Returns
        -------
        float
        """
        self._check_fitted()
        matrix = self._matrix(X).check_counts("TopicModel.perplexity")
        return self._topics.perplexity(matrix.parts, num_threads(self.n_jobs))

    def score(self, X, y=None):
        """Return the log likelihood of a word of X: minus the logarithm of `perplexity`, more is better.

        Parameters
        ----------
        X : matrix as for `fit`
        y : ignored

        Returns
        -------
        float
        """
        return -float(np.log(self.perplexity(X)))

    def top_words(self, n=10):
        """Return the words of each topic with most tokens, most first.

        Parameters
        ----------
        n : int, default=10

        Returns
        -------
        list of list
            Words, or the numbers of their columns where they have no names.
        """
        self._check_fitted()
        names = self.__dict__.get("feature_names_in_")
        top = self._topics.top_words(wanted(n))
        return top if names is None else [[str(names[word]) for word in words] for words in top]

    def save(self, directory):
        """Write a model directory, which the command reads: ``megagrid topics``.

        Parameters
        ----------
        directory : path
            One that is not there yet.
        """
        self._check_fitted()
        self._topics.save(directory, self._record(words_named="feature_names_in_" in self.__dict__), self._checksum, self._names())

    def save_page(self, path, name="the model"):
        """Write a page for a browser that shows the topics as a map, their words by relevance, and their documents.

        Parameters
        ----------
        path : path
            The file, one of HTML without anything from elsewhere. One that is there is replaced.
        name : str, default="the model"
            What the page is called: "Topics of" it.
        """
        self._check_fitted()
        self._topics.page(path, str(name), self._names())

    @classmethod
    def load(cls, directory):
        """Read a model directory, of `save` or of the command.

        Parameters
        ----------
        directory : path

        Returns
        -------
        TopicModel
        """
        found = _megagrid.load_topics(directory)
        model, config = cls._of_manifest(found)
        if not config.get("words_named", True):
            model._know(len(found["names"]), None)
        model.n_iter_ = 0
        model._keep(found)
        return model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        # Chances are of single precision, whatever the counts are.
        tags.transformer_tags.preserves_dtype = []
        return tags
