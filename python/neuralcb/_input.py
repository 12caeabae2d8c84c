"""Rounds as Python has them (arrays, tables, lists) become columns that the native half reads without copying."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._neuralcb import NeuralcbError

ABSENT = np.uint32(0xFFFFFFFF)
"""The code of a word that is not there."""


class Column(NamedTuple):
    """A feature: its values, or the places of its words."""

    name: str
    kind: str
    values: NDArray[Any]
    words: list[str]


class Contexts(NamedTuple):
    """The features of rounds, of actions in them, and where each round's actions begin."""

    n_rounds: int
    shared: list[Column]
    own: list[Column]
    sizes: NDArray[np.int64] | None


def _shape(array: NDArray[Any]) -> str:
    return "×".join(str(n) for n in array.shape) or "a single value"


def numbers(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """An array of float64; a view where it is that already."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NeuralcbError(f"`{what}` must be numbers: {error}") from error


def vector(values: ArrayLike | None, what: str) -> NDArray[np.float64] | None:
    """One number for each round, as float64; a view where it is that already."""
    if values is None:
        return None
    array = numbers(values, what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise NeuralcbError(f"`{what}` must have one number for each round, got {_shape(array)}")
    return np.require(array, requirements="A")


def _numbers(array: NDArray[Any], what: str) -> NDArray[Any]:
    """float32 and float64 as they are, other numbers as float64."""
    if array.dtype in (np.float32, np.float64):
        return np.require(array.astype(array.dtype.newbyteorder("="), copy=False), requirements="A")
    if array.dtype.kind == "c":
        raise NeuralcbError(f"{what} must be real numbers: Complex data not supported")
    try:
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    except (TypeError, ValueError) as error:
        raise NeuralcbError(f"{what} must be numbers: {error}; give words in a table (pandas, polars, Arrow)") from error


def _matrix(array: NDArray[Any]) -> list[Column]:
    array = _numbers(array, "contexts")
    return [Column(f"x{j}", "number", array[:, j], []) for j in range(array.shape[1])]


def _words(name: str, series: Any) -> Column:
    """A column of words: the table's own numbers of them where it has some."""
    if hasattr(series, "factorize"):
        codes, words = series.factorize()
    else:
        places: dict[str, int] = {}
        values = series.to_numpy() if hasattr(series, "to_numpy") else series
        codes = np.array([-1 if v is None or v != v else places.setdefault(str(v), len(places)) for v in values])
        words = list(places)
    codes = np.where(np.asarray(codes) < 0, ABSENT, codes).astype(np.uint32)
    return Column(name, "category", codes, [str(word) for word in words])


def _column(name: str, series: Any, kind: str | None) -> Column:
    values = series.to_numpy()
    if kind is None:
        kind = {"b": "boolean", "f": "number", "i": "number", "u": "number"}.get(values.dtype.kind, "category")
    if kind == "category":
        return _words(name, series)
    return Column(name, kind, _numbers(values, f"column `{name}`"), [])


def _is_table(contexts: Any) -> bool:
    return hasattr(contexts, "iloc") or hasattr(contexts, "__arrow_c_stream__") or _is_polars(contexts)


def _is_polars(contexts: Any) -> bool:
    return type(contexts).__module__.partition(".")[0] == "polars"


def _series(table: Any) -> dict[str, Any]:
    """The columns of a pandas, polars or Arrow table."""
    if hasattr(table, "iloc"):
        names = [str(name) for name in table.columns]
        return {name: table.iloc[:, j] for j, name in enumerate(names)}
    if _is_polars(table):
        if hasattr(table, "collect"):
            table = table.collect()
        return {name: table[name] for name in table.columns}
    if not hasattr(table, "column_names"):
        try:
            import pyarrow
        except ImportError as error:
            raise NeuralcbError("reading this Arrow table needs pyarrow: pip install pyarrow") from error
        table = pyarrow.table(table)
    return {name: table.column(name) for name in table.column_names}


def _table(table: Any, features: Sequence[tuple[str, str]] | None) -> list[Column]:
    series = _series(table)
    if features is None:
        return [_column(name, values, None) for name, values in series.items()]
    missing = [name for name, _ in features if name not in series]
    if missing:
        raise NeuralcbError(f"the policy needs column `{missing[0]}`, and the table has {', '.join(series) or 'none'}")
    return [_column(name, series[name], kind) for name, kind in features]


def _ragged(contexts: Any) -> bool:
    return isinstance(contexts, (list, tuple)) and len(contexts) > 0 and all(np.ndim(x) == 2 for x in contexts)


def _named(columns: list[Column], features: Sequence[tuple[str, str]] | None) -> list[Column]:
    """Columns of an array have the names and kinds of the policy's features, in their order."""
    if features is None:
        return columns
    if len(columns) != len(features):
        raise NeuralcbError(f"X has {len(columns)} features, but Policy is expecting {len(features)} features as input")
    words = [name for name, kind in features if kind == "category"]
    if words:
        raise NeuralcbError(f"feature `{words[0]}` is words: give contexts as a table with that column")
    return [Column(name, kind, column.values, []) for column, (name, kind) in zip(columns, features)]


Features = Sequence[tuple[str, str]]


def contexts_of(contexts: Any, known: tuple[Features, Features] | None = None) -> Contexts:
    """Reads contexts in any shape; `known` are the features of rounds and of actions that a policy expects."""
    shared_known, own_known = known if known is not None else (None, None)
    if isinstance(contexts, tuple) and len(contexts) == 2 and np.ndim(contexts[1]) == 3:
        first, second = contexts_of(contexts[0], known and (known[0], [])), contexts_of(contexts[1], known and ([], known[1]))
        if first.n_rounds != second.n_rounds:
            raise NeuralcbError(f"contexts of {first.n_rounds} rounds and of actions in {second.n_rounds}")
        own = second.own
        if known is None:
            own = [column._replace(name=f"a{j}") for j, column in enumerate(own)]
        return Contexts(first.n_rounds, first.shared, own, second.sizes)
    if _is_table(contexts):
        if own_known:
            raise NeuralcbError("the policy knows actions by features of their own: give contexts as n × K × d")
        columns = _table(contexts, shared_known)
        return Contexts(len(columns[0].values) if columns else 0, columns, [], None)
    if _ragged(contexts) and len({np.shape(x) for x in contexts}) > 1:
        widths = {np.shape(x)[1] for x in contexts}
        if len(widths) > 1:
            raise NeuralcbError(f"every action must have the same number of features, got {sorted(widths)}")
        sizes = np.array([len(x) for x in contexts], dtype=np.int64)
        rows = np.concatenate([np.asarray(x) for x in contexts])
        return Contexts(len(contexts), [], _named(_matrix(rows), own_known), sizes)
    if hasattr(contexts, "tocsr"):
        raise NeuralcbError("sparse contexts are not supported: make them dense with `.toarray()`")
    array = np.asarray(contexts)
    if array.ndim == 3:
        n, k, d = array.shape
        columns = _named(_matrix(array.reshape(n * k, d)), own_known)
        return Contexts(n, [], columns, np.full(n, k, dtype=np.int64))
    if array.ndim != 2:
        raise NeuralcbError(
            f"`contexts` must be n × d (a vector for each round) or n × K × d (a vector for each action), got"
            f" {array.ndim} dimension(s). Reshape your data"
        )
    if own_known:
        raise NeuralcbError("the policy knows actions by features of their own: give contexts as n × K × d")
    return Contexts(len(array), _named(_matrix(array), shared_known), [], None)


def labels_of(names: Sequence[str]) -> NDArray[Any]:
    """Names of actions as numbers where all are, else as text."""
    try:
        return np.array([int(name) for name in names], dtype=np.int64)
    except ValueError:
        return np.array(names)


def _labels(actions: ArrayLike, what: str = "actions") -> NDArray[Any]:
    array = np.asarray(actions)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise NeuralcbError(f"`{what}` must have one action for each round, got {_shape(array)}")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            t = int(np.argmin(whole))
            raise NeuralcbError(f"round {t}, action: must be an integer or a name, got {array[t]}")
        return array.astype(np.int64)
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    return array.astype(str)


def _are_places(labels: NDArray[Any]) -> bool:
    """Whether the labels are 0, 1, 2, …"""
    return labels.dtype.kind in "iu" and bool((labels == np.arange(len(labels))).all())


def _codes(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.uint32]:
    """The place of each action among the labels."""
    if values.dtype.kind == "i" and _are_places(labels) and len(values) and 0 <= values.min() <= values.max() < len(labels):
        return values.astype(np.uint32)
    if values.dtype.kind != labels.dtype.kind:
        values = values.astype(labels.dtype if labels.dtype.kind in "iu" else str)
    order = np.argsort(labels, kind="stable")
    place = np.searchsorted(labels, values, sorter=order).clip(max=len(labels) - 1)
    codes = order[place]
    known = labels[codes] == values
    if not known.all():
        t = int(np.argmin(known))
        some = ", ".join(str(label) for label in labels[:12]) + (", …" if len(labels) > 12 else "")
        raise NeuralcbError(f"round {t}, action: must be one of {some}, got {values[t]}")
    return np.asarray(codes, dtype=np.uint32)


def _mask(eligible: Any, n_rounds: int) -> NDArray[np.bool_] | None:
    """Eligible actions as an n × K array of booleans, where they are one."""
    array = eligible if isinstance(eligible, np.ndarray) else None
    if array is None or array.ndim != 2 or array.dtype.kind != "b":
        return None
    if len(array) != n_rounds:
        raise NeuralcbError(f"`eligible` tells of {len(array)} rounds, and there are {n_rounds}")
    return array


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)


def rounds(
    contexts: Any,
    actions: ArrayLike | None = None,
    rewards: ArrayLike | None = None,
    propensities: ArrayLike | None = None,
    eligible: Any = None,
    *,
    n_actions: int | None = None,
    labels: NDArray[Any] | None = None,
    known: tuple[Features, Features] | None = None,
    missing: str = "refuse",
) -> dict[str, Any]:
    """What the native half takes. `labels` and `known` are the actions and features of a policy that is there."""
    read = contexts_of(contexts, known)
    n, sizes, own = read.n_rounds, read.sizes, read.own
    if n == 0:
        raise NeuralcbError("contexts hold 0 sample(s) (shape=(0, d)) while a minimum of 1 is required: give some")
    if known is None and not read.shared and not own:
        raise NeuralcbError(f"contexts have 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required: give some")
    chosen = None if actions is None else _labels(actions)
    if chosen is not None and len(chosen) != n:
        raise NeuralcbError(f"actions: expected {n}, got {len(chosen)}")
    mask = _mask(eligible, n)
    lists = None
    if eligible is not None and mask is None:
        lists = [_labels(list(row), "eligible") for row in eligible]
        if len(lists) != n:
            raise NeuralcbError(f"`eligible` tells of {len(lists)} rounds, and there are {n}")
    if labels is None:
        labels = _all_labels(chosen, sizes, mask, lists, n_actions)
    names = [str(label) for label in labels]
    offsets: NDArray[np.uint64] | None = None
    offered: NDArray[np.uint32] | None = None
    if sizes is not None and eligible is None and _are_places(labels) and (sizes == sizes[0]).all() and sizes[0] <= len(labels):
        offsets, offered = _offsets(sizes), np.tile(np.arange(sizes[0], dtype=np.uint32), n)
    elif sizes is not None:
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = np.arange(int(sizes.sum()), dtype=np.int64) - starts
        keep = None
        if mask is not None:
            keep = mask[np.repeat(np.arange(n), sizes), places] if mask.shape[1] >= int(sizes.max()) else None
            if keep is None:
                raise NeuralcbError(f"`eligible` has {mask.shape[1]} columns, and rounds have up to {int(sizes.max())} actions")
        elif lists is not None:
            keep = np.zeros(len(places), dtype=bool)
            for t, row in enumerate(lists):
                if len(row) and (row.min() < 0 or row.max() >= sizes[t]):
                    raise NeuralcbError(f"round {t}, eligible actions: must be below {sizes[t]}, got {row.max()}")
                keep[int(np.cumsum(sizes)[t] - sizes[t]) + row] = True
        if keep is not None:
            own = [column._replace(values=column.values[keep]) for column in own]
            sizes = np.bincount(np.repeat(np.arange(n), sizes)[keep], minlength=n).astype(np.int64)
            places = places[keep]
        offsets, offered = _offsets(sizes), _codes(places, labels)
    elif mask is not None:
        if mask.shape[1] != len(labels):
            raise NeuralcbError(f"`eligible` has {mask.shape[1]} columns, and there are {len(labels)} actions")
        offsets, offered = _offsets(mask.sum(axis=1)), np.nonzero(mask)[1].astype(np.uint32)
    elif lists is not None:
        offsets = _offsets(np.array([len(row) for row in lists], dtype=np.int64))
        offered = _codes(np.concatenate(lists), labels) if lists else None
    return {
        "n_rounds": n,
        "shared": [tuple(column) for column in read.shared],
        "own": [tuple(column) for column in own],
        "offsets": offsets,
        "offered": offered,
        "names": names,
        "chosen": None if chosen is None else _codes(chosen, labels),
        "rewards": vector(rewards, "rewards"),
        "propensities": vector(propensities, "propensities"),
        "missing": missing,
    }


def _all_labels(
    chosen: NDArray[Any] | None,
    sizes: NDArray[np.int64] | None,
    mask: NDArray[np.bool_] | None,
    lists: list[NDArray[Any]] | None,
    n_actions: int | None,
) -> NDArray[Any]:
    """The actions that a log tells of."""
    if sizes is not None:
        return np.arange(max(int(sizes.max()), n_actions or 0))
    if n_actions is not None:
        return np.arange(n_actions)
    if chosen is None:
        raise NeuralcbError("give the actions of the rounds")
    if mask is not None:
        return np.arange(mask.shape[1]) if chosen.dtype.kind in "iu" else np.unique(chosen)
    return np.unique(np.concatenate([chosen, *lists]) if lists else chosen)
