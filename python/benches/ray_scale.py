"""A sweep of 40 runs and the scoring of 10 million rows, Parquet to Parquet, on a Ray cluster of two nodes on this machine:
each twice, the second time with a worker that is killed midway. Results must be those of one machine.

    python python/benches/ray_scale.py

Small: `--rows 200000 --runs 8`. Memory is bounded: `--store` bytes of object store for each node, rows that are made and
compared a piece at a time. All files lie in a temporary folder (`--folder`), which is removed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter
from typing import Any, Callable, Iterator

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import ray

import neuralcb
import neuralcb.ray

DIM, ACTIONS = 10, 5
FILES = 40
"""Files of the log."""


class Killer(threading.Thread):
    """Kills one worker of this cluster while it does a piece of work, once some of the work is done."""

    def __init__(self, work: str, begun: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self.work, self.begun, self.killed, self.enough = work, begun, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.enough.wait(0.005) and not self.killed:
            for process in self.busy() if self.begun() else ():
                os.kill(process, signal.SIGKILL)
                self.killed = process
                break

    def busy(self) -> Iterator[int]:
        for process in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                title = Path(f"/proc/{process}/cmdline").read_text()
                if title.startswith(f"ray::{self.work}") and os.getpid() in ancestors(process):
                    yield process
            except (OSError, ValueError):
                continue  # it has ended

    def end(self) -> None:
        self.enough.set()
        self.join()
        if not self.killed:
            sys.exit(f"no worker was caught at `{self.work}`: give more rows or runs")


def ancestors(process: int) -> Iterator[int]:
    while process > 1:
        yield process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def rounds(piece: int, n: int) -> dict[str, np.ndarray]:
    """Some rows of a log; the same for the same piece."""
    rng = np.random.default_rng(piece)
    x = rng.normal(size=(n, DIM)).astype(np.float32)
    action = rng.integers(ACTIONS, size=n)
    reward = (rng.random(n) < 1.0 / (1.0 + np.exp(-x[np.arange(n), action]))).astype(float)
    return {**{f"x{j}": x[:, j] for j in range(DIM)}, "action": action, "reward": reward}


def features(columns: Any) -> np.ndarray:
    return np.column_stack([np.asarray(columns[f"x{j}"]) for j in range(DIM)])


def timed(work: Any) -> tuple[float, Any]:
    start = perf_counter()
    found = work()
    return perf_counter() - start, found


def sweep(runs: int) -> None:
    rates = np.geomspace(1e-4, 1e-2, -(-runs // 4)).tolist()
    grid = {"NeuraLCB": {"lr": rates, "width": [16], "beta": [0.0, 0.1, 1.0]}}
    log = rounds(10**6, 20_000)
    given = grid, features(log), log["action"], log["reward"], np.full(20_000, 1.0 / ACTIONS)
    here, expected = timed(lambda: neuralcb.sweep(*given, repetitions=4, progress=False))
    there, found = timed(lambda: neuralcb.ray.sweep(*given, repetitions=4, progress=False))
    done: list[int] = []
    killer = Killer("execute", lambda: len(done) > 0)
    tell = lambda number, _: done.append(number)  # noqa: E731
    killed, survived = timed(lambda: neuralcb.ray.sweep(*given, repetitions=4, progress=tell))
    killer.end()
    assert found == expected and survived == expected, "the sweep differs from that of one machine"
    print(f"sweep of {4 * len(rates)} runs: here {here:.1f} s, on Ray {there:.1f} s, with a worker killed {killed:.1f} s; rows equal")


def pieces(n_rows: int) -> Iterator[tuple[int, int, int]]:
    """Number, first row and rows of each file."""
    size = -(-n_rows // FILES)
    for piece, first in enumerate(range(0, n_rows, size)):
        yield piece, first, min(size, n_rows - first)


def write(folder: Path, n_rows: int) -> None:
    folder.mkdir()
    for piece, first, n in pieces(n_rows):
        table = pyarrow.table(rounds(piece, n))
        table = table.append_column("row", pyarrow.array(np.arange(first, first + len(table))))
        parquet.write_table(table, folder / f"{piece:05}.parquet")


def score(folder: Path, n_rows: int) -> None:
    log = rounds(10**6, 20_000)
    learner = neuralcb.NeuraLCB(width=16).fit(features(log), log["action"], log["reward"], progress=False)
    write(folder / "in", n_rows)

    def there(out: Path) -> None:
        neuralcb.ray.score(ray.data.read_parquet(str(folder / "in")), learner).write_parquet(str(out))

    seconds, _ = timed(lambda: there(folder / "out"))
    killer = Killer("MapBatches(decide)", lambda: any((folder / "killed").rglob("*.parquet")))
    killed, _ = timed(lambda: there(folder / "killed"))
    killer.end()
    expected = np.empty(n_rows, dtype=np.int8)
    here = 0.0
    for piece, first, n in pieces(n_rows):
        own = features(rounds(piece, n))
        took, expected[first : first + n] = timed(lambda: learner.predict(own))
        here += took
    for name in ("out", "killed"):
        seen = np.zeros(n_rows, dtype=np.int8)
        for path in (folder / name).rglob("*.parquet"):
            table = parquet.read_table(path, columns=["row", "action"])
            row = table.column("row").to_numpy()
            assert (table.column("action").to_numpy() == expected[row]).all(), "decisions differ from those of one machine"
            np.add.at(seen, row, 1)
        assert (seen == 1).all(), f"{name}: {np.sum(seen != 1)} rows are missing or twice there"
    print(
        f"scoring of {n_rows} rows: here {here:.1f} s (without files), on Ray {seconds:.1f} s, with a worker killed"
        f" {killed:.1f} s; every row once, decisions equal"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--store", type=int, default=1_500_000_000, help="object store of each node, in bytes")
    options.add_argument("--folder", help="where the temporary folder is made")
    given = options.parse_args()
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": given.store}
    nodes = Cluster(initialize_head=True, head_node_args=node)
    nodes.add_node(**node)
    ray.init(address=nodes.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        alive = [one for one in ray.nodes() if one["Alive"]]
        print(f"{len(alive)} nodes, {int(ray.cluster_resources()['CPU'])} slots, {os.cpu_count()} cores")
        sweep(given.runs)
        with tempfile.TemporaryDirectory(dir=given.folder) as name:
            score(Path(name), given.rows)
    finally:
        ray.shutdown()
        nodes.shutdown()


if __name__ == "__main__":
    main()
