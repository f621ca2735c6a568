"""`make("HighwayDistance")` and `make("HighwayVelocity")`: keep a gap, or keep below a speed.

Recordings become scenarios, one recording in memory at a time, and are split into a training and a
test part.
"""

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from tacit.highway.builtin_recordings import builtin_folder
from tacit.highway.driving_step import HighwayTask
from tacit.highway.highway_environment import HighwayEnvironment, HighwayVectorEnvironment
from tacit.highway.observation import GAP_AHEAD, OBSERVATION_NAMES
from tacit.highway.recording import Geometry, RecordingError
from tacit.highway.recording_folder import RecordingSource, find_recordings
from tacit.highway.replay import Piece, Replay, piece_of, stack_replay
from tacit.highway.scenarios import Egos, Scenario, cast_window, windows
from tacit.runs.tree_file import fingerprint, named_leaves

Rules = Literal["distance", "velocity", "both"]
Split = Literal["train", "test", "all"]
SplitBy = Literal["recording", "scenario"]
TRAINING_SHARE = 0.7


@dataclass(frozen=True)
class Selection:
    """Which scenarios to make out of recordings: options of `highway_distance`."""

    geometry: Geometry = "centre"
    window: float = 40.0
    egos: Egos = "one"
    split: Split = "train"
    split_by: SplitBy = "recording"
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Play:
    """Scenarios and their tables.

    Fields:
        replay: the tables that the step function looks things up in.
        scenarios: their descriptions.
        paths: where the recorded drivers went, each [steps + 1, 2].
        skipped: windows without a scenario, by reason.
    """

    replay: Replay
    scenarios: tuple[Scenario, ...]
    paths: tuple[Float[np.ndarray, "steps 2"], ...]
    skipped: Mapping[str, int]


class Highway(NamedTuple):
    """A driving task, the options that it was built with, and its scenarios as in `Play`."""

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


def highway_task(name: str, options: dict[str, Any]) -> SimulatedTask:
    """The driving task as a `SimulatedTask`."""
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
        observation_names=OBSERVATION_NAMES,
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


def build_highway(name: str, options: Mapping[str, Any]) -> Highway:
    """Load the scenarios that the options ask for, and make the task of them."""
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
    play = replace(play, scenarios=with_starts(task, play.scenarios))
    if options["drop_infeasible"]:
        kept = [k for k, scenario in enumerate(play.scenarios) if not breaks(scenario, task)]
        if not kept:
            raise TaskError("drop_infeasible leaves no scenario: every start breaks a constraint")
        play = only(play, kept)
        task = replace(task, replay=play.replay, horizon=longest(play))
    return Highway(task, play.scenarios, play.paths, play.skipped, options)


def highway_of(task: SimulatedTask) -> Highway:
    """The scenarios and the recorded paths behind a driving task."""
    return build_highway(task.name, task.options)


def longest(play: Play) -> int:
    """Steps of the longest scenario."""
    return max(scenario.limit for scenario in play.scenarios)


def with_starts(task: HighwayTask, scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """The scenarios with the gap at their start and the constraints that the start breaks."""
    # What is seen depends on no rule: one program for all tasks of these recordings.
    seen = np.asarray(starts(replace(task, name="", constraints=(), gap=0.0, speed=0.0)))
    both = replace(task, constraints=("distance", "velocity"))
    costs = np.asarray(both.costs(jnp.asarray(seen))) > 0
    broken = [
        tuple(rule for rule, cost in zip(both.constraints, row, strict=True) if cost)
        for row in costs
    ]
    return tuple(
        replace(scenario, start_gap=float(gap), violates=rules)
        for scenario, gap, rules in zip(scenarios, seen[:, GAP_AHEAD], broken, strict=True)
    )


@eqx.filter_jit
def starts(task: HighwayTask) -> jax.Array:
    """The first observation of every scenario."""
    numbers = jnp.arange(len(task.replay), dtype=jnp.int32)
    return jax.vmap(lambda number: task.start(number)[1])(numbers)


def breaks(scenario: Scenario, task: HighwayTask) -> bool:
    """Whether the start of a scenario breaks a rule of the task."""
    return bool(set(scenario.violates) & set(task.constraints))


def load_scenarios(folder: str | None, selection: Selection) -> Play:
    """The scenarios of all recordings in `folder`; None stands for the built-in ones.

    Two results are remembered until a file changes, because tasks are often made again.
    """
    place = builtin_folder() if folder is None else Path(folder)
    return read_scenarios(place, contents(place), selection)


def contents(folder: Path) -> tuple[tuple[Path, int, int], ...]:
    """The files in a folder of recordings, with their sizes and times."""
    places = [place for place in (folder, folder / "data") if place.is_dir()]
    paths = [path.absolute() for place in places for path in place.iterdir()]
    files = sorted(path for path in paths if path.is_file())
    return tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)


@functools.lru_cache(maxsize=2)
def read_scenarios(place: Path, files: tuple[Any, ...], selection: Selection) -> Play:
    """`load_scenarios` of a folder; another list of `files` makes it read the folder again."""
    del files
    sources = find_recordings(place)
    if selection.split_by == "recording":
        names = part_of([source.name for source in sources], selection)
        sources = tuple(source for source in sources if source.name in names)
        if not sources:
            raise TaskError(
                f"{place}: split='test' by recording needs two recordings or more; choose "
                "split_by='scenario' or split='all'"
            )
    pieces, skipped = gather(sources, selection)
    if selection.split_by == "scenario":
        if len(pieces) == 1 and selection.split == "test":
            raise TaskError(
                f"{place}: split='test' by scenario needs two scenarios or more; choose split='all'"
            )
        kept = part_of(range(len(pieces)), selection)
        pieces = [piece for number, piece in enumerate(pieces) if number in kept]
    if not pieces:
        why = ", ".join(f"{reason} ({number} windows)" for reason, number in skipped.items())
        raise RecordingError(f"{place}: no scenario can be made: {why or 'nothing is recorded'}")
    return Play(
        stack_replay(pieces),
        tuple(piece.scenario for piece in pieces),
        tuple(piece.path for piece in pieces),
        skipped,
    )


def gather(
    sources: Sequence[RecordingSource], selection: Selection
) -> tuple[list[Piece], Counter[str]]:
    """The scenarios of some recordings, read one at a time, and why windows have none."""
    pieces: list[Piece] = []
    skipped: Counter[str] = Counter()
    for source in sources:
        for carriageway in source.read(selection.geometry):
            for window in windows(carriageway, selection.window, selection.geometry):
                casts, reason = cast_window(
                    carriageway, window, selection.geometry, selection.egos, selection.seed
                )
                skipped.update([reason] if reason else [])
                pieces += [piece_of(carriageway, cast, selection.geometry) for cast in casts]
    return pieces, skipped


def part_of(things: Sequence[Any], selection: Selection) -> set[Any]:
    """The things that belong to the training or to the test part."""
    if selection.split == "all":
        return set(things)
    order = np.random.default_rng(selection.seed).permutation(len(things))
    # At least one for training: a single recording is all for training.
    border = max(round(TRAINING_SHARE * len(things)), 1)
    chosen = order[:border] if selection.split == "train" else order[border:]
    return {things[number] for number in chosen.tolist()}


def only(play: Play, kept: Sequence[int]) -> Play:
    """Select scenarios; the table of frames stays whole, as unused rows cost no time."""
    numbers = np.asarray(kept)
    replay = play.replay
    parts = {
        name: jax.tree.map(lambda field: field[numbers], getattr(replay, name))
        for name in ("first_row", "last_row", "dt", "position", "velocity", "around")
    }
    return Play(
        Replay(frames=replay.frames, **parts),
        tuple(play.scenarios[number] for number in kept),
        tuple(play.paths[number] for number in kept),
        play.skipped,
    )
