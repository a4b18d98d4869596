"""Data that tests share."""

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(scope="session")
def clicks():
    """Samples by features, and classes that follow from few of them."""
    random = np.random.default_rng(7)
    X = sp.random_array((600, 50), density=0.2, rng=random, format="csr")
    weights = np.where(np.arange(50) < 5, 4.0, 0.0)
    return X, (X @ weights + random.normal(scale=0.3, size=600) > 0.4).astype(int)


@pytest.fixture(scope="session")
def ratings():
    """Users, items and ratings of rank one with noise, each pair once."""
    random = np.random.default_rng(8)
    pairs = np.unique(random.integers(0, 200 * 80, 6000))
    users, items = pairs // 80, pairs % 80
    taste, kind = random.normal(size=200), random.normal(size=80)
    found = 3 + taste[users] * kind[items] + random.normal(scale=0.1, size=len(users))
    return users, items, found.astype(np.float32)


@pytest.fixture(scope="session")
def documents():
    """Documents of one of three topics, each of ten words of its own."""
    random = np.random.default_rng(9)
    counts = np.zeros((120, 30), dtype=np.int64)
    for document in range(120):
        topic = document % 3
        counts[document, 10 * topic : 10 * topic + 10] = random.poisson(2.0, 10)
    return sp.csr_array(counts)
