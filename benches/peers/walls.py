"""Compares the whole wait, from a text to a written model, with peers that read the same text; the worst ratio first.

usage: target/peers/venv/bin/python benches/peers/walls.py MEGAGRID GRAPH_RUNNER [FOLDER] [--rounds N] [--only TEXT] [--scale S]

MEGAGRID is the command, GRAPH_RUNNER the program of `graph_runner/` (`benches/peers/run` builds it), FOLDER the place of the texts, which are
generated once [target/peers/walls]. A row has the median seconds of whole processes with as many threads, in turn, and their
ratio. A peer's quality and Megagrid's are measured once, before the rounds, and stand beside the times.

| job | Megagrid | peer |
|---|---|---|
| pagerank | to a residual of 1e-6 | crate `graph`: its own reader, sorted CSR, `page_rank` to 1e-6 |
| mf, 12 iterations | k = 32, no biases | libmf 0.9.2 (PyPI), the text read by pyarrow |
| mf, best | until the test error is the peer's best | until its test error is best |
| lda | K = 100, until the likelihood is the peer's | tomotopy, 100 iterations, documents read in Python |
| blockpg | to the peer's objective | liblinear, `-s 6 -e 1e-3`: `liblinear-train` where it is installed, else its Python reader |
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MF = ["--dims", "32", "--no-biases", "--lambda", "0.05", "--step", "0.1", "--seed", "1"]
LDA = ["--topics", "100", "--alpha", "0.1", "--beta", "0.01", "--prior", "fixed", "--seed", "1"]
MOST_ITERATIONS = 30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("megagrid", type=os.path.abspath)
    parser.add_argument("graph_runner", type=os.path.abspath)
    parser.add_argument("folder", nargs="?", default="target/peers/walls", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", default="20", help="RMAT scale of the graph")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    os.chdir(options.folder)
    rows = []
    for name, make in [("pagerank", pagerank), ("mf", mf), ("lda", lda), ("blockpg", blockpg)]:
        if options.only in name:
            for job, quality, commands in make(options):
                rows += measure(job, quality, commands, options.rounds)
    print("| from text to model | threads | megagrid, s | peer, s | ratio | quality, megagrid and peer |\n|---|---|---|---|---|---|")
    for _, row in sorted(rows):
        print(row)


def measure(job, quality, commands, rounds):
    """Runs the commands of a job in turn: `commands` makes Megagrid's and the peer's for a number of threads."""
    for threads in ("1", "2"):
        seconds = [[], []]
        for _ in range(rounds):
            for taken, command in zip(seconds, commands(threads)):
                shutil.rmtree("model", ignore_errors=True)
                begin = time.perf_counter()
                run(threads, command)
                taken.append(time.perf_counter() - begin)
        ours, peer = map(statistics.median, seconds)
        print(f"{job}, {threads} threads: {[sorted(taken) for taken in seconds]}", file=sys.stderr)
        yield peer / ours, f"| {job} | {threads} | {ours:.2f} | {peer:.2f} | {peer / ours:.2f} | {quality} |"


def run(threads, command):
    """Runs a command on as many processors, and returns its output."""
    processors = ",".join(map(str, range(int(threads))))
    pinned = ["taskset", "-c", processors, *command]
    done = subprocess.run(pinned, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(pinned)}: {done.stderr[-400:]}")
    return done.stdout


def record(options, command):
    """Runs Megagrid with two workers and returns the record."""
    run("2", [options.megagrid, *command, "-w", "2", "--quiet", "--json", "record.json"])
    with open("record.json") as file:
        return json.load(file)


def generate(options, name, *settings):
    """Returns the text of these settings, which is made where it is not there."""
    if not os.path.exists(name):
        subprocess.run([options.megagrid, "generate", settings[0], name, *settings[1:]], check=True, capture_output=True)
    return name


def peer(package, *arguments):
    return [sys.executable, os.path.join(HERE, "wall_runner.py"), package, *arguments]


def peer_quality(*command):
    """Runs a peer with two threads and returns what it prints of its model."""
    return json.loads(run("2", peer(*command, "quality")).splitlines()[-1])


def pagerank(options):
    """The crate's reader takes lines of two ids only, with a space between them."""
    text = f"rmat-{options.scale}.txt"
    if not os.path.exists(text):
        with open(generate(options, "rmat.txt", "rmat", "--scale", options.scale, "--seed", "1")) as lines, open("part", "w") as rest:
            rest.writelines(line.replace("\t", " ") for line in lines if not line.startswith("#"))
        os.rename("part", text)
        os.remove("rmat.txt")
    yield f"PageRank, RMAT {options.scale}", "residual below 1e-6", lambda threads: [
        [options.megagrid, "pagerank", text, "--tolerance", "1e-6", "-w", threads, "--quiet", "--model", "model"],
        [options.graph_runner, text, "scores"],
    ]


def mf(options):
    """Every tenth rating is for testing."""
    sizes = ["--left", "48000", "--right", "17770", "--edges", "10000000", "--seed", "1"]
    train, test = "ratings.train.txt", "ratings.test.txt"
    if not os.path.exists(train):
        with open(generate(options, "ratings.txt", "ratings", *sizes)) as lines, open(test, "w") as tests, open("part", "w") as rest:
            for number, line in enumerate(lines):
                (rest if number % 10 else tests).write(line)
        os.rename("part", train)
    steps = record(options, ["mf", train, *MF, "--test", test, "--patience", "0", "--iterations", str(MOST_ITERATIONS)])
    ours = {step["iteration"]: step["metrics"]["test_rmse"] for step in steps["iterations"]}
    counts = range(12, MOST_ITERATIONS + 1, 3)
    theirs = {count: peer_quality("libmf", train, "32", "2", str(count), "factors", test) for count in counts}
    best = min(theirs, key=theirs.get)
    reached = next((n for n, error in ours.items() if error <= theirs[best]), None)
    for job, iterations, others in [("12 iterations", 12, 12), ("best test error", reached, best)]:
        quality = f"{ours.get(iterations, float('nan')):.4f} in {iterations}, {theirs[others]:.4f} in {others} iterations"
        if iterations:
            yield f"MF, 9 M ratings, {job}", quality, lambda threads, iterations=iterations, others=others: [
                [options.megagrid, "mf", train, *MF, "--iterations", str(iterations), "-w", threads, "--quiet", "--model", "model"],
                peer("libmf", train, "32", threads, str(others), "factors"),
            ]


def lda(options):
    sizes = ["--documents", "19600", "--vocabulary", "20000", "--topics", "100", "--mean-length", "153"]
    text = generate(options, "corpus.bow", "corpus", *sizes)
    goal = peer_quality("tomotopy", text, "100", "0.1", "0.01", "2", "100", "topics")
    steps = record(options, ["lda", text, *LDA, "--iterations", "125", "--evaluate-every", "1"])["iterations"]
    iterations, likelihood = next((step["iteration"], step["metrics"]["per_token"]) for step in steps
                                  if step["metrics"]["per_token"] >= goal)
    quality = f"{likelihood:.4f} in {iterations}, {goal:.4f} in 100 iterations"
    yield "LDA, 3 M tokens, K = 100", quality, lambda threads: [
        [options.megagrid, "lda", text, *LDA, "--iterations", str(iterations), "-w", threads, "--quiet", "--model", "model"],
        peer("tomotopy", text, "100", "0.1", "0.01", threads, "100", "topics"),
    ]


def blockpg(options):
    text = generate(options, "clicks.libsvm", "clicks", "--samples", "200000", "--features", "100000", "--seed", "1")
    goal = peer_quality("liblinear", text, "1", "1e-3", "weights")
    for tolerance in ("1e-4", "1e-5", "1e-6", "1e-7"):
        settings = ["--l1", "1", "--tolerance", tolerance]
        objective = record(options, ["blockpg", text, *settings])["result"]["objective"]
        if objective <= goal * (1 + 1e-6):
            break
    program = ["liblinear-train", "-s", "6", "-c", "1", "-e", "1e-3", "-q", text, "weights"]
    theirs = program if shutil.which(program[0]) else peer("liblinear", text, "1", "1e-3", "weights")
    yield f"L1 regression, 200 k clicks ({theirs[0] if theirs is program else 'Python reader'})", f"{objective:.2f}, {goal:.2f}", lambda threads: [
        [options.megagrid, "blockpg", text, *settings, "-w", threads, "--quiet", "--model", "model"],
        theirs,
    ]


if __name__ == "__main__":
    main()
