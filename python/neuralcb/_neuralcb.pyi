"""The native half: private, and free to change between versions."""

from os import PathLike
from typing import Any, Callable, Sequence, final

from numpy import float64, int64
from numpy.typing import NDArray

_Path = str | PathLike[str]
_Progress = Callable[[int, int], object]

__all__: list[str]
__version__: str

class NeuralcbError(ValueError): ...

@final
class Policy:
    @staticmethod
    def load(path: _Path) -> Policy: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Policy: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: _Path) -> None: ...
    def description(self) -> str: ...
    def actions(self) -> list[str]: ...
    def places(self) -> list[str]: ...
    @property
    def beta(self) -> float | None: ...
    def with_beta(self, beta: float) -> Policy: ...
    def decide(
        self, rounds: dict[str, Any], explain: bool = True
    ) -> tuple[NDArray[int64], NDArray[float64], NDArray[float64]]: ...

@final
class Training:
    @staticmethod
    def start(recipe: str, rounds: dict[str, Any], progress: _Progress | None = None) -> Training: ...
    def go_on(self, rounds: dict[str, Any], progress: _Progress | None = None) -> None: ...
    def policy(self) -> Policy: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Training: ...
    @staticmethod
    def tune(
        rounds: dict[str, Any],
        options: str,
        part: str,
        segments: Sequence[str],
        progress: _Progress | None = None,
    ) -> tuple[Policy | None, str]: ...

@final
class Evaluation:
    def __new__(cls, config: str, first_round: int = 0) -> Evaluation: ...
    def extend(self, rounds: dict[str, Any], progress: _Progress | None) -> None: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Evaluation: ...
    def merge(self, other: Evaluation) -> None: ...
    def report(self) -> str: ...

def weigh(
    policy: Policy, model: Policy | None, rounds: dict[str, Any]
) -> list[NDArray[float64] | None]: ...
def evaluate_policy(
    policy: Policy, model: Policy | None, rounds: dict[str, Any], options: str, progress: _Progress | None = None
) -> tuple[str, str | None]: ...
def train(
    paths: Sequence[_Path], log_options: str, recipe: str, progress: _Progress | None = None
) -> Policy: ...
def score(
    policy: Policy,
    paths: Sequence[_Path],
    log_options: str,
    out: _Path,
    explain: bool = False,
    progress: _Progress | None = None,
) -> str: ...
def evaluate_log(
    policy: Policy | None,
    columns: Sequence[str],
    paths: Sequence[_Path],
    log_options: str,
    options: str,
    progress: _Progress | None = None,
) -> tuple[str, str | None]: ...
def diagnose(
    paths: Sequence[_Path], log_options: str, segments: Sequence[str], progress: _Progress | None = None
) -> tuple[str, str]: ...
def tune(
    paths: Sequence[_Path],
    log_options: str,
    options: str,
    part: str,
    segments: Sequence[str],
    progress: _Progress | None = None,
) -> tuple[Policy | None, str]: ...
def card(kind: str, found: str) -> str: ...
def simulate(
    changes: str, preset: str, n: int, seed: int, data_dir: _Path | None
) -> dict[str, Any]: ...
def reproduce(
    figures: Sequence[str],
    quick: bool,
    changes: str,
    preset: str,
    machine: str,
    data_dir: _Path | None,
    out: _Path,
    progress: _Progress | None = None,
) -> str: ...
