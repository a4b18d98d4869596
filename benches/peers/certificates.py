"""Trains sparse logistic regressions and checks their certificates with none of the engine's arithmetic.

usage: target/peers/venv/bin/python benches/peers/certificates.py MEGAGRID [DATA]

MEGAGRID is the command, DATA the folder of real data sets (MEGAGRID_PEERS_DATA, or ../shared/data). The weights of each model are
read again, and objective, gradient and a dual point, the probabilities scaled until no gradient is above l1, are computed in f64 from
them. Prints a table in Markdown and ends with 1 if a relative duality gap is above 1e-6, or a feature without a weight has a gradient
above l1 (1 + 1e-4). `slack` is how far the largest gradient of those is below l1, as a part of it. `benches/peers/run` makes the
environment.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow.parquet as parquet
import scipy.sparse as sparse
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

POSITIVE = list(range(1, 11))
# Name, file, whether labels 1 to 10 are the positive ones and samples have unit length.
INPUTS = [
    ("rcv1-small", "rcv1-small/rcv1_small.libsvm.gz", False),
    ("amazon-reviews, books", "amazon-reviews/books_train.svmlight.gz", False),
    ("a9a", "a9a/a9a.gz", False),
    ("w8a", "w8a/w8a.gz", False),
    ("news20", "news20/news20.gz", True),
]


def main():
    command = sys.argv[1]
    data = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("MEGAGRID_PEERS_DATA", "../shared/data")
    print("| data | l1 | iterations | seconds | gap | objective | weights | slack |")
    print("|---|---|---|---|---|---|---|---|")
    hold = True
    for name, file, is_scaled in INPUTS:
        path = os.path.join(data, file)
        if not os.path.exists(path):
            print(f"{path} is not there: left out", file=sys.stderr)
            continue
        samples, labels = load_svmlight_file(gzip.open(path), zero_based=True)
        # The engine keeps values in f32.
        samples = sparse.csr_matrix(samples, dtype=np.float32).astype(np.float64)
        labels = np.where(np.isin(labels, POSITIVE) if is_scaled else labels > 0, 1.0, -1.0)
        samples = normalize(samples) if is_scaled else samples
        for l1 in (0.1, 1, 10):
            options = ["--positive", ",".join(map(str, POSITIVE)), "--normalize"] if is_scaled else []
            weights, record = train([command, "blockpg", path, "--l1", str(l1), "-w", "1", *options], samples.shape[1])
            objective, gap, most = certificate(samples, labels, weights, l1)
            hold = hold and gap <= 1e-6 and most <= l1 * (1 + 1e-4)
            iterations, seconds = record["result"]["iterations"], record["phases"]["train"]
            print(f"| {name} | {l1} | {iterations} | {seconds:.2f} | {gap:.1e} | {objective:.6f} "
                  f"| {np.count_nonzero(weights)} | {1 - most / l1:.0e} |", flush=True)
    sys.exit(0 if hold else 1)


def train(command, features):
    with tempfile.TemporaryDirectory() as folder:
        model, record = os.path.join(folder, "model"), os.path.join(folder, "record.json")
        subprocess.run([*command, "--quiet", "--model", model, "--json", record], check=True, stdout=subprocess.DEVNULL)
        table = parquet.read_table(os.path.join(model, "weights.parquet")).to_pydict()
        weights = np.zeros(features)
        weights[np.array(table["id"], dtype=int)] = table["weight"]
        with open(record) as file:
            return weights, json.load(file)


def certificate(samples, labels, weights, l1):
    """The objective, its relative duality gap, and the largest gradient of a feature without a weight."""
    margins = labels * (samples @ weights)
    objective = np.logaddexp(0, -margins).sum() + l1 * np.abs(weights).sum()
    wrong = 1 / (1 + np.exp(margins))
    gradient = np.abs(samples.T @ (labels * wrong))
    dual = entropy(wrong * min(1.0, l1 / gradient.max())).sum()
    return objective, (objective - dual) / objective, gradient[weights == 0].max(initial=0.0)


def entropy(p):
    inside = np.clip(p, 1e-300, 1 - 1e-16)
    return np.where((p > 0) & (p < 1), -inside * np.log(inside) - (1 - inside) * np.log1p(-inside), 0.0)


if __name__ == "__main__":
    main()
