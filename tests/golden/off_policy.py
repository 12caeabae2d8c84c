"""Golden values of the off-policy estimators: Open Bandit Pipeline's and VowpalWabbit's own code on the Open Bandit Dataset.

    python -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 vw-estimators==0.2.2
    venv/bin/python off_policy.py OBP_SOURCE_FOLDER OBD_FOLDER > off_policy.json

OBP (0.5.7, unpacked) asks for old versions of heavy packages, which its estimators do not need: its packages are
registered without running their `__init__` files, and the modules needed are imported alone.
Rule, for a pair of logs (evaluated log, log whose choices are the target policy):
  pi(a | position) = (c + 1) / sum_a (c + 1), c = how often a was shown at that position in the second log, or uniform;
  q(a, position) = (clicks + 1) / (impressions + 100), counted on the evaluated log; w = pi / propensity.
"""
import csv, importlib, json, math, sys, types
import numpy as np
import scipy.stats, sklearn.utils

obp_folder, obd = sys.argv[1], sys.argv[2]
for name in ("obp", "obp.ope"):
    package = types.ModuleType(name)
    package.__path__ = [f"{obp_folder}/{name.replace('.', '/')}"]
    sys.modules[name] = package
if "torch" not in sys.modules:  # named in annotations alone
    sys.modules["torch"] = torch = types.ModuleType("torch")
    torch.Tensor = torch.tensor = type("Tensor", (), {})
E = importlib.import_module("obp.ope.estimators")
H = importlib.import_module("obp.ope.helper")
from estimators.bandits import clopper_pearson, cressieread, cs, gaussian, ips, mle, snips


def read(policy, campaign):
    with open(f"{obd}/{policy}/{campaign}/{campaign}.csv") as file:
        rows = list(csv.DictReader(file))
    column = lambda name, kind: np.array([kind(r[name]) for r in rows])
    return (column("item_id", int), column("position", int) - 1, column("click", float), column("propensity_score", float))


def case(behaviour, target, campaign):
    action, position, reward, pscore = read(behaviour, campaign)
    n, L = len(action), 3
    if target == "uniform":
        K = int(action.max()) + 1
        pi = np.full((K, L), 1.0 / K)
    else:
        shown, at, _, _ = read(target, campaign)
        K = int(max(action.max(), shown.max())) + 1
        count = np.zeros((K, L))
        np.add.at(count, (shown, at), 1)
        pi = (count + 1) / (count + 1).sum(axis=0)
    clicks, impressions = np.zeros((K, L)), np.zeros((K, L))
    np.add.at(clicks, (action, position), reward)
    np.add.at(impressions, (action, position), 1)
    q = (clicks + 1) / (impressions + 100)
    dist, q_hat = np.broadcast_to(pi, (n, K, L)), np.broadcast_to(q, (n, K, L))
    base = dict(reward=reward, action=action, position=position, pscore=pscore, action_dist=dist)
    model = dict(base, estimated_rewards_by_reg_model=q_hat)
    value = lambda e, given: float(e.estimate_policy_value(**given))
    w = pi[action, position] / pscore
    z = w * reward
    x_max = 10.0 if z.max() <= 10.0 else float(math.ceil(w.max()))
    out = {
        "behaviour": behaviour, "target": target, "campaign": campaign, "n": n, "n_actions": K,
        "ess": float(w.sum() ** 2 / (w ** 2).sum()), "mean_weight": float(w.mean()), "max_weight": float(w.max()),
        "x_max": x_max,
        "value": {
            "dm": value(E.DirectMethod(), dict(action_dist=dist, estimated_rewards_by_reg_model=q_hat, position=position)),
            "ips": value(E.InverseProbabilityWeighting(), base),
            "ips-clip": value(E.InverseProbabilityWeighting(lambda_=2.0), base),
            "snips": value(E.SelfNormalizedInverseProbabilityWeighting(), base),
            "dr": value(E.DoublyRobust(), model),
            "dr-clip": value(E.DoublyRobust(lambda_=2.0), model),
            "sndr": value(E.SelfNormalizedDoublyRobust(), model),
            "switch-dr": value(E.SwitchDoublyRobust(lambda_=2.0), model),
            "dros": value(E.DoublyRobustWithShrinkage(lambda_=1.0), model),
            "dros-100": value(E.DoublyRobustWithShrinkage(lambda_=100.0), model),
            "sg-ips": value(E.SubGaussianInverseProbabilityWeighting(lambda_=0.1), base),
            "sg-dr": value(E.SubGaussianDoublyRobust(lambda_=0.1), model),
        },
        "lower_bounds": {
            "hoeffding": float(H.estimate_hoeffding_lower_bound(z, x_max=x_max, delta=0.05)),
            "bernstein": float(H.estimate_bernstein_lower_bound(z, x_max=x_max, delta=0.05)),
            "student-t": float(H.estimate_student_t_lower_bound(z, delta=0.05)),
        },
    }
    points = {"ips": ips.Estimator(), "snips": snips.Estimator(), "cressie-read": cressieread.Estimator(), "mle": mle.Estimator()}
    intervals = {
        "normal": gaussian.Interval(), "clopper-pearson": clopper_pearson.Interval(),
        "cressie-read": cressieread.Interval(), "sequence": cs.Interval(),
    }
    for p_log, r, p_pred in zip(pscore.tolist(), reward.tolist(), pi[action, position].tolist()):
        for e in [*points.values(), *intervals.values()]:
            e.add_example(p_log, r, p_pred)
    out["vw"] = {name: e.get() for name, e in points.items()}
    out["intervals"] = {name: [float(b) for b in e.get(alpha=0.05)] for name, e in intervals.items()}
    return out


cases = [case("random", "bts", c) for c in ("all", "men", "women")]
cases += [case("bts", "uniform", c) for c in ("all", "men", "women")]
json.dump(cases, sys.stdout, indent=1)
