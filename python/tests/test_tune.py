"""Fits that find their settings on the way."""

import os
import pickle
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from megagrid import ImplicitALS, MatrixFactorization, SparseLogisticRegression, TopicModel


def test_a_tuned_fit_is_one_that_has_the_setting_from_the_beginning(ratings):
    model = MatrixFactorization(8, tune=True, max_iter=14, n_jobs=2).fit(ratings)
    tuning = model.report_["tuning"]
    assert len(tuning["trials"]) > 1 and sum(trial["chosen"] for trial in tuning["trials"]) == 1 == len(tuning["settings"])
    name, step = tuning["settings"][0][1].split("=")
    assert name == "step"
    again = MatrixFactorization(8, step=float(step), max_iter=14, n_jobs=2).fit(ratings)
    assert np.array_equal(model.user_factors_, again.user_factors_) and np.array_equal(model.item_factors_, again.item_factors_)
    assert model.report_["result"]["objective"] == again.report_["result"]["objective"]
    assert f"tuned by {len(tuning['trials'])} trials" in repr(model.report_) and "tuned" not in repr(again.report_)


def test_what_is_tuned_is_named_with_its_values(ratings, clicks, documents):
    users, items, _ = ratings
    fits = [
        ("step", MatrixFactorization(4, tune={"step": [0.03, 0.1]}), (ratings,)),
        ("step", MatrixFactorization(4, tune={"step": "log:0.01..0.3"}, holdout=0.1), (ratings,)),
        ("block", ImplicitALS(32, tune={"block": np.array([16, 32])}), ((users, items, np.ones(len(users))),)),
        ("workers", ImplicitALS(8, tune={"n_jobs": [1, 2]}), ((users, items, np.ones(len(users))),)),
        ("sampler", TopicModel(3, tune={"sampler": ["dense", "sparse"]}, max_iter=20), (documents,)),
        ("blocks", SparseLogisticRegression(0.1, tune={"blocks": [2, 5]}, max_iter=200), clicks),
    ]
    for name, model, data in fits:
        tried = {trial["setting"].split("=")[0] for trial in model.fit(*data).report_["tuning"]["trials"]}
        assert tried == {name}, type(model)
    assert all(type(model)(tune=True, n_jobs=2).fit(*data).report_["tuning"]["trials"] for _, model, data in fits[3:])


def test_parameters_are_those_of_scikit_learn(ratings):
    model = MatrixFactorization(4, tune={"step": [0.03, 0.1]}, max_iter=12).fit(ratings)
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params()["tune"] == {"step": [0.03, 0.1]}
    assert again.report_ == model.report_ and np.array_equal(again.user_factors_, model.user_factors_)
    base = pytest.importorskip("sklearn.base")
    other = base.clone(model).fit(ratings)
    assert np.array_equal(other.user_factors_, model.user_factors_)
    assert "tuning" not in other.set_params(tune=False).fit(ratings).report_


def test_what_cannot_be_tuned_is_refused(ratings):
    for tune, kind, text in [
        ({"taste": [1]}, ValueError, "mf has no such tunable; it has step"),
        ({"step": "log:0..1"}, ValueError, "step"),
        ({"step": [-1.0]}, ValueError, "step"),
        ("step", TypeError, "expected True, False or a dict"),
        ({"step": object()}, TypeError, "expected values or a range"),
        ({"step": []}, ValueError, "has no values"),
    ]:
        with pytest.raises(kind, match=text):
            MatrixFactorization(4, tune=tune).fit(ratings)


def test_a_callback_sees_the_iterations_of_the_run_and_may_end_it(ratings):
    seen = []
    model = MatrixFactorization(4, tune=True, holdout=0.1, max_iter=16).fit(ratings, callback=seen.append)
    assert [one["iteration"] for one in seen] == list(range(1, len(model.report_["iterations"]) + 1))
    assert all("test_rmse" in one["metrics"] for one in seen)
    model = MatrixFactorization(4, tune=True, max_iter=40).fit(ratings, callback=lambda one: one["iteration"] == 14)
    assert model.n_iter_ == 14 and model.report_["result"]["ended_by"] == "interrupt"
    tuning = model.report_["tuning"]
    assert tuning["ended_by"] == "interrupt" and tuning["trials"] and tuning["settings"]
    assert np.isfinite(model.user_factors_).all()


@pytest.fixture
def interruptible():
    """Ctrl-C raises, even where what runs the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_of_a_search_leaves_what_there_was_and_one_of_the_run_its_model(ratings, interruptible, monkeypatch):
    # A search of several settings of these takes seconds.
    random = np.random.default_rng(1)
    many = random.integers(0, 20_000, 2_000_000), random.integers(0, 8000, 2_000_000), random.random(2_000_000, np.float32)
    steps = {"step": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]}
    model = MatrixFactorization(128, tune=steps, max_iter=10**9)

    def interrupt_once_begun(owner, name):
        begin = getattr(owner, name)

        def begun(*given):
            # Before the data are taken in an interrupt leaves what there was.
            run = begin(*given)
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            return run

        monkeypatch.setattr(owner, name, staticmethod(begun))

    interrupt_once_begun(MatrixFactorization, "_begin")
    with pytest.raises(KeyboardInterrupt):
        model.fit(many)
    assert not hasattr(model, "report_")
    # What there was before comes back.
    monkeypatch.undo()
    users, items, values = ratings
    model.set_params(max_iter=2, tune=False).fit((users[:50], items[:50], values[:50]))
    before = model.predict_pairs(users[:9], items[:9])
    model.set_params(max_iter=10**9, tune=steps)
    interrupt_once_begun(MatrixFactorization, "_begin")
    with pytest.raises(KeyboardInterrupt):
        model.fit(many)
    assert np.array_equal(model.predict_pairs(users[:9], items[:9]), before) and model.n_iter_ == 2
    monkeypatch.undo()

    # What an interrupt of a search takes from a model of topics is all of it.
    topics = TopicModel(3, max_iter=2).fit(sp.csr_array((random.random((50, 20)) < 0.3).astype(int)))
    topics._drop()
    for name in ("report_", "components_", "_topics", "_n_features_out"):
        assert not hasattr(topics, name)

    def interrupt(one):
        if one["iteration"] == 13:
            raise KeyboardInterrupt

    model = MatrixFactorization(16, tune=True, max_iter=40)
    with pytest.raises(KeyboardInterrupt):
        model.fit(ratings, callback=interrupt)
    assert model.n_iter_ >= 13 and model.report_["tuning"]["trials"] and np.isfinite(model.user_factors_).all()
