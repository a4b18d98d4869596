"""What users and items are called: columns, data frames and matrices, in fits and in questions."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from megagrid import ImplicitALS, MatrixFactorization, pagerank


def quick(**more):
    return MatrixFactorization(4, max_iter=3, n_jobs=1, **more)


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_a_frame_are_those_of_its_file(kind, ratings, tmp_path):
    users, items, found = ratings
    # Numbers in another order than those of a file's usual columns.
    columns = {"timestamp": np.arange(len(users)), "Rating": found.astype(float), "movieId": items, "userId": users}
    path = tmp_path / "ratings.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    frame, plain = FRAMES[kind](columns), quick().fit((users, items, found.astype(float)))
    for model in (quick().fit(frame), quick().fit(path)):
        assert np.array_equal(model.user_factors_, plain.user_factors_) and np.array_equal(model.item_ids_, plain.item_ids_)
    assert np.isclose(plain.score(frame), plain.score(ratings))
    assert np.array_equal(plain.recommend(exclude=frame)[0], plain.recommend(exclude=(users, items))[0])
    assert np.array_equal(plain.fold_in(frame).user_factors_, plain.fold_in((users, items, found.astype(float))).user_factors_)
    timed = ImplicitALS(4, holdout_last=1, max_iter=2).fit(FRAMES[kind]({**columns, "Rating": np.ones(len(users))}))
    expected = ImplicitALS(4, holdout_last=1, max_iter=2).fit((users, items, np.ones(len(users)), np.arange(len(users))))
    assert np.array_equal(timed.item_factors_, expected.item_factors_)
    pairs = ImplicitALS(4, max_iter=2).fit(FRAMES[kind]({"user": users, "item": items}))
    assert np.array_equal(pairs.item_factors_, ImplicitALS(4, max_iter=2).fit((users, items)).item_factors_)


def test_what_would_be_trained_on_as_nonsense_is_refused_or_told(ratings):
    users, items, found = ratings
    pairs = np.column_stack([users, items])
    for X, y in [(pairs, found), (ratings, found), ("ratings.csv", found), (pd.DataFrame({"user": users, "item": items, "rating": found}), found)]:
        for estimator in (quick(), ImplicitALS(4)):
            with pytest.raises(ValueError, match="y (is given, and )?would be ignored"):
                estimator.fit(X, y)
    with pytest.raises(ValueError, match="y is given"):
        quick().fit(ratings).score(ratings, found)
    with pytest.raises(ValueError, match="no column of the data frame is called rating"):
        quick().fit(pd.DataFrame({"user": users, "item": items, "time": users}))
    with pytest.warns(UserWarning, match=r"taken for a matrix of 5\d\d\d users by 3 items; where each row has") as told:
        quick().fit(np.column_stack([users, items, np.rint(np.abs(found))]))
    assert told[0].filename == __file__
    # Neither stars of few items nor what has no whole numbers.
    stars = np.random.default_rng(0).integers(1, 6, (300, 3)).astype(float)
    for X in (stars, np.random.default_rng(0).random((300, 3)), stars[:, :2]):
        quick().fit(X, None if X.shape[1] == 2 else np.arange(300))


def test_ids_of_a_frame_are_its_index_and_columns(ratings):
    users, items, found = ratings
    table = pd.DataFrame({"user": users + 7, "item": np.char.mod("i%02d", items), "rating": found})
    frame = table.pivot_table(index="user", columns="item", values="rating", fill_value=0)
    for estimator in (quick(), ImplicitALS(4, max_iter=2, ratings_above=3)):
        plain, model = estimator.fit(frame.to_numpy()), None
        expected, scores = plain.recommend(5, 3), plain.fold_in(frame.to_numpy()[:9]).user_factors_
        excluded = plain.recommend(exclude=frame.to_numpy())[0]
        model = estimator.fit(frame)
        assert model.user_ids_.tolist() == frame.index.tolist() and model.item_ids_.tolist() == frame.columns.tolist()
        ids, found_scores = model.recommend(int(frame.index[5]), 3)
        assert ids.tolist() == frame.columns[expected[0]].tolist() and np.array_equal(found_scores, expected[1])
        folded = model.fold_in(frame[:9])
        assert folded.user_ids_.tolist() == frame.index[:9].tolist() and np.array_equal(folded.user_factors_, scores)
        # The same by name in another order, and by place without names.
        for X in (frame, frame[frame.columns[::-1]][::-1], frame.to_numpy(), sp.csr_array(frame.to_numpy())):
            assert np.array_equal(model.recommend(exclude=X)[0], np.where(excluded < 0, "", frame.columns.to_numpy()[excluded]))
        with pytest.raises(ValueError, match="X has 79 columns, and the matrix of the fit had 80"):
            model.recommend(exclude=frame.to_numpy()[:, :79])
    # Labels that are no ids give way to numbers.
    for index in (np.zeros(len(frame)), pd.date_range("2020-01-01", periods=len(frame)), np.arange(len(frame)) / 2):
        assert quick().fit(frame.set_axis(index)).user_ids_.tolist() == list(range(len(frame)))


def test_numbers_of_a_matrix_are_ids_of_a_model_of_columns(ratings):
    users, items, found = ratings
    model = quick().fit((users + 1, 3 * items + 1, found))
    columns = model.recommend(exclude=(users + 1, 3 * items + 1))[0]
    matrix = sp.csr_array((found, (users + 1, 3 * items + 1)))
    assert np.array_equal(model.recommend(exclude=matrix)[0], columns)
    assert np.array_equal(model.recommend(exclude=sp.csr_array(matrix[:, :-1]))[0].shape, columns.shape)
    assert np.isclose(model.score(matrix), model.score((users + 1, 3 * items + 1, found)))
    other = model.fold_in(matrix[:20])
    expected = model.fold_in((users[users < 19] + 1, 3 * items[users < 19] + 1, found[users < 19]))
    assert np.array_equal(other.user_ids_, expected.user_ids_) and np.array_equal(other.user_factors_, expected.user_factors_)
    # As many as there are, from 0: these are places.
    by_place = sp.csr_array((found, (users, items)))
    for ask in (lambda: model.recommend(exclude=by_place), lambda: model.fold_in(by_place), lambda: model.score(by_place)):
        with pytest.raises(ValueError, match="the numbers of rows and columns are ids here"):
            ask()
    texts = quick().fit((users, np.char.mod("i%02d", items), found))
    for ask in (lambda: texts.recommend(exclude=by_place), lambda: texts.fold_in(by_place)):
        with pytest.raises(TypeError, match="items of the model are texts"):
            ask()


def test_ids_that_are_bytes_are_texts(ratings, tmp_path):
    users, items, found = ratings
    names = np.char.mod("é%03d", users)
    encoded = np.char.encode(names, "utf-8")
    plain = quick().fit((names, items, found))
    for people in (encoded, encoded.astype(object), encoded.tolist()):
        model = quick().fit((people, items, found))
        assert model.user_ids_.tolist() == plain.user_ids_.tolist()
        for asked in (encoded[:1], encoded[0], names[0]):
            assert np.array_equal(model.recommend(asked, 3)[0].ravel(), plain.recommend(names[0], 3)[0])
    model.save(tmp_path / "model")
    assert MatrixFactorization.load(tmp_path / "model").user_ids_[0][0] == "é"
    for wrong in (np.array([b"\xff", b"a"]), [b"\xff", "a"]):
        with pytest.raises(ValueError, match="is no UTF-8"):
            quick().fit((wrong, [1, 2], [1.0, 2.0]))


@pytest.mark.parametrize("missing", [None, np.nan, float("nan"), pd.NA])
def test_what_is_missing_in_a_list_is_nobody(missing):
    with pytest.raises(ValueError, match="users have none at place 1"):
        quick().fit((["ann", missing, "bob"], ["tea", "tea", "oat"], [1.0, 2.0, 3.0]))


def test_a_number_and_its_text_are_not_one():
    for people in ([1, "1", "2"], np.array([1, "1", "2"], dtype=object)):
        with pytest.raises(ValueError, match="users have '1' as a text and as something else"):
            quick().fit((people, [1, 2, 3], [1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="have '2' as a text"):
        pagerank((["a", 2], ["2", "a"]))


def test_ratings_are_kept_within_their_range_where_that_is_wanted(ratings):
    users, items, found = ratings
    stars = np.clip(np.rint(found), 2, 4)
    model = MatrixFactorization(4, max_iter=30, step=0.2).fit((users, items, stars))
    raw = model.predict_pairs(users, items, clip=False)
    assert raw.max() > 4 and np.array_equal(raw.clip(2, 4), model.predict_pairs(users, items))
    dense = model.mean_ + model.user_biases_[:, None] + model.item_biases_ + model.user_factors_ @ model.item_factors_.T
    ids, scores = model.recommend(n=5, clip=False)
    assert np.allclose(scores, np.sort(dense, axis=1)[:, :-6:-1], atol=1e-5) and scores.max() > 4
    assert model.recommend(n=5)[1].max() == 4


def test_scores_of_feedback_are_products(ratings):
    users, items, _ = ratings
    model = ImplicitALS(4, max_iter=2).fit((users, items))
    expected = (model.user_factors_[users] * model.item_factors_[items]).sum(axis=1)
    assert np.allclose(model.predict_pairs(users, items), expected, atol=1e-6)
    assert model.predict_pairs([users[0], 999], [999, items[0]]).tolist() == [0.0, 0.0]
    assert not model.predict_pairs([users[0]], [999], clip=False).any()


def test_squares_of_a_model_are_kept(ratings, tmp_path):
    import pickle

    model = quick().fit(ratings)
    model.save(tmp_path / "model")
    again = MatrixFactorization.load(tmp_path / "model")
    assert "input" not in again.report_["config"]
    pickle.loads(pickle.dumps(again)).save(tmp_path / "again")
    for name in ("user_squares.npy", "item_squares.npy"):
        squares = np.load(tmp_path / "model" / name)
        assert (squares > 0).all() and np.array_equal(np.load(tmp_path / "again" / name), squares)
    model.fold_in(ratings).save(tmp_path / "folded")
    assert not (tmp_path / "folded" / "user_squares.npy").exists()
    quick(optimizer="als").fit(ratings).save(tmp_path / "als")
    assert not (tmp_path / "als" / "user_squares.npy").exists()


def test_dates_of_a_frame_are_no_numbers(clicks):
    from megagrid import SparseLogisticRegression

    dates = pd.date_range("2020-01-01", periods=40)
    frame = pl.DataFrame({"when": dates, "b": np.arange(40.0)})
    for X in (frame, frame.to_pandas(), frame.to_arrow()):
        with pytest.raises(TypeError, match="Datetime|Timestamp|datetime|promot"):
            SparseLogisticRegression().fit(X, np.arange(40) % 2)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16])
def test_small_integers_are_not_blown_up(kind):
    from megagrid._input import Matrix

    X = (np.arange(60).reshape(20, 3) % 2).astype(kind)
    assert Matrix(X).parts.dtype == np.float32 and np.array_equal(Matrix(X).parts, X)
