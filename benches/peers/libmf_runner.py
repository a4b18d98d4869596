"""Times the PyPI package libmf on binary ratings and prints one JSON line, the last of its output.

usage: libmf_runner.py TRAIN TEST DIMS THREADS ITERATIONS[,ITERATIONS...]

TRAIN and TEST hold (user u32, item u32, value f32) records, little-endian. One model is trained
from scratch for each iteration count. Its L1 terms are set to zero: the package's default of 0.04
makes it slower and worse. Quality comes from the factors, because `predict` is wrong in 0.9.2.
"""
import json
import sys
import time

import numpy as np
from libmf import mf

RECORD = np.dtype([("user", "<u4"), ("item", "<u4"), ("value", "<f4")])


def main():
    train_path, test_path, dims, threads, counts = sys.argv[1:6]
    train = np.fromfile(train_path, RECORD)
    test = np.fromfile(test_path, RECORD)
    # The package takes ids as f32, which is exact only below 2^24.
    assert max(train["user"].max(), train["item"].max()) < 1 << 24
    table = np.stack([train["user"], train["item"], train["value"]], axis=1).astype(np.float32)
    runs = [run(table, test, int(dims), int(threads), int(count)) for count in counts.split(",")]
    sys.stdout.flush()
    print(json.dumps({"ratings": len(train), "runs": runs}), flush=True)


def run(table, test, dims, threads, iterations):
    model = mf.MF(fun=0, k=dims, nr_threads=threads, nr_iters=iterations, nr_bins=20,
                  lambda_p1=0, lambda_q1=0, lambda_p2=0.05, lambda_q2=0.05, eta=0.1, quiet=True)
    start = time.perf_counter()
    model.fit(table)
    seconds = time.perf_counter() - start
    users, items = model.p_factors(), model.q_factors()
    squares = 0.0
    for part in np.array_split(test, 64):
        score = np.einsum("ij,ij->i", users[part["user"]], items[part["item"]])
        squares += float(np.square(part["value"] - score, dtype=np.float64).sum())
    return {"iterations": iterations, "seconds": seconds, "test_rmse": (squares / len(test)) ** 0.5}


if __name__ == "__main__":
    main()
