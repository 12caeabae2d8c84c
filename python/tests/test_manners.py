"""Ctrl-C, threads, fork, progress, and scikit-learn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import neuralcb

LONG = dict(mode="B", width=64, depth=3)


def script(text: str, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], text=True, stdout=subprocess.PIPE, **more)


def test_ctrl_c_stops_a_long_fit_within_a_second():
    started = script(
        """
        import numpy as np, neuralcb, time
        rng = np.random.default_rng(0)
        x, a = rng.normal(size=(20000, 10)), rng.integers(3, size=20000)
        learner = neuralcb.NeuraLCB(mode="B", width=64)
        print("fitting", flush=True)
        try:
            learner.fit(x, a, rng.normal(size=20000))
        except KeyboardInterrupt:
            print(time.monotonic(), hasattr(learner, "policy_"), flush=True)
        """
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "fitting\n"
    time.sleep(1.5)
    assert started.poll() is None, "the fit must be long enough to be stopped"
    before = time.monotonic()
    started.send_signal(signal.SIGINT)
    when, fitted = started.communicate(timeout=60)[0].split()
    assert fitted == "False"
    assert float(when) - before < 1.0


def test_progress_is_told_and_may_end_the_work(log):
    told: list[tuple[int, int]] = []
    neuralcb.LinLCB().fit(*log.args, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (1200, 1200)  # one reading to prepare, one to learn

    def enough(done: int, total: int) -> None:
        raise RuntimeError("enough")

    rng = np.random.default_rng(0)
    contexts, actions = rng.normal(size=(20_000, 10)), rng.integers(3, size=20_000)
    with pytest.raises(RuntimeError, match="enough"):
        neuralcb.NeuraLCB(**LONG).fit(contexts, actions, np.zeros(20_000), progress=enough)


def test_a_bar_is_drawn_if_it_is_asked_for(log, capfd):
    pytest.importorskip("tqdm")
    neuralcb.LinLCB().fit(*log.args, progress=True)
    neuralcb.LinLCB().fit(*log.args, progress=False)
    assert neuralcb.LinLCB().fit(*log.args).n_rounds_ == 600  # no terminal, no bar
    assert "fitting" not in capfd.readouterr().out


def test_an_interrupted_partial_fit_leaves_no_half_trained_model(log):
    learner = neuralcb.NeuraLCB(**LONG).fit(log.contexts[:50], log.actions[:50], log.rewards[:50])
    before = learner.bounds(log.contexts)[0]

    def enough(done: int, total: int) -> None:
        raise RuntimeError("enough")

    repeated = [np.tile(part, (20,) + (1,) * (part.ndim - 1)) for part in log.args]
    with pytest.raises(RuntimeError, match="enough"):
        learner.partial_fit(*repeated, progress=enough)
    np.testing.assert_array_equal(learner.bounds(log.contexts)[0], before)
    with pytest.raises(neuralcb.NeuralcbError, match="interrupted while it read rounds: fit it anew"):
        learner.partial_fit(*log.args)


def test_the_lock_is_free_while_a_fit_works():
    rng = np.random.default_rng(0)
    contexts, actions = rng.normal(size=(400, 10)), rng.integers(3, size=400)
    done = threading.Event()
    counted = 0

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    neuralcb.NeuraLCB(**LONG).fit(contexts, actions, np.zeros(400))
    done.set()
    thread.join()
    assert counted > 10


def test_threads_fit_and_predict_at_once_with_the_same_bits(log, fresh):
    expected = neuralcb.NeuraLCB(width=8).fit(*log.args)
    found: list[np.ndarray] = []

    def work() -> None:
        learner = neuralcb.NeuraLCB(width=8).fit(*log.args)
        found.append(learner.bounds(fresh.contexts)[0])
        found.append(expected.bounds(fresh.contexts)[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 8
    for bounds in found:
        np.testing.assert_array_equal(bounds, expected.bounds(fresh.contexts)[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_made_by_fork_works_on():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import os, numpy as np, neuralcb
                rng = np.random.default_rng(0)
                x, a, r = rng.normal(size=(500, 4)), rng.integers(3, size=500), rng.normal(size=500)
                learner = neuralcb.LinLCB().fit(x, a, r)      # the parent's threads are running
                before, few = learner.bounds(x)[0], learner.predict(x[:3])
                child = os.fork()
                if child == 0:
                    same = np.array_equal(neuralcb.LinLCB().fit(x, a, r).bounds(x)[0], before)
                    same = same and np.array_equal(learner.predict(x[:3]), few)
                    os._exit(0 if same and np.array_equal(learner.bounds(x)[0], before) else 1)
                print(os.waitpid(child, 0)[1])
                """
            ),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "0", done.stderr


def test_nothing_optional_is_imported():
    optional = "pandas polars pyarrow sklearn matplotlib tqdm".split()
    text = f"import sys, neuralcb; print([name for name in {optional} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
