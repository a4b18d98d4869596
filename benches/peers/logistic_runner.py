"""Times an L1 logistic regression package at several stops and prints one JSON line for each L1, the last of its output.

usage: logistic_runner.py SAMPLES liblinear|skglm|celer STOP[,STOP...] [L1[,L1...] [GOAL[,GOAL...]]]

SAMPLES is LIBSVM text with labels -1 and 1. The objective is sum log(1 + exp(-y w.x)) + L1 |w|_1, without intercept, on
all sides: C = 1 / L1 for liblinear, alpha = L1 / samples for skglm, alpha = L1 for celer; L1 is 1 if not given. A STOP is the package's own
tolerance; one model is trained from scratch for each, until an objective is not above the L1's GOAL. Only the training call is timed: the data are in the form that
the package trains from, and a first call, at the loosest stop, compiles and warms up. The objective is computed here
in f64 from the weights alone.
"""
import json
import os
import resource
import sys
import time
import warnings

for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np
from sklearn.datasets import load_svmlight_file


def main():
    path, package, stops = sys.argv[1:4]
    stops = stops.split(",")
    sizes = [float(l1) for l1 in (sys.argv[4] if len(sys.argv) > 4 else "1").split(",")]
    goals = [float(goal) for goal in sys.argv[5].split(",")] if len(sys.argv) > 5 else [float("-inf")] * len(sizes)
    # Stopping at an iteration limit is no failure: the objective tells.
    warnings.simplefilter("ignore")
    samples, labels = load_svmlight_file(path)
    assert set(np.unique(labels)) == {-1, 1}
    for l1, goal in zip(sizes, goals):
        train = {"liblinear": liblinear, "skglm": skglm, "celer": celer}[package](samples, labels, l1)
        train(stops[0])
        runs = []
        for stop in stops:
            start = time.perf_counter()
            weights = train(stop)
            seconds = time.perf_counter() - start
            weights = np.asarray(weights).ravel()
            objective = np.logaddexp(0, -labels * (samples @ weights)).sum() + l1 * np.abs(weights).sum()
            runs.append({"stop": stop, "train_seconds": seconds, "objective": objective,
                         "nonzeros": int(np.count_nonzero(weights))})
            if objective <= goal:
                break
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        sys.stdout.flush()
        print(json.dumps({"samples": samples.shape[0], "values": samples.nnz, "runs": runs, "peak_rss_bytes": peak}),
              flush=True)


def liblinear(samples, labels, l1):
    from liblinear.liblinearutil import parameter, problem, train

    converted = problem(labels, samples.tocsr())

    def run(stop):
        model = train(converted, parameter(f"-s 6 -c {1 / l1} -e {stop} -q"))
        # A model of two classes holds one weight a feature, for the class it names first.
        sign = 1 if model.get_labels()[0] == 1 else -1
        return sign * np.ctypeslib.as_array(model.w, (samples.shape[1],))
    return run


def skglm(samples, labels, l1):
    from skglm import SparseLogisticRegression

    columns = samples.tocsc()

    def run(stop):
        model = SparseLogisticRegression(alpha=l1 / len(labels), tol=float(stop), fit_intercept=False, max_iter=100)
        return model.fit(columns, labels).coef_
    return run


def celer(samples, labels, l1):
    from celer.homotopy import celer_path

    # The estimator of the package would convert to columns inside of the timed call.
    columns = samples.tocsc()

    def run(stop):
        _, weights, _ = celer_path(columns, labels, "logreg", alphas=np.array([l1]), tol=float(stop), use_PN=True)
        return weights
    return run


if __name__ == "__main__":
    main()
