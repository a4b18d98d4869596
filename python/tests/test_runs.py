"""Runs beside an interpreter: threads, forks, callbacks, Ctrl-C, progress."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

from megagrid import MatrixFactorization, SparseLogisticRegression, TopicModel, pagerank


def python(code, **more):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, **more)


def test_an_import_brings_nothing_and_starts_no_thread():
    code = """
import os, sys
import megagrid
assert not {"numpy", "sklearn", "scipy", "megagrid._megagrid"} & set(sys.modules)
from megagrid import SparseLogisticRegression, TopicModel, MatrixFactorization, pagerank
if os.path.exists("/proc/self/task"):
    before = len(os.listdir("/proc/self/task"))
    import numpy, sklearn
    import megagrid._megagrid
    assert len(os.listdir("/proc/self/task")) == before, "threads of megagrid"
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_without_scikit_learn_there_is_all_but_its_tools():
    code = """
import sys
sys.modules["sklearn"] = sys.modules["scipy"] = sys.modules["tqdm"] = None
import numpy as np
from megagrid import SparseLogisticRegression, TopicModel, MatrixFactorization, NotFittedError
X = np.random.default_rng(0).poisson(1.0, size=(100, 8))
model = SparseLogisticRegression(0.1, verbose=1).fit(X, X[:, 0] > 0)
assert model.score(X, X[:, 0] > 0) > 0.95
assert repr(model) == "SparseLogisticRegression(l1=0.1, verbose=1)", repr(model)
assert TopicModel(3, max_iter=3).fit_transform(X).shape == (100, 3)
MatrixFactorization(2).set_params(n_factors=3).fit(X)
try:
    TopicModel().transform(X)
except NotFittedError:
    pass
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_can_fit(clicks):
    code = """
import os, warnings
import numpy as np
from megagrid import SparseLogisticRegression, TopicModel, MatrixFactorization
warnings.simplefilter("ignore")
X = np.random.default_rng(0).poisson(1.0, size=(400, 30))
fits = [lambda: SparseLogisticRegression().fit(X, X[:, 0] > 0).coef_,
        lambda: TopicModel(4, max_iter=5).fit(X).transform(X), lambda: MatrixFactorization(4).fit(X).user_factors_]
before = [fit() for fit in fits]
child = os.fork()
if child == 0:
    same = all(np.array_equal(fit(), one) for fit, one in zip(fits, before))
    os._exit(0 if same else 7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_fits_in_four_threads_are_those_of_one(clicks, ratings):
    expected = MatrixFactorization(4, n_jobs=2).fit(ratings).user_factors_
    found, errors = [], []

    def fit():
        try:
            for _ in range(5):
                found.append(MatrixFactorization(4, n_jobs=2).fit(ratings).user_factors_)
                SparseLogisticRegression().fit(*clicks)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=fit) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors and len(found) == 20 and all(np.array_equal(one, expected) for one in found)


def test_a_callback_sees_each_iteration_and_may_end_the_run(ratings):
    seen = []
    model = MatrixFactorization(4, holdout=0.1, max_iter=8).fit(ratings, callback=seen.append)
    assert [one["iteration"] for one in seen] == list(range(1, model.n_iter_ + 1))
    assert all("test_rmse" in one["metrics"] for one in seen)
    model = MatrixFactorization(4, max_iter=8).fit(ratings, callback=lambda one: one["iteration"] == 3)
    assert model.n_iter_ == 3 and model.report_["result"]["ended_by"] == "interrupt"
    assert np.array_equal(model.user_factors_, MatrixFactorization(4, max_iter=3).fit(ratings).user_factors_)
    assert len(pagerank(np.ones((3, 3)), callback=lambda one: True)) == 3


def test_what_a_callback_raises_ends_the_run_and_leaves_its_model(ratings):
    def fail(one):
        if one["iteration"] == 4:
            raise KeyError("mine")

    model = MatrixFactorization(4, max_iter=8)
    with pytest.raises(KeyError, match="mine"):
        model.fit(ratings, callback=fail)
    assert model.n_iter_ == 4
    assert np.array_equal(model.user_factors_, MatrixFactorization(4, max_iter=4).fit(ratings).user_factors_)


@pytest.fixture
def interruptible():
    """Ctrl-C raises, even where what runs the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_a_fit_and_leaves_the_state_so_far(ratings, interruptible):
    model = MatrixFactorization(16, max_iter=10**9)
    began = threading.Event()
    sent = []

    def interrupt():
        began.wait()
        time.sleep(0.2)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        began.set()
        model.fit(ratings)
    thread.join()
    assert model.n_iter_ >= 1 and model.report_["result"]["ended_by"] == "interrupt"
    assert model.user_factors_.shape == (200, 16) and np.isfinite(model.user_factors_).all()


def test_an_iteration_that_takes_long_ends_on_its_own(interruptible):
    # An iteration of about a second: the exception comes before it ends, and its model after.
    random = np.random.default_rng(0)
    users, items = random.integers(0, 20_000, (2, 400_000), dtype=np.int32)
    model = MatrixFactorization(1024, max_iter=10**9)
    timer = threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit((users, items, random.normal(size=400_000)))
    assert model.n_iter_ >= 1 and model.report_["result"]["ended_by"] == "interrupt"
    assert model.user_factors_.shape[1] == 1024


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize("lines, told", [("1,2,3\n2,3,x\n", "was interrupted failed, and changed nothing: .*:2"), ("1,2,3\n2,3,4\n", None)])
def test_an_interrupt_while_a_path_is_read_leaves_what_there_was_unless_it_is_trained_on(lines, told, ratings, interruptible, tmp_path):
    model = MatrixFactorization(4, max_iter=3).fit(ratings)
    before, path = model.predict_pairs(*ratings[:2]), tmp_path / "ratings.csv"
    os.mkfifo(path)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(path, format="ratings")
    model.set_params(max_iter=7)
    with open(path, "w") as pipe:
        pipe.write(lines)
    with pytest.warns(UserWarning, match=told) if told else nullcontext():
        assert hasattr(model, "user_factors_")
    if told:
        assert np.array_equal(model.predict_pairs(*ratings[:2]), before)
    else:
        assert model.n_iter_ == 1 and model.user_ids_.tolist() == [1, 2]
    assert model.max_iter == 7


def test_answers_for_many_end_with_ctrl_c(ratings, interruptible, monkeypatch):
    model = MatrixFactorization(4, max_iter=2).fit(ratings)
    model.recommend(0)
    answers, asked = model._answers[model.range_], []

    class Interrupting:
        def recommend(self, *question):
            asked.append(question)
            os.kill(os.getpid(), signal.SIGINT)
            return answers.recommend(*question)

    model._answers[model.range_] = Interrupting()
    monkeypatch.setattr("megagrid._recommender._USERS", 10)
    with pytest.raises(KeyboardInterrupt):
        model.recommend()
    assert len(asked) == 1


def test_other_threads_run_while_one_fits(ratings):
    turns, done = [0], threading.Event()

    def turn():
        while not done.is_set():
            turns[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=turn)
    thread.start()
    began = time.perf_counter()
    MatrixFactorization(16, max_iter=10**9).fit(ratings, callback=lambda one: time.perf_counter() > began + 0.3)
    done.set()
    thread.join()
    assert turns[0] > 10


def test_progress_is_shown(ratings, capfd):
    MatrixFactorization(4, verbose=1, max_iter=3).fit(ratings)
    assert "3/3" in capfd.readouterr().err


def test_fits_leave_no_thread_behind(ratings):
    if not os.path.exists("/proc/self/task"):
        pytest.skip("threads cannot be counted")
    MatrixFactorization(4).fit(ratings)
    before = len(os.listdir("/proc/self/task"))
    for _ in range(10):
        MatrixFactorization(4).fit(ratings)
        TopicModel(3, max_iter=3).fit(sp.csr_array(np.eye(8)))
    for _ in range(100):
        if len(os.listdir("/proc/self/task")) <= before:
            return
        time.sleep(0.05)
    assert len(os.listdir("/proc/self/task")) <= before


def test_logs_tell_each_iteration_and_the_end_where_they_are_wanted(documents, caplog):
    with caplog.at_level("DEBUG", logger="megagrid"):
        TopicModel(3, max_iter=4).fit(documents)
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 4 + ["INFO"]
    assert caplog.messages[0].startswith("iteration 1: ") and caplog.messages[-1].startswith("TopicModel: 4 iterations, ended by ")
    caplog.clear()
    with caplog.at_level("WARNING", logger="megagrid"):
        TopicModel(3, max_iter=4).fit(documents)
    assert caplog.messages == []
