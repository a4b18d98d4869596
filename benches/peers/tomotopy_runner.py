"""Times the PyPI package tomotopy on a UCI bag of words and prints one JSON line, the last of its output.

usage: tomotopy_runner.py CORPUS TOPICS ALPHA BETA THREADS ITERATIONS STEP [SEED [INTERVAL]]

Training is timed in steps of STEP iterations and the likelihood is read between them, outside of the time. The priors
stay as given, or alpha is optimized every INTERVAL iterations, each topic's weight by itself. Its parallel scheme is the default, "partition", which keeps
one word-topic table for all threads.

`ll_per_word` is taken for the joint log p(w, z) per token. That is checked in every run, by computing the joint from
tomotopy's own assignments: on uci-kos, K = 100, after 100 iterations with two
threads, tomotopy prints -8.27549 and its assignments give -8.27543.
"""
import json
import resource
import sys
import time

import numpy as np
import tomotopy
from scipy.special import gammaln


def main():
    path, topics, alpha, beta, threads, iterations, step = sys.argv[1:8]
    seed, interval = (int(option) for option in (sys.argv[8:] + ["1", "0"][len(sys.argv) - 8:]))
    topics, threads, iterations, step = int(topics), int(threads), int(iterations), int(step)
    alpha, beta = float(alpha), float(beta)
    model = tomotopy.LDAModel(tw=tomotopy.TermWeight.ONE, k=topics, alpha=alpha, eta=beta, seed=seed)
    model.optim_interval = interval
    model.burn_in = 0
    for document in documents(path):
        model.add_doc(document)
    # No iteration: sets the counts up, at random.
    model.train(0, workers=threads)
    curve, seconds = [], 0.0
    for done in range(step, iterations + 1, step):
        start = time.perf_counter()
        model.train(step, workers=threads)
        seconds += time.perf_counter() - start
        curve.append({"iteration": done, "train_seconds": seconds, "per_token": model.ll_per_word})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"tokens": model.num_words, "vocabulary": len(model.used_vocabs), "isa": tomotopy.isa,
                      "curve": curve, "joint_per_token": joint(model, topics, beta) / model.num_words,
                      "peak_rss_bytes": peak}), flush=True)


def documents(path):
    """The documents as lists of words, which are named by their numbers."""
    with open(path) as lines:
        _, vocabulary, _ = (int(next(lines)) for _ in range(3))
        names = [str(word) for word in range(vocabulary + 1)]
        current, tokens = None, []
        for line in lines:
            document, word, count = line.split()
            if document != current and tokens:
                yield tokens
                tokens = []
            current = document
            tokens += [names[int(word)]] * int(count)
        yield tokens


def joint(model, topics, beta):
    """The collapsed joint log p(w, z) of Griffiths and Steyvers (2004), from the assignments alone."""
    alpha = np.broadcast_to(np.asarray(model.alpha, float), topics)
    vocabulary = len(model.used_vocabs)
    word_counts = np.zeros((vocabulary, topics), np.int64)
    total = 0.0
    for document in model.docs:
        assigned = np.asarray(document.topics)
        np.add.at(word_counts, (np.asarray(document.words), assigned), 1)
        counts = np.bincount(assigned, minlength=topics)
        total += gammaln(counts + alpha).sum() - gammaln(len(assigned) + alpha.sum())
    total += len(model.docs) * (gammaln(alpha.sum()) - gammaln(alpha).sum())
    total += gammaln(word_counts + beta).sum() - gammaln(word_counts.sum(axis=0) + vocabulary * beta).sum()
    return total + topics * (gammaln(vocabulary * beta) - vocabulary * gammaln(beta))


if __name__ == "__main__":
    main()
