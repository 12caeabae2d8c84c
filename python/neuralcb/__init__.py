"""Learn from a log of decisions a policy that does better and does not fool itself.

All learners are the same two things: a reward model that tells for any context and action a mean and a width (its
uncertainty), and a number β: the policy plays argmax mean − β·width. β is no part of training and may be changed at any
time.

>>> import neuralcb
>>> log = neuralcb.simulate("cosine", 400, seed=1)
>>> learner = neuralcb.NeuraLCB(beta=0.1).fit(log.contexts, log.actions, log.rewards)
>>> learner.predict(log.contexts[:4]).shape
(4,)
"""

from . import ope
from ._experiments import Reproduction, SimulatedLog, reproduce, simulate
from ._learners import KernLCB, Learner, LinLCB, NeuraLCB, NeuralGreedy, NeuralLinLCB
from ._logs import Diagnosis, Tuned, diagnose, evaluate, score, train, tune
from ._neuralcb import NeuralcbError, __version__
from ._policy import Policy, load
from ._sklearn import SklearnReward
from ._sweep import sweep
from ._trunk import Auto, Choice, Clone, Regression, VIPeR
from .obp import from_obp

__all__ = [
    "Auto",
    "Choice",
    "Clone",
    "Diagnosis",
    "KernLCB",
    "Learner",
    "LinLCB",
    "NeuraLCB",
    "NeuralGreedy",
    "NeuralLinLCB",
    "NeuralcbError",
    "Policy",
    "Regression",
    "Reproduction",
    "SimulatedLog",
    "SklearnReward",
    "Tuned",
    "VIPeR",
    "__version__",
    "diagnose",
    "evaluate",
    "from_obp",
    "load",
    "ope",
    "reproduce",
    "score",
    "simulate",
    "sweep",
    "train",
    "tune",
]
