"""Every kind of input gives the same model, and bad input the exception that users of scikit-learn expect."""

import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from megagrid import ImplicitALS, MatrixFactorization, NotFittedError, SparseLogisticRegression, TopicModel, hits, pagerank


def wide(X):
    """Return a matrix with indices of 64 bits."""
    X = X.copy()
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    return X


KINDS = {
    "csc": lambda X: X.tocsc(),
    "coo": lambda X: X.tocoo(),
    "lil": lambda X: X.tolil(),
    "wide": wide,
    "wide csc": lambda X: wide(X.tocsc()),
    "matrix": sp.csr_matrix,
    "dense": lambda X: X.toarray(),
    "fortran": lambda X: np.asfortranarray(X.toarray()),
    "strided": lambda X: np.repeat(X.toarray(), 2, axis=0)[::2],
    "list": lambda X: X.toarray().tolist(),
    "pandas": lambda X: pd.DataFrame(X.toarray(), columns=[f"x{at}" for at in range(X.shape[1])]),
    "pandas sparse": lambda X: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
    "polars": lambda X: pl.DataFrame(X.toarray(), schema=[f"x{at}" for at in range(X.shape[1])]),
    "unsorted": lambda X: sp.csr_array((X.data[::-1], X.indices[::-1], X.nnz - X.indptr[::-1]), shape=X.shape)[::-1],
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_matrices_give_one_model(kind, clicks, documents):
    X, y = clicks
    plain, other = SparseLogisticRegression().fit(X, y), SparseLogisticRegression().fit(KINDS[kind](X), y)
    assert np.array_equal(plain.coef_, other.coef_) and np.array_equal(plain.intercept_, other.intercept_)
    assert np.allclose(plain.decision_function(X), other.decision_function(KINDS[kind](X)), atol=1e-12)
    plain, other = (SparseLogisticRegression(normalize=True).fit(one, y) for one in (X, KINDS[kind](X)))
    assert np.array_equal(plain.coef_, other.coef_) and np.array_equal(plain.intercept_, other.intercept_)
    plain, other = (TopicModel(3, max_iter=10).fit(one) for one in (documents, KINDS[kind](documents)))
    assert np.array_equal(plain.components_, other.components_)
    assert np.array_equal(plain.transform(documents), other.transform(KINDS[kind](documents)))


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64, ">f8", bool])
def test_counts_have_any_type(kind, documents):
    counts = documents > 0
    expected = TopicModel(3, max_iter=5).fit(counts.astype(np.int64))
    assert np.array_equal(TopicModel(3, max_iter=5).fit(counts.toarray().astype(kind)).components_, expected.components_)


def test_values_in_one_place_are_summed(clicks):
    X, y = clicks
    halves = sp.coo_array((np.concatenate([X.data / 2] * 2), tuple(np.concatenate([at] * 2) for at in X.tocoo().coords)), X.shape)
    assert np.allclose(SparseLogisticRegression().fit(halves, y).coef_, SparseLogisticRegression().fit(X, y).coef_)
    before = wide(X)
    SparseLogisticRegression().fit(before, y)
    assert (before != X).nnz == 0


def test_names_of_columns_are_kept_and_checked(clicks):
    X, y = clicks
    frame = KINDS["pandas"](X)
    model = SparseLogisticRegression().fit(frame, y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="yet now missing:\n- x0\n"):
        model.predict(frame.drop(columns="x0"))


class Stream:
    """A table of which nothing is known but that Arrow can stream it, once."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        table, self.table = self.table, None
        return table.__arrow_c_stream__(requested_schema)


class Batch:
    """A table of which nothing is known but that Arrow has it in one piece."""

    def __init__(self, table):
        (self.batch,) = table.combine_chunks().to_batches()

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


def arrow(X):
    """Return a table of two chunks a column."""
    X = pa.table({f"x{at}": column for at, column in enumerate(X.toarray().T)})
    return pa.concat_tables([X[:7], X[7:]])


TABLES = {"table": lambda table: table, "batch": lambda table: Batch(table).batch, "stream": Stream, "array": Batch}
READERS = {"both": [], "pyarrow": ["polars", "pandas"], "polars": ["pyarrow"]}


@pytest.mark.parametrize("read_by", READERS)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_arrow_gives_the_model_of_its_matrix_and_names(kind, read_by, clicks, monkeypatch):
    X, y = clicks
    plain, table = SparseLogisticRegression().fit(X, y), arrow(X)
    for missing in READERS[read_by]:
        monkeypatch.setitem(sys.modules, missing, None)
    other = SparseLogisticRegression().fit(TABLES[kind](table), y)
    assert np.array_equal(plain.coef_, other.coef_)
    assert other.feature_names_in_.tolist() == table.column_names
    assert np.array_equal(other.predict(TABLES[kind](table)), plain.predict(X))
    with pytest.raises(ValueError, match="same order"):
        other.predict(TABLES[kind](table.select(table.column_names[::-1])))


@pytest.mark.parametrize("kind", TABLES)
def test_all_that_take_a_matrix_take_a_table_of_arrow(kind, documents, ratings):
    make, counts = TABLES[kind], arrow(documents)
    plain, other = TopicModel(3, max_iter=5).fit(documents), TopicModel(3, max_iter=5).fit(make(counts))
    assert np.array_equal(plain.transform(documents), other.transform(make(counts)))
    assert np.array_equal(plain.transform(documents), TopicModel(3, max_iter=5).fit_transform(make(counts)))
    users, items, found = ratings
    matrix = sp.coo_array((np.abs(found), (users, items))).tocsr()
    for estimator in (MatrixFactorization(4, max_iter=3), ImplicitALS(4, max_iter=3)):
        plain = estimator.fit(matrix)
        user_factors, seen = plain.user_factors_, plain.recommend(exclude=matrix)[0]
        other = estimator.fit(make(arrow(matrix)))
        assert np.array_equal(user_factors, other.user_factors_)
        # A table's columns have names, which are ids.
        assert np.array_equal(np.where(seen < 0, "", np.char.add("x", seen.astype(str))), other.recommend(exclude=make(arrow(matrix)))[0])
        assert len(other.fold_in(make(arrow(matrix))).user_ids_) == matrix.shape[0]
    links = (documents.T @ documents > 0).astype(float)
    assert np.array_equal(pagerank(links), pagerank(make(arrow(links))))


def test_without_a_reader_a_table_of_arrow_is_an_array_or_refused(clicks, monkeypatch):
    X, y = clicks
    plain, table = SparseLogisticRegression().fit(X, y), arrow(X)
    for missing in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, missing, None)
    other = SparseLogisticRegression().fit(table, y)
    assert np.array_equal(plain.coef_, other.coef_) and not hasattr(other, "feature_names_in_")
    with pytest.raises(TypeError, match="X is a Stream, a table of Arrow; install pyarrow or polars"):
        SparseLogisticRegression().fit(Stream(table), y)


def test_what_a_table_of_arrow_lacks_is_refused(clicks):
    X, y = clicks
    missing = pa.table({"x0": [1, None, 3], "x1": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="contains NaN"):
        SparseLogisticRegression().fit(missing, [0, 1, 0])
    with pytest.raises(ValueError, match="a minimum of 1 is required"):
        SparseLogisticRegression().fit(pa.table({}), y)
    with pytest.raises(ValueError, match="Expected 2D array"):
        SparseLogisticRegression().fit(pa.array([1.0, 2.0]), [0, 1])
    with pytest.raises(ValueError, match="non-struct type"):
        SparseLogisticRegression().fit(Stream(pa.chunked_array([[1.0, 2.0]])), [0, 1])


def test_ratings_as_columns_matrix_and_file_give_one_model(ratings, tmp_path):
    users, items, found = ratings
    path = tmp_path / "ratings.csv"
    path.write_text("".join(f"{user},{item},{rating}\n" for user, item, rating in zip(users, items, found)))
    matrix = sp.coo_array((found, (users, items)))
    models = [MatrixFactorization(4).fit(one) for one in (ratings, matrix, matrix.tocsr(), str(path), path)]
    for model in models[1:]:
        assert np.array_equal(model.user_factors_, models[0].user_factors_)
        assert np.array_equal(model.item_factors_, models[0].item_factors_)


def test_samples_in_a_file_give_the_model_of_their_matrix(clicks, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = clicks
    path = str(tmp_path / "clicks.libsvm")
    # All digits, so that a float of single precision is the same.
    X = X.astype(np.float32)
    dump_svmlight_file(X, 2 * y - 1, path)
    plain, other = SparseLogisticRegression().fit(X, y), SparseLogisticRegression().fit(path)
    assert np.array_equal(plain.coef_, other.coef_)
    assert other.feature_names_in_.tolist() == [str(at) for at in range(50)]
    assert np.allclose(other.decision_function(path), plain.decision_function(X), atol=1e-9)
    again = plain.fit(path)
    assert again.feature_names_in_.tolist() == other.feature_names_in_.tolist() and np.array_equal(again.coef_, other.coef_)
    assert not hasattr(again.fit(X, y), "feature_names_in_")
    with pytest.raises(ValueError, match="stand in the file"):
        SparseLogisticRegression().fit(path, y)


def test_weights_of_samples_may_be_a_column_of_a_file(clicks, tmp_path):
    import pandas

    X, y = clicks
    weights = (np.arange(len(y)) % 4).astype(float)
    frame = pandas.DataFrame(X.toarray().astype(np.float32), columns=[f"x{at}" for at in range(X.shape[1])])
    path = str(tmp_path / "clicks.parquet")
    frame.assign(clicked=y, seen=weights).to_parquet(path)
    of_file = SparseLogisticRegression().fit(path, columns="label=clicked,weight=seen")
    of_frame = SparseLogisticRegression().fit(frame, y, sample_weight=weights)
    order = [list(of_file.feature_names_in_).index(name) for name in frame.columns]
    assert np.allclose(of_file.coef_[:, order], of_frame.coef_, atol=1e-3)
    assert not np.allclose(of_frame.coef_, SparseLogisticRegression().fit(frame, y).coef_, atol=1e-2)


def test_samples_in_a_file_are_calibrated_on_those_that_are_kept(clicks, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = clicks
    path = str(tmp_path / "clicks.libsvm")
    dump_svmlight_file(X, y, path)
    plain = SparseLogisticRegression(holdout=0.3).fit(path)
    other = SparseLogisticRegression(holdout=0.3).fit(path, calibrate=True)
    slopes = other.coef_[plain.coef_ != 0] / plain.coef_[plain.coef_ != 0]
    assert len(slopes) > 3 and np.allclose(slopes, slopes[0]) and not np.isclose(slopes[0], 1)
    assert plain.calibration_.shape == (0, 2) and np.isclose(other.calibration_[0, 0], slopes[0])
    other.save(tmp_path / "calibrated")
    assert np.array_equal(SparseLogisticRegression.load(tmp_path / "calibrated").calibration_, other.calibration_)
    with pytest.raises(TypeError, match="calibrate: this says how a path is read"):
        SparseLogisticRegression(holdout=0.3).fit(X, y, calibrate=True)


def test_ids_are_texts_or_numbers(ratings):
    users, items, found = ratings
    plain = MatrixFactorization(4).fit(ratings)
    named = MatrixFactorization(4).fit((np.char.mod("u%03d", users), [f"i{item:02d}" for item in items], found))
    assert np.array_equal(named.user_factors_, plain.user_factors_)
    assert [int(item[1:]) for item in named.recommend("u005", 3)[0]] == plain.recommend(5, 3)[0].tolist()
    far = MatrixFactorization(4).fit((users * 10**12 - 10**13, items, found))
    assert np.array_equal(far.user_factors_, plain.user_factors_)
    assert far.recommend(5 * 10**12 - 10**13, 3)[0].tolist() == plain.recommend(5, 3)[0].tolist()


def bad(value, at=(3, 2)):
    X = np.ones((10, 4))
    X[at] = value
    return X


BAD = {
    "NaN": (bad(np.nan), ValueError, "contains NaN"),
    "infinity": (bad(-np.inf), ValueError, "infinity"),
    "too large": (bad(1e39), ValueError, "too large"),
    "complex": (np.ones((10, 4)) * 1j, ValueError, "Complex data"),
    "complex sparse": (sp.csr_array(np.ones((10, 4)) * 1j), ValueError, "Complex data"),
    "texts": (np.full((10, 4), "a"), ValueError, "could not convert"),
    "objects": (np.full((10, 4), {}, dtype=object), TypeError, "argument must be"),
    "dates": (np.zeros((10, 4), dtype="datetime64[s]"), TypeError, "expected numbers"),
    "1-D": (np.ones(10), ValueError, "Expected 2D array, got 1D"),
    "scalar": (3.0, ValueError, "Expected 2D array, got scalar"),
    "3-D": (np.ones((10, 4, 2)), ValueError, "dim 3"),
    "no rows": (np.ones((0, 4)), ValueError, "0 sample"),
    "no columns": (np.ones((10, 0)), ValueError, "0 feature"),
    "none": (None, ValueError, "could not convert|Expected 2D"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("estimator", [SparseLogisticRegression(), TopicModel(2, max_iter=2), MatrixFactorization(2)])
def test_bad_matrices_are_refused(estimator, name):
    X, error, text = BAD[name]
    with pytest.raises(error, match=text):
        estimator.fit(X, np.arange(10) % 2)


def test_ids_of_objects_are_found_as_they_were_fitted(ratings):
    users, items, found = ratings
    names = np.array([f"user {user}" for user in users], dtype=object), np.array([f"item {item}" for item in items], dtype=object)
    model = MatrixFactorization(4, max_iter=3).fit((*names, found))
    texts = [ids.astype(str) for ids in names]
    assert np.array_equal(model.predict_pairs(names[0][:9], names[1][:9]), model.predict_pairs(texts[0][:9], texts[1][:9]))
    best = [model.recommend(ids[:3], 4)[0].tolist() for ids in (names[0], texts[0])]
    assert best[0] == best[1]
    numbers = MatrixFactorization(4, max_iter=3).fit(ratings)
    with pytest.raises(TypeError, match="users are"):
        numbers.predict_pairs(names[0][:3], items[:3])


def test_objects_that_are_whole_numbers_are_numbers(ratings, tmp_path):
    users, items, found = ratings
    frame = pd.DataFrame({"user": users, "item": [f"i{item:02}" for item in items], "rating": found})
    model = MatrixFactorization(4, max_iter=3).fit(tuple(frame.to_numpy().T))
    plain = MatrixFactorization(4, max_iter=3).fit((users, frame["item"], found))
    assert model.user_ids_.dtype == np.int64 and model.item_ids_.dtype.kind == "U"
    assert model.recommend(1, 3)[0].tolist() == plain.recommend(1, 3)[0].tolist()
    for asked in (np.array([1], dtype=object), pd.array([1], dtype="Int64")):
        assert np.array_equal(plain.recommend(asked, 3)[0], [plain.recommend(1, 3)[0]])
    far = np.array([2**63 + int(user) for user in users], dtype=object)
    assert MatrixFactorization(2, max_iter=1).fit((far, items, found)).user_ids_.dtype == np.uint64
    mixed = MatrixFactorization(2, max_iter=1).fit((np.array([1, "a"], dtype=object), [1, 2], [3.0, 4.0]))
    assert mixed.user_ids_.tolist() == ["1", "a"]
    ends = np.array([1, 2], dtype=object), np.array([2, 3], dtype=object)
    assert pagerank(ends, personalization={1: 1}).ids.dtype == np.int64


def test_numbers_without_a_sign_and_bools_are_ids(ratings, tmp_path):
    users, items, found = ratings
    far = items.astype(np.uint64) + np.uint64(2**63)
    model = MatrixFactorization(4, max_iter=3).fit((users, far, found))
    ids, scores = model.recommend(n=80, exclude=(users, far))
    assert ids.dtype == np.uint64 and ((ids == 2**64 - 1) == np.isnan(scores)).all() and np.isnan(scores).any()
    bools = MatrixFactorization(2, max_iter=2).fit((users > 99, items, found))
    assert bools.user_ids_.tolist() == [0, 1] and bools.user_ids_.dtype == np.int64
    bools.save(tmp_path / "model")
    for one in (bools, MatrixFactorization.load(tmp_path / "model")):
        assert np.array_equal(one.recommend(True, 3)[0], bools.recommend(1, 3)[0])
    assert (bools.similar_users(n=1)[0] == [[1], [0]]).all()


def test_numbers_below_0_are_numbers_in_a_loaded_model(ratings, tmp_path):
    users, items, found = ratings
    model = MatrixFactorization(4, max_iter=3).fit((users - 7, items, found))
    model.save(tmp_path / "model")
    again = MatrixFactorization.load(tmp_path / "model")
    assert again.user_ids_.dtype == np.int64 and np.array_equal(again.user_ids_, model.user_ids_)
    assert np.array_equal(again.recommend(-3, 5)[0], model.recommend(-3, 5)[0])
    texts = MatrixFactorization(4, max_iter=3).fit(((users - 7).astype(str), items, found))
    texts.save(tmp_path / "texts")
    assert MatrixFactorization.load(tmp_path / "texts").user_ids_.dtype.kind == "U"


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1")
def test_ids_are_strings_of_any_length(ratings):
    users, items, found = ratings
    names = np.char.mod("u%03d", users)
    model = MatrixFactorization(4, max_iter=3).fit((names, items, found))
    strings = names.astype(np.dtypes.StringDType())
    other = MatrixFactorization(4, max_iter=3).fit((strings, items, found))
    assert np.array_equal(other.user_factors_, model.user_factors_) and other.user_ids_.tolist() == model.user_ids_.tolist()
    assert np.array_equal(other.predict_pairs(strings, items), model.predict_pairs(names, items))


def test_large_numbers_of_either_kind_are_told_apart(ratings, tmp_path):
    users, items, found = ratings
    far = users.astype(np.uint64) * np.uint64(3) + np.uint64(2**60 + 1)
    model = MatrixFactorization(4, max_iter=3).fit((far, items, found))
    expected = model.predict_pairs(far, items)
    model.save(tmp_path / "model")
    for one in (model, MatrixFactorization.load(tmp_path / "model")):
        for ids in (far, far.astype(np.int64)):
            assert np.array_equal(one.predict_pairs(ids, items), expected)
        assert one.recommend(int(far[0]), 3)[0].shape == (3,)
        unknown = np.array([2**64 - 1, far[0]], dtype=np.uint64)
        assert one.predict_pairs(unknown, items[:2])[1] == expected[:1] or items[0] != items[1]
    assert model.predict_pairs(np.array([-1]), items[:1]).shape == (1,)


@pytest.mark.parametrize("missing", [None, np.nan, "NA"])
def test_missing_ids_are_nobody(missing, ratings):
    pandas = pytest.importorskip("pandas")
    missing = pandas.NA if missing == "NA" else missing
    people = np.array(["ann", missing, "bob"], dtype=object)
    with pytest.raises(ValueError, match="users have none at place 1"):
        MatrixFactorization(2).fit((people, ["tea", "tea", "oat"], [1.0, 2.0, 3.0]))


def test_one_long_id_is_long_by_itself():
    import tracemalloc

    people = np.array([f"u{one}" for one in range(300)], dtype=object)
    repeated = np.repeat(people, 50)
    repeated[0] = "x" * 20_000
    tracemalloc.start()
    MatrixFactorization(2, max_iter=1).fit((repeated, np.arange(15_000) % 7, np.ones(15_000)))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # As wide as the longest, all would be 1.2 GB.
    assert most < 200e6


def test_a_model_with_one_long_id_is_asked_without_making_all_as_long(tmp_path):
    people = np.array([f"u{one:03}" for one in range(300)] + ["x" * 20_000], dtype=object)
    users, items = np.repeat(people, 7), np.tile(np.arange(7), 301)
    model = MatrixFactorization(2, max_iter=1).fit((users, items, np.ones(len(users))))
    model.save(tmp_path / "model")
    for one in (model, MatrixFactorization.load(tmp_path / "model")):
        assert one.user_ids_.dtype == object and set(one.user_ids_) == set(people)
        for asked in (people[[3, 300]], people[[3, 300]].astype(str)):
            assert np.array_equal(one.predict_pairs(asked, [1, 2]), model.predict_pairs(asked, [1, 2]))
        assert one.recommend("x" * 20_000, 2)[0].shape == (2,)
        assert one.similar_users("u003", 300)[0].shape == (300,)


def test_what_is_left_out_is_any_collection(ratings):
    users, items, found = ratings
    names = np.char.mod("i%02d", items)
    model = MatrixFactorization(4, max_iter=3).fit((users, names, found))
    first = str(model.recommend(3, 1)[0][0])
    for without in ([first], {first}, frozenset([first]), {first: 1}.keys(), (one for one in [first]), np.array([first]), first):
        assert first not in model.recommend(3, 5, without=without)[0]
    assert np.array_equal(model.recommend(3, 5, without=None)[0], model.recommend(3, 5)[0])
    assert np.array_equal(model.recommend(3, 5, exclude=([], []))[0], model.recommend(3, 5)[0])
    assert model.predict_pairs([], []).shape == (0,)


def test_a_fit_that_fails_leaves_what_there_was(clicks, documents, tmp_path):
    X, y = clicks
    model = SparseLogisticRegression(l1=1.0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError):
        model.set_params(l1=-1.0).fit(X, np.where(y > 0, "yes", "no"))
    assert np.array_equal(model.predict(X), before)
    with pytest.raises(FileNotFoundError):
        model.set_params(l1=1.0).fit(str(tmp_path / "typo.libsvm"))
    assert np.array_equal(model.predict(X), before)
    topics = TopicModel(2, max_iter=3).fit(documents)
    components = topics.components_
    with pytest.raises(ValueError):
        topics.set_params(beta=-1.0).fit(documents[:, :5])
    assert np.array_equal(topics.components_, components)
    unfitted = MatrixFactorization(2)
    with pytest.raises(ValueError):
        unfitted.fit(([1], [1, 2], [3.0]))
    assert not hasattr(unfitted, "n_features_in_")


def test_ctrl_c_before_training_leaves_what_there_was(clicks, monkeypatch):
    from megagrid import _input, _megagrid

    X, y = clicks
    model = SparseLogisticRegression().fit(X, y)
    before = model.predict(X)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_input, "sample_weights", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :20], np.array(["a", "b", "c"])[np.arange(600) % 3])
    assert model.classes_.tolist() == [0, 1] and np.array_equal(model.predict(X), before)
    # While the matrix is taken in.
    monkeypatch.undo()
    monkeypatch.setattr(_megagrid, "regression", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :20], np.array(["a", "b", "c"])[np.arange(600) % 3])
    assert model.classes_.tolist() == [0, 1] and np.array_equal(model.predict(X), before)
    # Where the new model is half there, neither is.
    monkeypatch.undo()
    monkeypatch.setattr(SparseLogisticRegression, "_keep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :20], y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_features_of_one_name_have_no_model_directory(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(2).normal(size=(60, 3)), columns=["a", "b", "b"])
    model = SparseLogisticRegression(l1=0.1).fit(X, X.iloc[:, 1] > 0)
    with pytest.raises(ValueError, match="two features are called 'b'"):
        model.save(tmp_path / "model")


def test_nothing_to_foretell_is_no_number(documents):
    model = TopicModel(2, max_iter=3).fit(documents)
    nothing = np.zeros((2, documents.shape[1]), dtype=int)
    assert np.isnan(model.perplexity(nothing)) and np.isnan(model.score(nothing))


def test_what_the_machine_has_no_memory_for_is_refused_before_it_is_taken():
    wide = sp.coo_array(([1.0], ([0], [2**31 - 2])), shape=(1, 2**31 - 1))
    with pytest.raises(MemoryError, match="memory"):
        MatrixFactorization(4096).fit(wide)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT])
def test_labels_without_a_value_are_refused(missing):
    y = np.array([missing, 0, 1, 1, 0, 1], dtype=object)
    with pytest.raises(ValueError, match="contains NaN"):
        SparseLogisticRegression().fit(np.ones((6, 2)), y)


def test_what_pandas_lacks_is_nan(clicks):
    X = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": [1.0, 2.0, 3.0, 0.5]})
    with pytest.raises(ValueError, match="Input X contains NaN"):
        SparseLogisticRegression().fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="Input ratings contains NaN"):
        MatrixFactorization(2).fit(([1, 2, 3, 4], [1, 2, 3, 4], X["a"]))
    whole = X.fillna(2)
    plain = SparseLogisticRegression(l1=0.01).fit(whole.astype(float), [0, 1, 0, 1])
    assert np.array_equal(SparseLogisticRegression(l1=0.01).fit(whole, [0, 1, 0, 1]).coef_, plain.coef_)


@pytest.mark.parametrize("y", [np.array([b"a", b"b"] * 3), np.arange(6).astype("datetime64[D]"), np.array([Decimal(1), Decimal(2)] * 3)])
def test_classes_that_no_model_directory_holds_are_refused(y):
    with pytest.raises(TypeError, match="expected numbers or texts"):
        SparseLogisticRegression().fit(np.ones((6, 2)), y)


def test_classes_of_objects_are_saved(clicks, tmp_path):
    X, y = clicks
    model = SparseLogisticRegression(class_weight={3: 2.0}).fit(X, np.array([np.int64(3), np.int64(5)], dtype=object)[y])
    model.save(tmp_path / "model")
    again = SparseLogisticRegression.load(tmp_path / "model")
    assert again.classes_.tolist() == [3, 5] and np.array_equal(again.predict(X), model.predict(X).astype(int))


def test_names_of_classes_with_underscores_are_texts(tmp_path):
    path = tmp_path / "months.svm"
    path.write_text("".join(f"2024_0{1 + row % 2} {row % 2}:1 3:{row % 3}\n" for row in range(30)))
    model = SparseLogisticRegression(l1=0.1).fit(path)
    assert model.classes_.tolist() == ["2024_01", "2024_02"] and model.predict(path)[0] == "2024_01"


def test_a_holdout_that_keeps_nothing_is_refused():
    X = np.random.default_rng(1).normal(size=(6, 2))
    with pytest.raises(ValueError, match="leaves none for testing"):
        SparseLogisticRegression(holdout=1e-9).fit(X, np.arange(6) % 2)


def test_fields_of_packed_records_are_read():
    packed = np.zeros(40, dtype=[("mark", "u1"), ("row", "f8", 3)])
    packed["row"] = np.random.default_rng(1).normal(size=(40, 3))
    y = np.arange(40) % 2
    fields = SparseLogisticRegression(l1=0.1).fit(packed["row"], y)
    assert np.array_equal(fields.coef_, SparseLogisticRegression(l1=0.1).fit(packed["row"].copy(), y).coef_)


def test_damaged_matrices_are_refused():
    good = sp.csr_array(np.eye(10, 4) + 1)
    y = np.arange(10) % 2
    for part, place, value in [("indices", 3, 4), ("indices", 3, -1), ("indptr", 4, 99), ("indptr", 4, -5), ("indptr", 10, 400)]:
        damaged = good.copy()
        getattr(damaged, part)[place] = value
        damaged.has_canonical_format = True
        for estimator in (SparseLogisticRegression(), TopicModel(2), MatrixFactorization(2)):
            with pytest.raises(ValueError, match="out of range|damaged"):
                estimator.fit(damaged, y)
    damaged = good.copy()
    damaged.data = damaged.data[:-1]
    for estimator in (SparseLogisticRegression(), TopicModel(2), MatrixFactorization(2)):
        with pytest.raises(ValueError, match="damaged|data"):
            estimator.fit(damaged, y)


def test_shapes_that_indices_cannot_number_are_refused():
    one = (np.ones(1), (np.zeros(1, dtype=np.int64), np.full(1, 2**40 - 1, dtype=np.int64)))
    with pytest.raises(ValueError, match="1099511627776 columns are more than indices of 32 bits"):
        MatrixFactorization(2).fit(sp.coo_array(one, shape=(1, 2**40)))
    with pytest.raises(ValueError, match="counts up to"):
        TopicModel(2).fit(np.full((2, 2), 2.0**33))
    with pytest.raises(MemoryError, match="MB are available"):
        MatrixFactorization(4096).fit(sp.coo_array((np.ones(1), ([0], [0])), shape=(2**31, 2**31)))


def test_bad_classes_and_weights_are_refused(clicks):
    X, y = clicks
    model = SparseLogisticRegression()
    for classes, text in [
        (None, "requires y"),
        (y[:-1], "inconsistent"),
        (np.zeros(600), "1 class"),
        (np.linspace(0, 1, 600), "continuous"),
        (np.full(600, np.nan), "NaN"),
        (np.ones((600, 2)), "1d array"),
    ]:
        with pytest.raises(ValueError, match=text):
            model.fit(X, classes)
    for weights, text in [
        (np.ones(3), "shape"),
        (-np.ones(600), "Negative"),
        (np.zeros(600), "non-zero"),
        (np.ones((600, 1)), "1D array"),
        (np.full(600, np.nan), "NaN"),
    ]:
        with pytest.raises(ValueError, match=text):
            model.fit(X, y, sample_weight=weights)
    with pytest.raises(TypeError, match="class_weight is \\[1, 2\\]"):
        SparseLogisticRegression(class_weight=[1, 2]).fit(X, y)
    for weights in ({7: 1.0}, {1: -1.0}, {1: np.nan}, {1: "much"}, "balance"):
        with pytest.raises(ValueError, match="class_weight"):
            SparseLogisticRegression(class_weight=weights).fit(X, y)
    with pytest.raises(ValueError, match="1200 classes.*regression target"):
        model.fit(np.ones((1200, 2)), np.arange(1200))
    # Many classes stop early one by one.
    many = SparseLogisticRegression(patience=2, holdout=0.2).fit(X, np.arange(600) % 3)
    assert many.coef_.shape == (3, X.shape[1])


def test_bad_ratings_are_refused(ratings):
    users, items, found = ratings
    model = MatrixFactorization(2)
    with pytest.raises(ValueError, match="expected one id for each"):
        model.fit((users[:-1], items, found))
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit((users, items, found * np.nan))
    with pytest.raises(TypeError, match="expected whole numbers or texts"):
        model.fit((users * 0.5, items, found))
    with pytest.raises(ValueError, match="no rating"):
        model.fit(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="no rating"):
        model.fit((users[:0], items[:0], found[:0]))
    model.fit(ratings)
    with pytest.raises(ValueError, match="user 999 is not among the 200 users"):
        model.recommend(999)
    with pytest.raises(TypeError, match="users are"):
        model.recommend("ann")
    with pytest.raises(ValueError, match="inconsistent"):
        model.predict_pairs([1, 2], [3])
    for score in (model.score, model.fit):
        with pytest.raises(ValueError, match="inconsistent|expected one id for each"):
            score((users, items, found[:1]))


def test_negative_counts_are_refused(documents):
    with pytest.raises(ValueError, match="Negative values"):
        TopicModel(2).fit(-documents)
    with pytest.raises(ValueError, match="no count above 0"):
        TopicModel(2).fit(documents * 0)
    with pytest.raises(TypeError, match="how a path is read"):
        TopicModel(2).fit(documents, lower_case=True)


def test_a_document_of_too_many_words_is_refused(documents):
    model = TopicModel(2, max_iter=2).fit(documents)
    for ask in (model.transform, model.perplexity):
        with pytest.raises(ValueError, match="a document has 120000000 words"):
            ask(np.full((1, 30), 4_000_000))


def test_bad_graphs_are_refused():
    for graph, text in [
        (np.ones((2, 3)), "square"),
        (np.zeros((3, 3)), "no link"),
        (([1, 2], [3]), "two columns"),
        (([], []), "no link"),
    ]:
        for score in (pagerank, hits):
            with pytest.raises(ValueError, match=text):
                score(graph)
    with pytest.raises(ValueError, match="no vertex"):
        pagerank((["a"], ["b"]), personalization={"c": 1})
    with pytest.warns(UserWarning, match="count nothing"):
        pagerank(np.array([[0, 2], [1, 0]]))
    links = np.array([[0.0, 2.0], [1.0, 0.0]])
    for given, text in [
        ({"personalization": [1.0]}, "1 weights, and the graph 2 vertices"),
        ({"personalization": {0: 0.0}}, "sum of the weights of restarts is 0"),
        ({"personalization": {0: -1.0}}, "weight of a restart is -1"),
        ({"personalization": {}}, "sum of the weights of restarts is 0"),
        ({"personalization": {7: 1}}, 'no vertex "7"'),
    ]:
        with pytest.raises(ValueError, match=text):
            pagerank(links, weights=True, **given)
    with pytest.raises(TypeError, match="expected a dict from ids to weights"):
        pagerank((["a"], ["b"]), personalization=[1.0, 0.0])
    with pytest.raises(ValueError, match="the weight of a link is -2"):
        pagerank(-links, weights=True)
    with pytest.raises(ValueError, match="NaN"):
        pagerank((["a"], ["b"], [np.nan]), weights=True)
    for graph, weights in [((["a"], ["b"]), True), ((["a"], ["b"], [1.0]), False)]:
        with pytest.raises(ValueError, match="sources, targets, weights"):
            pagerank(graph, weights=weights)


def test_features_that_do_not_fit_are_refused(clicks, documents):
    X, y = clicks
    with pytest.raises(ValueError, match="X has 49 features, but SparseLogisticRegression is expecting 50"):
        SparseLogisticRegression().fit(X, y).predict(X[:, :49])
    with pytest.raises(ValueError, match="X has 29 features, but TopicModel is expecting 30"):
        TopicModel(2, max_iter=2).fit(documents).transform(documents[:, :29])


def test_options_out_of_range_are_named_as_python_has_them(clicks, documents, ratings):
    for estimator, data, text in [
        (SparseLogisticRegression(l1=-1), clicks, "l1"),
        (SparseLogisticRegression(tol=-1), clicks, "^tol is -1"),
        (SparseLogisticRegression(max_iter=0), clicks, "max_iter"),
        (TopicModel(0), (documents,), "n_components|topics"),
        (TopicModel(prior="none"), (documents,), "for prior"),
        (MatrixFactorization(0), (ratings,), "n_factors is 0"),
        (MatrixFactorization(holdout=2), (ratings,), "holdout"),
        (MatrixFactorization(random_state=-3), (ratings,), "seed"),
        (MatrixFactorization(n_jobs=0), (ratings,), "n_jobs"),
    ]:
        with pytest.raises(ValueError, match=text):
            estimator.fit(*data)
    # Options without a parameter of their own, too.
    with pytest.raises(ValueError, match="(^|\\s)min_documents(?!-)") as refused:
        TopicModel(2).fit(__file__, format="text", min_documents=-1)
    assert "--" not in str(refused.value)
    assert SparseLogisticRegression(l1=np.array(1.0)).fit(*clicks).report_["config"]["l1"] == [1.0]
    with pytest.raises(TypeError, match="l1 is \\[\\], expected a number"):
        SparseLogisticRegression(l1=[]).fit(*clicks)
    with pytest.raises(TypeError, match="n_factors is None|n_factors is \\{\\}"):
        MatrixFactorization(n_factors={}).fit(ratings)


def test_what_is_not_fitted_says_so(clicks):
    for act in (
        lambda: SparseLogisticRegression().predict(clicks[0]),
        lambda: TopicModel().transform(clicks[0]),
        lambda: MatrixFactorization().recommend(1),
        lambda: MatrixFactorization().save("nowhere"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            act()


def test_files_that_are_not_there_say_so(tmp_path):
    for act in (
        lambda: MatrixFactorization().fit(tmp_path / "none.csv"),
        lambda: TopicModel().fit(str(tmp_path / "none.txt")),
        lambda: pagerank(tmp_path / "none.txt"),
        lambda: MatrixFactorization.load(tmp_path / "none"),
    ):
        with pytest.raises(FileNotFoundError, match="none"):
            act()
    (tmp_path / "bad.csv").write_text("1,2,3\n1,x\n")
    with pytest.raises(ValueError, match="bad.csv:2"):
        MatrixFactorization().fit(tmp_path / "bad.csv")


def test_dates_are_no_numbers_of_a_frame_whatever_stands_beside_them():
    day = pd.date_range("2020", periods=4)
    for other in (pd.array([1, 2, None, 4], dtype="Int64"), [1.0, 2.0, 3.0, 4.0]):
        for dates in (day, day.tz_localize("UTC"), day - day[0]):
            with pytest.raises(TypeError, match="column 't' of X holds"):
                SparseLogisticRegression().fit(pd.DataFrame({"a": other, "t": dates}), [0, 1, 0, 1])


def test_times_with_a_zone_are_those_of_utc():
    users, items, values = np.array([0, 1, 2, 0]), np.array([0, 1, 0, 1]), np.ones(4)
    day = pd.Series(pd.date_range("2020", periods=4, tz="Europe/Rome"))
    plain = day.dt.tz_convert(None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [ImplicitALS(2, half_life="1d").fit((users, items, values, times)).item_factors_ for times in (day, list(day), plain)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    with pytest.raises(ValueError, match="times contains NaT"):
        ImplicitALS(2, half_life="1d").fit((users, items, values, day.mask(users == 1)))
