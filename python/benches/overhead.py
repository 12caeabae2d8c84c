"""What Python adds to the Rust library: the same S-mode fit and the same scoring through both, alternating.

    python python/benches/overhead.py

Both begin with the same float32 numbers in memory (a vector for each action) and end with a policy, or with an action for
each round; both check, prepare and digest the rounds as every log is. The Rust half is `logs/examples/overhead.rs`, which
this script builds. Values are compared to the bit: the policy's file, and every decision. Build both with the same profile:
`maturin develop --release` (or `pip install ./python`) goes with the default here, `maturin develop` with `--profile dev`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import neuralcb

ROOT = Path(__file__).resolve().parents[2]


class Rust:
    """The Rust half, which waits for jobs."""

    def __init__(self, folder: Path, learner: neuralcb.Learner, shape: tuple[int, ...], profile: str) -> None:
        build = ["cargo", "build", "--quiet", "-p", "neuralcb-logs", "--example", "overhead", "--profile", profile]
        subprocess.run(build, cwd=ROOT, check=True)
        about = subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, check=True, capture_output=True
        )
        target = Path(json.loads(about.stdout)["target_directory"]) / ("debug" if profile == "dev" else profile)
        arguments = [str(target / "examples" / "overhead"), str(folder), str(shape[1]), str(shape[2]), learner._recipe()]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, job: str) -> float:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(job + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate()


def timed(work) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def write(folder: Path, log: neuralcb.SimulatedLog, outcome: bool) -> None:
    folder.mkdir()
    (folder / "x").write_bytes(np.ascontiguousarray(log.contexts, dtype="<f4").tobytes())
    if outcome:
        (folder / "actions").write_bytes(log.actions.astype("<u4").tobytes())
        (folder / "rewards").write_bytes(log.rewards.astype("<f8").tobytes())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=10_000, help="rounds that are learned from")
    options.add_argument("--rows", type=int, default=300_000, help="rows (rounds times 30 actions) that are scored")
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--profile", default="release", help="cargo's profile of the Rust half")
    given = options.parse_args()
    log = neuralcb.simulate("cosine", given.rounds, seed=1)
    new = neuralcb.simulate("cosine", max(1, given.rows // 30), seed=2)
    learner = neuralcb.NeuraLCB(mode="S", preset="paper")
    times: dict[str, tuple[list[float], list[float]]] = {"fit": ([], []), "score": ([], [])}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "log", log, outcome=True)
        write(folder / "new", new, outcome=False)
        rust = Rust(folder, learner, log.contexts.shape, given.profile)
        for _ in range(given.repeats):
            there = rust.seconds("fit")
            here = timed(lambda: learner.fit(log.contexts, log.actions, log.rewards, progress=False))
            times["fit"][0].append(here)
            times["fit"][1].append(there)
            assert learner.policy_._native.to_bytes() == (folder / "policy.safetensors").read_bytes(), "policies differ"
        for _ in range(3 * given.repeats):
            there = rust.seconds("score")
            found: list[np.ndarray] = []
            here = timed(lambda: found.append(learner.predict(new.contexts)))
            times["score"][0].append(here)
            times["score"][1].append(there)
            assert (found[0] == np.frombuffer((folder / "actions").read_bytes(), dtype="<i8")).all(), "decisions differ"
        rust.end()
    sizes = {"fit": f"{given.rounds} rounds, mode S", "score": f"{new.contexts.shape[0] * new.contexts.shape[1]} rows"}
    print(f"{'':7}{'what':26}{'python s':>10}{'rust s':>10}{'ratio':>8}   (least of the repeats; values equal to the bit)")
    for job, (here, there) in times.items():
        print(f"{job:7}{sizes[job]:26}{min(here):10.4f}{min(there):10.4f}{min(here) / min(there):8.3f}   wanted: at most 1.05")


if __name__ == "__main__":
    main()
