"""The learners, with scikit-learn's manners: parameters by keyword, ``fit`` returns self, what is learned ends in ``_``."""

from __future__ import annotations

import inspect
import json
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _neuralcb
from ._input import labels_of, rounds
from ._neuralcb import NeuralcbError
from ._policy import Policy
from ._progress import Progress, progress_bar
from .obp import from_obp, is_feedback

if TYPE_CHECKING:
    from typing_extensions import Self

_RENAMED = {"lam": "lambda", "random_state": "seed"}
_PREPARATION = ("standardise", "intercept", "unit_norm")


def _seed(random_state: Any) -> int:
    """A seed from whatever scikit-learn takes; None is 1, because nothing here is random by default."""
    if random_state is None:
        return 1
    if hasattr(random_state, "integers"):
        return int(random_state.integers(2**31))
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


class Learner:
    """What all learners share. Use one of :class:`Auto`, :class:`Choice`, :class:`Regression`, :class:`VIPeR`,
    :class:`Clone`, :class:`NeuraLCB`, :class:`NeuralGreedy`, :class:`NeuralLinLCB`, :class:`LinLCB`,
    :class:`KernLCB`."""

    _algorithm: ClassVar[str]

    # --- parameters

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Changes parameters. β takes effect at once, all else at the next fit."""
        known = self._names()
        for name, value in params.items():
            if name not in known:
                raise NeuralcbError(f"unknown parameter `{name}` of {type(self).__name__}: use one of {', '.join(known)}")
            setattr(self, name, value)
        return self

    def clone(self) -> Self:
        """The same learner before it has learned anything."""
        return type(self)(**self.get_params())

    def _recipe(self) -> str:
        return json.dumps(self._settings())

    def _settings(self) -> dict[str, Any]:
        recipe: dict[str, Any] = {"algorithm": self._algorithm, "preparation": {}}
        net: dict[str, Any] = {}
        for name, value in self.get_params().items():
            if name == "random_state":
                recipe["seed"] = _seed(value)
            elif name in _PREPARATION:
                recipe["preparation"][name] = bool(value)
            elif name in ("depth", "width"):
                net |= {} if value is None else {name: int(value)}
            elif name == "net":
                net |= value or {}
            elif name != "missing" and value is not None:
                recipe[_RENAMED.get(name, name)] = value.item() if isinstance(value, np.generic) else value
        if net:
            recipe["net"] = net
        return recipe

    # --- learning

    def fit(
        self,
        contexts: Any,
        actions: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
        eligible: Any = None,
        *,
        n_actions: int | None = None,
        progress: Progress = None,
    ) -> Self:
        """Learns from a log, in its order, and forgets what was learned before.

        Parameters
        ----------
        contexts : array n × d or n × K × d, table, list of k × d arrays, or feedback of Open Bandit Pipeline
            One vector for each round, or one for each action of a round. Arrays may be of any number type and order;
            tables (pandas, polars, Arrow) may also hold booleans and words. A dictionary as Open Bandit Pipeline makes
            it is a whole log.
        actions : array of n integers or names
            What was done. With a vector for each action: its place in the round.
        rewards : array of n numbers
            What came of it.
        propensities : array of n numbers in (0, 1], optional
            With which probability it was done; kept for the record, as learning does not need them.
        eligible : array of bool n × K, or list of lists of actions, optional
            What each round offers.
        n_actions : int, optional
            Actions are 0 … n_actions − 1, also those that the log never chose.
        progress : None, bool or function of (done, total)
            A bar by default where someone watches.

        Returns
        -------
        self
        """
        given = self._given(contexts, actions, rewards, propensities, eligible, n_actions)
        with progress_bar(progress, "fitting") as tell:
            training = _neuralcb.Training.start(self._recipe(), given, tell)
        self._training: _neuralcb.Training | None = training
        policy = training.policy()
        labels = labels_of(policy.actions()) if _numeric(actions, contexts) else np.array(policy.actions())
        self._set(Policy(policy, labels))
        return self

    def partial_fit(
        self,
        contexts: Any,
        actions: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
        eligible: Any = None,
        *,
        n_actions: int | None = None,
        progress: Progress = None,
    ) -> Self:
        """Learns from the rounds that follow those learned from before; the first call is :meth:`fit`.

        The first rounds decide the scale of features and rewards and which actions there are (``n_actions`` names those
        that will come later). Given the scale, many calls learn the same as one, to the bit. Parameters are those of
        :meth:`fit`.
        """
        if not self.__sklearn_is_fitted__():
            outcome = actions, rewards, propensities, eligible
            return Learner.fit(self, contexts, *outcome, n_actions=n_actions, progress=progress)
        if self._training is None:
            raise NeuralcbError("a policy alone does not hold what training needs: fit it anew on all rounds")
        given = self._given(contexts, actions, rewards, propensities, eligible, n_actions, self.policy_)
        with progress_bar(progress, "fitting") as tell:
            self._training.go_on(given, tell)
        self._set(Policy(self._training.policy(), self.policy_.actions))
        return self

    def _given(
        self,
        contexts: Any,
        actions: ArrayLike | None,
        rewards: ArrayLike | None,
        propensities: ArrayLike | None,
        eligible: Any,
        n_actions: int | None,
        policy: Policy | None = None,
    ) -> dict[str, Any]:
        if is_feedback(contexts):
            if actions is not None or rewards is not None:
                raise NeuralcbError("a feedback dictionary holds actions and rewards: give nothing beside it")
            feedback = from_obp(contexts)
            contexts, actions, rewards = feedback["contexts"], feedback["actions"], feedback["rewards"]
            propensities, n_actions = feedback["propensities"], feedback["n_actions"]
        if actions is None or rewards is None:
            missing = "actions" if actions is None else "rewards"
            raise NeuralcbError(f"`{missing}` of the log are missing: fit(contexts, actions, rewards)")
        outcome: dict[str, Any] = {"actions": actions, "rewards": rewards, "propensities": propensities}
        if policy is not None:
            return policy._rounds(contexts, eligible, **outcome)
        missing_values: str = getattr(self, "missing", "refuse")
        return rounds(contexts, eligible=eligible, n_actions=n_actions, missing=missing_values, **outcome)

    def _set(self, policy: Policy) -> None:
        self.policy_ = policy
        about = policy.description
        schema, training = about["preparation"]["schema"], about["training"]
        self.actions_ = policy.actions
        self.n_actions_ = len(policy.actions)
        self.n_rounds_ = int(training["rounds"])
        self.mean_reward_ = float(training["mean_reward"])
        self.feature_names_ = [f["name"] for f in [*schema["shared"], *schema["per_action"]]]
        self.n_features_in_ = len(self.feature_names_)

    # --- deciding

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "policy_")

    def _fitted(self) -> Policy:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise _not_fitted(f"This {name} instance is not fitted yet: call `fit` before using it")
        if "beta" in self._names():
            beta = float(self.beta)  # type: ignore[attr-defined]
            if beta != self.policy_.beta:
                self.policy_.beta = beta
        return self.policy_

    def predict(self, contexts: Any, eligible: Any = None) -> NDArray[Any]:
        """The chosen action of each round; see :meth:`neuralcb.Policy.predict`."""
        return self._fitted().predict(contexts, eligible)

    def bounds(self, contexts: Any, eligible: Any = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and width of every action; see :meth:`neuralcb.Policy.bounds`."""
        return self._fitted().bounds(contexts, eligible)

    def lower_bound(self, contexts: Any, eligible: Any = None) -> NDArray[np.float64]:
        """mean − β·width of every action; see :meth:`neuralcb.Policy.lower_bound`."""
        return self._fitted().lower_bound(contexts, eligible)

    def action_dist(self, contexts: Any, eligible: Any = None) -> NDArray[np.float64]:
        """The probability of every action; see :meth:`neuralcb.Policy.action_dist`."""
        return self._fitted().action_dist(contexts, eligible)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the policy file that the command line and :func:`neuralcb.load` read."""
        self._fitted().save(path)

    # --- manners

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.get("_training") is not None:
            state["_training"] = state["_training"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state.get("_training") is not None:
            self._training = _neuralcb.Training.from_bytes(state["_training"])

    def __repr__(self) -> str:
        usual = {name: p.default for name, p in inspect.signature(type(self).__init__).parameters.items()}
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not usual[name]]
        return f"{type(self).__name__}({', '.join(changed)})"


def _numeric(actions: Any, contexts: Any) -> bool:
    return is_feedback(contexts) or np.asarray(actions).dtype.kind in "biuf"


def _not_fitted(message: str) -> Exception:
    """scikit-learn's own exception where it is loaded, so that its tools understand."""
    import sys

    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped,import-not-found,unused-ignore]

        error: Exception = NotFittedError(message)
        return error
    return NeuralcbError(message)


class NeuraLCB(Learner):
    """A neural network trained online on the log, with a width from its gradient: the paper's Algorithm 1.

    Parameters
    ----------
    beta : float ≥ 0, default 1
        Pessimism: the policy plays argmax mean − β·width. May be changed after fitting.
    mode : "S" or "B", default "S"
        One step for each round on it, or 100 steps on batches of 50 of the rounds so far.
    lr : float > 0, default 0.001
        Adam's learning rate.
    lam : float > 0, default 0.1
        λ of the width.
    preset : "practical", "paper" or "released-code"
        Whose settings hold where nothing else is said.
    depth, width : int, optional
        Layers and units of the network; by default the preset's.
    net : dict, optional
        Further settings of the network (layer_norm, biases, output_scale, init, duplicate_input).
    covariance : str or dict, optional
        The form of Λ: "diagonal", "per-action" or exact; by default the preset's.
    standardise, intercept, unit_norm : bool, default True
        Whether features are brought to mean 0 and deviation 1, a constant is added, and rows are brought to length 1.
    standardise_rewards : bool, optional
        Whether the model sees standardised rewards; by default the preset's (practical: yes).
    missing : "refuse" or "mean"
        What becomes of NaN in the contexts.
    random_state : int, default 1
        The seed of weights and batches. The same seed gives the same bits, with any number of threads.

    Attributes
    ----------
    policy_ : Policy
        What was learned.
    actions_, n_actions_, n_rounds_, mean_reward_, n_features_in_, feature_names_
        What the log held.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 500, seed=1)
    >>> learner = neuralcb.NeuraLCB(beta=0.1).fit(log.contexts, log.actions, log.rewards)
    >>> careful = learner.predict(log.contexts)
    >>> learner.beta = 0.0          # the greedy twin: nothing is learned anew
    >>> greedy = learner.predict(log.contexts)
    >>> careful.shape == greedy.shape == (500,)
    True
    """

    _algorithm = "neuralcb"

    def __init__(
        self,
        *,
        beta: float = 1.0,
        mode: str = "S",
        lr: float = 1e-3,
        lam: float = 0.1,
        preset: str = "practical",
        depth: int | None = None,
        width: int | None = None,
        net: dict[str, Any] | None = None,
        covariance: Any = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = True,
        standardise_rewards: bool | None = None,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.beta = beta
        self.mode = mode
        self.lr = lr
        self.lam = lam
        self.preset = preset
        self.depth = depth
        self.width = width
        self.net = net
        self.covariance = covariance
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.standardise_rewards = standardise_rewards
        self.missing = missing
        self.random_state = random_state


class NeuralGreedy(Learner):
    """The network of :class:`NeuraLCB` without pessimism (β = 0): the paper's Algorithm 6.

    Parameters are those of :class:`NeuraLCB`, without ``beta``.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 300, seed=1)
    >>> neuralcb.NeuralGreedy(width=16).fit(log.contexts, log.actions, log.rewards).n_actions_
    30
    """

    _algorithm = "neural-greedy"

    def __init__(
        self,
        *,
        mode: str = "S",
        lr: float = 1e-3,
        lam: float = 0.1,
        preset: str = "practical",
        depth: int | None = None,
        width: int | None = None,
        net: dict[str, Any] | None = None,
        covariance: Any = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = True,
        standardise_rewards: bool | None = None,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.mode = mode
        self.lr = lr
        self.lam = lam
        self.preset = preset
        self.depth = depth
        self.width = width
        self.net = net
        self.covariance = covariance
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.standardise_rewards = standardise_rewards
        self.missing = missing
        self.random_state = random_state


class NeuralLinLCB(Learner):
    """Ridge regression on the gradient of a network at its initialisation: the paper's Algorithm 4.

    Parameters are those of :class:`NeuraLCB`, without ``mode`` and ``lr``, as no network is trained.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 300, seed=1)
    >>> mean, width = neuralcb.NeuralLinLCB().fit(log.contexts, log.actions, log.rewards).bounds(log.contexts)
    >>> mean.shape, bool((width > 0).all())
    ((300, 30), True)
    """

    _algorithm = "neural-lin-lcb"

    def __init__(
        self,
        *,
        beta: float = 1.0,
        lam: float = 0.1,
        preset: str = "practical",
        depth: int | None = None,
        width: int | None = None,
        net: dict[str, Any] | None = None,
        covariance: Any = None,
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = True,
        standardise_rewards: bool | None = None,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.beta = beta
        self.lam = lam
        self.preset = preset
        self.depth = depth
        self.width = width
        self.net = net
        self.covariance = covariance
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.standardise_rewards = standardise_rewards
        self.missing = missing
        self.random_state = random_state


class LinLCB(Learner):
    """Ridge regression on the context, minus its confidence width: the paper's Algorithm 2.

    Λ = λI + Σ x xᵀ,  θ = Λ⁻¹ Σ x r,  mean = θᵀx,  width = √(xᵀΛ⁻¹x)

    Parameters
    ----------
    beta : float ≥ 0, default 1
        Pessimism. May be changed after fitting.
    lam : float > 0, default 0.1
        λ.
    preset, standardise, intercept, unit_norm, standardise_rewards, missing, random_state
        As for :class:`NeuraLCB`.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 300, seed=1)
    >>> learner = neuralcb.LinLCB(beta=0.5).fit(log.contexts, log.actions, log.rewards)
    >>> mean, width = learner.bounds(log.contexts)
    >>> bool((learner.lower_bound(log.contexts) == mean - 0.5 * width).all())
    True
    """

    _algorithm = "lin-lcb"

    def __init__(
        self,
        *,
        beta: float = 1.0,
        lam: float = 0.1,
        preset: str = "practical",
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = True,
        standardise_rewards: bool | None = None,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.beta = beta
        self.lam = lam
        self.preset = preset
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.standardise_rewards = standardise_rewards
        self.missing = missing
        self.random_state = random_state


class KernLCB(Learner):
    """Kernel ridge regression with a Gaussian kernel, minus its confidence width: the paper's Algorithm 3.

    Parameters
    ----------
    beta : float ≥ 0, default 1
        Pessimism. May be changed after fitting.
    sigma : float > 0, optional
        Width of the kernel; by default the library's.
    lam : float > 0, optional
        λ; by default the preset's.
    max_samples : int, optional
        Samples that the kernel keeps.
    preset, standardise, intercept, unit_norm, standardise_rewards, missing, random_state
        As for :class:`NeuraLCB`.

    Examples
    --------
    >>> import neuralcb
    >>> log = neuralcb.simulate("cosine", 300, seed=1)
    >>> neuralcb.KernLCB(sigma=1.0).fit(log.contexts, log.actions, log.rewards).predict(log.contexts[:5]).shape
    (5,)
    """

    _algorithm = "kern-lcb"

    def __init__(
        self,
        *,
        beta: float = 1.0,
        sigma: float | None = None,
        lam: float | None = None,
        max_samples: int | None = None,
        preset: str = "practical",
        standardise: bool = True,
        intercept: bool = True,
        unit_norm: bool = True,
        standardise_rewards: bool | None = None,
        missing: str = "refuse",
        random_state: Any = 1,
    ) -> None:
        self.beta = beta
        self.sigma = sigma
        self.lam = lam
        self.max_samples = max_samples
        self.preset = preset
        self.standardise = standardise
        self.intercept = intercept
        self.unit_norm = unit_norm
        self.standardise_rewards = standardise_rewards
        self.missing = missing
        self.random_state = random_state
