"""Measure what ever more experts cost CA-ICRL, and what it loses by listening to some of them.

    python benchmarks/expert_sets.py [--quick]

prints, for 100 to 20,000 experts of 1,000 steps of the size of the half-cheetah's, the time of one
update of the constraint relative to that with 200 experts, the time to price a rollout, and the
peak memory of the process; each number of experts has a process of its own. Then it compares the
belief that random subsets of the experts give with that of all of them. Exits with 1 if 20,000
experts take more than 3 times as long as 200, or a process more than 4 GiB.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from memory import peak
from subset_beliefs import MODELS, QUERIES, Difference, compare_beliefs
from timing import Row, Target, describe_machine, show, timed, verdict

import tacit
from tacit.control.learner import Rollout
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.inference.encoder.method import CAICRL
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Inputs
from tacit.inference.method import Moment, Round
from tacit.inference.replay import Replay

TASK = "BlockedHalfCheetah"
NUMBERS = (100, 200, 1000, 5000, 20_000)
COMPARED_NUMBERS = (1000, 20_000)
BASE = 200
SLOWEST, MOST_GIB = 3.0, 4.0
ROLLOUT, WORLDS, ROUNDS = 128, 64, 5
REPEATS = 3
CONFIDENCE = 0.8
SUBSETS, UPDATES = 30, 20
# Of the synthetic trajectories: how much of a step stays in the next, how experts differ, and how
# far from them policies are: so little that the experts' votes differ, too.
STAYS, PERSONAL, ELSEWHERE = 0.95, 0.5, 0.2
EXPERTS_AT_ONCE = 200


def smooth(values: np.ndarray, shift: np.ndarray, generator: np.random.Generator) -> None:
    """Fill [n, T, d] with AR(1) processes of unit variance around `shift`, in place."""
    for begin in range(0, len(values), EXPERTS_AT_ONCE):
        part = values[begin : begin + EXPERTS_AT_ONCE]
        generator.standard_normal(out=part, dtype=np.float32)
        part[:, 1:] *= np.float32((1 - STAYS**2) ** 0.5)
        for step in range(1, part.shape[1]):
            part[:, step] += np.float32(STAYS) * part[:, step - 1]
        part += shift[begin : begin + EXPERTS_AT_ONCE]


def make_experts(number: int, steps: int) -> ExpertSteps:
    """Demonstrations that were made up, in memory for one copy of them."""
    task = tacit.make(TASK)
    generator = np.random.default_rng(0)
    sizes = task.observation_space.shape[0], math.prod(task.action_space.shape or ())
    arrays = [
        np.empty((number, steps + 1, sizes[0]), np.float32),
        np.empty((number, steps, sizes[1]), np.float32),
        np.empty((number, steps, 1), np.float32),
    ]
    for array in arrays:
        shift = PERSONAL * generator.standard_normal((number, 1, array.shape[2]), np.float32)
        smooth(array, shift, generator)
    np.clip(arrays[1], -1, 1, out=arrays[1])
    for array in arrays:
        array.setflags(write=False)
    seen, done, rewards = arrays
    return ExpertSteps.of(
        task, Trajectories(seen, done, rewards[:, :, 0], np.full(number, steps, np.int64))
    )


def make_rollout(sizes: tuple[int, int], generator: np.random.Generator) -> Rollout:
    """A made-up rollout of a policy that goes elsewhere."""
    seen, done = (np.empty((WORLDS, ROLLOUT, size), np.float32) for size in sizes)
    for array in (seen, done):
        smooth(array, np.full((WORLDS, 1, array.shape[2]), ELSEWHERE, np.float32), generator)
    blank: Any = np.zeros((ROLLOUT, WORLDS), np.float32)
    return Rollout(
        observations=np.swapaxes(seen, 0, 1).copy(),  # pyright: ignore[reportArgumentType]
        arrived=np.swapaxes(seen, 0, 1).copy(),  # pyright: ignore[reportArgumentType]
        actions=np.clip(np.swapaxes(done, 0, 1), -1, 1),  # pyright: ignore[reportArgumentType]
        rewards=blank,
        costs=blank[..., None],
        terminated=blank.astype(bool),
        truncated=blank.astype(bool),
    )


def measure(number: int, method: CAICRL, steps: int, subsets: int) -> dict[str, Any]:
    """Seconds of an update and of pricing a rollout, then the belief of subsets, and the peak."""
    began = time.perf_counter()
    experts = make_experts(number, steps)
    facts: dict[str, Any] = {"made": time.perf_counter() - began}
    generator = np.random.default_rng(1)
    sizes = experts.observations.shape[2], experts.actions.shape[2]
    rollout = make_rollout(sizes, generator)
    replay = Replay.start(method.rounds, method.sample(rollout, generator))
    for _ in range(ROUNDS):
        replay.add(method.sample(make_rollout(sizes, generator), generator), generator)
    seen = np.asarray(experts.draw(10_000, generator).observations)
    space = tacit.make(TASK).action_space
    inputs = Inputs.fit(space, seen, np.asarray(rollout.observations).reshape(-1, sizes[0]))
    learned = method.begin(inputs, experts, PPO(worlds=WORLDS), key=jax.random.key(0))
    # Episodes of length 1 do not drift: every update makes all its passes, whatever N is.
    given = Round(experts, replay, generator, 0.0, 1.0, CONFIDENCE)

    def update() -> None:
        nonlocal learned
        learned, told = method.update(learned, given, key=jax.random.key(1))
        facts["passes"] = min(told["constraint_passes"], facts.get("passes", np.inf))
        jax.block_until_ready(jax.tree.leaves(learned))

    def price() -> None:
        method.judge(learned, rollout, Moment(CONFIDENCE, exploring=False))

    for name, function in {"update": update, "price": price}.items():
        function()
        facts[name] = float(np.median([timed(function) for _ in range(REPEATS)]))
    # Taken before the comparison, which a run does not make.
    facts["peak"] = peak()
    if subsets:
        for _ in range(UPDATES):
            update()
        facts["beliefs"] = compare_beliefs(method, learned, given, subsets)
    return facts


def in_own_process(number: int, quick: bool) -> dict[str, Any]:
    """`measure`, where nothing else has taken memory before."""
    command = [sys.executable, __file__, "--experts", str(number), *["--quick"] * quick]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def show_cost(found: dict[int, dict[str, Any]], steps: int) -> bool:
    """Print time and memory; whether the targets were met."""
    rows = []
    for number, facts in found.items():
        share = facts["update"] / found[BASE]["update"]
        cells = (
            f"{number:,}",
            f"{facts['update']:.2f}",
            f"{facts['passes']:.0f}",
            f"{facts['price']:.2f}",
        )
        target = Target(SLOWEST, at_most=True) if number == max(found) else None
        rows.append(Row(cells, f"{share:.2f}", share, target))
    in_time = show(
        f"Update of the constraint; cost of {ROLLOUT} x {WORLDS} steps; experts of {steps} steps",
        ("experts", "update s", "passes", "cost s", "ratio"),
        rows,
    )
    limit = Target(MOST_GIB, at_most=True)
    in_memory = show(
        "Peak memory of the process, demonstrations included",
        ("experts", "made in s", "GiB"),
        [
            Row(
                (f"{number:,}", f"{facts['made']:.1f}"),
                f"{facts['peak']:.2f}",
                facts["peak"],
                limit,
            )
            for number, facts in found.items()
        ],
    )
    return in_time and in_memory


def show_bias(found: dict[int, dict[str, Any]], subsets: int) -> None:
    """Print how far subsets are from all."""
    compared = {number: facts["beliefs"] for number, facts in found.items() if "beliefs" in facts}
    for model in MODELS:
        rows = [
            Row((f"{number:,}", *cells), shown, 0.0)
            for number, beliefs in compared.items()
            for *cells, shown in (Difference(*fields).cells() for fields in beliefs[model])
        ]
        show(
            f"Random subsets against all experts, {model}: {subsets} subsets, {QUERIES} queries",
            ("experts", "belief", "of all", "bias", "error", "spread"),
            rows,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    parser.add_argument("--experts", type=int, metavar="N", help="measure N, print it as JSON")
    given = parser.parse_args()
    quick = given.quick
    steps, subsets = (50, 3) if quick else (1000, SUBSETS)
    compared = (BASE,) if quick else COMPARED_NUMBERS
    if given.experts:
        # The objective that looks at past policies too.
        method = CAICRL(objective="contrast", reading="graded")
        if quick:
            method = replace(method, passes=2, width=8, layers=1, tokens=4)
        facts = measure(given.experts, method, steps, subsets * (given.experts in compared))
        print(json.dumps(facts))
        return 0
    if not Path("/proc/self/status").exists():
        print("no measure of memory: this system has no /proc")
        return 0
    describe_machine()
    numbers = (BASE,) if quick else NUMBERS
    found = {number: in_own_process(number, quick) for number in numbers}
    met = show_cost(found, steps)
    show_bias(found, subsets)
    return verdict(met, quick=quick)


if __name__ == "__main__":
    sys.exit(main())
