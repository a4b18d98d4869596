"""A recommender from ratings that follow planted tastes: python recommender.py"""

import tempfile
from pathlib import Path

import numpy as np

from megagrid import MatrixFactorization

random = np.random.default_rng(1)
tastes, kinds = random.normal(size=(2000, 4)) / 2, random.normal(size=(500, 4))
users, items = random.integers(0, 2000, 100_000), random.integers(0, 500, 100_000)
ratings = 3 + (tastes[users] * kinds[items]).sum(axis=1) + random.normal(scale=0.5, size=100_000)

model = MatrixFactorization(8, holdout=0.1, max_iter=100, reg=0.03)
model.fit((users, items, ratings))
print(model.report_)

found = model.report_["result"]["metrics"]["test_rmse"]
print(f"error on unseen ratings {found:.3f}; the noise that was planted is 0.5")
assert found < 0.65

best, foreseen = model.recommend(17, 5, without=items[users == 17])
for item, rating in zip(best, foreseen):
    print(f"item {item:3}  {rating:5.2f}, planted {3 + tastes[17] @ kinds[item]:5.2f}")
print("like item 5:", *model.similar_items(5, 3)[0])

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "movies")
    again = MatrixFactorization.load(Path(folder) / "movies")
    assert (again.recommend(17, 5, without=items[users == 17])[0] == best).all()
