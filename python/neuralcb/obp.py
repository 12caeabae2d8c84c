"""Open Bandit Pipeline's feedback dictionary."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from ._neuralcb import NeuralcbError


def is_feedback(log: Any) -> bool:
    """Whether a log is such a dictionary; some sparse matrices are dictionaries as well."""
    return isinstance(log, dict) and not hasattr(log, "tocsr")


def from_obp(feedback: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``fit`` from a feedback dictionary of Open Bandit Pipeline.

    Takes ``context`` (n × d), ``action``, ``reward``, ``n_actions`` and, where they are there, ``pscore`` and
    ``position``. Where rounds have several positions, the position becomes further features, one for each, 1 where the
    round has it. ``action_context`` describes each action once for all rounds; the learners here give each action
    parameters of its own instead, so it is not used.

    Parameters
    ----------
    feedback : dict
        With the keys ``n_rounds, n_actions, context, action, position, reward, pscore, action_context``.

    Returns
    -------
    dict
        ``contexts, actions, rewards, propensities, n_actions``.

    Examples
    --------
    >>> import numpy as np, neuralcb
    >>> feedback = dict(n_rounds=4, n_actions=3, context=np.eye(4), action=np.array([0, 1, 0, 1]), position=None,
    ...                 reward=np.array([1, 0, 1, 0]), pscore=np.full(4, 0.5))
    >>> sorted(neuralcb.from_obp(feedback))
    ['actions', 'contexts', 'n_actions', 'propensities', 'rewards']
    >>> neuralcb.LinLCB().fit(feedback).n_actions_
    3
    """
    missing = [key for key in ("n_actions", "context", "action", "reward") if feedback.get(key) is None]
    if missing:
        raise NeuralcbError(f"the feedback has no `{missing[0]}`: it needs n_actions, context, action and reward")
    contexts = np.asarray(feedback["context"])
    position = feedback.get("position")
    if position is not None:
        position = np.asarray(position)
        different = np.unique(position)
        if len(different) > 1:
            contexts = np.column_stack([contexts, (position[:, None] == different).astype(contexts.dtype)])
    return {
        "contexts": contexts,
        "actions": np.asarray(feedback["action"]),
        "rewards": np.asarray(feedback["reward"]),
        "propensities": feedback.get("pscore"),
        "n_actions": int(feedback["n_actions"]),
    }
