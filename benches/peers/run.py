"""Times `neuralcb` and the same jobs in JAX, PyTorch, scikit-learn and numpy, side by side on this machine.

    python3 benches/peers/run.py

makes a virtual environment, builds the program, lets every peer compute the program's own exported inputs, refuses to
time a peer whose numbers differ, and then times all sides in turns, each in a process of its own, on one thread of one
core. Prints a table; writes results.json and docs/performance.svg. README.md says what each side does.
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import environment
from environment import Failed
from report import JOBS, human, summary, table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARIES = ["jax_jobs.py", "jax_tuned_jobs.py", "torch_jobs.py", "sklearn_jobs.py"]

# More CPU than wall time: hidden threads, a measuring error. 15 % is above what the clocks cannot tell apart.
MOST_CPU = 1.15
# Less: the core was shared with something else. Such a time is taken again, on the idlest core, at most twice, and all
# those together for at most two minutes: a machine that is busy all along is reported as such.
LEAST_CPU = 0.9
RETRIES, PATIENCE = 2, 120.0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name, *_ in JOBS]
    parser.add_argument("--neuralcb", type=Path, metavar="PATH", help="this program instead of building it")
    parser.add_argument("--venv", type=Path, default=ROOT / "target/peers-venv", metavar="DIR")
    parser.add_argument("--work", type=Path, default=ROOT / "target/peers", metavar="DIR", help="exported arrays")
    parser.add_argument("--jobs", default=",".join(names), help="some jobs, separated by commas")
    parser.add_argument("--repeats", type=int, default=3, help="processes per job and side (default 3)")
    parser.add_argument("--budget", type=float, default=0.7, help="seconds of timed runs per process (default 0.7)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the peers; neuralcb's jobs have one (default 1)")
    parser.add_argument("--core", type=int, help="pin to this core (default: the idlest)")
    parser.add_argument("--no-torch", action="store_true", help="do not install (700 MB) or run PyTorch")
    parser.add_argument("--results", type=Path, metavar="FILE", help="default: results.json beside this file")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="default: docs/performance.svg")
    args = parser.parse_args()
    args.jobs = sorted(set(args.jobs.split(",")), key=lambda name: names.index(name) if name in names else -1)
    if unknown := set(args.jobs) - set(names):
        parser.error(f"unknown job `{unknown.pop()}`, must be one of {', '.join(names)}")
    for name in ("repeats", "budget", "threads"):
        if getattr(args, name) <= 0:
            parser.error(f"`--{name}` must be > 0, got {getattr(args, name)}")
    # Part of the comparison must not replace the whole one.
    whole = len(args.jobs) == len(names) and not args.no_torch
    args.results = args.results or (HERE if whole else args.work) / "results.json"
    args.picture = args.picture or (ROOT / "docs" if whole else args.work) / "performance.svg"
    return args


def build():
    """`cargo build --release`; cargo itself says where the program lies."""
    if not shutil.which("cargo"):
        raise Failed("cargo is missing; install Rust, or name a program with --neuralcb PATH")
    print("building neuralcb")
    command = ["cargo", "build", "--release", "-p", "neuralcb-cli", "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed("cargo build failed")
    made = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    made = [path for path in made if path and Path(path).stem == "neuralcb"]
    if not made:
        raise Failed("cargo built no program `neuralcb`")
    return Path(made[-1])


def idlest_core():
    """The core with the most idle time over a fifth of a second; None where that cannot be known."""
    if not hasattr(os, "sched_getaffinity") or not Path("/proc/stat").exists():
        return None

    def idle():
        lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
        return {int(name[3:]): int(v[3]) for name, *v in lines if name.startswith("cpu") and name != "cpu"}

    before = idle()
    time.sleep(0.2)
    after = idle()
    return max(os.sched_getaffinity(0) & after.keys(), key=lambda core: after[core] - before[core], default=None)


class Runner:
    """Starts one side for one job and reads its answer."""

    def __init__(self, args, python, program):
        self.args, self.python, self.program = args, python, program
        self.data = args.work / "data"
        self.known = {}  # job: seconds of one unit in neuralcb
        self.environment = dict(os.environ, PEERS_THREADS=str(args.threads), PYTHONDONTWRITEBYTECODE="1")
        for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "RAYON"):
            self.environment[f"{name}_NUM_THREADS"] = str(args.threads)
        if args.threads == 1:
            self.environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        self.pin = args.threads == 1 and shutil.which("taskset") is not None

    def start(self, command, core=None):
        """(answer, CPU time / wall time of the whole process); raises `Failed` with the last line of a failure."""
        name = " ".join(Path(part).name for part in command[:2])
        if self.pin and core is not None:
            command = ["taskset", "-c", str(core), *command]
        begin = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment
        )
        before = os.times()
        out, err = child.communicate()
        wall, after = time.perf_counter() - begin, os.times()
        if child.returncode:
            lines = err.strip().splitlines() or [f"exit code {child.returncode}"]
            told = next((line for line in lines if line.startswith("error: ")), lines[-1])
            raise Failed(f"{name}: {told.removeprefix('error: ')}")
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return (json.loads(out) if out.strip() else None), used / wall

    def list_sides(self):
        """{(job, side): file} and the versions, of every library that can be loaded."""
        sides, versions = {}, []
        for file in LIBRARIES:
            if file == "torch_jobs.py" and self.args.no_torch:
                continue
            answer, _ = self.start([self.python, HERE / file, "list"])
            if answer["version"] not in versions:
                versions.append(answer["version"])
            sides.update({tuple(key): file for key in answer["sides"] if key[0] in self.args.jobs})
        return sides, versions

    def peer(self, what, job, side, file, core=None):
        command = [self.python, HERE / file, what, "--data", self.data, "--job", job, "--side", side]
        return self.start([*command, "--budget", self.args.budget], core)[0]

    def ours(self, job, core):
        """One process of the program: its own minimum counts as one sample. As a peer, it has `budget` seconds and at
        least two runs; how many that makes is known from the process before."""
        repeats = max(2, round(self.args.budget / max(0.1, self.known.get(job, self.args.budget))))
        answer, cpu = self.start([self.program, "bench", "--json", "--jobs", job, "--repeats", repeats], core)
        found = next(entry for entry in answer["jobs"] if entry["name"] == job)
        self.known[job] = found["seconds"]
        return {"samples": [found["seconds"]], "cpu_per_wall": cpu, "bench": found, "machine": answer["machine"]}


def check(runner, sides):
    """Every side once on the exported inputs; those that agree."""
    agreeing, checks = {}, []
    for (job, side), file in sides.items():
        try:
            answer = runner.peer("check", job, side, file, idlest_core())
        except Failed as reason:
            answer = {"agrees": False, "failed": str(reason)}
        checks.append({"job": job, "side": side, **answer})
        if answer["agrees"]:
            agreeing[job, side] = file
        print(f"  {job:32}{side:14}{verdict(answer)}", flush=True)
    return agreeing, checks


def verdict(answer):
    """The difference that is nearest to its bound, in words."""
    if "failed" in answer:
        return f"FAILED: {answer['failed']}"
    name, (error, bound) = max(answer["differences"].items(), key=lambda item: item[1][0] / item[1][1])
    word = "agrees" if answer["agrees"] else "DISAGREES, not timed"
    part = "" if answer["checked"] == answer["whole"] else f", on {answer['checked']:,} of {answer['whole']:,}"
    return f"{word}: {error:.1e} of at most {bound:.0e} in {name}{part}"


def measure(runner, agreeing):
    """Sides in turns, so that whatever slows the machine slows all of them; every answer is kept."""
    taken, patience = [], PATIENCE
    for job in runner.args.jobs:
        for repeat in range(runner.args.repeats):
            for side in ["neuralcb", *(side for name, side in agreeing if name == job)]:
                for attempt in range(1 + RETRIES):
                    begin = time.perf_counter()
                    core = runner.args.core if runner.args.core is not None else idlest_core()
                    file = agreeing.get((job, side))
                    try:
                        answer = runner.peer("time", job, side, file, core) if file else runner.ours(job, core)
                    except Failed as reason:
                        if not file:
                            raise
                        print(f"warning: {side} failed while timing {job}: {reason}")
                        break
                    cpu, most = answer["cpu_per_wall"], MOST_CPU * (runner.args.threads if file else 1)
                    fault = "more than one thread" if cpu > most else "core shared" if cpu < LEAST_CPU else None
                    taken.append({"job": job, "side": side, "repeat": repeat, "core": core, "fault": fault, **answer})
                    patience -= (time.perf_counter() - begin) if attempt else 0.0
                    if fault is None or patience <= 0:
                        break
        print(f"  {job:32}" + "  ".join(f"{s} {human(t)}" for s, t in summary(taken)[job]["times"].items()), flush=True)
    return taken


def machine():
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    return {"cpu": model, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def main():
    args = arguments()
    if args.neuralcb and not shutil.which(args.neuralcb):
        raise Failed(f"`--neuralcb` must be a program, got {args.neuralcb}")
    python, no_torch = environment.make(args.venv, not args.no_torch)
    if no_torch and not args.no_torch:
        print(f"warning: PyTorch is left out: {no_torch}")
        args.no_torch = True
    runner = Runner(args, python, args.neuralcb or build())
    if not runner.pin and args.threads == 1:
        print("warning: no `taskset` here, nothing is pinned; CPU time is compared with wall time all the same")
    begin = time.perf_counter()
    print("exporting the inputs")
    runner.start([runner.program, "bench", "--export", runner.data, "--jobs", ",".join(args.jobs)])
    sides, versions = runner.list_sides()
    print("do all sides compute the same numbers?")
    agreeing, checks = check(runner, sides)
    print(f"timing, {args.repeats} times in turns")
    taken = measure(runner, agreeing)
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": {**machine(), "bench": next(t["machine"] for t in taken if t["side"] == "neuralcb")},
        "versions": [version(runner.program, built=not args.neuralcb), *versions, f"Python {platform.python_version()}"],
        "settings": {"threads": args.threads, "pinned": runner.pin, "repeats": args.repeats, "budget": args.budget},
        "seconds": round(time.perf_counter() - begin),
        "summary": summary(taken),
        "checks": checks,
        "taken": [{k: v for k, v in entry.items() if k != "machine"} for entry in taken],
    }
    args.results.parent.mkdir(parents=True, exist_ok=True)
    args.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    subprocess.run([sys.executable, str(HERE / "picture.py"), str(args.results), str(args.picture)], check=True)
    print("\n" + table(results))
    print(f"\n{args.results}\n{args.picture}\n{results['seconds']} s without installation and building")
    faulty = [f"{e['job']} {e['side']}" for e in taken if e["fault"] == "more than one thread"]
    if faulty:
        print(f"error: more than one thread was used: {', '.join(sorted(set(faulty)))}")
    return 1 if faulty or len(agreeing) < len(sides) else 0


def version(program, built):
    """The program's version; the commit only if it was built from this tree."""
    said = subprocess.run([str(program), "--version"], capture_output=True, text=True).stdout.strip() or "neuralcb"
    tree = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return f"{said} ({tree.stdout.strip()})" if built and tree.stdout.strip() else said


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as reason:
        sys.exit(f"error: {reason}")
    except KeyboardInterrupt:
        sys.exit(130)
