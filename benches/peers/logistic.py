"""Compares training of sparse logistic regression with liblinear, skglm and celer on every set, and shows the worst ratio first.

usage: target/peers/venv/bin/python benches/peers/logistic.py MEGAGRID [DATA] [--rounds N] [--only NAMES] [--l1 10,1,0.1]
           [--peers liblinear,skglm,celer] [--keep FILE]

MEGAGRID is the command, DATA the folder of real data sets (MEGAGRID_PEERS_DATA, or ../shared/data). For each l1 a row
has the seconds of training (reading and planning are left out) to a relative gap of 1e-3 and of 1e-5: medians of the rounds, which
interleave the systems. The best objective of all runs stands for the optimum. Peers have one thread; `ratio` is Megagrid's time with
one worker over the fastest peer's, `speedup` one worker's over two workers'. A peer is timed at each of its stops until it is
below both gaps, Megagrid after each iteration. `--only` measures the sets of these names, commas between them. `--keep` keeps what peers took in a file, and
takes it from there the next time. `benches/peers/run` makes the environment.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REVIEWS = ("books", "dvd", "electronics", "kitchen")
# Name, files, and what is done: labels 1 to 10 are the positive ones, and samples have unit length; clicks are generated.
INPUTS = [
    ("a9a", ["a9a/a9a.gz"], ""),
    ("w8a", ["w8a/w8a.gz"], ""),
    ("rcv1-small", ["rcv1-small/rcv1_small.libsvm.gz"], ""),
    *((name, [f"amazon-reviews/{name}_train.svmlight.gz"], "") for name in REVIEWS),
    ("amazon", [f"amazon-reviews/{name}_train.svmlight.gz" for name in REVIEWS], ""),
    ("frappe", ["frappe/frappe.validation.libfm.gz"], ""),
    ("ipinyou", ["ipinyou/train.fm.txt.gz"], ""),
    ("news20", ["news20/news20.gz"], "unit"),
    ("news20 counts", ["news20/news20.gz"], "topics"),
    ("clicks", [], "clicks"),
]
STOPS = {
    "liblinear": "1,3e-1,1e-1,3e-2,1e-2,3e-3,1e-3,3e-4,1e-4,1e-5,1e-6",
    "skglm": "1e-2,1e-3,3e-4,1e-4,3e-5,1e-5,1e-6",
    "celer": "10,1,1e-1,1e-2,1e-3,1e-5",
}
GAPS = (1e-3, 1e-5)
# Seconds that a peer may take for all of its stops.
LONGEST = 300


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("megagrid")
    parser.add_argument("data", nargs="?", default=os.environ.get("MEGAGRID_PEERS_DATA", "../shared/data"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--l1", default="10,1,0.1")
    parser.add_argument("--peers", default=",".join(STOPS))
    parser.add_argument("--keep")
    options = parser.parse_args()
    kept, rows = {}, []
    if options.keep and os.path.exists(options.keep):
        with open(options.keep) as file:
            kept = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        for name, files, action in INPUTS:
            paths = [os.path.join(options.data, file) for file in files]
            if options.only and name not in options.only.split(",") or not all(map(os.path.exists, paths)):
                continue
            text = os.path.join(folder, f"{name}.libsvm")
            if action == "clicks":
                subprocess.run([options.megagrid, "generate", "clicks", text], check=True, stdout=subprocess.DEVNULL)
            else:
                prepare(paths, action, text)
            rows += measure(options, name, text, kept, folder)
            if options.keep:
                with open(options.keep, "w") as file:
                    json.dump(kept, file)
    print("| data | l1 | gap | megagrid, 1 worker | 2 workers | speedup | fastest peer | its seconds | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for ratio, row in sorted(rows, key=lambda row: row[0], reverse=True):
        print(f"| {row} | {ratio:.2f} |")


def prepare(paths, action, text):
    """Writes samples with the labels -1 and 1, index base 1, values of six digits: all systems read the same text."""
    with open(text, "w") as out:
        for path in paths:
            for line in gzip.open(path, "rt"):
                label, *features = line.split()
                pairs = [(int(index) + 1, float(value)) for index, value in (pair.split(":") for pair in features)]
                length = sum(value * value for _, value in pairs) ** 0.5 if action == "unit" else 1
                positive = 1 <= float(label) <= 10 if action else float(label) > 0
                values = " ".join(f"{index}:{value / (length or 1):.6g}" for index, value in pairs)
                out.write(f"{'+1' if positive else '-1'} {values}\n")


def measure(options, name, text, kept, folder):
    """Yields a ratio and a row for each l1 and gap. Peers are measured in the first round that knows what to reach."""
    path = options.l1.split(",")
    curves = {l1: {} for l1 in path}
    measured = [package for package in options.peers.split(",") if f"{name} {package}" not in kept]
    for _ in range(options.rounds):
        for l1 in path:
            for workers in ("1", "2"):
                curves[l1].setdefault(workers, []).append(megagrid(options, text, l1, workers, folder))
        goals = [str(best(curves[l1]) * (1 + 0.9 * GAPS[-1])) for l1 in path]
        for package in measured:
            rounds = kept.setdefault(f"{name} {package}", {l1: [] for l1 in path})
            for l1, curve in zip(path, peer(options, text, package, path, goals)):
                rounds[l1].append(curve)
        print(f"{name}: a round is over", file=sys.stderr)
    for l1 in path:
        curves[l1].update({package: kept[f"{name} {package}"].get(l1, [[]]) for package in options.peers.split(",")})
        optimum = best(curves[l1])
        for gap in GAPS:
            def seconds(system):
                return statistics.median(min((s for s, objective in curve if objective <= optimum * (1 + gap)), default=float("inf"))
                                         for curve in curves[l1][system])
            one, two = seconds("1"), seconds("2")
            fastest = min(options.peers.split(","), key=seconds)
            row = f"{name} | {l1} | {gap:.0e} | {one:.4f} | {two:.4f} | {one / two:.2f} | {fastest} | {seconds(fastest):.4f}"
            yield one / seconds(fastest), row


def best(curves):
    return min(objective for rounds in curves.values() for curve in rounds for _, objective in curve)


def megagrid(options, text, l1, workers, folder):
    record = os.path.join(folder, "record.json")
    command = ["taskset", "-c", "0" if workers == "1" else "0,1", options.megagrid, "blockpg", text, "--quiet", "--l1", l1]
    settings = ["-w", workers, "--evaluate-every", "1", "--tolerance", "1e-7", "--iterations", "2000", "--json", record]
    subprocess.run([*command, *settings], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(record) as file:
        return [(step["train_seconds"], step["objective"]) for step in json.load(file)["iterations"]]


def peer(options, text, package, path, goals):
    """Returns a curve for each l1."""
    runner = os.path.join(HERE, "logistic_runner.py")
    command = ["taskset", "-c", "0", sys.executable, runner, text, package, STOPS[package], ",".join(path), ",".join(goals)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST)
    except subprocess.SubprocessError as error:
        print(f"{package} is left out: {str(error)[-80:]}", file=sys.stderr)
        return [[] for _ in path]
    results = [json.loads(line)["runs"] for line in done.stdout.strip().splitlines()[-len(path):]]
    return [[(run["train_seconds"], run["objective"]) for run in runs] for runs in results]


if __name__ == "__main__":
    main()
