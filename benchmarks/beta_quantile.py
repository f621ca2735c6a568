"""Time and check `beta_quantile` and `QuantileTable` against `scipy.special.betaincinv`.

    python benchmarks/beta_quantile.py [--quick]

pins itself to one core and prints, for 4,096 points with alpha and beta log-spaced in [1, 20001],
the time of each path with both gradients as a ratio to SciPy's time for values only in the same
run, and the errors that `docs/guide/beta_quantile.md` quotes. Exits with 1 if a target is missed.
"""

import argparse
import itertools
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betaincinv

from tacit.inference.confidence.quantile import QuantileTable, beta_quantile

POINTS = 4096
PROBABILITIES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)
EXACT_AT_MOST, TABLE_AT_LEAST = 2.0, 10.0


def with_gradients(function):
    """Compile (alpha, beta) -> value and both slopes, point by point."""

    def pull_back(alpha, beta):
        value, pull = jax.vjp(function, alpha, beta)
        return value, *pull(jnp.ones_like(value))

    return jax.jit(pull_back)


def seconds(functions, rounds: int) -> list[float]:
    """Return the median time of each function, taken in turns so that all see the same machine."""
    times = [[] for _ in functions]
    for function in functions:
        jax.block_until_ready(function())
    for _ in range(rounds):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(function())
            record.append(time.perf_counter() - start)
    return [float(np.median(record)) for record in times]


def speed(dtype, probability: float, quick: bool) -> tuple[float, float]:
    """Print one line; return the ratios exact / SciPy and SciPy / table."""
    random = np.random.default_rng(0)
    alpha, beta = np.exp(random.uniform(0, np.log(20001), (2, POINTS))).astype(dtype)
    exact = with_gradients(lambda *shapes: beta_quantile(probability, *shapes))
    table = with_gradients(QuantileTable.build(probability))
    scipy, ours, interpolated = seconds(
        [
            lambda: betaincinv(alpha, beta, dtype(probability)),
            lambda: exact(alpha, beta),
            lambda: table(alpha, beta),
        ],
        rounds=3 if quick else 40,
    )
    print(
        f"{dtype.__name__:8} p = {probability:4}: SciPy {1e3 * scipy:6.2f} ms, "
        f"exact {1e3 * ours:6.2f} ms ({ours / scipy:4.2f} x SciPy's time), "
        f"table {1e3 * interpolated:6.3f} ms ({scipy / interpolated:5.1f} x faster)"
    )
    return ours / scipy, scipy / interpolated


def errors(dtype) -> None:
    """Print each path's worst error in value (against SciPy) and slope (against our float64)."""
    axis = np.geomspace(1, 20001, 40)
    alpha, beta = np.array(list(itertools.product(axis, axis))).astype(dtype).T
    worst = {name: np.zeros(2) for name in ("exact", "table", "paper")}
    for probability in PROBABILITIES:
        value = betaincinv(alpha.astype(float), beta.astype(float), float(dtype(probability)))
        with jax.enable_x64(True):
            reference = with_gradients(lambda *shapes, p=probability: beta_quantile(p, *shapes))
            slope = np.asarray(reference(alpha.astype(float), beta.astype(float))[1])
        paths = {
            "exact": lambda *shapes, p=probability: beta_quantile(p, *shapes),
            "table": QuantileTable.build(probability),
            "paper": lambda *shapes, p=probability: beta_quantile(p, *shapes, method="paper"),
        }
        matters = np.abs(slope) > 1e-6
        for name, path in paths.items():
            ours = [np.asarray(part, float) for part in with_gradients(path)(alpha, beta)]
            relative = np.abs(ours[1][matters] / slope[matters] - 1)
            found = (np.abs(ours[0] - value).max(), relative.max())
            worst[name] = np.maximum(worst[name], found)
    for name, (value, slope) in worst.items():
        reference = dtype is np.float64 and name == "exact"
        quality = "slope: the reference here" if reference else f"slope relative {slope:.1e}"
        print(f"{dtype.__name__:8} {name}: value error {value:.1e}, {quality}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    quick = parser.parse_args().quick
    met = True
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype == np.float64):
            for probability in (0.1, 0.3, 0.5, 0.9):
                exact, table = speed(dtype, probability, quick)
                met &= exact <= EXACT_AT_MOST and table >= TABLE_AT_LEAST
            errors(dtype)
    if quick:
        print("quick: everything ran, for too short a time to judge")
        return 0
    print("targets met" if met else "A TARGET WAS MISSED: exact at most 2 x, table at least 10 x")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
