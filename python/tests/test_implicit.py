"""Implicit feedback: what is recommended, kept for testing, written and refused."""

import numpy as np
import pytest

from megagrid import ImplicitALS, MatrixFactorization, _input

USERS = ["ann", "ann", "bob", "bob", "bob", "cy", "cy", "dee", "dee", "dee"]
ITEMS = ["tea", "rye", "tea", "rye", "oat", "gin", "rum", "gin", "rum", "ale"]


def test_items_of_users_alike_are_recommended(tmp_path):
    model = ImplicitALS(4).fit((USERS, ITEMS, np.ones(10)))
    assert model.recommend("ann", 1, without=["tea", "rye"])[0].tolist() == ["oat"]
    assert model.similar_items("gin", 1)[0].tolist() == ["rum"]
    model.save(tmp_path / "model")
    again = ImplicitALS.load(tmp_path / "model")
    assert np.array_equal(again.user_factors_, model.user_factors_) and np.array_equal(again.item_factors_, model.item_factors_)


def test_what_is_kept_is_ranked():
    X = (np.add.outer(np.arange(50), np.arange(40)) % 5 == 0).astype(float)
    metrics = ImplicitALS(4, holdout_per_user=1, ranking=20).fit(X).report_["result"]["metrics"]
    assert 0 < metrics["test_ndcg"] <= 1 and 0 < metrics["test_recall"] <= 1


def test_what_is_no_feedback_is_refused():
    with pytest.raises(ValueError, match='feedback of user "0" on item "0" is -1'):
        ImplicitALS(4).fit(([0, 1], [0, 1], [-1.0, 1.0]))
    with pytest.raises(ValueError, match="Negative values in data passed to ImplicitALS.fit"):
        ImplicitALS(4).fit(-np.eye(3))
    ImplicitALS(4, ratings_above=0).fit(np.eye(3) - 0.5)


def test_people_unseen_get_the_rows_of_the_normal_equations():
    model = ImplicitALS(4, block=4, alpha=10.0, ratings_above=0.5).fit((USERS, ITEMS, np.ones(10)))
    rated = ["tea", "oat"]
    other = model.fold_in((["new"] * 3, rated + ["gin"], [1.0, 2.0, 0.25]))
    Q = model.item_factors_.astype(float)
    at = np.searchsorted(model.item_ids_, rated)
    unseen = 1 / model.alpha
    rho = model.reg * (unseen * len(Q) + len(at)) ** model.nu
    matrix = unseen * Q.T @ Q + Q[at].T @ Q[at] + rho * np.eye(4)
    expected = np.linalg.solve(matrix, (1 + unseen) * Q[at].sum(axis=0))
    assert np.allclose(other.user_factors_[0], expected, atol=1e-5)
    assert other.recommend("new", 1, exclude=(["new", "new"], rated))[0].tolist() == ["rye"]
    with pytest.raises(ValueError, match="feedback is -1"):
        ImplicitALS(4).fit((USERS, ITEMS, np.ones(10))).fold_in((["x"], ["tea"], [-1.0]))


def test_the_latest_is_kept_where_times_are_known():
    rng = np.random.default_rng(3)
    users, items = np.nonzero(rng.random((40, 30)) < 0.4)
    stamps = rng.permutation(len(users))
    tests = []
    days = stamps.astype("datetime64[D]")
    assert tests == [] and _input.times(["1066-10-14", "1970-01-01T00:00:01"], 2).tolist()[1] == 1.0
    for times in (stamps, days, days.astype(str), days.astype(object), -stamps):
        model = ImplicitALS(4, holdout_last=1, ranking=30, max_iter=2, patience=0).fit((users, items, np.ones(len(users)), times))
        tests.append(model.report_["result"]["metrics"]["test_ndcg"])
    assert tests[0] == tests[1] == tests[2] == tests[3] != tests[4]
    latest = np.zeros((40, 30), dtype=bool)
    for user in range(40):
        at = np.flatnonzero(users == user)
        latest[user, items[at[np.argmax(stamps[at])]]] = True
    rest = ~latest[users, items]
    held_out = ImplicitALS(4, holdout_last=1, ranking=30, max_iter=2, patience=0)
    model = held_out.fit((users, items, np.ones(len(users)), stamps))
    places = []
    for user, item in zip(*np.nonzero(latest)):
        best = model.recommend(user, 30, exclude=(users[rest], items[rest]))[0].tolist()
        places.append(1 / np.log2(best.index(item) + 2) if item in best else 0.0)
    assert np.isclose(np.mean(places), tests[0], atol=1e-4)
    with pytest.raises(ValueError, match="holdout_last needs a column of times"):
        ImplicitALS(4, holdout_last=1).fit((users, items, np.ones(len(users))))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ImplicitALS(4, holdout_last=1).fit((users, items, np.ones(len(users)), stamps[1:]))
    with pytest.raises(ValueError, match="neither numbers nor dates"):
        ImplicitALS(4, holdout_last=1).fit((users, items, np.ones(len(users)), ["soon"] * len(users)))
    with pytest.raises(ValueError, match=r"a tuple of 4 columns, expected \(users, items, values\)"):
        MatrixFactorization(4).fit((users, items, np.ones(len(users)), stamps))
    seen = model.recommend(0, 3, exclude=(users, items))[0].tolist()
    assert model.recommend(0, 3, exclude=(users, items, np.ones(len(users)), stamps))[0].tolist() == seen
    with pytest.raises(ValueError, match=r"a tuple of 5 columns"):
        model.recommend(0, 3, exclude=(users, items, items, stamps, stamps))
    with pytest.raises(ValueError, match="NaT"):
        ImplicitALS(4, holdout_last=1).fit((users, items, np.ones(len(users)), np.full(len(users), "NaT", dtype="datetime64[s]")))


def test_feedback_counts_less_the_older_it_is(tmp_path):
    rng = np.random.default_rng(5)
    users, items = np.nonzero(rng.random((40, 30)) < 0.4)
    values, days = rng.integers(1, 6, len(users)).astype(float), rng.integers(0, 300, len(users))
    aged = values * np.maximum(0.5 ** ((days.max() - days) / 30), 2**-10)
    expected = ImplicitALS(4, n_jobs=1).fit((users, items, aged)).item_factors_
    for half_life, times in [(30, days), ("30d", days.astype("datetime64[D]")), ("720h", days * 86400)]:
        found = ImplicitALS(4, half_life=half_life, n_jobs=1).fit((users, items, values, times)).item_factors_
        assert np.allclose(found, expected, atol=1e-5)
    above = ImplicitALS(4, half_life=30, ratings_above=2.5, n_jobs=1).fit((users, items, values, days)).item_factors_
    ones = np.where(values > 2.5, aged / values, 0)
    assert np.allclose(above, ImplicitALS(4, n_jobs=1).fit((users, items, ones)).item_factors_, atol=1e-5)
    for half_life in (None, 30, 0.5, "30d"):
        model = ImplicitALS(4, half_life=half_life, max_iter=1).fit((users, items, values, days * 86400))
        model.save(tmp_path / f"model {half_life}")
        again = ImplicitALS.load(tmp_path / f"model {half_life}").half_life
        assert again == half_life and isinstance(again, str) == isinstance(half_life, str)
    with pytest.raises(ValueError, match="half_life needs a column of times"):
        ImplicitALS(4, half_life="30d").fit((users, items, values))
    for wrong in (0, -1, np.nan, "30 days"):
        with pytest.raises(ValueError, match=f"is {wrong}; expected a number above 0"):
            ImplicitALS(4, half_life=wrong).fit((users, items, values, days))


def test_whole_users_are_kept():
    rng = np.random.default_rng(4)
    users, items = np.nonzero(rng.random((50, 30)) < 0.4)
    names = np.array([f"u{user:02}" for user in range(50)])[users]
    model = ImplicitALS(4, holdout_users=0.2, holdout_per_user=2, ranking=10).fit((names, items, np.ones(len(users))))
    assert len(model.user_ids_) == 40 and len(model.user_factors_) == 40 and set(model.user_ids_) < set(names)
    assert 0 < model.report_["result"]["metrics"]["test_ndcg"] <= 1
    X = np.zeros((50, 30))
    X[users, items] = 1
    model = ImplicitALS(4, holdout_users=10).fit(X)
    assert model.n_features_in_ == 30 and len(model.user_ids_) == 40


def test_pairs_are_feedback_of_1():
    pairs, valued = (ImplicitALS(4).fit(X) for X in ((USERS, ITEMS), (USERS, ITEMS, np.ones(10))))
    assert np.array_equal(pairs.user_factors_, valued.user_factors_) and np.array_equal(pairs.item_factors_, valued.item_factors_)
    rated = ["new"] * 2, ["tea", "oat"]
    assert np.array_equal(pairs.fold_in(rated).user_factors_, pairs.fold_in((*rated, np.ones(2))).user_factors_)
    with pytest.raises(ValueError, match=r"a tuple of 2 columns, expected \(users, items, values\); ImplicitALS.fit also takes \(users, items\)"):
        MatrixFactorization(4).fit((USERS, ITEMS))
    with pytest.raises(ValueError, match="a tuple of 2 columns"):
        MatrixFactorization(4).fit((USERS, ITEMS, np.ones(10))).fold_in(rated)
    with pytest.raises(ValueError, match="items have the shape"):
        ImplicitALS(4).fit((USERS, ITEMS[1:]))
