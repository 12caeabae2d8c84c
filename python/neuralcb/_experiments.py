"""The paper's bandits and experiments."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _neuralcb
from ._neuralcb import NeuralcbError
from ._progress import Progress, progress_bar


@dataclass(frozen=True)
class SimulatedLog:
    """Rounds of a bandit under a behaviour policy, with their true propensities."""

    contexts: NDArray[np.float32]
    """n × K × d, a vector for each action; or n × d, one for each round (``preset="released-code"`` and real data)."""
    actions: NDArray[np.int64]
    rewards: NDArray[np.float64]
    propensities: NDArray[np.float64]
    n_actions: int

    def __len__(self) -> int:
        return len(self.actions)

    def write_csv(self, path: str | PathLike[str]) -> None:
        """Writes the log in the form of ``neuralcb simulate``: a line per round, or per action of a round."""
        d = self.contexts.shape[-1]
        names = ",".join(f"x{j}" for j in range(d))
        with open(path, "w", encoding="utf-8") as out:
            if self.contexts.ndim == 2:
                out.write(f"action,reward,propensity,{names}\n")
                for x, a, r, p in zip(self.contexts, self.actions, self.rewards, self.propensities):
                    out.write(f"{a},{_number(r)},{_number(p)},{_row(x)}\n")
                return
            out.write(f"round,action,chosen,reward,propensity,{names}\n")
            for t, (xs, a, r, p) in enumerate(zip(self.contexts, self.actions, self.rewards, self.propensities)):
                for k, x in enumerate(xs):
                    outcome = f"1,{_number(r)},{_number(p)}" if k == a else "0,,"
                    out.write(f"{t},{k},{outcome},{_row(x)}\n")


def _number(value: np.floating[Any]) -> str:
    """The shortest text that reads back to the same bits."""
    return np.format_float_positional(value, trim="-")


def _row(values: NDArray[Any]) -> str:
    return ",".join(_number(value) for value in values)


def _behaviour(spec: str | Sequence[float]) -> Any:
    """A behaviour policy as the command line spells it, or a table of one probability for each action."""
    if not isinstance(spec, str):
        return {"table": [float(p) for p in spec]}
    kind, _, value = spec.partition(":")
    if kind == "uniform" and not value:
        return "uniform"
    try:
        if kind == "epsilon-greedy":
            return {"epsilon-greedy": {"epsilon": float(value)}}
        if kind == "linucb":
            return {"lin-ucb-mixture": {"epsilon": float(value), "linucb": {}}}
    except ValueError:
        pass
    raise NeuralcbError(f"`behaviour` must be uniform, epsilon-greedy:E, linucb:E or a table of probabilities, got `{spec}`")


def simulate(
    dataset: str,
    n: int,
    *,
    seed: int = 1,
    behaviour: str | Sequence[float] = "epsilon-greedy:0.1",
    preset: str = "paper",
    noise_std: float = 0.1,
    data_dir: str | PathLike[str] | None = None,
) -> SimulatedLog:
    """A log of a bandit of the paper, the same rounds as ``neuralcb simulate`` writes.

    Parameters
    ----------
    dataset : str
        quadratic, quadratic2, cosine; or mushroom, statlog, adult, mnist, which ``neuralcb data fetch`` brings.
    n : int
        Rounds.
    seed : int
        Of bandit, contexts, actions and rewards.
    behaviour : str or sequence of float
        Who acts: uniform, epsilon-greedy:E, linucb:E, or one probability for each action.
    preset : "paper" or "released-code"
        A vector for each action, or one for each round.
    noise_std : float
        Standard deviation of the synthetic rewards' noise.
    data_dir : path, optional
        Where the real data sets are.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 5, seed=7)
    >>> log.contexts.shape, log.rewards.shape
    ((5, 30, 20), (5,))
    """
    changes = {"datasets": [dataset], "behaviour": _behaviour(behaviour), "noise_std": float(noise_std)}
    if n < 1:
        raise NeuralcbError(f"`n` must be at least 1, got {n}")
    return SimulatedLog(**_neuralcb.simulate(json.dumps(changes), preset, int(n), int(seed), data_dir))


_FIGURES = ("fig1", "fig2", "fig3", "fig4")


@dataclass(frozen=True)
class Reproduction:
    """What :func:`reproduce` has written."""

    folder: Path
    tables: str

    @property
    def report(self) -> Path:
        """One page that opens without a network."""
        return self.folder / "report.html"

    def results(self) -> Any:
        """``results.csv`` as a pandas data frame: a row per data set, algorithm, setting, repetition and n."""
        import pandas

        return pandas.read_csv(self.folder / "results.csv")

    def summary(self) -> Any:
        """``summary.csv`` as a pandas data frame: mean and interval per figure, algorithm and n."""
        import pandas

        return pandas.read_csv(self.folder / "summary.csv")

    def __str__(self) -> str:
        return self.tables


def reproduce(
    figure: str = "fig1",
    *,
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    preset: str = "paper",
    n: int | None = None,
    data_dir: str | PathLike[str] | None = None,
    progress: Progress = None,
    **settings: Any,
) -> Reproduction:
    """Figures of the paper as ``neuralcb reproduce`` makes them, with the same numbers. A run that was stopped goes on where
    it was when it is called again.

    Parameters
    ----------
    figure : "fig1", "fig2", "fig3", "fig4" or "all"
    quick : bool
        A first look: fewer repetitions and rounds.
    out : path, optional
        The folder of results, figures and report; ``results/FIGURE`` by default.
    preset : "paper" or "released-code"
    n : int, optional
        Rounds of every log.
    data_dir : path, optional
        Where the real data sets are.
    **settings
        Settings that differ: ``datasets``, ``algorithms``, ``reps``, ``betas``, ``baseline_betas``, ``modes``,
        ``learning_rates``, ``sigmas``, ``test_contexts``, ``seed``, … as in ``settings.json``.
    """
    figures = list(_FIGURES) if figure == "all" else [figure]
    if figures[0] not in _FIGURES:
        raise NeuralcbError(f"unknown figure `{figure}`: use one of {', '.join(_FIGURES)}, all")
    for name in ("behaviour", "dependent"):
        if name in settings:
            settings[name] = _behaviour(settings[name])
    if n is not None:
        settings |= {"synthetic_rounds": int(n), "real_rounds": int(n)}
    folder = Path("results") / figure if out is None else Path(out)
    machine = f"{platform.processor() or platform.machine()}, {platform.system()} {platform.machine()}"
    with progress_bar(progress, f"reproducing {figure}") as tell:
        tables = _neuralcb.reproduce(figures, quick, json.dumps(settings), preset, machine, data_dir, folder, tell)
    return Reproduction(folder, tables)
