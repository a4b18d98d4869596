"""The rules of scikit-learn."""

import pytest

sklearn = pytest.importorskip("sklearn")
from sklearn.utils.estimator_checks import parametrize_with_checks

from megagrid import ImplicitALS, MatrixFactorization, SparseLogisticRegression, TopicModel

EXPECTED = {
    "SparseLogisticRegression": {},
    "TopicModel": {},
    "MatrixFactorization": {},
    "ImplicitALS": {},
}


@parametrize_with_checks(
    [
        SparseLogisticRegression(),
        TopicModel(5, max_iter=20),
        MatrixFactorization(4),
        MatrixFactorization(4, tune={"step": [0.03, 0.1]}),
        ImplicitALS(4),
    ],
    expected_failed_checks=lambda estimator: EXPECTED[type(estimator).__name__],
)
def test_rules_of_scikit_learn(estimator, check):
    check(estimator)
