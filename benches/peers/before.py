"""Compares two builds of Megagrid on the inputs of `benches/peers/run`, in turn: the worst ratio first.

usage: python3 benches/peers/before.py BEFORE NOW [FOLDER] [--rounds N] [--only TEXT] [--data DIR]

BEFORE and NOW are two binaries of the command. FOLDER keeps the inputs, which NOW generates where they are not there
[target/peers]. DIR has the real data sets [MEGAGRID_PEERS_DATA, or ../shared/data]. A row has the median of the rounds with as many threads, each round with its own seed:
an iteration of PageRank, matrix factorization and topic models, and the seconds of training until sparse regression is
within 1e-3 and 1e-5 of the best objective that either build found; the ratio is BEFORE's by NOW's, so below 1 is slower. An objective
that is the same to the last digit in both builds is marked.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

MF = ["mf", "--no-biases", "--lambda", "0.05", "--step", "0.1"]
LDA = ["--alpha", "0.1", "--beta", "0.01", "--prior", "fixed"]
CORPUS = ["--documents", "19600", "--vocabulary", "20000", "--topics", "100", "--mean-length", "153"]
RATINGS = ["--left", "48000", "--right", "17770", "--edges", "10000000"]
# Name, input (generated: kind and settings; else a real set), command and its options.
JOBS = [
    ("PageRank, RMAT 22", ("rmat", "rmat-22.txt", ["--scale", "22", "--clean"]), ["pagerank", "--iterations", "20", "--tolerance", "0"]),
    ("PageRank, cnr-2000", "cnr-2000/cnr-2000.txt.gz", ["pagerank", "--iterations", "100", "--tolerance", "0"]),
    ("MF, 10 M, k = 32", ("ratings", "ratings.txt", RATINGS), [*MF, "--dims", "32", "--iterations", "12"]),
    ("MF, 10 M, k = 100", ("ratings", "ratings.txt", RATINGS), [*MF, "--dims", "100", "--iterations", "12"]),
    ("MF, anime, k = 32", "anime/anime_ratings.dat.gz", [*MF, "--dims", "32", "--iterations", "40"]),
    ("LDA, 3 M tokens, K = 100", ("corpus", "corpus-3m.bow", CORPUS), ["lda", "-k", "100", *LDA, "--iterations", "20"]),
    ("LDA, 3 M tokens, K = 1000", ("corpus", "corpus-3m.bow", CORPUS), ["lda", "-k", "1000", *LDA, "--iterations", "8"]),
    ("LDA, 20newsgroups, K = 100", "20newsgroups/docword.20ng-train.txt.gz", ["lda", "-k", "100", *LDA, "--iterations", "20"]),
    ("L1 regression, clicks", ("clicks", "clicks.libsvm", []), ["blockpg", "--l1", "1", "--tolerance", "1e-6"]),
    ("L1 regression, news20", "news20/news20.gz", ["blockpg", "--positive", ",".join(map(str, range(1, 11))), "--normalize", "--l1", "1", "--tolerance", "1e-6"]),
    ("L1 regression, a9a", "a9a/a9a.gz", ["blockpg", "--l1", "1", "--tolerance", "1e-6"]),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=os.path.abspath)
    parser.add_argument("now", type=os.path.abspath)
    parser.add_argument("folder", nargs="?", default="target/peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--data", default=os.environ.get("MEGAGRID_PEERS_DATA", "../shared/data"))
    options = parser.parse_args()
    rows = []
    for name, source, command in JOBS:
        path = find(options, source)
        if options.only in name and os.path.exists(path):
            rows += [row for threads in ("1", "2") for row in measure(options, name, path, command, threads)]
    print("| job | threads | what | before | now | ratio | same objective |\n|---|---|---|---|---|---|---|")
    for _, row in sorted(rows):
        print(row, flush=True)


def find(options, source):
    """Returns the path of an input, which is made where it is a generated one that is not there."""
    if isinstance(source, str):
        return os.path.join(options.data, source)
    kind, name, settings = source
    path = os.path.join(options.folder, name)
    if not os.path.exists(path):
        os.makedirs(options.folder, exist_ok=True)
        subprocess.run([options.now, "generate", kind, path, *settings, "--seed", "1"], check=True, capture_output=True)
    return path


def measure(options, name, path, command, threads):
    runs = {"before": [], "now": []}
    for seed in range(1, options.rounds + 1):
        for build, records in runs.items():
            records.append(record(getattr(options, build), path, [*command, "--seed", str(seed)], threads))
    if command[0] != "blockpg":
        ms = {build: [1e3 * iteration_seconds(run) for run in records] for build, records in runs.items()}
        same = runs["before"][0]["result"]["objective"] == runs["now"][0]["result"]["objective"]
        yield row(name, threads, "ms an iteration", ms, same)
        return
    curves = {build: [curve(run) for run in records] for build, records in runs.items()}
    best = min(objective for rounds in curves.values() for points in rounds for _, objective in points)
    for gap in (1e-3, 1e-5):
        reached = {build: [1e3 * next(s for s, objective in points if objective <= best * (1 + gap)) for points in rounds]
                   for build, rounds in curves.items()}
        yield row(name, threads, f"ms to {gap:.0e}", reached, False)


def row(name, threads, what, taken, same):
    before, now = statistics.median(taken["before"]), statistics.median(taken["now"])
    return before / now, f"| {name} | {threads} | {what} | {before:.4g} | {now:.4g} | {before / now:.2f} | {'yes' if same else ''} |"


def record(binary, path, command, threads):
    """Runs a build on as many processors and returns its record. Sparse regression shows its objective after each iteration."""
    every = ["--evaluate-every", "1"] if command[0] == "blockpg" else []
    help_text = subprocess.run([binary, command[0], "--help"], capture_output=True, text=True).stdout
    every = every if "--evaluate-every" in help_text else []
    with tempfile.TemporaryDirectory() as folder:
        written, processors = os.path.join(folder, "record.json"), ",".join(map(str, range(int(threads))))
        subprocess.run(["taskset", "-c", processors, binary, command[0], path, *command[1:], *every, "-w", threads, "--quiet",
                        "--json", written], check=True, stdout=subprocess.DEVNULL)
        with open(written) as file:
            return json.load(file)


def iteration_seconds(run):
    """The median without the first, which warms up."""
    ends = [step["train_seconds"] for step in run["iterations"]]
    return statistics.median(after - before for before, after in zip(ends, ends[1:]))


def curve(run):
    return [(step["train_seconds"], step["objective"]) for step in run["iterations"] if step["objective"] is not None]


if __name__ == "__main__":
    main()
