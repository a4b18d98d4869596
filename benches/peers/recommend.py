"""Compares the best ten of 100,000 items for all users with implicit 0.7.3: users a second, from the same factors.

usage: PYTHON benches/peers/recommend.py MEGAGRID [FOLDER] [--rounds N] [--prepare]

PYTHON has implicit, numpy and scipy; MEGAGRID is the command; FOLDER keeps models [target/peers/recommend]; --prepare makes them only.

Two models of 64 dimensions: one that `megagrid als` trains on generated interactions, whose items differ in length as those of real models do,
and the same with uniform random numbers instead, whose items are all about as long, so that hardly a product can be left out. Two threads, runs
in turn, medians over rounds. Megagrid is timed as a whole process: it reads the model, finds the items and writes a Parquet table. Of implicit
only `recommend` is timed, with the better of one and two threads of its linear algebra library.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

THREADS, NUMBER, DIMS = 2, 10, 64
SIZE = ["--left", "32000", "--right", "100000", "--edges", "6000000", "--seed", "1"]


def main():
    if sys.argv[1] == "peer":
        return peer(sys.argv[2])
    parser = argparse.ArgumentParser()
    parser.add_argument("megagrid", type=os.path.abspath)
    parser.add_argument("folder", nargs="?", default="target/peers/recommend", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    os.chdir(options.folder)
    prepare(options.megagrid)
    if options.prepare:
        return
    for model in ("trained", "random"):
        users, items = (np.load(f"{model}/{side}.npy", mmap_mode="r").shape[0] for side in ("users", "items"))
        contestants = {
            "megagrid, the whole command": lambda: megagrid(options.megagrid, model),
            "implicit, one thread of BLAS": lambda: ask(model, 1),
            "implicit, two threads of BLAS": lambda: ask(model, 2),
        }
        seconds = {name: [] for name in contestants}
        for _ in range(options.rounds):
            for name, contestant in contestants.items():
                seconds[name].append(contestant())
        print(f"{model}: {users} users, {items} items, k = {DIMS}; the same items: {agreement(model):.5f}")
        base = statistics.median(seconds["megagrid, the whole command"])
        for name, found in seconds.items():
            median = statistics.median(found)
            products = users * items * DIMS / median / 1e9
            print(f"  {name}: {median:.3f} s, {users / median:.0f} users/s, {products:.1f} G multiplications/s, {median / base:.2f}", flush=True)


def prepare(megagrid):
    """Makes both models."""
    if not os.path.exists("trained"):
        run([megagrid, "generate", "ratings", "made.tsv", *SIZE])
        run([megagrid, "als", "made.tsv", "--ratings-above=-1e9", "--dims", str(DIMS), "--iterations", "8", "--model", "trained", "-q"])
    if not os.path.exists("random"):
        shutil.copytree("trained", "random")
        generator = np.random.default_rng(1)
        for side in ("users", "items"):
            shape = np.load(f"trained/{side}.npy").shape
            np.save(f"random/{side}.npy", generator.random(shape, dtype=np.float32) - 0.5)


def megagrid(command, model):
    begin = time.perf_counter()
    words = [command, "recommend", model, "--all", "-n", str(NUMBER), "--output", f"{model}.parquet"]
    run(words, {"RAYON_NUM_THREADS": str(THREADS)})
    return time.perf_counter() - begin


def ask(model, blas):
    """Runs implicit in a process of its own."""
    more = {name: str(blas) for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    return json.loads(run([sys.executable, FILE, "peer", model], more).splitlines()[-1])["seconds"]


FILE = os.path.abspath(__file__)


def peer(model):
    """Recommends by implicit, keeps what it found, and prints the seconds."""
    from implicit.cpu.als import AlternatingLeastSquares

    of = AlternatingLeastSquares(DIMS, num_threads=THREADS)
    of.user_factors, of.item_factors = np.load(f"{model}/users.npy"), np.load(f"{model}/items.npy")
    users = np.arange(len(of.user_factors))
    of.recommend(users[:64], None, N=NUMBER, filter_already_liked_items=False)
    begin = time.perf_counter()
    ids, _ = of.recommend(users, None, N=NUMBER, filter_already_liked_items=False)
    seconds = time.perf_counter() - begin
    np.save(f"{model}-implicit.npy", ids)
    print(json.dumps({"seconds": seconds}))


def agreement(model):
    """Returns which part of implicit's items are Megagrid's too: products round differently."""
    import pyarrow.parquet as parquet

    names = np.array(parquet.read_table(f"{model}/items.parquet")["id"].to_pylist())
    place = {name: at for at, name in enumerate(names)}
    theirs = np.load(f"{model}-implicit.npy")
    ours = np.array([place[item] for item in parquet.read_table(f"{model}.parquet")["item"].to_pylist()]).reshape(theirs.shape)
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(theirs, ours)]))


def run(words, more=None):
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **(more or {})})
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
