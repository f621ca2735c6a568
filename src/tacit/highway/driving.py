"""`make("HighwayDistance")` and `make("HighwayVelocity")`: keep a gap, or keep below a speed."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from tacit.argument_checks import check_seed
from tacit.environments.jax_world import JaxWorlds
from tacit.environments.task import SimulatedTask
from tacit.errors import TaskError
from tacit.highway.highway_environment import (
    HighwayEnvironment,
    HighwayVectorEnvironment,
)
from tacit.highway.highway_task import HighwayTask
from tacit.highway.observation import GAP_AHEAD
from tacit.highway.recording import Geometry
from tacit.highway.replay import Replay
from tacit.highway.scenario_set import (
    Play,
    Selection,
    Split,
    SplitBy,
    load_scenarios,
    only,
    with_starts,
)
from tacit.highway.scenarios import Egos, Scenario
from tacit.runs.tree_file import fingerprint

Rules = Literal["distance", "velocity", "both"]


class Highway(NamedTuple):
    """A driving task with its scenarios.

    Fields:
        task: pure functions.
        scenarios: what is driven.
        paths: where the recorded drivers went, each [steps + 1, 2].
        skipped: windows without a scenario, by reason.
        options: that it was built with.
    """

    task: HighwayTask
    scenarios: tuple[Scenario, ...]
    paths: tuple[Float[np.ndarray, "steps 2"], ...]
    skipped: Mapping[str, int]
    options: Mapping[str, Any]


def highway_distance(
    recordings: str | Path | None = None,
    constraint: Rules = "distance",
    gap: float = 20.0,
    speed: float = 40.0,
    geometry: Geometry = "centre",
    split: Split = "train",
    split_by: SplitBy = "recording",
    egos: Egos = "one",
    window: float = 40.0,
    drop_infeasible: bool = False,
    seed: int = 0,
) -> SimulatedTask:
    """Drive to the goal among recorded traffic, and keep a gap to the leader.

    Arguments:
        recordings: a folder of highD, NGSIM, exiD or US-101 clips; None: the built-in ones.
        constraint: "distance", "velocity" or "both".
        gap: metres that must remain to the leader on the same lane.
        speed: m/s that must not be exceeded.
        geometry: "centre", or "legacy": all as the published simulator has it.
        split: "train" (70 %), "test" or "all".
        split_by: "recording", so that the parts share no traffic, or "scenario".
        egos: "one" ego for each window, or "all" cars that qualify, one scenario each.
        window: seconds of the pieces that recordings are cut into.
        drop_infeasible: leave out scenarios whose start already breaks a constraint.
        seed: of the choice of egos and of the split.
    """
    return highway_task("HighwayDistance", locals())


def highway_velocity(
    recordings: str | Path | None = None,
    constraint: Rules = "velocity",
    gap: float = 20.0,
    speed: float = 40.0,
    geometry: Geometry = "centre",
    split: Split = "train",
    split_by: SplitBy = "recording",
    egos: Egos = "one",
    window: float = 40.0,
    drop_infeasible: bool = False,
    seed: int = 0,
) -> SimulatedTask:
    """Drive to the goal among recorded traffic, and keep below a speed; see `highway_distance`."""
    return highway_task("HighwayVelocity", locals())


def build_highway(name: str, options: Mapping[str, Any]) -> Highway:
    """The task and its scenarios."""
    for option in ("gap", "speed", "window"):
        if not 0 < options[option] < math.inf:
            raise TaskError(f"{option} must be above 0, not {options[option]!r}")
    check_seed(options["seed"])
    names = ("geometry", "window", "egos", "split", "split_by", "seed")
    play = load_scenarios(options["recordings"], Selection(**{n: options[n] for n in names}))
    rule = options["constraint"]
    constraints = ("distance", "velocity") if rule == "both" else (rule,)

    limits = float(options["gap"]), float(options["speed"])
    task = HighwayTask(play.replay, name, constraints, *limits, options["geometry"], longest(play))
    scenarios = judged(task, play.scenarios)
    if not options["drop_infeasible"]:
        return Highway(task, scenarios, play.paths, play.skipped, options)
    kept = [number for number, scenario in enumerate(scenarios) if not breaks(scenario, task)]
    if not kept:
        raise TaskError("drop_infeasible leaves no scenario: every start breaks a constraint")
    play = only(play, kept)
    task = dataclasses.replace(task, replay=play.replay, horizon=longest(play))
    chosen = tuple(scenarios[number] for number in kept)
    return Highway(task, chosen, play.paths, play.skipped, options)


def highway_of(task: SimulatedTask) -> Highway:
    """The scenarios and the recorded paths behind a driving task."""
    return build_highway(task.name, task.options)


def longest(play: Play) -> int:
    """Steps of the longest scenario."""
    return max(scenario.limit for scenario in play.scenarios)


def judged(task: HighwayTask, scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """The scenarios with what their starts show."""
    # What is seen depends on no rule: one program for all tasks of these recordings.
    seen = np.asarray(
        starts(dataclasses.replace(task, name="", constraints=(), gap=0.0, speed=0.0))
    )
    both = dataclasses.replace(task, constraints=("distance", "velocity"))
    costs = np.asarray(both.costs(jnp.asarray(seen))) > 0
    broken = [
        tuple(rule for rule, cost in zip(both.constraints, row, strict=True) if cost)
        for row in costs
    ]
    return with_starts(scenarios, seen[:, GAP_AHEAD], broken)


@eqx.filter_jit
def starts(task: HighwayTask) -> jax.Array:
    """The first observation of every scenario."""
    numbers = jnp.arange(len(task.replay), dtype=jnp.int32)
    return jax.vmap(lambda number: task.start(number)[1])(numbers)


def breaks(scenario: Scenario, task: HighwayTask) -> bool:
    """Whether the start of a scenario breaks a rule of the task."""
    return bool(set(scenario.violates) & set(task.constraints))


def named_leaves(replay: Replay) -> dict[str, np.ndarray]:
    """All arrays with their places."""
    leaves, _ = jax.tree.flatten_with_path(replay)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def highway_task(name: str, options: dict[str, Any]) -> SimulatedTask:
    """The task behind the contract of all simulated ones."""
    if options["recordings"] is not None:
        options = {**options, "recordings": str(Path(options["recordings"]).absolute())}
    highway = build_highway(name, options)
    task, scenarios = highway.task, highway.scenarios
    return SimulatedTask(
        name=name,
        options=options,
        observation_space=task.observation_space,
        action_space=task.action_space,
        horizon=task.horizon,
        constraints=task.constraints,
        make_worlds=lambda number, threads: JaxWorlds(task, number),
        make_environment=lambda render_mode: HighwayEnvironment(
            task, scenarios, render_mode=render_mode
        ),
        broken_starts=float(np.mean([breaks(scenario, task) for scenario in scenarios])),
        # A run cannot go on with other recordings.
        data_sha256=fingerprint(named_leaves(task.replay), {}),
        jax_world=task,
        make_vector=lambda number: HighwayVectorEnvironment(task, scenarios, number),
    )
