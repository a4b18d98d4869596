#!/usr/bin/env python3
"""Reads what the emulated machines of `benches/numa/run` counted, and says of each array how often its pages were used from the node that
they are on. Ends with 1 where that is less than it has to be, or, with threads that are not kept anywhere, more.

Rows that go from worker to worker, or that all workers read, are used from all nodes by nature: they are shown, and not judged. A worker's own
deltas are added to by that worker, and then read by the owners of rows: they have to be on the worker's node."""

import os
import re
import sys
from collections import defaultdict

NODES = 8
# The rows that only their keeper works on.
OWNED = {
    "mf": r"left ",
    "lda": r"left ",
    "pagerank": r"left (master|delta)",
    "blockpg": r"right master",
}
COPY = re.compile(r"(left|right) delta of worker (\d+)")
# Percent of the pages of a worker's own deltas that have to be on its node, unless threads are not kept anywhere.
COPY_BOUND = 95


def judged(job, array):
    """Returns what an array is judged as, if it is."""
    if array.startswith("edges"):
        return "edges"
    if COPY.match(array):
        return "copy"
    return "rows" if re.match(OWNED[job], array) else None


def misplaced_copies(arrays, nodes):
    """Names the workers' own deltas that are not on the worker's node. Workers are shared out evenly among the nodes."""
    copies = {name: pages for name, (pages, _) in arrays.items() if COPY.match(name)}
    workers = max((int(COPY.match(name)[2]) + 1 for name in copies), default=1)
    for name, pages in copies.items():
        share = 100 * pages[int(COPY.match(name)[2]) * nodes // workers] / max(1, sum(pages))
        if share < COPY_BOUND:
            yield f"{name} is on the worker's node for {share:.1f} % of its pages, expected at least {COPY_BOUND} %"


# Percent of uses from the page's node, by form and kind: at least, or, negative, at most.
BOUNDS = {("bound", "rows"): 95, ("bound", "edges"): 95, ("huge", "rows"): 90, ("unbound", "rows"): -75, ("unbound", "edges"): -75}


def read(path):
    """Returns the form, the nodes, and by job and name of an array the pages by node and the uses by page's and thread's node."""
    form, nodes, jobs, job, ended = "?", 0, {}, None, False
    with open(path, errors="replace") as lines:
        for line in (line.strip() for line in lines):
            if line.startswith("machine "):
                form = line.split()[1].rstrip(",")
            elif line.startswith("node "):
                nodes += 1
            elif line.startswith("job "):
                job = line.split()[1]
                jobs[job] = {}
            elif line.startswith("array "):
                name, numbers = line.removeprefix("array ").split(";")
                numbers = [int(number) for number in numbers.split()]
                uses = numbers[NODES + 1 :]
                jobs[job][name] = (numbers[:NODES], [uses[at * NODES : (at + 1) * NODES] for at in range(NODES)])
            elif line == "done":
                ended = True
            elif line not in ("end", "Killed"):
                print(f"  {line}")
    return form, nodes, jobs, ended


def local(uses):
    """Returns the percentage of uses from the page's own node, and how many there were."""
    every = sum(map(sum, uses))
    return 100 * sum(uses[node][node] for node in range(NODES)) / max(1, every), every


def main(paths):
    wrong = []
    for path in paths:
        form, nodes, jobs, ended = read(path)
        print(f"\n{nodes} nodes, {form}\n")
        print("| job | array | MiB | on each node, % | uses | from its node, % | |\n|---|---|---:|---|---:|---:|---|")
        if not ended:
            wrong.append(f"{os.path.basename(path)}: the machine was not done in its time")
        for job, arrays in jobs.items():
            if not arrays:
                wrong.append(f"{job}, {form}: nothing was counted")
            sums = defaultdict(lambda: [[0] * NODES for _ in range(NODES)])
            for name, (pages, uses) in arrays.items():
                share, every = local(uses)
                shares = " ".join(f"{100 * pages[node] / max(1, sum(pages)):.0f}" for node in range(nodes))
                kind = judged(job, name)
                print(f"| {job} | {name} | {sum(pages) / 256:.1f} | {shares} | {every} | {share:.1f} | {kind or ''} |")
                for at in range(NODES):
                    for node in range(NODES):
                        sums[kind][at][node] += uses[at][node]
            for kind in ("rows", "edges"):
                share, every = local(sums[kind])
                bound = BOUNDS.get((form, kind))
                if bound is None:
                    continue
                holds = every > 0 and (share >= bound if bound > 0 else share < -bound)
                said = f"{nodes} nodes, {form}, {job}: {kind} are used from their node in {share:.1f} % of {every} uses"
                print(f"<!-- {said} -->")
                if not holds:
                    wrong.append(f"{said}, expected {'at least' if bound > 0 else 'less than'} {abs(bound)} %")
            if form != "unbound":
                wrong += [f"{nodes} nodes, {form}, {job}: {problem}" for problem in misplaced_copies(arrays, nodes)]
    print()
    for problem in wrong:
        print(f"NOT AS IT HAS TO BE: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
