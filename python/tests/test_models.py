"""What models are, against other programs and mathematics; their directories; pickles; scikit-learn's tools."""

import json
import pickle
import warnings

import joblib
import networkx
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from megagrid import ImplicitALS, MatrixFactorization, SparseLogisticRegression, TopicModel, hits, pagerank


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_scikit_learn(clicks, weighted):
    from sklearn.linear_model import LogisticRegression

    X, y = clicks
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    ours = SparseLogisticRegression(l1=2.0, tol=1e-9, class_weight={0: 1.0, 1: 3.0}).fit(X, y, sample_weight=weights)
    theirs = LogisticRegression(C=0.5, l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=100000, class_weight={0: 1.0, 1: 3.0})
    theirs.fit(X, y, sample_weight=weights)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert np.allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("part", [0.0, 0.3])
def test_ridge_and_elastic_net_are_those_of_scikit_learn(clicks, part):
    from sklearn.linear_model import LogisticRegression

    X, y = clicks
    ours = SparseLogisticRegression(l1=part / 0.5, l2=(1 - part) / 0.5, tol=1e-9).fit(X, y)
    theirs = LogisticRegression(C=0.5, l1_ratio=part, solver="saga", tol=1e-9, max_iter=100000).fit(X, y)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-4) and np.allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


def test_a_balanced_weight_is_that_of_scikit_learn(clicks):
    from sklearn.utils.class_weight import compute_class_weight

    X, y = clicks
    weights = compute_class_weight("balanced", classes=np.array([0, 1]), y=y)
    ours = SparseLogisticRegression(class_weight="balanced").fit(X, y)
    assert np.array_equal(ours.coef_, SparseLogisticRegression(class_weight=dict(enumerate(weights))).fit(X, y).coef_)


def test_samples_of_unit_length_are_those_of_scikit_learn(clicks):
    from sklearn.preprocessing import normalize

    X, y = clicks
    ours, plain = SparseLogisticRegression(normalize=True).fit(X, y), SparseLogisticRegression().fit(normalize(X), y)
    assert np.allclose(ours.coef_, plain.coef_, atol=1e-5)
    assert np.allclose(ours.decision_function(X), plain.decision_function(normalize(X)), atol=1e-4)


def test_classes_may_be_texts(clicks):
    X, y = clicks
    model = SparseLogisticRegression().fit(X, np.array(["no", "yes"])[y])
    assert model.classes_.tolist() == ["no", "yes"] and model.score(X, np.array(["no", "yes"])[y]) > 0.9


def test_topics_that_were_planted_are_found(documents):
    model = TopicModel(3, max_iter=60).fit(documents)
    assert sorted(sorted(words) for words in model.top_words(10)) == [list(range(at, at + 10)) for at in (0, 10, 20)]
    assert model.components_.shape == (3, 30)
    assert np.allclose(model.components_.sum(), documents.sum() + 90 * 0.01)
    assert 0.3 < model.coherence_ <= 1
    mixtures = model.transform(documents)
    assert np.allclose(mixtures.sum(axis=1), 1, atol=1e-5)
    # Of ten words that are as likely each: the perplexity of what is known of a document is near 10.
    assert 9 < model.perplexity(documents) < 13
    assert model.score(documents) == -np.log(model.perplexity(documents))
    assert np.array_equal(mixtures[7:9], model.transform(documents[7:9]))
    model.transform(np.zeros((2, 30)))


def test_topics_are_shown_on_a_page(documents, tmp_path):
    words = [f"word{at}<" for at in range(30)]
    pandas = pytest.importorskip("pandas")
    model = TopicModel(3, max_iter=60).fit(pandas.DataFrame(documents.toarray(), columns=words))
    page = tmp_path / "topics.html"
    model.save_page(page, "plans")
    text = page.read_text()
    data = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    assert data["name"] == "plans" and len(data["topics"]) == 3 and data["tokens"] == documents.sum()
    assert sorted(word["name"] for word in data["words"]) == sorted(words)
    with pytest.raises(NotFittedError):
        TopicModel(3).save_page(page)
    with pytest.raises(FileNotFoundError):
        model.save_page(tmp_path / "nowhere" / "topics.html")


def test_ratings_that_were_planted_are_foreseen(ratings):
    users, items, found = ratings
    model = MatrixFactorization(4, holdout=0.1, max_iter=100, step=0.2, reg=0.02).fit(ratings)
    assert model.report_["result"]["metrics"]["test_rmse"] < 0.3
    assert -model.score(ratings) < 0.3
    foreseen = model.predict_pairs(users[:50], items[:50])
    rows = model.user_factors_[users[:50]] * model.item_factors_[items[:50]]
    expected = model.mean_ + rows.sum(axis=1) + model.user_biases_[users[:50]] + model.item_biases_[items[:50]]
    assert np.allclose(foreseen, expected.clip(*model.range_), atol=1e-5)
    best, scores = model.recommend(3, 5, without=[int(model.recommend(3, 1)[0][0])])
    assert len(best) == 5 and (np.diff(scores) <= 0).all()
    for ask in (model.recommend, model.similar_items):
        with pytest.raises(ValueError, match="n is -1, expected 0 or more"):
            ask(3, -1)
        with pytest.raises(TypeError, match="n is 2.5, expected a whole number"):
            ask(3, 2.5)
    everything = model.recommend(3, 1000)[0]
    assert sorted(everything.tolist()) == list(range(80)) and best.tolist() == everything[1:6].tolist()
    alike = model.similar_items(2, 79)
    assert len(alike[0]) == 79 and 2 not in alike[0] and (np.abs(alike[1]) <= 1 + 1e-5).all()
    assert model.predict_pairs([999], [999])[0] == np.float32(model.mean_)


def test_least_squares_foresee_ratings_and_place_people(ratings, tmp_path):
    users, items, found = ratings
    model = MatrixFactorization(4, optimizer="als", holdout=0.1, max_iter=20).fit(ratings)
    assert model.report_["result"]["metrics"]["test_rmse"] < 0.35
    assert model.report_["config"]["step"] is None and abs(model.report_["config"]["lambda"] - 0.1) < 1e-6
    model.save(tmp_path / "model")
    again = MatrixFactorization.load(tmp_path / "model")
    theirs = users == 3
    people = (np.full(theirs.sum(), "new"), items[theirs], found[theirs])
    assert np.array_equal(model.fold_in(people).user_factors_, again.fold_in(people).user_factors_)
    with pytest.raises(ValueError, match="takes no steps"):
        MatrixFactorization(4, optimizer="als", step=0.1).fit(ratings)


def test_lengths_of_small_integers_are_those_of_the_same_numbers():
    dense = np.array([[200, 100, 0], [0, 60, 250], [90, 0, 17], [16, 16, 16]], dtype=np.uint8)
    model = SparseLogisticRegression(l1=0.01, normalize=True).fit(dense.astype(float), [0, 1, 0, 1])
    for kind in (np.asarray, sp.csr_matrix):
        assert np.allclose(model.decision_function(kind(dense)), model.decision_function(kind(dense.astype(float))))


def test_people_unseen_get_the_rows_of_a_ridge_regression(ratings):
    users, items, found = ratings
    model = MatrixFactorization(4, max_iter=10).fit(ratings)
    theirs = np.isin(users, [3, 9])
    other = model.fold_in((np.where(users[theirs] == 3, "new", "newer"), items[theirs], found[theirs]))
    assert other.user_ids_.tolist() == ["new", "newer"] and other.item_factors_ is model.item_factors_
    for row, user in enumerate([3, 9]):
        rated = items[users == user]
        rows = np.column_stack([model.item_factors_[rated], np.ones(len(rated))]).astype(float)
        errors = found[users == user] - model.mean_ - model.item_biases_[rated]
        expected = np.linalg.solve(rows.T @ rows + 0.05 * len(rated) * np.eye(5), rows.T @ errors)
        assert np.allclose(np.append(other.user_factors_[row], other.user_biases_[row]), expected, atol=1e-4)
    assert other.recommend("new", 5)[0].shape == (5,) and other.predict_pairs(["newer"], [0]).shape == (1,)
    assert model.user_ids_.tolist() == np.unique(users).tolist(), "the model is as it was"
    # Without biases there is none to fold in; a matrix has its rows for people.
    plain = MatrixFactorization(4, max_iter=10, biases=False).fit(ratings)
    X = np.zeros((3, 80))
    X[0, items[users == 3]], X[2, items[users == 9]] = found[users == 3], found[users == 9]
    with pytest.warns(UserWarning, match="1 of 3 people have nothing that counts"):
        of_rows = plain.fold_in(X)
    assert of_rows.user_ids_.tolist() == [0, 2] and not of_rows.user_biases_.any()
    with pytest.warns(UserWarning, match="of 1 people 1 values are of items"):
        plain.fold_in((["x", "x"], [1, 999], [4.0, 5.0]))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="of none of 1 people anything counts"):
        plain.fold_in((["x"], [999], [4.0]))


def test_all_users_get_what_each_gets(ratings, tmp_path, monkeypatch):
    users, items, found = ratings
    model = MatrixFactorization(4, max_iter=10).fit(ratings)
    assert model.range_ == (found.min(), found.max())
    # What they have rated is left out; who has rated much has places without an item.
    ids, scores = model.recommend(n=70, exclude=ratings, without=[7, 999])
    assert ids.shape == scores.shape == (len(model.user_ids_), 70)
    for row in (0, 5, 40):
        seen = items[users == model.user_ids_[row]]
        best, of_one = model.recommend(model.user_ids_[row], 70, without=np.append(seen, 7))
        assert len(best) == min(70, 80 - len(np.union1d(seen, [7])))
        assert ids[row, : len(best)].tolist() == best.tolist() and (ids[row, len(best) :] == -1).all()
        assert np.array_equal(scores[row, : len(best)], of_one) and np.isnan(scores[row, len(best) :]).all()
    some = model.recommend([9, 3, 9], 4)[0]
    assert some.tolist() == [model.recommend(user, 4)[0].tolist() for user in (9, 3, 9)]
    dense = model.mean_ + model.user_biases_[:, None] + model.item_biases_ + model.user_factors_ @ model.item_factors_.T
    places = np.searchsorted(model.item_ids_, model.recommend(n=1)[0][:, 0])
    assert np.allclose(dense[np.arange(len(dense)), places], dense.max(axis=1), atol=1e-5)
    model.save(tmp_path / "model")
    again = pickle.loads(pickle.dumps(MatrixFactorization.load(tmp_path / "model")))
    assert again.range_ == model.range_ and np.array_equal(again.recommend(n=3)[0], model.recommend(n=3)[0])
    # Users are asked for some at a time, fewer where much is left out.
    everything = [model.recommend(n=70, exclude=ratings, without=range(9)), model.similar_items(n=5), model.recommend([7, 7, 3], 4)]
    people = np.where(users % 3 == 0, users, 500), items, found
    placed = model.fold_in(people)
    for name, few in (("_USERS", 7), ("_PAIRS", 50), ("_PEOPLE", 3)):
        monkeypatch.setattr(f"megagrid._recommender.{name}", few)
    again = [model.recommend(n=70, exclude=ratings, without=range(9)), model.similar_items(n=5), model.recommend([7, 7, 3], 4)]
    for one, other in zip(everything, again):
        assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1], equal_nan=True)
    other = model.fold_in(people)
    assert np.array_equal(other.user_factors_, placed.user_factors_) and np.array_equal(other.user_biases_, placed.user_biases_)
    for users, error in (([3, 999], "user 999 is not among"), (["a"], "users are")):
        with pytest.raises((ValueError, TypeError), match=error):
            model.recommend(users)


def test_all_items_and_users_alike_are_those_of_the_cosine(ratings):
    model = MatrixFactorization(4, max_iter=10).fit(ratings)
    for rows, ids, similar in (
        (model.item_factors_, model.item_ids_, model.similar_items),
        (model.user_factors_, model.user_ids_, model.similar_users),
    ):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = unit @ unit.T
        np.fill_diagonal(cosines, -2)
        names, found = similar(n=3)
        assert np.allclose(found, np.sort(cosines, axis=1)[:, :-4:-1], atol=1e-5)
        assert np.allclose(np.take_along_axis(cosines, np.searchsorted(ids, names), axis=1), found, atol=1e-5)
        assert similar(ids[8], 3)[0].tolist() == names[8].tolist()


@pytest.mark.parametrize("score", [pagerank, hits])
def test_scores_that_have_not_converged_are_told(score):
    graph = networkx.gnp_random_graph(60, 0.08, seed=3, directed=True)
    with pytest.warns(ConvergenceWarning, match="above tol=1e-06, after 2 iterations"):
        score(graph, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="above tol=1e-12, after .* single precision comes no nearer"):
        pagerank(graph, damping=0.99, tol=1e-12, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score(graph, max_iter=2, tol=0)
        score(graph, max_iter=1000)


@pytest.mark.parametrize("directed", [True, False])
def test_ranks_are_those_of_networkx(directed):
    graph = networkx.gnp_random_graph(60, 0.08, seed=3, directed=directed)
    graph = networkx.relabel_nodes(graph, lambda node: f"page {node}")
    expected = networkx.pagerank(graph, tol=1e-12)
    matrix = (networkx.to_scipy_sparse_array(graph) != 0).astype(int)
    ranks = pagerank(graph, tol=1e-9)
    assert list(ranks) == list(graph) and max(abs(ranks[node] - expected[node]) for node in graph) < 1e-6
    assert np.allclose(pagerank(matrix, tol=1e-9), list(expected.values()), atol=1e-6)
    assert np.allclose(pagerank(matrix.tocoo(), tol=1e-9), list(expected.values()), atol=1e-6)
    each = pagerank(graph, personalization=[{"page 3": 1}, {"page 0": 1, "page 3": 2}], tol=1e-9)
    for restart, found in zip([{"page 3": 1}, {"page 0": 1, "page 3": 2}], each):
        by_networkx = networkx.pagerank(graph, personalization=restart, tol=1e-12)
        assert all(abs(found[page] - by_networkx[page]) < 1e-6 for page in graph)
    personal = pagerank(graph, personalization={"page 3": 1}, tol=1e-9)
    expected = networkx.pagerank(graph, personalization={"page 3": 1}, tol=1e-12)
    assert max(abs(personal[node] - expected[node]) for node in graph) < 1e-6
    hubs, authorities = hits(graph, tol=1e-9, max_iter=5000)
    for ours, theirs in zip((hubs, authorities), networkx.hits(graph, max_iter=5000, tol=1e-12)):
        length = np.linalg.norm(list(theirs.values()))
        assert max(abs(ours[node] - theirs[node] / length) for node in graph) < 1e-4


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("personal", [False, True])
def test_ranks_by_weights_both_ways_and_from_chosen_pages_are_those_of_networkx(undirected, weights, personal, tmp_path):
    random = np.random.default_rng(4)
    matrix = sp.random_array((50, 50), density=0.06, rng=random, format="csr")
    matrix.data = random.integers(1, 9, matrix.nnz) / 4
    # A link to each page, so that columns and files have all of them.
    matrix = (matrix + sp.csr_array((np.full(50, 0.25), (np.zeros(50, int), np.arange(50))), shape=(50, 50))).tocsr()
    restart = {3: 1.0, 40: 2.5, 41: 0.0} if personal else None
    graph = networkx.from_scipy_sparse_array(matrix, create_using=networkx.MultiDiGraph)
    if undirected:
        back = [(to, source, weight) for source, to, weight in graph.edges(data="weight") if source != to]
        graph.add_weighted_edges_from(back)
    expected = networkx.pagerank(graph, personalization=restart, weight="weight" if weights else None, tol=1e-12)
    expected = np.array([expected[node] for node in range(50)])
    given = {"undirected": undirected, "personalization": restart, "tol": 1e-9}
    values = matrix if weights else (matrix != 0).astype(int)
    for links in (values, values.tocsc(), values.tocoo(), values.toarray()):
        assert np.allclose(pagerank(links, weights=weights, **given), expected, atol=1e-6)
    one_way = networkx.from_scipy_sparse_array(matrix, create_using=networkx.DiGraph)
    of_networkx = pagerank(one_way, weights=weights, **given)
    assert np.allclose([of_networkx[node] for node in range(50)], expected, atol=1e-6)
    if personal:
        array = np.zeros(50)
        array[[3, 40]] = 1.0, 2.5
        found = pagerank(values, weights=weights, **{**given, "personalization": array})
        assert np.allclose(found, expected, atol=1e-6)
    links = matrix.tocoo()
    columns = (links.row, links.col) + ((links.data,) if weights else ())
    path = tmp_path / "links.txt"
    path.write_text("".join(f"{source} {to} {weight}\n" for source, to, weight in zip(links.row, links.col, links.data)))
    for ranks in (pagerank(columns, weights=weights, **given), pagerank(path, weights=weights, **given)):
        assert np.allclose(ranks.scores, expected[np.asarray(ranks.ids).astype(int)], atol=1e-6)


def test_edges_of_networkx_both_ways_are_not_doubled():
    graph = networkx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2.0), (1, 2, 0.5), (2, 2, 3.0), (2, 0, 1.0)])
    expected = networkx.pagerank(graph, tol=1e-12)
    for undirected in (False, True):
        ranks = pagerank(graph, weights=True, undirected=undirected, tol=1e-9)
        assert max(abs(ranks[node] - expected[node]) for node in graph) < 1e-6


@pytest.mark.parametrize("directed", [True, False])
def test_ranks_are_those_of_igraph(directed):
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph([(0, 1), (1, 2), (2, 0), (3, 2), (3, 1), (4, 0)], directed=directed)
    assert np.allclose(pagerank(graph, tol=1e-9), graph.pagerank(), atol=1e-6)
    with pytest.raises(ValueError, match="no attribute weight"):
        pagerank(graph, weights=True)
    graph.es["weight"] = [1.0, 2.0, 0.5, 3.0, 1.0, 4.0]
    assert np.allclose(pagerank(graph, weights=True, tol=1e-9), graph.pagerank(weights="weight"), atol=1e-6)


def test_ranks_of_columns_and_of_a_path(tmp_path):
    sources, targets = ["a", "b", "a", "d"], ["b", "c", "c", "a"]
    ranks = pagerank((sources, targets))
    path = tmp_path / "links.txt"
    path.write_text("".join(f"{source} {target}\n" for source, target in zip(sources, targets)))
    of_path = pagerank(path)
    assert ranks.ids.tolist() == of_path.ids.tolist() and np.allclose(ranks.scores, of_path.scores)
    assert (np.diff(ranks.scores) <= 0).all() and np.isclose(ranks.scores.sum(), 1)


def fitted(clicks, documents, ratings):
    return [
        (SparseLogisticRegression(l1=0.5).fit(*clicks), lambda model: model.predict_proba(clicks[0])),
        (TopicModel(3, max_iter=5).fit(documents), lambda model: model.transform(documents)),
        (MatrixFactorization(4).fit(ratings), lambda model: model.predict_pairs(*ratings[:2])),
    ]


def test_models_are_saved_and_loaded(clicks, documents, ratings, tmp_path):
    for model, ask in fitted(clicks, documents, ratings):
        directory = tmp_path / type(model).__name__
        model.save(directory)
        loaded = type(model).load(directory)
        # An intercept is written as text, whose last digit may differ.
        assert np.allclose(ask(loaded), ask(model), rtol=0, atol=1e-15)
        assert loaded.n_features_in_ == model.n_features_in_
        manifest = json.loads((directory / "model.json").read_text())
        assert manifest["kind"] == model.report_["command"]
        with pytest.raises(ValueError, match="exists already"):
            model.save(directory)
        loaded.save(tmp_path / "again")
        assert np.allclose(ask(type(model).load(tmp_path / "again")), ask(model), rtol=0, atol=1e-15)
        (tmp_path / "again").rename(tmp_path / f"again {type(model).__name__}")
        manifest["version"] = 99
        (directory / "model.json").write_text(json.dumps(manifest))
        with pytest.raises(ValueError, match="format version 99"):
            type(model).load(directory)
    with pytest.raises(ValueError, match="a model of kind lda, expected mf"):
        MatrixFactorization.load(tmp_path / "again TopicModel")


def test_parameters_of_a_loaded_model_are_those_of_the_fit(clicks, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = clicks
    path = tmp_path / "clicks.svm"
    dump_svmlight_file(X, np.where(y > 0, 7, 3), str(path))
    names = np.array(["no", "yes"])[y]
    for at, (weights, data) in enumerate(
        [({"yes": 3.0}, (X, names)), ("balanced", (X, names)), (None, (X, names)), ({7: 3.0, 3: 0.5}, (path,)), ({7: 2.0}, (X, np.where(y > 0, 7, 3)))]
    ):
        model = SparseLogisticRegression(class_weight=weights, random_state=at or None).fit(*data)
        model.save(tmp_path / f"model {at}")
        again = SparseLogisticRegression.load(tmp_path / f"model {at}")
        assert again.class_weight == weights and again.random_state == (at if at > 1 else None)
        again.save(tmp_path / f"again {at}")
        assert SparseLogisticRegression.load(tmp_path / f"again {at}").class_weight == weights
        # The model of a path knows all its features.
        assert np.array_equal(again.fit(*data).coef_, model.coef_)


def test_new_documents_in_a_file_are_read_as_those_of_the_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    posts, new = tmp_path / "posts.txt", tmp_path / "new.jsonl"
    posts.write_text("sea ship sail\nbread salt rye\n" * 20)
    records = [("a", "sea"), ("a", "ship"), ("b", "salt"), ("b", "rye"), ("b", "unknown")]
    new.write_text("".join(json.dumps({"document": document, "word": word, "count": 1}) + "\n" for document, word in records))
    model = TopicModel(2, alpha=0.1, max_iter=20).fit(posts, format="text")
    plain = tmp_path / "new.txt"
    plain.write_text("sea ship\nsalt rye\n")
    assert np.array_equal(model.transform(new), model.transform(plain))
    table = tmp_path / "counts.csv"
    rows = [(1 + at % 3, word, f"d{at}") for at in range(20) for word in (("sea", "ship") if at % 2 else ("rye", "salt"))]
    table.write_text("".join(f"{count},{word},{document}\n" for count, word, document in rows))
    model = TopicModel(2, alpha=0.1, max_iter=20).fit(table, columns="document=3,word=2,count=1")
    counts = pandas.DataFrame(rows, columns=["count", "word", "document"])
    counts = counts.pivot_table(index="document", columns="word", values="count", fill_value=0, sort=False).astype(int)
    model.save(tmp_path / "model")
    for one in (model, TopicModel.load(tmp_path / "model")):
        found = one.transform(table)
        assert found.shape == (20, 2) and sorted(found.argmax(axis=1)) == [0] * 10 + [1] * 10
        assert np.allclose(found, one.transform(counts[one.feature_names_in_]))


def test_models_are_pickled(clicks, documents, ratings, tmp_path):
    for model, ask in fitted(clicks, documents, ratings):
        assert np.array_equal(ask(pickle.loads(pickle.dumps(model))), ask(model))
        joblib.dump(model, tmp_path / "model")
        assert np.array_equal(ask(joblib.load(tmp_path / "model")), ask(model))


def test_tools_of_scikit_learn_work(clicks, documents):
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline

    X, y = clicks
    search = GridSearchCV(SparseLogisticRegression(n_jobs=1), {"l1": [0.1, 100.0]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_params_ == {"l1": 0.1}
    assert cross_val_score(SparseLogisticRegression(), X, y, cv=3, scoring="roc_auc").min() > 0.9
    pipeline = make_pipeline(TopicModel(3, max_iter=30), SparseLogisticRegression(0.1))
    assert pipeline.fit(documents, np.arange(120) % 3 == 0).score(documents, np.arange(120) % 3 == 0) > 0.95
    model = clone(SparseLogisticRegression(l1=3.0, n_jobs=2))
    assert model.get_params()["l1"] == 3.0 and model.set_params(l1=[4.0, 2.0]).fit(X, y).report_["config"]["l1"] == [4.0, 2.0]


def test_a_report_shows_how_a_run_converged(clicks, ratings):
    report = MatrixFactorization(4, holdout=0.1).fit(ratings).report_
    assert report["command"] == "mf" and report["config"]["dims"] == 4
    name, at, values = report.curve()
    assert name == "test_rmse" and at[0] == 1 and len(at) == len(values)
    assert "<svg" in report._repr_html_() and "test_rmse" in report._repr_html_()
    assert "ended by" in repr(report)
    assert "sklearn" not in repr(SparseLogisticRegression().fit(*clicks).report_)


def test_equal_seeds_give_equal_models(ratings):
    first, second, third = (MatrixFactorization(4, random_state=seed).fit(ratings) for seed in (5, 5, 6))
    assert np.array_equal(first.user_factors_, second.user_factors_)
    assert not np.array_equal(first.user_factors_, third.user_factors_)
    MatrixFactorization(4, random_state=np.random.RandomState(0)).fit(ratings)


def test_a_matrix_without_some_rows_and_columns(ratings):
    X = sp.csr_array(np.pad(np.eye(4) * 3 + 1, ((0, 2), (0, 3))))
    X.eliminate_zeros()
    model = MatrixFactorization(2).fit(X)
    assert model.user_factors_.shape == (6, 2) and not model.user_factors_[4:].any() and not model.item_factors_[4:].any()


def test_logarithms_of_chances_are_numbers_where_chances_are_too_small(clicks):
    X, y = clicks
    for labels, together in ((y, False), (np.arange(len(y)) % 3, False), (np.arange(len(y)) % 3, True)):
        model = SparseLogisticRegression(multinomial=together).fit(X, labels)
        logs = model.predict_log_proba(X)
        assert np.allclose(np.exp(logs), model.predict_proba(X)) and np.allclose(np.exp(logs).sum(axis=1), 1)
        if labels is y:
            assert np.allclose(logs[:, 1] - logs[:, 0], model.decision_function(X))
        assert np.isfinite(model.predict_log_proba(X * 1e4)).all()


def test_a_loaded_model_has_all_parameters_of_the_fit(clicks, tmp_path):
    for at, params in enumerate([{}, {"l1": [2.0, 1.0], "holdout": 0.2}, {"patience": 3, "holdout": 0.2, "multinomial": True}]):
        model = SparseLogisticRegression(**params).fit(*clicks)
        model.save(tmp_path / str(at))
        assert SparseLogisticRegression.load(tmp_path / str(at)).get_params() == model.get_params()


def test_a_table_with_the_columns_of_a_frame_is_read_by_its_model(tmp_path):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(1)
    frame = pandas.DataFrame({"age": random.integers(20, 60, 90), "pay": random.normal(size=90)})
    y = (frame["age"] > 40).astype(int)
    model = SparseLogisticRegression(class_weight={0: 1.0, 1: 2.0}).fit(frame, y)
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["config"]["format"] == "table"
    frame.to_csv(tmp_path / "new.csv", index=False)
    for one in (model, SparseLogisticRegression.load(tmp_path / "model")):
        assert np.allclose(one.predict_proba(tmp_path / "new.csv"), model.predict_proba(frame), atol=1e-5)
        assert one.get_params() == model.get_params()


def test_each_model_of_a_path_is_told(clicks):
    model = SparseLogisticRegression(l1=[0.5, 8, 2], holdout=0.3, random_state=2).fit(*clicks)
    assert [one["l1"] for one in model.path_] == [8, 2, 0.5]
    assert sum(one["iterations"] for one in model.path_) == model.n_iter_
    metrics, best = model.report_["result"]["metrics"], min(model.path_, key=lambda one: one["test_log_loss"])
    assert best["l1"] == model.l1_ == metrics["l1"] and best["nonzeros"] == np.count_nonzero(model.coef_)
    assert np.isclose(best["test_log_loss"], metrics["test_log_loss"])
    alone = SparseLogisticRegression(l1=8, holdout=0.3, random_state=2).fit(*clicks)
    assert np.isclose(alone.report_["result"]["metrics"]["test_log_loss"], model.path_[0]["test_log_loss"], atol=1e-3)
    assert len(alone.path_) == 1 and "test_log_loss" not in alone.path_[0] and alone.l1_ == 8


def test_a_path_is_chosen_by_the_weights_of_samples():
    random = np.random.default_rng(0)
    X, counts = random.normal(size=(4000, 20)), random.random(4000) < 0.5
    y = np.where(counts, X[:, 0] * 3 + random.logistic(size=4000) > 0, random.random(4000) < 0.5).astype(int)
    weights = np.where(counts, 1.0, 1e-6)
    model = SparseLogisticRegression(l1="path", holdout=0.3).fit(X, y, sample_weight=weights)
    alone = SparseLogisticRegression(l1="path", holdout=0.3).fit(X[counts], y[counts])
    tested = [one.report_["result"]["metrics"]["test_log_loss"] for one in (model, alone)]
    assert abs(tested[0] - tested[1]) < 0.05 and max(model.l1_, alone.l1_) < 10 * min(model.l1_, alone.l1_)


@pytest.mark.parametrize("holdout", [None, 0.2])
@pytest.mark.parametrize("kinds, multinomial", [(2, False), (3, False), (3, True)])
def test_a_path_that_is_ended_has_the_model_of_an_l1(clicks, holdout, kinds, multinomial):
    X, y = clicks
    y = y + (np.asarray(X.sum(axis=1)).ravel() > 0) if kinds == 3 else y
    for last in (1, 5, 12, 20, 45, 80):
        model = SparseLogisticRegression(l1=[30, 10, 3, 1.0], holdout=holdout, multinomial=multinomial)
        model.fit(X, y, callback=lambda one, last=last: one["iteration"] >= last)
        metrics = model.report_["result"]["metrics"]
        assert model.l1_ in [one["l1"] for one in model.path_] and model.l1_ == metrics["l1"]
        of = next(one for one in model.path_ if one["l1"] == model.l1_)
        assert of["nonzeros"] == np.count_nonzero(model.coef_) == metrics["nonzeros"]
        assert sum(one["iterations"] for one in model.path_) <= model.n_iter_
        objective = metrics["loss"] + model.l1_ * np.abs(model.coef_).sum()
        assert np.isclose(objective, model.report_["result"]["objective"], rtol=1e-6)


def test_a_path_can_follow_from_the_samples(clicks, tmp_path):
    model = SparseLogisticRegression(l1="path", holdout=0.3, random_state=2).fit(*clicks)
    assert len(model.path_) == 20 and model.path_[0]["nonzeros"] == 0
    assert model.l1_ == min(model.path_, key=lambda one: one["test_log_loss"])["l1"]
    model.save(tmp_path / "model")
    assert SparseLogisticRegression.load(tmp_path / "model").l1_ == model.l1_
    with pytest.raises(ValueError, match="holdout"):
        SparseLogisticRegression(l1="path").fit(*clicks)


def test_values_that_single_precision_hardly_tells_apart_are_told():
    pandas = pytest.importorskip("pandas")
    times, y = 1.7e9 + 10.0 * np.arange(60), np.arange(60) % 2
    frame = pandas.DataFrame({"age": np.arange(60) % 7, "ts": times})
    with pytest.warns(UserWarning, match="ts: values of a feature differ by less"):
        SparseLogisticRegression(max_iter=3, tol=0).fit(frame, y)
    for matrix in (sp.csr_array, sp.csc_array, np.asarray):
        with pytest.warns(UserWarning, match="^0: values"):
            SparseLogisticRegression(max_iter=3, tol=0).fit(matrix(np.column_stack([times, y])), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseLogisticRegression().fit(np.column_stack([times - 1.7e9, np.ones(60), 2020 + y]), y)


@pytest.mark.parametrize("number", [3, 40])
def test_what_nobody_is_shown_and_what_users_are_not(number):
    random = np.random.default_rng(3)
    users, items = (np.array([f"{side}{one}" for one in random.integers(0, most, 3000)]) for side, most in (("u", 60), ("i", 90)))
    model = MatrixFactorization(4, max_iter=3).fit((users, items, random.random(3000)))
    without, exclude = model.item_ids_[:number], (users[:400], items[:400])
    scores = model.user_factors_ @ model.item_factors_.T + model.item_biases_
    for asked in (None, model.user_ids_[5:9], model.user_ids_[7]):
        found = np.atleast_2d(model.recommend(asked, 20, without=without, exclude=exclude, clip=False)[0])
        rows = range(len(model.user_ids_)) if asked is None else np.flatnonzero(np.isin(model.user_ids_, asked))
        for row, items_found in zip(rows, found):
            hidden = set(without) | {item for user, item in zip(*exclude) if user == model.user_ids_[row]}
            best = [model.item_ids_[at] for at in np.argsort(-scores[row]) if model.item_ids_[at] not in hidden][:20]
            assert [one for one in items_found if one] == best


def test_models_have_their_ids_once(ratings):
    model = MatrixFactorization(2, max_iter=1).fit(ratings)
    before = len(pickle.dumps(model))
    model.recommend()
    assert len(pickle.dumps(model)) == before


def test_a_model_that_is_read_back_asks_for_what_was_asked_for(tmp_path):
    users, items = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 2, 1])
    more = users, items, np.array([100.0, 300, 200, 100, 500])
    for at, model in enumerate((ImplicitALS(2, max_iter=2), MatrixFactorization(2, max_iter=2), ImplicitALS(2, max_iter=2, half_life="30d"))):
        times = (np.arange(5),) if model.__dict__.get("half_life") else ()
        model.fit((users, items, np.ones(5), *times)).save(tmp_path / str(at))
        loaded = type(model).load(tmp_path / str(at))
        assert loaded.get_params() == model.get_params()
        loaded.save(tmp_path / f"{at}-again")
        assert type(model).load(tmp_path / f"{at}-again").get_params() == model.get_params()
        settings = [one.fit((*more, *times)).report_["config"] for one in (model, loaded)]
        assert all(settings[0].get(name) == settings[1].get(name) for name in ("alpha", "unit", "step"))


def test_what_is_set_after_a_fit_counts_in_the_next(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    model = SparseLogisticRegression(multinomial=True).fit(X, y)
    chances = model.predict_proba(X)
    model.set_params(normalize=True, multinomial=False)
    np.testing.assert_array_equal(model.predict_proba(X), chances)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(SparseLogisticRegression.load(tmp_path / "model").predict_proba(X), chances)


def test_settings_that_are_none_are_those_of_the_command():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.warns(ConvergenceWarning, match="not converged to tol=1e-06 within 1 iterations"):
        SparseLogisticRegression(tol=None, max_iter=1, l1=0.01).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="above tol=1e-06, after 1 iterations"):
        pagerank(np.eye(3, k=1), max_iter=1, tol=None)


def test_a_part_of_the_samples_may_lack_a_class_that_has_a_weight():
    X, y = np.eye(4), [0, 1, 0, 1]
    some, all_of_them = ({0: 1.0, 1: 2.0, **more} for more in ({}, {7: 3.0}))
    fits = [SparseLogisticRegression(class_weight=weights).fit(X, y) for weights in (some, all_of_them)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    with pytest.raises(ValueError, match="class_weight names .7., which are no classes"):
        SparseLogisticRegression(class_weight={0: 1.0, 7: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="all samples of class 5 weigh 0"):
        SparseLogisticRegression().fit(X, [3, 5, 3, 5], sample_weight=[1, 0, 1, 0])


def test_frames_of_ratings_are_scored_by_their_labels():
    pd = pytest.importorskip("pandas")
    ratings = pd.DataFrame(np.arange(12.0).reshape(4, 3) % 5 + 1, index=list("abcd"), columns=list("xyz"))
    model = MatrixFactorization(2).fit(ratings)
    assert model.score(ratings.iloc[::-1, ::-1]) == pytest.approx(model.score(ratings))
    assert model.score(ratings[["y"]]) < 0
    assert model.score(pd.concat([ratings, ratings.iloc[:1].rename(index={"a": "new"})])) < 0
    for users, what in (([None, "a"], "users have none at place 0"), ([["a"]], "users have the shape")):
        with pytest.raises(ValueError, match=what):
            model.predict_pairs(users, ["x"] * len(users))


def test_labels_of_a_frame_are_ids_whatever_they_became():
    frame = pandas.DataFrame([[1, 0, 1], [0, 1, 1], [1, 1, 0]], index=[1, 2, 3], columns=[10, 20, 30])
    model = ImplicitALS(4, max_iter=5).fit(frame)
    excluded = pandas.DataFrame([[1, 0, 0]], index=[1], columns=[30, 20, 10])
    expected = model.recommend(1, 3, exclude=excluded)[0].tolist()
    assert sorted(expected) == [10, 20]
    # As a CSV file or a frame of polars has them.
    assert model.recommend(1, 3, exclude=excluded.rename(columns=str, index=str))[0].tolist() == expected
    texts = ImplicitALS(4, max_iter=5).fit(frame.rename(columns=str, index=str))
    assert sorted(texts.recommend("1", 3, exclude=excluded)[0].tolist()) == ["10", "20"]
    with pytest.raises(TypeError, match="X has 'ale' among the names of its columns, and items of the model are whole numbers"):
        model.recommend(1, 3, exclude=excluded.rename(columns={30: "ale"}))


def test_graphs_are_ranked_by_what_their_parts_are_called():
    graph = networkx.DiGraph([("a", "b", {"cost": 100.0}), ("a", "c", {"cost": 1.0}), ("b", "a", {"cost": 1.0}), ("c", "a", {"cost": 1.0})])
    expected = networkx.pagerank(graph, weight="cost", tol=1e-9, max_iter=1000)
    assert pagerank(graph, weights="cost") == pytest.approx(expected, abs=1e-5)
    series = pandas.Series({"c": 1.0, "b": 0.0, "a": 0.0})
    assert pagerank(graph, personalization=series) == pagerank(graph, personalization=series.to_dict())
    assert pagerank(graph, personalization=[series]) == [pagerank(graph, personalization=[series.to_dict()])[0]]
    with pytest.raises(ValueError, match="rows and columns of the frame are not the same vertices"):
        pagerank(pandas.crosstab(["a", "b", "a"], ["b", "c", "c"]))
    for weights in ([1, 2, 3], "cost"):
        with pytest.raises(TypeError, match="expected True or False"):
            pagerank(np.ones((3, 3)), weights=weights)
