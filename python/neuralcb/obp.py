"""Open Bandit Pipeline's feedback dictionary."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

from ._neuralcb import NeuralcbError


def is_feedback(log: Any) -> bool:
    """Whether a log is such a dictionary; some sparse matrices are dictionaries as well."""
    return isinstance(log, dict) and not hasattr(log, "tocsr")


def from_obp(
    feedback: Mapping[str, Any], *, action_context: bool = False, n_positions: int | None = None
) -> dict[str, Any]:
    """The arguments of ``fit`` from a feedback dictionary of Open Bandit Pipeline.

    Takes ``context`` (n × d), ``action``, ``reward``, ``n_actions`` and, where they are there, ``pscore`` and
    ``position``. Where rounds have several positions, the position becomes further features, one for each, 1 where the
    round has it.

    Parameters
    ----------
    feedback : dict
        With the keys ``n_rounds, n_actions, context, action, position, reward, pscore, action_context``.
    action_context : bool, default False
        By default each action has parameters of its own, and ``action_context`` (K × d', what is known of each action) is
        not used. If true, one model knows actions by those features: contexts are then a pair of what is known of the
        round and of its actions, n × K × d' numbers. A linear model of them ranks actions the same in every round; the
        neural and the kernel model do not.
    n_positions : int, optional
        How many positions there are; by default as many as the log shows. Give it where a policy meets other logs.

    Returns
    -------
    dict
        ``contexts, actions, rewards, propensities, n_actions``.

    Examples
    --------
    >>> import numpy as np, neuralcb
    >>> feedback = dict(n_rounds=4, n_actions=3, context=np.eye(4), action=np.array([0, 1, 0, 1]), position=None,
    ...                 reward=np.array([1, 0, 1, 0]), pscore=np.full(4, 0.5), action_context=np.eye(3))
    >>> sorted(neuralcb.from_obp(feedback))
    ['actions', 'contexts', 'n_actions', 'propensities', 'rewards']
    >>> neuralcb.LinLCB().fit(feedback).n_actions_
    3
    >>> round_features, action_features = neuralcb.from_obp(feedback, action_context=True)["contexts"]
    >>> action_features.shape
    (4, 3, 3)
    """
    missing = [key for key in ("n_actions", "context", "action", "reward") if feedback.get(key) is None]
    if missing:
        raise NeuralcbError(f"the feedback has no `{missing[0]}`: it needs n_actions, context, action and reward")
    contexts, n_actions = np.asarray(feedback["context"]), int(feedback["n_actions"])
    if contexts.ndim != 2:
        raise NeuralcbError(f"the feedback's `context` must be n × d, got {contexts.ndim} dimension(s)")
    places = _positions(feedback.get("position"), len(contexts), n_positions)
    if places is not None:
        contexts = np.column_stack([contexts, places.astype(contexts.dtype)])
    return {
        "contexts": (contexts, _of_actions(feedback, len(contexts), n_actions)) if action_context else contexts,
        "actions": np.asarray(feedback["action"]),
        "rewards": np.asarray(feedback["reward"]),
        "propensities": feedback.get("pscore"),
        "n_actions": n_actions,
    }


def _positions(position: Any, n: int, n_positions: int | None) -> NDArray[np.bool_] | None:
    """A column for each position, true where the round has it; none where all rounds have the same."""
    if position is None:
        return None
    array = np.asarray(position)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise NeuralcbError(f"the feedback's `position` must be {n} integers, got {array.dtype} of shape {array.shape}")
    most = max(int(array.max(initial=0)) + 1, 1)
    if array.min(initial=0) < 0 or (n_positions is not None and most > n_positions):
        allowed = "" if n_positions is None else f" below {n_positions}"
        raise NeuralcbError(f"the feedback's `position` must be from 0{allowed}, got {array.min()} to {array.max()}")
    if n_positions is None:
        different = np.unique(array)
    else:
        different = np.arange(n_positions)
    found: NDArray[np.bool_] = array[:, None] == different
    return found if len(different) > 1 else None


def _of_actions(feedback: Mapping[str, Any], n: int, n_actions: int) -> NDArray[Any]:
    """The features of the actions, in every round the same."""
    known = feedback.get("action_context")
    if known is None:
        raise NeuralcbError("the feedback has no `action_context`: leave out `action_context=True`")
    features = np.asarray(known)
    if features.ndim != 2 or len(features) != n_actions or features.dtype.kind not in "biuf":
        raise NeuralcbError(
            f"the feedback's `action_context` must be numbers, {n_actions} × d, got {features.dtype} of shape {features.shape}"
        )
    return np.broadcast_to(features, (n, *features.shape))
