#!/usr/bin/env python3
"""Writes the reference values (golden files) that the Rust tests compare against.

Run it from the repository's root:

    python3 -m venv golden-venv
    golden-venv/bin/pip install "jax[cpu]==0.10.2" numpy==2.4.6 scipy==1.17.1 \
        scikit-learn==1.9.1 mpmath==1.4.1
    golden-venv/bin/python tests/golden/make_golden.py          # write, then check
    golden-venv/bin/python tests/golden/make_golden.py --check  # only check the files

The stored values were made with Python 3.11 and the versions above (each file
records its own under "versions").  Another CPU or version may change last digits.

Independent of the Rust code by construction:
  * gradients come from jax.grad only; no backward pass is written by hand;
  * all matrices are dense, and the disjoint encoding is the explicit vector of
    length dim * n_actions, zeros included;
  * ridge regression and Gaussian processes come from scikit-learn;
  * everything is float64, and all randomness comes from one fixed numpy seed.

After writing, the files are read back and rechecked with a second forward pass in
plain numpy, differentiated by central differences and by the complex step.

The network (depth L, width m, input u, h_0 = u), for l = 1 .. L-1:
    z_l = W_l h_{l-1} (+ b_l),
    y_l = gain_l * (z_l - mean(z_l)) / sqrt(var(z_l) + 1e-5) + offset_l   (layer norm;
          var divides by m) or y_l = z_l,
    h_l = relu(y_l),
and f = s * <w_L, h_{L-1}> (+ b_L, unscaled), s = sqrt(m) ("sqrt-width") or 1 ("one").
"""

import json
import math
import platform
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import mpmath
import numpy as np
import scipy
import sklearn
from jax.flatten_util import ravel_pytree
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge

jax.config.update("jax_enable_x64", True)

HERE = Path(__file__).resolve().parent
SEED = 20220425

LAMBDA = 0.1  # initial value of the covariance's diagonal
RATE = 0.01  # learning rate
L2 = 1e-2  # weight of the l2 term of the Adam losses
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # Adam
LN_EPS = 1e-5  # layer norm

# Distance that every pre-activation must keep from the kink of the relu: at the
# initial parameters, and at all parameters that any of the runs passes through.
KINK_INITIAL, KINK_LATER = 1e-3, 1e-4

PARAM_KEYS = ("weights", "biases", "gains", "offsets", "output", "output_bias")

VERSIONS = {
    "python": platform.python_version(),
    "jax": jax.__version__,
    "jaxlib": jaxlib.__version__,
    "numpy": np.__version__,
    "scipy": scipy.__version__,
    "scikit-learn": sklearn.__version__,
    "mpmath": mpmath.__version__,
}


# --------------------------------------------------------------------- JSON output


def plain(value):
    """Arrays to lists, numpy scalars to Python's, -0.0 to 0.0."""
    if isinstance(value, dict):
        keys = PARAM_KEYS if set(value) == set(PARAM_KEYS) else value  # JAX sorts keys
        return {key: plain(value[key]) for key in keys}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, str, int)):
        return value
    array = np.asarray(value)
    if array.ndim:
        return [plain(item) for item in array]
    return array.item() + 0.0 if array.dtype.kind == "f" else array.item()


def layout(value, indent=0):
    """JSON text: a list of numbers or a record on one line, a matrix with one row per
    line, the rest indented.  Floats are written as their shortest exact repr."""

    def holds(kind, items):
        return any(isinstance(item, kind) for item in items)

    record = isinstance(value, dict) and set(value) <= {"x", "action", "reward"}
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    if record or not holds((dict, list), children):
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    pad, end = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, dict):
        lines = [f"{json.dumps(key)}: {layout(item, indent + 1)}" for key, item in value.items()]
        return "{" + pad + ("," + pad).join(lines) + end + "}"
    matrix = all(isinstance(row, list) and not holds((dict, list), row) for row in value)
    if matrix:
        return "[" + ",\n ".join(layout(row) for row in value) + "]"
    return "[" + pad + ("," + pad).join(layout(item, indent + 1) for item in value) + end + "]"


def write(name, cases, **extra):
    content = {"versions": VERSIONS, **extra, "cases": cases}
    (HERE / name).write_text(layout(plain(content)) + "\n")


# ----------------------------------------------------------------- data and encoding


def explicit(case, point):
    """The vector that the model sees for {"x", "action"}."""
    x = np.asarray(point["x"])
    if case["encoding"] == "per-action":
        return x
    u = np.zeros(case["dim"] * case["n_actions"])
    u[point["action"] * case["dim"] :][: case["dim"]] = x
    return u


def encode(case, points):
    return np.stack([explicit(case, point) for point in points])


def as_f32(x):
    """Contexts are stored in float32 by the Rust side: only numbers that survive that."""
    return x.astype(np.float32).astype(np.float64)


def draw_points(rng, dim, n_actions, count, rewards):
    """Contexts exact in float32; the actions cover all of them."""
    actions = rng.permutation(np.arange(count) % n_actions)
    points = []
    for action in actions:
        point = {"x": as_f32(np.round(rng.normal(size=dim), 4)), "action": int(action)}
        if rewards:
            point["reward"] = round(rng.uniform(), 3)
        points.append(point)
    return points


# --------------------------------------------------------------------- the network


def draw_params(rng, case):
    """Weights with standard deviation 0.5, gains 1 + 0.2 N, offsets and biases 0.2 N."""
    m, hidden = case["width"], case["depth"] - 1
    n_in = case["dim"] * (case["n_actions"] if case["encoding"] == "disjoint" else 1)

    def normal(scale, *shape, around=0.0):
        return np.round(around + scale * rng.normal(size=shape), 4)

    biases, norm = case["biases"], case["layer_norm"]
    return {
        "weights": [normal(0.5, m, n_in if layer == 0 else m) for layer in range(hidden)],
        "biases": [normal(0.2, m) for _ in range(hidden)] if biases else None,
        "gains": [normal(0.2, m, around=1.0) for _ in range(hidden)] if norm else None,
        "offsets": [normal(0.2, m) for _ in range(hidden)] if norm else None,
        "output": normal(0.5, m),
        "output_bias": normal(0.2) if biases else None,
    }


class Net:
    """f, its gradient by jax.grad, and its pre-activations, for one architecture."""

    def __init__(self, case):
        self.case = case
        self.f = jax.jit(self._f)
        self.grad = jax.jit(jax.grad(self._f))
        self.pre = jax.jit(jax.vmap(lambda p, u: self._forward(p, u)[1], in_axes=(None, 0)))
        self.loss_grad = jax.jit(jax.grad(self._loss))

    def _forward(self, params, u):
        case, h, pre = self.case, u, []
        for layer in range(case["depth"] - 1):
            y = params["weights"][layer] @ h
            if case["biases"]:
                y = y + params["biases"][layer]
            if case["layer_norm"]:
                y = (y - jnp.mean(y)) / jnp.sqrt(jnp.var(y) + LN_EPS)
                y = params["gains"][layer] * y + params["offsets"][layer]
            pre.append(y)
            h = jax.nn.relu(y)
        scale = math.sqrt(case["width"]) if case["output_scale"] == "sqrt-width" else 1.0
        out = scale * (params["output"] @ h)
        return (out + params["output_bias"] if case["biases"] else out), jnp.stack(pre)

    def _f(self, params, u):
        return self._forward(params, u)[0]

    def _loss(self, params, centre, weight, us, rewards):
        """mean of 1/2 (f - r)^2 over the batch + weight/2 ||params - centre||^2"""
        f = jax.vmap(lambda u: self._f(params, u))(us)
        away = ravel_pytree(params)[0] - ravel_pytree(centre)[0]
        return jnp.mean(0.5 * (f - rewards) ** 2) + 0.5 * weight * jnp.sum(away**2)

    def means(self, params, us):
        return [float(self.f(params, u)) for u in us]

    def flat_grad(self, params, u):
        return np.asarray(ravel_pytree(self.grad(params, u))[0])


class Adam:
    def __init__(self, params):
        self.t = 0
        self.m = jax.tree.map(jnp.zeros_like, params)
        self.v = jax.tree.map(jnp.zeros_like, params)

    def step(self, params, grad):
        self.t += 1
        self.m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, self.m, grad)
        self.v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, self.v, grad)
        c1, c2 = 1 - BETA1**self.t, 1 - BETA2**self.t
        return jax.tree.map(
            lambda p, m, v: p - RATE * (m / c1) / (jnp.sqrt(v / c2) + EPS), params, self.m, self.v
        )


# ------------------------------------------------------------------- NeuraLCB's runs


def zeros_like(params):
    return jax.tree.map(jnp.zeros_like, params)


def adam_path(net, params, centre, us, rewards):
    """W^(0), ..., W^(n): one Adam step per round, on that round's own loss."""
    adam, path = Adam(params), [params]
    for t in range(len(us)):
        grad = net.loss_grad(path[-1], centre, L2, us[t : t + 1], rewards[t : t + 1])
        path.append(adam.step(path[-1], grad))
    return path


def sgd_path(net, params, us, rewards):
    """W^(0), ..., W^(n) of Algorithm 1: eta_t = RATE / sqrt(t), l2 weight m * lambda."""
    path = [params]
    for t in range(len(us)):
        weight = net.case["width"] * LAMBDA
        grad = net.loss_grad(path[-1], params, weight, us[t : t + 1], rewards[t : t + 1])
        rate = RATE / math.sqrt(t + 1)
        path.append(jax.tree.map(lambda p, g: p - rate * g, path[-1], grad))
    return path


def batch_path(net, params, us, rewards, steps):
    """Adam steps on one fixed batch."""
    adam, path = Adam(params), [params]
    for _ in range(steps):
        path.append(adam.step(path[-1], net.loss_grad(path[-1], zeros_like(params), L2, us, rewards)))
    return path


def diagonal_width(net, params, diagonal, u):
    return math.sqrt(np.sum(net.flat_grad(params, u) ** 2 / net.case["width"] / diagonal))


def diagonal_run(net, path, us, inputs):
    """Per round: record, then Lambda += g^2 / m with g at W^(t-1)."""
    m = net.case["width"]
    diagonal = np.full(ravel_pytree(path[0])[0].size, LAMBDA)
    means, widths = [], []
    for params, u in zip(path, us):
        means.append(net.means(params, inputs))
        widths.append([diagonal_width(net, params, diagonal, v) for v in inputs])
        diagonal = diagonal + net.flat_grad(params, u) ** 2 / m
    final = path[-1]
    return {
        "means": means,
        "widths": widths,
        "final_params": final,
        "final_lambda": ravel_pytree(final)[1](diagonal),
        "final_means": net.means(final, inputs),
        "final_widths": [diagonal_width(net, final, diagonal, v) for v in inputs],
    }


def released_order(net, path, case, us, inputs):
    """One Lambda per action, updated after the step with the gradient at W^(t)."""
    m, final = case["width"], path[-1]
    diagonals = np.full((case["n_actions"], ravel_pytree(final)[0].size), LAMBDA)
    for t, (point, u) in enumerate(zip(case["rounds"], us)):
        diagonals[point["action"]] += net.flat_grad(path[t + 1], u) ** 2 / m
    return {
        "final_means": net.means(final, inputs),
        "final_widths": [
            diagonal_width(net, final, diagonals[point["action"]], v)
            for point, v in zip(case["inputs"], inputs)
        ],
        "final_lambdas": [ravel_pytree(final)[1](diagonal) for diagonal in diagonals],
    }


def exact_run(net, path, us, inputs):
    """The full matrix Lambda over all explicit parameters."""
    m, final = net.case["width"], path[-1]
    matrix = LAMBDA * np.eye(ravel_pytree(final)[0].size)
    for params, u in zip(path, us):
        g = net.flat_grad(params, u)
        matrix += np.outer(g, g) / m
    grads = [net.flat_grad(final, v) for v in inputs]
    return {
        "final_means": net.means(final, inputs),
        "final_widths": [math.sqrt(g @ np.linalg.solve(matrix, g) / m) for g in grads],
    }


def try_net_case(net, rng):
    """One draw of a case, or None if a pre-activation comes too close to a kink."""
    case = dict(net.case)
    params = case["params"] = draw_params(rng, case)
    case["inputs"] = draw_points(rng, case["dim"], case["n_actions"], 5, rewards=False)
    case["rounds"] = draw_points(rng, case["dim"], case["n_actions"], 10, rewards=True)
    inputs, us = encode(case, case["inputs"]), encode(case, case["rounds"])
    rewards = np.array([point["reward"] for point in case["rounds"]])
    everything = np.concatenate([inputs, us])

    pre = np.asarray(net.pre(params, everything))  # contexts x layers x m
    if np.abs(pre).min() < KINK_INITIAL or (pre > 0).sum(axis=2).min() < 1:
        return None
    zero = adam_path(net, params, zeros_like(params), us, rewards)
    initial = adam_path(net, params, params, us, rewards)
    sgd = sgd_path(net, params, us, rewards)
    batch = batch_path(net, params, us, rewards, 3)
    for later in zero + initial + sgd + batch:
        if np.abs(net.pre(later, everything)).min() < KINK_LATER:
            return None

    case["f"] = net.means(params, inputs)
    case["gradients"] = [net.grad(params, u) for u in inputs]
    case["s_mode"] = [
        {"towards": "zero", **diagonal_run(net, zero, us, inputs)},
        {"towards": "initial", **diagonal_run(net, initial, us, inputs)},
    ]
    case["released_order"] = released_order(net, zero, case, us, inputs)
    case["exact"] = exact_run(net, zero, us, inputs)
    run = diagonal_run(net, sgd, us, inputs)
    case["sgd"] = {key: run[key] for key in ("final_params", "final_means", "final_widths")}
    case["batch"] = {"final_params": batch[-1]}
    return case


def net_cases():
    shapes = [
        (depth, norm, encoding, False, "sqrt-width")
        for depth in (2, 3)
        for norm in (False, True)
        for encoding in ("per-action", "disjoint")
    ]
    shapes += [(3, True, encoding, True, "one") for encoding in ("per-action", "disjoint")]
    cases = []
    for index, (depth, norm, encoding, biases, scale) in enumerate(shapes):
        kind = "released" if biases else "layer-norm" if norm else "plain"
        case = {
            "name": f"{kind}-depth{depth}-{encoding}",
            "depth": depth,
            "width": 6,
            "dim": 4,
            "n_actions": 3,
            "encoding": encoding,
            "layer_norm": norm,
            "biases": biases,
            "output_scale": scale,
        }
        net = Net(case)
        draws = (try_net_case(net, np.random.default_rng([SEED, index, k])) for k in range(500))
        cases.append(next(drawn for drawn in draws if drawn is not None))
    return cases


# ------------------------------------------------------------------------- LinLCB


def linear_cases():
    cases = []
    for index, (encoding, dim) in enumerate([("per-action", 4), ("disjoint", 3)]):
        rng = np.random.default_rng([SEED, 100 + index])
        case = {"name": encoding, "encoding": encoding, "dim": dim, "n_actions": 3, "lambda": LAMBDA}
        case["rounds"] = draw_points(rng, dim, 3, 20, rewards=True)
        case["inputs"] = draw_points(rng, dim, 3, 6, rewards=False)
        us, inputs = encode(case, case["rounds"]), encode(case, case["inputs"])
        rewards = np.array([point["reward"] for point in case["rounds"]])

        ridge = Ridge(alpha=LAMBDA, fit_intercept=False).fit(us, rewards)
        inverse = np.linalg.inv(LAMBDA * np.eye(us.shape[1]) + us.T @ us)
        assert np.allclose(ridge.coef_, inverse @ us.T @ rewards, rtol=0, atol=1e-13)
        case["means"] = ridge.predict(inputs)
        case["widths"] = np.sqrt(np.einsum("ij,jk,ik->i", inputs, inverse, inputs))
        cases.append(case)
    return cases


# ------------------------------------------------------------------------- KernLCB


def kernel_points(rng, encoding):
    """25 rounds and 6 inputs of which about half lie close to an earlier point, so that
    even sigma = 0.1 gives kernel values away from 0.  Per-action contexts have norm 1."""

    def near(point, scale):
        return {**point, "x": point["x"] + scale * rng.normal(size=4)}

    rounds = draw_points(rng, 4, 3, 25, rewards=True)
    for t in range(13, 25):
        rounds[t] = {**near(rounds[t - 13], 0.06), "reward": rounds[t]["reward"]}
    inputs = draw_points(rng, 4, 3, 6, rewards=False)
    for i in range(3):
        inputs[i] = near({"x": rounds[4 * i]["x"], "action": rounds[4 * i]["action"]}, 0.04)
    for point in rounds + inputs:
        norm = np.linalg.norm(point["x"]) if encoding == "per-action" else 1.0
        point["x"] = as_f32(point["x"] / norm)
    return rounds, inputs


def posterior_mp(us, rewards, inputs, lam, sigma):
    """Means and widths with 50 digits."""
    with mpmath.workdps(50):

        def k(u, v):
            squared = sum((mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(u, v))
            return mpmath.exp(-squared / (2 * mpmath.mpf(sigma) ** 2))

        us, inputs = us.tolist(), inputs.tolist()
        gram = mpmath.matrix([[k(u, v) for v in us] for u in us])
        inverse = mpmath.inverse(gram + lam * mpmath.eye(len(us)))
        y = mpmath.matrix(rewards.tolist())
        means, widths = [], []
        for v in inputs:
            kv = mpmath.matrix([k(u, v) for u in us])
            means.append(float((kv.T * inverse * y)[0]))
            widths.append(float(mpmath.sqrt(1 - (kv.T * inverse * kv)[0])))
    return np.array(means), np.array(widths)


def posterior_plain(us, rewards, inputs, lam, sigma):
    """The same in float64 with |u|^2 + |v|^2 - 2 <u, v> for the distances.  By Cholesky:
    an explicit inverse loses half of the widths' digits when lambda is 1e-6."""

    def k(a, b):
        squared = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
        return np.exp(-squared / (2 * sigma**2))

    factor = np.linalg.cholesky(k(us, us) + lam * np.eye(len(us)))
    v, z = (np.linalg.solve(factor, right) for right in (k(us, inputs), rewards))
    return v.T @ z, np.sqrt(1 - (v**2).sum(axis=0))


def kernel_cases():
    cases = []
    for index, encoding in enumerate(("per-action", "disjoint")):
        rounds, test = kernel_points(np.random.default_rng([SEED, 200 + index]), encoding)
        for sigma in (0.1, 1.0, 10.0):
            for lam in (0.1, 1e-6):
                case = {"name": f"{encoding}-sigma{sigma:g}-lambda{lam:g}", "encoding": encoding, "dim": 4}
                case |= {"n_actions": 3, "lambda": lam, "sigma": sigma, "rounds": rounds, "inputs": test}
                us, inputs = encode(case, rounds), encode(case, test)
                rewards = np.array([point["reward"] for point in rounds])
                kernel = RBF(length_scale=sigma, length_scale_bounds="fixed")
                process = GaussianProcessRegressor(kernel=kernel, alpha=lam, optimizer=None)
                means, widths = process.fit(us, rewards).predict(inputs, return_std=True)

                # The tolerance: a factor of ten above the digits that float64 loses,
                # rounded up to a power of ten, and at least 1e-10.
                true = posterior_mp(us, rewards, inputs, lam, sigma)
                lost = max(
                    np.abs(np.subtract(got, true)).max()
                    for got in ((means, widths), posterior_plain(us, rewards, inputs, lam, sigma))
                )
                case["tolerance"] = float(f"1e{max(-10, math.ceil(math.log10(10 * lost)))}")
                case["means"], case["widths"] = means, widths
                cases.append(case)
    return cases


# -------------------------------------------------------------------- NeuralLinLCB


def neural_linear_cases(nets):
    keys = "name depth width dim n_actions encoding layer_norm biases output_scale params inputs rounds"
    cases = []
    for name in ("layer-norm-depth2-per-action", "released-depth3-disjoint"):
        source = next(case for case in nets if case["name"] == name)
        case = {key: source[key] for key in keys.split()} | {"lambda": LAMBDA}
        net = Net(case)
        phi = [net.flat_grad(case["params"], u) for u in encode(case, case["rounds"])]
        test = [net.flat_grad(case["params"], u) for u in encode(case, case["inputs"])]
        rounds = [(g, point["action"], point["reward"]) for g, point in zip(phi, case["rounds"])]

        def diagonal(g, chosen):
            spread = LAMBDA + sum(h**2 for h, _, _ in chosen)
            theta = sum(h * r for h, _, r in chosen) / spread
            return theta @ g, math.sqrt(np.sum(g**2 / spread))

        def exact(g):
            matrix = LAMBDA * np.eye(g.size) + sum(np.outer(h, h) for h, _, _ in rounds)
            theta = np.linalg.solve(matrix, sum(h * r for h, _, r in rounds))
            return theta @ g, math.sqrt(g @ np.linalg.solve(matrix, g))

        actions = [point["action"] for point in case["inputs"]]
        results = {
            "diagonal": [diagonal(g, rounds) for g in test],
            "per-action": [diagonal(g, [q for q in rounds if q[1] == a]) for g, a in zip(test, actions)],
            "exact": [exact(g) for g in test],
        }
        for kind, pairs in results.items():
            case[kind] = {"means": [mean for mean, _ in pairs], "widths": [width for _, width in pairs]}
        cases.append(case)
    return cases


# ------------------------------------------------- check of the files, without JAX


def flat(params):
    """The numbers of a params object, in the order of its fields."""
    parts = [params[key] for key in PARAM_KEYS if params[key] is not None]
    arrays = [array for part in parts for array in (part if isinstance(part, list) else [part])]
    return np.concatenate([np.ravel(array) for array in arrays])


def numpy_f(case, p, u):
    """The network's output from flat parameters p, real or complex."""
    m, hidden, n_in = case["width"], case["depth"] - 1, len(u)
    sizes = [(m, n_in)] + [(m, m)] * (hidden - 1)
    groups = [sizes] + [[(m,)] * hidden] * (case["biases"] + 2 * case["layer_norm"])
    position, taken = 0, []
    for group in groups + [[(m,)]]:
        taken.append([])
        for shape in group:
            size = math.prod(shape)
            taken[-1].append(p[position : position + size].reshape(shape))
            position += size
    h = u
    for layer in range(hidden):
        z = taken[0][layer].dot(h)
        if case["biases"]:
            z = z + taken[1][layer]
        if case["layer_norm"]:
            z = z - z.sum() / m
            z = z / ((z * z).sum() / m + LN_EPS) ** 0.5
            z = z * taken[-3][layer] + taken[-2][layer]
        h = np.where(z.real > 0, z, 0)
    f = taken[-1][0].dot(h) * (m**0.5 if case["output_scale"] == "sqrt-width" else 1)
    return f + p[-1] if case["biases"] else f


def complex_step(case, p, u):
    """Gradient of numpy_f: Im f(p + i h e_j) / h, exact to rounding."""
    return np.array([numpy_f(case, p + 1e-30j * e, u).imag / 1e-30 for e in np.eye(p.size)])


def central(case, p, u, h=1e-6):
    return np.array([(numpy_f(case, p + h * e, u) - numpy_f(case, p - h * e, u)) / (2 * h) for e in np.eye(p.size)])


def same(got, want, tolerance, what):
    error = np.max(np.abs(np.subtract(got, want)) / np.maximum(1, np.abs(want)))
    assert error <= tolerance, f"{what}: {error}"
    return error


def check_net(case):
    """Recomputes the gradients, both S-mode runs and what depends on the first one."""
    name, m, k = case["name"], case["width"], case["n_actions"]
    us, inputs = encode(case, case["rounds"]), encode(case, case["inputs"])
    rewards = [point["reward"] for point in case["rounds"]]
    start, worst = flat(case["params"]), 0.0

    def width(g, diagonal):
        return np.sqrt(np.sum(g * g / diagonal) / m)

    for f, gradient, u in zip(case["f"], case["gradients"], inputs):
        worst = max(worst, same(numpy_f(case, start, u), f, 1e-12, name))
        worst = max(worst, same(complex_step(case, start, u), flat(gradient), 1e-12, name))
        same(central(case, start, u), flat(gradient), 1e-6, name)
    for run in case["s_mode"]:
        p, centre = start, start if run["towards"] == "initial" else 0 * start
        first, second, diagonal = 0 * start, 0 * start, 0 * start + LAMBDA
        matrix, after = LAMBDA * np.eye(p.size), np.full((k, p.size), LAMBDA)
        for t, u in enumerate(us):
            grads = [complex_step(case, p, v) for v in inputs]
            worst = max(worst, same([numpy_f(case, p, v) for v in inputs], run["means"][t], 1e-11, name))
            worst = max(worst, same([width(g, diagonal) for g in grads], run["widths"][t], 1e-11, name))
            g = complex_step(case, p, u)
            diagonal, matrix = diagonal + g * g / m, matrix + np.outer(g, g) / m
            slope = (numpy_f(case, p, u) - rewards[t]) * g + L2 * (p - centre)
            first = BETA1 * first + (1 - BETA1) * slope
            second = BETA2 * second + (1 - BETA2) * slope**2
            p = p - RATE * first / (1 - BETA1 ** (t + 1)) / (np.sqrt(second / (1 - BETA2 ** (t + 1))) + EPS)
            after[case["rounds"][t]["action"]] += complex_step(case, p, u) ** 2 / m
        grads = [complex_step(case, p, v) for v in inputs]
        worst = max(worst, same(p, flat(run["final_params"]), 1e-11, name))
        worst = max(worst, same(diagonal, flat(run["final_lambda"]), 1e-11, name))
        worst = max(worst, same([numpy_f(case, p, v) for v in inputs], run["final_means"], 1e-11, name))
        worst = max(worst, same([width(g, diagonal) for g in grads], run["final_widths"], 1e-11, name))
        if run["towards"] == "zero":
            exact = [np.sqrt(g @ np.linalg.inv(matrix) @ g / m) for g in grads]
            worst = max(worst, same(exact, case["exact"]["final_widths"], 1e-11, name))
            released = [width(g, after[q["action"]]) for g, q in zip(grads, case["inputs"])]
            worst = max(worst, same(released, case["released_order"]["final_widths"], 1e-11, name))
            for a in range(k):
                worst = max(worst, same(after[a], flat(case["released_order"]["final_lambdas"][a]), 1e-11, name))
    p = start  # Algorithm 1
    for t, u in enumerate(us):
        slope = (numpy_f(case, p, u) - rewards[t]) * complex_step(case, p, u) + m * LAMBDA * (p - start)
        p = p - RATE / np.sqrt(t + 1) * slope
    worst = max(worst, same(p, flat(case["sgd"]["final_params"]), 1e-11, name))
    p, first, second = start, 0 * start, 0 * start  # three steps on the batch
    for t in range(3):
        slope = sum((numpy_f(case, p, u) - r) * complex_step(case, p, u) for u, r in zip(us, rewards)) / len(us) + L2 * p
        first = BETA1 * first + (1 - BETA1) * slope
        second = BETA2 * second + (1 - BETA2) * slope**2
        p = p - RATE * first / (1 - BETA1 ** (t + 1)) / (np.sqrt(second / (1 - BETA2 ** (t + 1))) + EPS)
    return max(worst, same(p, flat(case["batch"]["final_params"]), 1e-11, name))


def check_regression(case, features, test, tolerance):
    """Means and widths of ridge regression in its kernel (dual) form."""
    rewards = np.array([point["reward"] for point in case["rounds"]])
    lam, cross = case["lambda"], test @ features.T
    inverse = np.linalg.inv(features @ features.T + lam * np.eye(len(rewards)))
    squared = (test**2).sum(1) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    return max(
        same(cross @ inverse @ rewards, case["means"], tolerance, case["name"]),
        same(np.sqrt(squared / lam), case["widths"], tolerance, case["name"]),
    )


def check():
    for file in ("net", "linear", "kernel", "neural_linear"):
        path = HERE / f"{file}.json"
        cases = json.loads(path.read_text())["cases"]
        worst = 0.0
        for case in cases:
            us, inputs = encode(case, case["rounds"]), encode(case, case["inputs"])
            if file == "net":
                error = check_net(case)
            elif file == "linear":
                error = check_regression(case, us, inputs, 1e-11)
            elif file == "kernel":
                rewards = np.array([point["reward"] for point in case["rounds"]])
                got = posterior_plain(us, rewards, inputs, case["lambda"], case["sigma"])
                error = same(got, [case["means"], case["widths"]], case["tolerance"], case["name"])
            else:
                p = flat(case["params"])
                features, test = (np.array([complex_step(case, p, u) for u in part]) for part in (us, inputs))
                error = check_regression(case | case["exact"], features, test, 1e-10)
                rewards = np.array([point["reward"] for point in case["rounds"]])
                acted, wanted = (np.array([q["action"] for q in case[part]]) for part in ("rounds", "inputs"))
                for kind, of in (("diagonal", lambda a: acted >= 0), ("per-action", lambda a: acted == a)):
                    spread = np.array([LAMBDA + (features[of(a)] ** 2).sum(0) for a in wanted])
                    theta = np.array([rewards[of(a)] @ features[of(a)] for a in wanted]) / spread
                    got = [(theta * test).sum(1), np.sqrt((test**2 / spread).sum(1))]
                    error = max(error, same(got, [case[kind]["means"], case[kind]["widths"]], 1e-11, case["name"]))
            worst = max(worst, error)
        print(f"{path.name}: {path.stat().st_size} bytes, {len(cases)} cases, largest deviation {worst:.1e}")


def main():
    if sys.argv[1:] != ["--check"]:
        nets = net_cases()
        adam = {"beta1": BETA1, "beta2": BETA2, "epsilon": EPS}
        settings = {"lambda": LAMBDA, "learning_rate": RATE, "l2": L2, "adam": adam, "layer_norm_epsilon": LN_EPS}
        write("net.json", nets, settings=settings)
        write("linear.json", linear_cases())
        write("kernel.json", kernel_cases())
        write("neural_linear.json", neural_linear_cases(nets))
    check()


if __name__ == "__main__":
    main()
