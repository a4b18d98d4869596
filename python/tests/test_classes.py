"""Logistic regression of many classes, against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp

from megagrid import SparseLogisticRegression

sklearn = pytest.importorskip("sklearn")
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

# Parts of l1, and of l2.
PENALTIES = [(1.0, 0.0), (0.0, 1.0)]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16, y[:900]


@pytest.mark.parametrize("l1, l2", PENALTIES)
def test_each_class_is_told_from_the_rest_as_by_liblinear(digits, l1, l2):
    X, y = digits
    ours = SparseLogisticRegression(l1=l1, l2=l2, fit_intercept=False, tol=1e-11).fit(X, y)
    one = LogisticRegression(C=1.0, l1_ratio=l1, solver="liblinear", fit_intercept=False, tol=1e-9, max_iter=100000)
    theirs = OneVsRestClassifier(one).fit(X, y)
    coef = np.vstack([model.coef_ for model in theirs.estimators_])
    assert ours.coef_.shape == (10, 64) and np.abs(ours.coef_ - coef).max() < 1e-4
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_weights_of_classes_are_those_of_their_samples(digits):
    X, y = digits[0][:300], digits[1][:300]
    named = {0: 3.0, 7: 0.5}
    of_samples = np.array([named.get(one, 1.0) for one in y])
    by_class = SparseLogisticRegression(class_weight=named, l2=0.1).fit(X, y)
    by_sample = SparseLogisticRegression(l2=0.1).fit(X, y, sample_weight=of_samples)
    assert np.allclose(by_class.coef_, by_sample.coef_)


def test_a_model_is_saved_and_loaded(digits, tmp_path):
    X, y = digits[0][:300], np.array([f"digit {one}" for one in digits[1][:300]])
    model = SparseLogisticRegression().fit(sp.csr_array(X), y)
    model.save(tmp_path / "model")
    loaded = SparseLogisticRegression.load(tmp_path / "model")
    assert np.allclose(loaded.predict_proba(X), model.predict_proba(X))
    assert (loaded.predict(X) == model.predict(X)).all() and set(loaded.classes_) == set(y)


def test_a_path_has_the_classes_of_its_labels(digits, tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y = digits[0][:300], digits[1][:300]
    path = tmp_path / "digits.svm"
    dump_svmlight_file(X.astype(np.float32), y, str(path), zero_based=True)
    ours = SparseLogisticRegression(class_weight={3: 2.0}).fit(path)
    assert ours.classes_.tolist() == list(range(10)) and ours.coef_.shape[0] == 10
    memory = SparseLogisticRegression(class_weight={3: 2.0}).fit(X.astype(np.float32), y)
    assert np.allclose(ours.predict_proba(path), memory.predict_proba(X.astype(np.float32)), atol=1e-3)
    named = tmp_path / "named.svm"
    named.write_text("".join(f"{'odd' if row % 2 else 'even'} {row % 3}:1 3:{row % 2}\n" for row in range(30)))
    assert SparseLogisticRegression(l1=0.1).fit(named).classes_.tolist() == ["even", "odd"]


def test_chances_add_up_to_1_however_large_scores_are(digits):
    X, y = digits[0][:300], digits[1][:300]
    chances = SparseLogisticRegression().fit(X, y).predict_proba(X * 1e4)
    assert np.allclose(chances.sum(axis=1), 1.0) and np.isfinite(chances).all()


@pytest.mark.parametrize("l1, l2, solver", [(1.0, 0.0, "saga"), (0.0, 1.0, "lbfgs"), (0.3, 0.5, "saga")])
def test_classes_that_are_fitted_together_are_those_of_scikit_learn(digits, l1, l2, solver):
    X, y = digits[0][:200], digits[1][:200]
    ours = SparseLogisticRegression(l1=l1, l2=l2, multinomial=True, tol=1e-11).fit(X, y)
    assert ours.report_["result"]["ended_by"] == "tolerance"
    theirs = LogisticRegression(C=1 / (l1 + l2), l1_ratio=l1 / (l1 + l2), solver=solver, tol=1e-9, max_iter=100000).fit(X, y)

    def above_first(coef, intercept):
        both = np.column_stack([coef, intercept])
        return both - both[0]

    apart = above_first(ours.coef_, ours.intercept_) - above_first(theirs.coef_, theirs.intercept_)
    assert np.abs(apart).max() < 1e-4
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_a_model_of_classes_fitted_together_is_saved_and_loaded(digits, tmp_path):
    X, y = digits[0][:300], digits[1][:300]
    model = SparseLogisticRegression(multinomial=True).fit(X, y)
    model.save(tmp_path / "model")
    loaded = SparseLogisticRegression.load(tmp_path / "model")
    assert loaded.multinomial and np.allclose(loaded.predict_proba(X), model.predict_proba(X))
    scores = model.decision_function(X)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert np.allclose(model.predict_proba(X), powers / powers.sum(axis=1, keepdims=True))
