"""Compares implicit feedback with implicit 0.7.3 and irspack: seconds an iteration, and NDCG@100 at the same settings.

usage: PYTHON benches/peers/als.py MEGAGRID [FOLDER] [--rounds N] [--data DATA] [--only speed|quality]

PYTHON has implicit, irspack, numpy, pyarrow and scipy; MEGAGRID is the command; FOLDER keeps generated inputs [target/peers/als]; DATA is the
place of movielens-100k and anime [../shared/data].

Speed: 4.5 M generated interactions, two threads, runs in turn, the median over rounds of the median iteration after the first.
Quality: a fifth of each user's interactions is kept for testing; all take every interaction for 1, three seeds each.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

THREADS = 2
SIZE = ["--left", "48000", "--right", "17770", "--edges", "4500000", "--seed", "1"]
ALL = ["--ratings-above=-1e9"]
# Settings of the quality runs: dims, alpha0 and regularizer, as Rendle and others have them.
QUALITY = {"movielens-100k": (64, 0.1, 0.003), "anime": (64, 0.03, 0.003)}
SEEDS, EPOCHS, K = (1, 2, 3), 16, 100


def main():
    if sys.argv[1] == "peer":
        return peer(json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("megagrid", type=os.path.abspath)
    parser.add_argument("folder", nargs="?", default="target/peers/als", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default="../shared/data", type=os.path.abspath)
    parser.add_argument("--only", default="")
    parser.add_argument("--dims", default="32,128")
    parser.add_argument("--without", default=None, help="leaves out contestants of speed whose names hold this")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    os.chdir(options.folder)
    if options.only != "quality":
        for dims in map(int, options.dims.split(",")):
            speed(options, dims)
    if options.only != "speed":
        for name in QUALITY:
            quality(options, name)


def speed(options, dims):
    """Prints seconds an iteration at a length of vectors."""
    if not os.path.exists("made.mgrid"):
        run([options.megagrid, "generate", "ratings", "made.tsv", *SIZE])
        run([options.megagrid, "convert", "made.tsv", "made.mgrid"])
        np.save("made.npy", np.loadtxt("made.tsv", usecols=(0, 1), dtype=np.int32))
    contestants = {
        f"megagrid, block {block}": lambda block=block: megagrid(options, "made.mgrid", dims, block) for block in (16, 32)
    }
    contestants["megagrid, iALS"] = lambda: megagrid(options, "made.mgrid", dims, dims)
    for name, more in {
        "implicit, conjugate gradient": {"peer": "implicit", "cg": True},
        "implicit, Cholesky": {"peer": "implicit", "cg": False},
        "irspack, iALS++ 16": {"peer": "irspack", "block": 16},
        "irspack, iALS++ 64": {"peer": "irspack", "block": 64},
    }.items():
        contestants[name] = lambda more=more: ask({**more, "train": "made.npy", "dims": dims, "epochs": 4})["seconds"]
    seconds = {name: [] for name in contestants if options.without is None or options.without not in name}
    for _ in range(options.rounds):
        for name, found in seconds.items():
            found.append(statistics.median(contestants[name]()[1:]))
    base = statistics.median(seconds["megagrid, block 16"])
    print(f"\n| k = {dims}, {THREADS} threads | seconds an iteration | times Megagrid's |\n|---|---|---|")
    for name, found in seconds.items():
        median = statistics.median(found)
        print(f"| {name} | {median:.3f} ({min(found):.3f} to {max(found):.3f}) | {median / base:.2f} |", flush=True)


def megagrid(options, train, dims, block, *more, epochs=4, record="record.json"):
    words = ["als", train, "--dims", str(dims), "--block", str(block), "--iterations", str(epochs), "--json", record, "--quiet"]
    run([options.megagrid, *words, *ALL, "--workers", str(THREADS), *more])
    with open(record) as file:
        return [one["seconds"] for one in json.load(file)["iterations"]]


def quality(options, name):
    """Prints NDCG@100 of a real data set."""
    dims, unseen, reg = QUALITY[name]
    train, test = split(options, name)
    for part, pairs in (("train", train), ("test", test)):
        np.savetxt(f"{name}.{part}.tsv", np.column_stack([pairs, np.ones(len(pairs), int)]), "%d", "\t")
    np.save(f"{name}.npy", train)
    found = {}
    for seed in SEEDS:
        weights = ["--alpha", repr(1 / unseen), "--lambda", repr(reg), "--patience", "0", "--evaluate-every", str(EPOCHS)]
        run(["rm", "-rf", "model"])
        more = [*weights, "--seed", str(seed), "--model", "model", "--test", f"{name}.test.tsv", "--ranking", str(K)]
        spent = sum(megagrid(options, f"{name}.train.tsv", dims, 16, *more, epochs=EPOCHS))
        with open("record.json") as file:
            own = json.load(file)["result"]["metrics"]["test_ndcg"]
        factors = [of_ids(side, len(ids)) for side, ids in (("users", range(train[:, 0].max() + 1)), ("items", range(train[:, 1].max() + 1)))]
        value = ndcg(*factors, train, test)
        assert abs(value - own) < 1e-3, (value, own)
        found.setdefault("megagrid, block 16", []).append((value, spent))
        for label, block, loss in (("irspack, iALS++ 16", 16, "ORIGINAL"), ("irspack, iALS++ 64", 64, "ORIGINAL"), ("irspack, its own loss", 64, "IALSPP")):
            task = {"peer": "irspack", "train": f"{name}.npy", "dims": dims, "epochs": EPOCHS, "block": block, "loss": loss}
            answer = ask({**task, "unseen": unseen, "reg": reg, "seed": seed, "keep": "factors.npz"})
            with np.load("factors.npz") as kept:
                found.setdefault(label, []).append((ndcg(kept["users"], kept["items"], train, test), sum(answer["seconds"])))
    print(f"\n| {name}, k = {dims}, {EPOCHS} iterations | NDCG@{K} | seconds |\n|---|---|---|")
    for label, runs in found.items():
        values, seconds = zip(*runs)
        print(f"| {label} | {np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f}) | {statistics.median(seconds):.3f} |", flush=True)


def split(options, name):
    """Keeps a fifth of each user's interactions for testing."""
    path = {"movielens-100k": "movielens-100k/u.data.gz", "anime": "anime/anime_ratings.dat.gz"}[name]
    with gzip.open(os.path.join(options.data, path), "rt") as file:
        pairs = np.loadtxt(file, usecols=(0, 1), dtype=np.int64, skiprows=int(name == "anime"))
    pairs = np.column_stack([np.unique(column, return_inverse=True)[1] for column in pairs.T])
    order = np.random.default_rng(1).permutation(len(pairs))
    pairs = pairs[order[np.argsort(pairs[order, 0], kind="stable")]]
    first = np.searchsorted(pairs[:, 0], pairs[:, 0])
    counts = np.bincount(pairs[:, 0])[pairs[:, 0]]
    is_test = np.arange(len(pairs)) - first < counts // 5
    return pairs[~is_test], pairs[is_test]


def of_ids(side, count):
    """Returns the factors of the model by id, zeros for those that it has not."""
    rows = np.load(f"model/{side}.npy")
    names = subprocess.run([sys.executable, "-c", IDS, f"model/{side}.parquet"], capture_output=True, text=True, check=True).stdout
    factors = np.zeros((count, rows.shape[1]), np.float32)
    factors[np.array(names.split(), dtype=np.int64)] = rows
    return factors


IDS = "import sys, pyarrow.parquet as p; print(*p.read_table(sys.argv[1])['id'].to_pylist())"


def ndcg(users, items, train, test):
    """NDCG of the best K of the items that training has not seen, the mean over users."""
    seen, gains = [sp.csr_matrix((np.ones(len(p)), p.T), (len(users), len(items))) for p in (train, test)], 1 / np.log2(np.arange(2, K + 2))
    total, number = 0.0, 0
    for user in np.unique(test[:, 0]):
        scores = items @ users[user]
        scores[seen[0][user].indices] = -np.inf
        best = np.argsort(-scores, kind="stable")[:K]
        relevant = seen[1][user].indices
        total += gains[np.isin(best, relevant)].sum() / gains[: min(K, len(relevant))].sum()
        number += 1
    return total / number


def ask(task):
    """Runs a peer in a process of its own."""
    return json.loads(run([sys.executable, FILE, "peer", json.dumps(task)]).splitlines()[-1])


FILE = os.path.abspath(__file__)


def peer(task):
    """Trains a peer, and prints the seconds of each iteration."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    pairs = np.load(task["train"])
    matrix = sp.csr_matrix((np.ones(len(pairs), np.float32), (pairs[:, 0], pairs[:, 1])))
    seconds = []
    if task["peer"] == "implicit":
        from implicit.cpu.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(
            task["dims"], 0.01, 10.0, iterations=task["epochs"], use_cg=task["cg"], num_threads=THREADS, random_state=1
        )
        model.fit(matrix, show_progress=False, callback=lambda iteration, taken, *_: seconds.append(taken))
    else:
        from irspack import IALSRecommender

        model = IALSRecommender(
            matrix, task["dims"], task.get("unseen", 0.1), task.get("reg", 0.003), solver_type="IALSPP",
            ialspp_subspace_dimension=min(task["block"], task["dims"]), loss_type=task.get("loss", "ORIGINAL"),
            random_seed=task.get("seed", 1), n_threads=THREADS,
        )
        trainer = model._create_trainer()
        for _ in range(task["epochs"]):
            begin = time.perf_counter()
            trainer.run_epoch()
            seconds.append(time.perf_counter() - begin)
        if "keep" in task:
            np.savez(task["keep"], users=trainer.core_trainer.user, items=trainer.core_trainer.item)
    print(json.dumps({"seconds": seconds}))


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
