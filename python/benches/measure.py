"""Measures the package beside the command and beside what people use from Python, interleaved, in one run.

usage: measure.py command MEGAGRID FOLDER [KIND...] | peers [PEER...] | liblinear FILE... | interrupts [TRIALS] | loop [FITS] | threads

`command` compares training and memory with those of the command, whose path is MEGAGRID, on the same data, which FOLDER keeps. `peers` needs libmf, tomotopy and
liblinear-official. Times are medians of ROUNDS rounds (environment, 5 if nothing is said), THREADS threads (2). Data are generated.
"""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from megagrid import MatrixFactorization, SparseLogisticRegression, TopicModel

ROUNDS, THREADS = int(os.environ.get("ROUNDS", 5)), int(os.environ.get("THREADS", 2))


def ratings(number=3_000_000):
    """Users, items and ratings of rank four with noise; popular items have more."""
    random = np.random.default_rng(1)
    users = random.integers(0, 60_000, number, dtype=np.int32)
    items = (10_000 * random.random(number) ** 2).astype(np.int32)
    tastes, kinds = (random.normal(size=(count, 4)).astype(np.float32) / 2 for count in (60_000, 10_000))
    found = 3 + np.einsum("ij,ij->i", tastes[users], kinds[items]) + random.normal(scale=0.5, size=number)
    return users, items, found.astype(np.float32)


def documents():
    """Documents by words, of fifty topics."""
    random = np.random.default_rng(2)
    topics = random.dirichlet(np.full(8000, 0.02), 50).cumsum(axis=1)
    rows, words = [], []
    for document in range(10_000):
        for topic in random.integers(0, 50, 4):
            drawn = np.searchsorted(topics[topic], random.random(35))
            words.append(np.minimum(drawn, 7999))
            rows.append(np.full(35, document))
    rows, words = np.concatenate(rows), np.concatenate(words)
    counts = sp.coo_array((np.ones(len(rows), dtype=np.int32), (rows, words)), shape=(10_000, 8000)).tocsr()
    return counts


def clicks():
    """Samples by features, some of which are in many samples, and classes of -1 and 1."""
    random = np.random.default_rng(3)
    samples, features, values = 200_000, 100_000, 40
    columns = (features * random.random(samples * values) ** 4).astype(np.int32)
    rows = np.repeat(np.arange(samples, dtype=np.int32), values)
    X = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(samples, features)).tocsr()
    X.data[:] = 1 / np.sqrt(values)
    weights = np.where(random.random(features) < 0.2, random.normal(scale=4, size=features), 0.0)
    return X, np.where(random.random(samples) < 1 / (1 + np.exp(-(X @ weights))), 1, -1)


def timed(act):
    begin = time.perf_counter()
    outcome = act()
    return time.perf_counter() - begin, outcome


def compare(name, theirs, ours, of="seconds"):
    """Run both in turn and print medians and their ratio."""
    times = {"theirs": [], "ours": []}
    for turn in range(ROUNDS):
        for side in ("theirs", "ours") if turn % 2 else ("ours", "theirs"):
            times[side].append((theirs if side == "theirs" else ours)())
    theirs, ours = (statistics.median(times[side]) for side in ("theirs", "ours"))
    spread = "  ".join(f"{side} {min(all_of):.4g} to {max(all_of):.4g}" for side, all_of in times.items())
    print(f"{name}: theirs {theirs:.4g} {of}, ours {ours:.4g}, ratio {theirs / ours:.3f}  ({spread})", flush=True)


def command(megagrid, folder, *kinds):
    """The same training by the command, and the memory of both."""
    folder = Path(folder)
    megagrid = Path(megagrid).resolve()
    words = {"mf": ["ratings.csv", "--iterations", "20"], "blockpg": ["clicks.libsvm", "--l1", "1", "--intercept"]}
    prepare(folder)
    for kind in kinds or words:
        records = {"theirs": [], "ours": []}

        def run(side):
            line = [megagrid, kind, *words[kind], "-w", str(THREADS), "--json", "run.json", "--quiet"]
            line = line if side == "theirs" else [sys.executable, Path(__file__).resolve(), "fit", kind]
            subprocess.run(line, cwd=folder, check=True)
            records[side].append(json.loads((folder / "run.json").read_text()))
            return records[side][-1]["phases"]["train"]

        compare(f"{kind}, training", lambda: run("theirs"), lambda: run("ours"))
        theirs, ours = (statistics.median(one["peak_rss_bytes"] for one in records[side]) for side in ("theirs", "ours"))
        before = statistics.median(one["before"] for one in records["ours"])
        grown = f"{kind}, memory: theirs {theirs / 2**20:.0f} MB, ours {ours / 2**20:.0f} MB, of which {before / 2**20:.0f} MB before the fit"
        print(f"{grown}: ratio of what the fit took {(ours - before) / theirs:.2f}", flush=True)


def prepare(folder):
    """Write the data that both read, once."""
    from sklearn.datasets import dump_svmlight_file

    if (folder / "clicks.npy").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    users, items, found = ratings()
    np.savez(folder / "ratings.npz", users=users, items=items, ratings=found)
    np.savetxt(folder / "ratings.csv", np.column_stack([users, items, found]), fmt=("%d", "%d", "%.9g"), delimiter=",")
    X, y = clicks()
    sp.save_npz(folder / "clicks.npz", X, compressed=False)
    dump_svmlight_file(X, y, str(folder / "clicks.libsvm"))
    np.save(folder / "clicks.npy", y)


def fit(kind):
    """A fit in a process of its own, for `command`."""
    if kind == "mf":
        data = np.load("ratings.npz")
        X = sp.coo_array((data["ratings"], (data["users"], data["items"])))
        del data
        model, y = MatrixFactorization(max_iter=20, n_jobs=THREADS), None
    else:
        X, y = sp.load_npz("clicks.npz"), np.load("clicks.npy")
        model = SparseLogisticRegression(n_jobs=THREADS)
    before = resident()
    model.fit(X, y)
    Path("run.json").write_text(json.dumps({**model.report_, "before": before}))


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peers(*names):
    """Rates of what people use from Python, all or those that are named."""
    for peer in (libmf, tomotopy, liblinear):
        if not names or peer.__name__ in names:
            peer()


def libmf():
    from libmf import mf

    users, items, found = ratings()
    table = np.stack([users, items, found], axis=1).astype(np.float32)

    def theirs():
        model = mf.MF(fun=0, k=32, nr_threads=THREADS, nr_iters=20, nr_bins=20, lambda_p1=0, lambda_q1=0,
                      lambda_p2=0.05, lambda_q2=0.05, eta=0.1, quiet=True)
        return timed(lambda: model.fit(table))[0]

    def ours():
        model = MatrixFactorization(32, biases=False, mean=False, max_iter=20, n_jobs=THREADS)
        return timed(lambda: model.fit((users, items, found)))[0]

    compare(f"libmf, {THREADS} threads, 20 iterations of {len(users)} ratings, k = 32", theirs, ours)


def tomotopy():
    import tomotopy

    counts, likelihood = documents(), {}
    lines = [np.repeat(counts.indices[a:b], counts.data[a:b]).astype(str).tolist() for a, b in zip(counts.indptr, counts.indptr[1:])]

    def theirs():
        model = tomotopy.LDAModel(tw=tomotopy.TermWeight.ONE, k=100, alpha=0.1, eta=0.01, seed=1)
        model.optim_interval = 0
        for line in lines:
            model.add_doc(line)
        seconds = timed(lambda: model.train(20, workers=THREADS))[0]
        likelihood["theirs"] = model.ll_per_word
        return seconds

    def ours(iterations):
        model = TopicModel(100, alpha=0.1, beta=0.01, prior="fixed", max_iter=iterations, n_jobs=THREADS)
        seconds = timed(lambda: model.fit(counts))[0]
        likelihood["ours"] = model.report_["result"]["metrics"]["per_token"]
        return seconds

    theirs()
    for iterations in (5, 10, 15, 20):
        ours(iterations)
        if likelihood["ours"] >= likelihood["theirs"]:
            break
    name = f"tomotopy, {THREADS} threads, {counts.sum()} tokens, K = 100, to its likelihood after 20 iterations: {iterations} of ours"
    compare(name, theirs, lambda: ours(iterations))
    print("likelihood per token:", likelihood)


def liblinear(*files):
    """The same on labelled samples in files of two classes, or on generated ones."""
    from liblinear.liblinearutil import parameter, problem, train

    if files:
        from sklearn.datasets import load_svmlight_file

        [liblinear_on(Path(file).name, *load_svmlight_file(file), parameter, problem, train) for file in files]
    else:
        liblinear_on("clicks", *clicks(), parameter, problem, train)


def liblinear_on(name, X, y, parameter, problem, train):
    given, reached = problem(y, sp.csr_matrix(X)), {}

    def objective(weights):
        return float(np.logaddexp(0, -y * (X @ weights)).sum() + np.abs(weights).sum())

    def theirs(stop):
        seconds, model = timed(lambda: train(given, parameter(f"-s 6 -c 1 -e {stop} -q")))
        sign = 1 if model.get_labels()[0] == 1 else -1
        reached["theirs"] = objective(sign * np.ctypeslib.as_array(model.w, (X.shape[1],)))
        return seconds

    def ours():
        model = SparseLogisticRegression(1.0, fit_intercept=False, tol=1e-5, n_jobs=THREADS)
        seconds = timed(lambda: model.fit(X, y))[0]
        reached["ours"], reached["bound"] = objective(model.coef_[0]), model.report_["result"]["metrics"]["bound"]
        return seconds

    def reaches(stop):
        # It shuffles features: once is no proof.
        return all(theirs(stop) and reached["theirs"] <= (1 + 1e-5) * reached["bound"] for _ in range(3))

    ours()
    stop = next(stop for stop in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6) if reaches(stop))
    compare(f"liblinear on {name}, one thread, to within 1e-5 of the optimum: -e {stop}", lambda: theirs(stop), ours)
    print("objectives:", reached)


MAKES = {
    "MatrixFactorization": "measure.MatrixFactorization(max_iter=10**6), (measure.ratings(),)",
    "TopicModel": "measure.TopicModel(500, max_iter=10**6), (measure.documents(),)",
    "SparseLogisticRegression": "measure.SparseLogisticRegression(0.01, tol=1e-15, max_iter=10**6), measure.clicks()",
}
INTERRUPTED = """
import signal, time, measure
signal.signal(signal.SIGINT, signal.default_int_handler)
model, data = {}
print("ready", flush=True)
try:
    model.fit(*data)
except KeyboardInterrupt:
    print(time.time(), flush=True)
    print(model.n_iter_, model.report_["result"]["ended_by"], flush=True)
"""


def interrupts(trials=20):
    """How long after Ctrl-C the exception comes, in processes of their own."""
    for kind, make in MAKES.items():
        times = []
        for trial in range(int(trials)):
            line = [sys.executable, "-c", INTERRUPTED.format(make)]
            with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent) as run:
                run.stdout.readline()
                time.sleep(1 + 0.037 * trial)
                sent = time.time()
                run.send_signal(signal.SIGINT)
                times.append(float(run.stdout.readline()) - sent)
                ended = run.stdout.readline().split()
                assert ended[1] == "interrupt", ended
        print(f"{kind}: {len(times)} interrupts, {1e3 * min(times):.0f} to {1e3 * max(times):.0f} ms", flush=True)


def loop(fits=100):
    """Memory over many fits of one process."""
    data, counts = ratings(200_000), documents()[:500]
    X, y = (part[:5000] for part in clicks())
    found = []
    for _ in range(int(fits)):
        MatrixFactorization(8, max_iter=3).fit(data)
        TopicModel(10, max_iter=3).fit(counts).transform(counts[:10])
        SparseLogisticRegression().fit(X, y)
        found.append(resident() / 2**20)
    print(f"MB after 10, 50 and all {fits} fits: {found[9]:.1f} {found[len(found) // 2 - 1]:.1f} {found[-1]:.1f}")


def threads():
    """A fit in each of four threads, against one after the other."""
    data = ratings(500_000)

    def one():
        return MatrixFactorization(8, max_iter=5, n_jobs=1).fit(data).user_factors_

    expected = one()
    found = []
    begin = time.perf_counter()
    started = [threading.Thread(target=lambda: found.append(one())) for _ in range(4)]
    [thread.start() for thread in started]
    [thread.join() for thread in started]
    together = time.perf_counter() - begin
    alone = timed(lambda: [one() for _ in range(4)])[0]
    assert len(found) == 4 and all((factors == expected).all() for factors in found)
    print(f"four fits: {together:.2f} s in four threads, {alone:.2f} s one after the other; equal factors")


if __name__ == "__main__":
    acts = {act.__name__: act for act in (command, fit, peers, liblinear, interrupts, loop, threads)}
    if len(sys.argv) < 2 or sys.argv[1] not in acts:
        sys.exit(__doc__)
    acts[sys.argv[1]](*sys.argv[2:])
