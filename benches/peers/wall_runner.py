"""Reads a text, trains and writes a model with a package from PyPI, as its user would: for `walls.py`, which times the process.

usage: wall_runner.py libmf RATINGS DIMS THREADS ITERATIONS OUT [TEST quality]
       wall_runner.py tomotopy BAG_OF_WORDS TOPICS ALPHA BETA THREADS ITERATIONS OUT [quality]
       wall_runner.py liblinear SAMPLES L1 STOP OUT [quality]

With `quality` as the last argument it prints what the model is worth, as one number: the error on TEST, the joint log
likelihood per token, the objective. The settings are those of the other runners beside this file.
"""
import sys

import numpy as np


def libmf(path, dims, threads, iterations, out, *rest):
    from libmf import mf

    table = ratings(path)
    model = mf.MF(fun=0, k=int(dims), nr_threads=int(threads), nr_iters=int(iterations), nr_bins=20, lambda_p1=0,
                  lambda_q1=0, lambda_p2=0.05, lambda_q2=0.05, eta=0.1, quiet=True)
    model.fit(table)
    users, items = model.p_factors(), model.q_factors()
    np.savez(out, users=users, items=items)
    if rest:
        test = ratings(rest[0])
        user, item = test[:, 0].astype(int), test[:, 1].astype(int)
        known = (user < len(users)) & (item < len(items))
        scores = np.einsum("ij,ij->i", users[user[known]], items[item[known]])
        return float(np.sqrt(np.square(test[known, 2] - scores, dtype=np.float64).mean()))


def ratings(path):
    from pyarrow import csv

    options = csv.ReadOptions(column_names=["user", "item", "value"])
    table = csv.read_csv(path, read_options=options, parse_options=csv.ParseOptions(delimiter="\t"))
    return np.stack([column.to_numpy() for column in table.columns], axis=1).astype(np.float32)


def tomotopy(path, topics, alpha, beta, threads, iterations, out, *rest):
    import tomotopy

    from tomotopy_runner import documents

    model = tomotopy.LDAModel(tw=tomotopy.TermWeight.ONE, k=int(topics), alpha=float(alpha), eta=float(beta), seed=1)
    model.optim_interval = 0
    for document in documents(path):
        model.add_doc(document)
    model.train(int(iterations), workers=int(threads))
    model.save(out)
    return model.ll_per_word if rest else None


def liblinear(path, l1, stop, out, *rest):
    from liblinear.liblinearutil import parameter, problem, save_model, svm_read_problem, train

    labels, samples = svm_read_problem(path, return_scipy=True)
    model = train(problem(labels, samples), parameter(f"-s 6 -c {1 / float(l1)} -e {stop} -q"))
    save_model(out, model)
    if rest:
        weights = np.ctypeslib.as_array(model.w, (samples.shape[1],)) * (1 if model.get_labels()[0] == 1 else -1)
        losses = np.logaddexp(0, -np.asarray(labels) * (samples @ weights))
        return float(losses.sum() + float(l1) * np.abs(weights).sum())


if __name__ == "__main__":
    worth = {"libmf": libmf, "tomotopy": tomotopy, "liblinear": liblinear}[sys.argv[1]](*sys.argv[2:])
    if worth is not None:
        print(worth, flush=True)
