"""What is near its bound and what is not: each algorithm at each vector level, one worker. Writes a table, the farthest first.

usage: python3 benches/bounds.py [MEGAGRID] [FOLDER] [--rounds N]

MEGAGRID is the command [target/release/megagrid]; FOLDER keeps the inputs [target/bounds]. Rates are millions of edges a second: links,
ratings, tokens, values. Three numbers stand side by side:

* memory: all of the grid and of the vertices' data, as `megagrid plan` counts them, read once an iteration at the rate at which this machine sums an array;
* caches: the same program on data of the same kind that the second-level cache holds, in its best round: arithmetic and latency are left;
* reached: the program on data that it does not hold.

The bound is the smaller of the first two; rounds are interleaved, and the median of what is reached counts. Needs a Rust toolchain for the rate of memory.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

MF = ["mf", "--no-biases", "--lambda", "0.05", "--step", "0.01"]
LDA = ["lda", "-k", "100", "--sampler", "dense", "--alpha", "0.1", "--beta", "0.01", "--prior", "fixed"]
# All features stay active, so that each iteration visits all values.
L1 = ["blockpg", "--l1", "1e-9", "--tolerance", "0", "--blocks", "20"]
RATINGS = ("ratings", ["--left", "48000", "--right", "17770", "--edges", "10000000"])
FEW_RATINGS = ("ratings", ["--left", "200", "--right", "200", "--edges", "20000"])
# Name; large and small input: kind and settings; command; iterations on either.
JOBS = [
    ("PageRank", ("rmat", ["--scale", "22", "--clean"]), ("rmat", ["--scale", "12"]),
     ["pagerank", "--tolerance", "0"], (8, 200)),
    ("MF, k = 32", RATINGS, FEW_RATINGS, [*MF, "--dims", "32"], (5, 200)),
    ("MF, k = 100", RATINGS, FEW_RATINGS, [*MF, "--dims", "100"], (4, 200)),
    ("LDA, K = 100", ("corpus", ["--documents", "19600", "--vocabulary", "20000", "--topics", "100", "--mean-length", "153"]),
     ("corpus", ["--documents", "600", "--vocabulary", "1000", "--topics", "100", "--mean-length", "200"]), LDA, (5, 100)),
    ("L1 regression", ("clicks", ["--samples", "200000", "--features", "100000", "--mean-features", "50"]),
     ("clicks", ["--samples", "4000", "--features", "1000", "--mean-features", "20"]), L1, (6, 60)),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("megagrid", nargs="?", default="target/release/megagrid", type=os.path.abspath)
    parser.add_argument("folder", nargs="?", default="target/bounds", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    bandwidth = sums()
    print(f"memory: {bandwidth:.1f} GB/s\n")
    rows = []
    for name, large, small, command, iterations in JOBS:
        inputs = [(find(options, *kind), kind[1]) for kind in (large, small)]
        read = bandwidth * 1e3 / bytes_of_edge(options.megagrid, command, *inputs[0])
        for level in levels():
            rates = [[], []]
            for _ in range(options.rounds):
                for at, of in enumerate(inputs):
                    rates[at].append(rate(options.megagrid, [*command, "--vector", level], *of, iterations[at]))
            reached, cached = statistics.median(rates[0]), max(rates[1])
            share = reached / min(read, cached)
            rows.append((share, f"| {name} | {level} | {read:.0f} | {cached:.1f} | {reached:.1f} | {100 * share:.0f} % |"))
    print("| algorithm | vectors | memory, M/s | caches, M/s | reached, M/s | of the bound |\n|---|---|---|---|---|---|")
    print("\n".join(row for _, row in sorted(rows)))


def levels():
    """The levels with vectors that this processor has."""
    with open("/proc/cpuinfo") as file:
        flags = set(re.search(r"flags\s*: (.*)", file.read()).group(1).split())
    found = []
    if {"avx2", "fma"} <= flags:
        found.append("avx2")
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= flags:
        found.append("avx512")
    return found


def sums():
    """GB/s of one thread that sums an array."""
    bench = ["cargo", "bench", "--quiet", "-p", "megagrid-benches", "--bench", "limits"]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    limits = subprocess.run(bench, check=True, capture_output=True, text=True, cwd=root).stdout
    return float(re.search(r"sum, GB/s\s+([\d.]+)", limits).group(1))


def find(options, kind, settings):
    """Returns the cache of an input, which is made where it is not there."""
    name = "-".join([kind, *(setting.strip("-") for setting in settings)])
    path = os.path.join(options.folder, f"{name}.mgrid")
    if not os.path.exists(path):
        subprocess.run([options.megagrid, "generate", kind, path, *settings, "--seed", "1"], check=True, capture_output=True)
    return path


def record(megagrid, command, path, iterations):
    with tempfile.TemporaryDirectory() as folder:
        written = os.path.join(folder, "record.json")
        subprocess.run([megagrid, command[0], path, *command[1:], "--iterations", str(iterations), "-w", "1", "--quiet", "--seed", "1",
                        "--json", written], check=True, stdout=subprocess.DEVNULL)
        with open(written) as file:
            return json.load(file)


def rate(megagrid, command, path, settings, iterations):
    """Millions of edges a second: the median iteration, without the first, which warms up."""
    run = record(megagrid, command, path, iterations)
    ends = [iteration["train_seconds"] for iteration in run["iterations"]]
    seconds = statistics.median(after - before for before, after in zip(ends, ends[1:]))
    return edges(run, settings) / seconds / 1e6


def edges(run, settings):
    """Links, ratings or values; of documents the tokens, of which as many are expected."""
    settings = dict(zip(settings[::2], settings[1::2]))
    if "--documents" in settings:
        return int(settings["--documents"]) * int(settings["--mean-length"])
    return run["input"]["edges"]


def bytes_of_edge(megagrid, command, path, settings):
    plan = subprocess.run([megagrid, "plan", command[0], path, *command[1:], "-w", "1"], check=True, capture_output=True, text=True).stdout
    size, unit = re.search(r"memory\s+about ([\d.]+) (\w+) of grid", plan).groups()
    total = float(size) * {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    return total / edges(record(megagrid, command, path, 1), settings)


if __name__ == "__main__":
    main()
