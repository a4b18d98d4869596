"""Implicit feedback: what is recommended, kept for testing, written and refused."""

import numpy as np
import pytest

from megagrid import ImplicitALS

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
        ImplicitALS(4).fit(-np.eye(3))


def test_people_unseen_get_the_rows_of_the_normal_equations():
    model = ImplicitALS(4, block=4, ratings_above=0.5).fit((USERS, ITEMS, np.ones(10)))
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
