"""Which features of many tell clicks: python clicks.py"""

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, train_test_split

from megagrid import SparseLogisticRegression

random = np.random.default_rng(3)
X = sp.random_array((20_000, 1000), density=0.02, rng=random, format="csr", data_sampler=lambda size: np.ones(size))
weights = np.zeros(1000)
weights[:20] = random.choice([-3.0, 3.0], 20)
clicked = random.random(20_000) < 1 / (1 + np.exp(1 - X @ weights))
X_train, X_test, y_train, y_test = train_test_split(X, clicked, random_state=0)

search = GridSearchCV(SparseLogisticRegression(), {"l1": [1.0, 10.0, 30.0]}, scoring="neg_log_loss", cv=3)
search.fit(X_train, y_train)
model = search.best_estimator_
print("best l1:", search.best_params_["l1"])
print(model.report_)

found = np.flatnonzero(np.abs(model.coef_[0]) > 0.5)
print("features with a large weight:", *found)
assert set(found) == set(range(20))
print(f"accuracy on unseen samples {model.score(X_test, y_test):.3f}, and {max(y_test.mean(), 1 - y_test.mean()):.3f} by guessing")
assert model.score(X_test, y_test) > max(y_test.mean(), 1 - y_test.mean())
