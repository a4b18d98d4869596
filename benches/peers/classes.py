"""Logistic regression of many classes beside scikit-learn: liblinear for each class against the rest; for all together, which takes minutes on
data that are not scaled, lbfgs with l2 and saga with l1.

    python benches/peers/classes.py MEGAGRID DIGITS NEWS20 [ROUNDS]

DIGITS and NEWS20 are LIBSVM text without compression; Python needs scikit-learn and pyarrow. Samples have unit length, penalties are those of C = 1, and there are
no intercepts. `alike` is made here: 64 columns that are a walk at random, ten classes, as they are. Systems take turns. Seconds are of the fit: of the command what it takes from samples in memory to the model, reading apart.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

warnings.filterwarnings("ignore")


def main(megagrid, digits, news20, rounds=3):
    place = tempfile.TemporaryDirectory()
    both = [("ovr", "l1"), ("ovr", "l2")]
    together = [("multinomial", "l1"), ("multinomial", "l2")]
    for name, path, kinds in [("digits", digits, both + together), ("news20", news20, both), ("alike", alike(place.name), together)]:
        X, y = load_svmlight_file(path)
        X = X if name == "alike" else normalize(X)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        for kind, penalty in kinds:
            systems = {"megagrid": lambda: ours(megagrid, path, X.shape[1], kind, penalty, name != "alike")}
            # Columns that are alike take saga more passes than anybody waits for.
            passes = 1000 if name == "alike" and penalty == "l1" else 100000
            for tolerance in (1e-4, 1e-6):
                systems[f"scikit-learn, tol={tolerance}"] = lambda at=tolerance: theirs(X, y, kind, penalty, at, passes)
            seconds, found = {system: [] for system in systems}, {}
            for _ in range(int(rounds)):
                for system, fit in systems.items():
                    taken, found[system] = fit()
                    seconds[system].append(taken)
            least = min(objective(X, y, weights, kind, penalty) for weights in found.values())
            for system, weights in found.items():
                apart = np.abs(weights - found["megagrid"]).max()
                above = objective(X, y, weights, kind, penalty) / least - 1
                taken = statistics.median(seconds[system])
                print(f"{name} {kind} {penalty} {system}: {taken:.3f} s, {above:.1e} above the least, weights {apart:.1e} apart", flush=True)


def alike(place):
    random = np.random.default_rng(1)
    X = np.cumsum(random.normal(size=(2000, 64)), axis=1) / 8
    y = np.argmax(X @ random.normal(size=(64, 10)) + random.gumbel(size=(2000, 10)), axis=1)
    path = str(Path(place, "alike.libsvm"))
    dump_svmlight_file(X.astype(np.float32), y, path, zero_based=False)
    return path


def ours(megagrid, path, features, kind, penalty, is_scaled):
    with tempfile.TemporaryDirectory() as place:
        model, record = Path(place, "model"), Path(place, "run.json")
        penalties = ["--l1", "1"] if penalty == "l1" else ["--l1", "0", "--l2", "1"]
        how = ["--tolerance", "1e-8", "--model", str(model), "--json", str(record), "-q"]
        how += ["--normalize"] * is_scaled + ["--multinomial"] * (kind == "multinomial")
        subprocess.run([megagrid, "blockpg", path, *penalties, *how], check=True)
        phases, table = json.loads(record.read_text())["phases"], pq.read_table(model / "weights.parquet")
    columns = [name for name in table.column_names if name != "id"]
    weights = np.zeros((len(columns), features))
    # Features are numbered from 1 in the text.
    weights[:, table["id"].to_numpy().astype(int) - 1] = [table[name].to_numpy() for name in columns]
    return phases["plan"] + phases["train"] + phases["evaluate"], weights


def theirs(X, y, kind, penalty, tolerance, passes):
    how = {"C": 1.0, "l1_ratio": float(penalty == "l1"), "fit_intercept": False, "tol": tolerance, "max_iter": passes}
    if kind == "ovr":
        model = OneVsRestClassifier(LogisticRegression(solver="liblinear", **how))
    else:
        solver = "saga" if penalty == "l1" else "lbfgs"
        model = LogisticRegression(solver=solver, random_state=0, **how)
    begin = time.perf_counter()
    model.fit(X, y)
    taken = time.perf_counter() - begin
    return taken, model.coef_ if kind != "ovr" else np.vstack([one.coef_ for one in model.estimators_])


def objective(X, y, weights, kind, penalty):
    scores, classes = X @ weights.T, np.unique(y)
    labels = y[:, None] == classes
    if kind == "ovr":
        loss = np.logaddexp(0, np.where(labels, -scores, scores)).sum()
    else:
        most = scores.max(axis=1, keepdims=True)
        loss = (np.log(np.exp(scores - most).sum(axis=1)) + most[:, 0] - scores[labels]).sum()
    return loss + (np.abs(weights).sum() if penalty == "l1" else 0.5 * np.square(weights).sum())


if __name__ == "__main__":
    main(*sys.argv[1:])
