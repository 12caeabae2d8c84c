"""How far a long call is: a bar where someone watches, or what the caller asks for."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Union

Callback = Callable[[int, int], object]
"""Told from time to time what is done, and of how much."""

Progress = Union[None, bool, Callback]
"""None: a bar in a terminal or notebook, if tqdm is installed. False: nothing. True: a bar. A function: called."""


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@contextmanager
def progress_bar(progress: Progress, what: str) -> Iterator[Callback | None]:
    """The function that the native half calls."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _watched()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    # short work shows no bar
    bar: Any = tqdm(desc=what, delay=2.0, leave=False, unit_scale=True)

    def show(done: int, total: int) -> None:
        bar.total = total or None
        bar.n = min(done, total) if total else done
        bar.refresh()

    try:
        yield show
    finally:
        bar.close()
