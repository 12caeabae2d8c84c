"""A real Ray cluster of two nodes on this machine; a worker is killed midway. Runs where Ray is installed."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import neuralcb
import neuralcb.ray

if not os.path.exists("/proc/self/stat"):
    pytest.skip("no /proc here to find workers in", allow_module_level=True)
ray = pytest.importorskip("ray")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 200_000_000})
    nodes.add_node(num_cpus=2, object_store_memory=200_000_000)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="module")
def table(log):
    columns = {f"x{j}": log.contexts[:, j] for j in range(4)}
    outcome = {"action": log.actions, "reward": log.rewards, "propensity": log.propensities}
    return pyarrow.table({**columns, **outcome})


def parent(process: int) -> int:
    with open(f"/proc/{process}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def busy(work: str) -> list[int]:
    """The processes of this test's own cluster that are doing that work right now."""
    found = []
    for process in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{process}/cmdline") as title:
                doing = title.read().startswith(f"ray::{work}")
            ancestor = process
            while doing and ancestor not in (0, 1, os.getpid()):
                ancestor = parent(ancestor)
            found += [process] if doing and ancestor == os.getpid() else []
        except (OSError, ValueError):
            continue  # it has ended
    return found


class Killer(threading.Thread):
    """Kills one worker in the middle of its work."""

    def __init__(self, work: str) -> None:
        super().__init__()
        self.work, self.killed, self.enough = work, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.enough.wait(0.01) and not self.killed:
            for process in busy(self.work)[:1]:
                os.kill(process, signal.SIGKILL)
                self.killed = process

    def end(self) -> None:
        self.enough.set()
        self.join()
        assert self.killed, "no worker was caught at work"


def test_the_cluster_has_two_nodes(cluster):
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2


def test_a_sweep_has_the_rows_of_one_machine_even_if_a_worker_dies(cluster, log):
    grid = {"NeuraLCB": {"width": [8, 16], "lr": [1e-3, 1e-2], "beta": [0.0, 1.0]}, "LinLCB": {"lam": [0.1, 1.0]}}
    given = grid, *log.args, log.propensities
    killer = Killer("execute")
    rows = neuralcb.ray.sweep(*given, repetitions=4)
    killer.end()
    assert rows == neuralcb.sweep(*given, repetitions=4)


def test_scores_are_those_of_one_machine_even_if_a_worker_dies(cluster, log, table):
    learner = neuralcb.LinLCB().fit(*log.args)
    many = pyarrow.concat_tables([table] * 200)
    dataset = ray.data.from_arrow([many.slice(i * 3000, 3000) for i in range(40)])
    killer = Killer("MapBatches(decide)")
    found = neuralcb.ray.score(dataset, learner, explain=True).to_pandas()
    killer.end()
    assert len(found) == 120_000
    mean, _ = learner.bounds(found[["x0", "x1", "x2", "x3"]])
    np.testing.assert_array_equal(found["action"], learner.predict(found[["x0", "x1", "x2", "x3"]]))
    np.testing.assert_array_equal(found["mean:1"], mean[:, 1])


@pytest.mark.parametrize("blocks", [1, 7])
def test_an_evaluation_does_not_depend_on_blocks(cluster, log, fresh, table, blocks):
    learner = neuralcb.LinLCB().fit(fresh.contexts, fresh.actions, fresh.rewards)
    size = -(-600 // blocks)
    dataset = ray.data.from_arrow([table.slice(i * size, size) for i in range(blocks)])
    found = neuralcb.ray.evaluate(dataset, learner, batch_size=100)
    pi = (learner.predict(log.contexts) == log.actions).astype(float)
    assert found == neuralcb.ope.evaluate(log.rewards, log.propensities, pi)
    assert found == neuralcb.ope.evaluate_policy(learner, *log.args, log.propensities, folds=0)
    # what one machine tells beside that (origins, parts) is not merged
    here = neuralcb.ope.evaluate_policy(learner, *log.args, log.propensities, folds=0)
    assert found.raw.items() <= here.raw.items()


def test_a_reward_model_makes_the_doubly_robust_estimators_of_one_machine_even_if_a_worker_dies(cluster, log, fresh, table):
    learner = neuralcb.NeuraLCB(width=16).fit(fresh.contexts[:200], fresh.actions[:200], fresh.rewards[:200])
    model = neuralcb.LinLCB().fit(fresh.contexts[200:], fresh.actions[200:], fresh.rewards[200:])
    many = pyarrow.concat_tables([table] * 50)
    dataset = ray.data.from_arrow([many.slice(i * 2000, 2000) for i in range(15)])
    killer = Killer("part")
    found = neuralcb.ray.evaluate(dataset, learner, model=model, replicates=50)
    killer.end()
    whole = [np.concatenate([part] * 50) for part in (*log.args, log.propensities)]
    here = neuralcb.ope.evaluate_policy(learner, *whole, model=model, replicates=50)
    assert found.raw.items() <= here.raw.items()
    assert {"dm", "dr", "switch-dr"} <= {estimate.estimator for estimate in found}


def test_what_the_workers_refuse_is_said(cluster, log, table):
    learner = neuralcb.LinLCB().fit(*log.args)
    dataset = ray.data.from_arrow(table)
    with pytest.raises(Exception, match="unknown estimator `ipw`"):
        neuralcb.ray.evaluate(dataset, learner, estimators=["ipw"])
    own = neuralcb.simulate("cosine", 50, seed=3)
    per_action = neuralcb.LinLCB().fit(own.contexts, own.actions, own.rewards)
    with pytest.raises(neuralcb.NeuralcbError, match="one row for each round"):
        neuralcb.ray.score(dataset, per_action)


def test_candidates_tried_anywhere_give_the_tuning_of_one_machine(cluster, log):
    data = (log.contexts, log.actions, log.rewards, log.propensities)
    options = dict(algorithms=("clone", "regression", "lin-lcb"), betas=(0.0, 1.0), reward_range=(-20.0, 20.0))
    here, there = neuralcb.tune(*data, **options), neuralcb.ray.tune(*data, **options)
    assert there.candidates == here.candidates and len(here.candidates) == 4
    assert there.certificate == here.certificate and there.words == here.words
    np.testing.assert_array_equal(there.policy.predict(log.contexts), here.policy.predict(log.contexts))
