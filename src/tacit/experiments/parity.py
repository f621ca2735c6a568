"""Does learning by sampling agree with the exact computation? On the chain and two grids.

Every number of demonstrations at every confidence, over several data sets: `SampledRounds` against
`tacit.infer` without sampling, on the same demonstrations. Both policies are judged exactly.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tacit.control.expert import collect, train_expert
from tacit.control.ppo import PPO
from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate, mean_interval
from tacit.evaluation.violation import exact_performance
from tacit.experiments.coverage import Progress, identity, read_json, write_json
from tacit.experiments.methods_table import pipes
from tacit.inference.data_set import DataSet
from tacit.inference.infer import infer_tabular
from tacit.inference.round_settings import round_settings
from tacit.inference.sampled_ca_icrl import SampledRounds
from tacit.inference.sampled_ending import PRICES, Ending, endings, facts
from tacit.inference.sampling_plans import PLANS
from tacit.runs import versions
from tacit.runs.atomic_write import atomic_write
from tacit.runs.settings_file import keep_settings

WITHIN = 0.05
COLUMNS = ["task", "N", "confidence", "violation exact", "sampled", "difference"]
COLUMNS += ["reward exact", "sampled", "difference", "runs off"]


@dataclass(frozen=True)
class ParitySettings:
    """What the experiment runs over.

    Fields:
        confidences: the levels lambda.
        numbers: numbers of demonstrations N.
        seeds: of the data sets and of the learning, one run for each.
        iterations: updates of PPO in a round; None for as many as `tacit.infer` makes.
    """

    confidences: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
    numbers: tuple[int, ...] = (5, 20, 100)
    seeds: tuple[int, ...] = tuple(range(1, 11))
    iterations: int | None = None


@dataclass(frozen=True)
class Row:
    """One task, number of demonstrations and confidence: both ways and how they differ.

    Fields:
        task: its name.
        number: N.
        confidence: lambda.
        violation, reward: of the exact way, of sampling, and the difference, each a mean over data
            sets; reward from 0, that of random actions, to 1, that of the best without any rule.
        off: share of the runs that differ by more than 0.05 in one of them.
    """

    task: str
    number: int
    confidence: float
    violation: tuple[float, float, Estimate]
    reward: tuple[float, float, Estimate]
    off: float

    @property
    def agrees(self) -> bool:
        """Whether both differences are within 0.05."""
        return max(abs(self.violation[2].value), abs(self.reward[2].value)) <= WITHIN


def parity_tasks() -> list[TabularTask]:
    """The chain and two grids, with rewards that are worth breaking a rule for."""
    grids = (grid_world(layout, reward_scale=3.0) for layout in ("open", "gate"))
    return [chain(reward_scale=3.0), *grids]


def run_parity(
    out: Path,
    settings: ParitySettings,
    *,
    together: int = 1,
    tasks: Sequence[TabularTask] | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Run into the folder `out`, or go on; writes parity.md and parity.json.

    Arguments:
        out: the folder.
        settings: what to run over.
        together: data sets that are learned from side by side: many on an accelerator, one on a few
            cores.
        tasks: others than `parity_tasks`.
        progress: is told what is done.
    """
    if together < 1:
        raise ArgumentError(f"together must be at least 1, not {together}")
    if len(settings.seeds) < 2:
        raise ArgumentError("there must be at least 2 seeds for an interval")
    tasks, tell = tasks or parity_tasks(), progress or (lambda *_: None)
    described = {
        "tasks": [identity(task) for task in tasks],
        **asdict(settings),
        "ppo": asdict(round_settings(tasks[0])),
        "plans": [list(plan) for plan in PLANS],
        "splices": PRICES,
    }
    keep_settings(out / "settings.json", described, "parity")
    pairs = [(number, seed) for number in settings.numbers for seed in settings.seeds]
    levels, rows = settings.confidences, []
    total = len(tasks) * len(pairs) * len(levels)
    for place, task in enumerate(tasks):
        folder = out / "runs" / identity(task).replace(" ", "-")
        sets: dict[tuple[int, int], Any] = {}
        for start in range(0, len(pairs), together):
            tell((place * len(pairs) + start) * len(levels), total, task.name)
            part = runs_of(pairs[start : start + together], levels)
            missing = [run for run in part if not file_of(folder, run).exists()]
            if missing:
                sets = sets or drawn(task, settings)
                for run, record in zip(missing, played(task, missing, sets, settings), strict=True):
                    write_json(file_of(folder, run), record)
        records = [read_json(file_of(folder, run)) for run in runs_of(pairs, levels)]
        rows += summed_up(task, settings, records)
    tell(total, total, "done")
    write_table(out, rows)
    return rows


def runs_of(
    pairs: Sequence[tuple[int, int]], levels: Sequence[float]
) -> list[tuple[int, int, float]]:
    """Every data set, by its number and seed, at every confidence."""
    return [(number, seed, level) for number, seed in pairs for level in levels]


def file_of(folder: Path, run: tuple[int, int, float]) -> Path:
    """Where a run is kept."""
    number, seed, level = run
    return folder / f"{number}-{seed}-{level!r}.json"


def drawn(task: TabularTask, settings: ParitySettings) -> dict[tuple[int, int], Any]:
    """The demonstrations of every number and seed."""
    expert = train_expert(task)
    return {
        (number, seed): collect(expert, number, seed=seed)
        for number in settings.numbers
        for seed in settings.seeds
    }


def played(
    task: TabularTask,
    runs: list[tuple[int, int, float]],
    sets: dict[tuple[int, int], Any],
    settings: ParitySettings,
) -> list[dict[str, Any]]:
    """Learn both ways, and judge what was learned."""
    # Small steps one after the other, in double precision: nothing for an accelerator.
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        exact = [
            worth(task, infer_tabular(task, sets[number, seed], level, seed).policy)
            for number, seed, level in runs
        ]
    forward = round_settings(task)
    if settings.iterations is not None:
        forward = replace(forward, steps=settings.iterations * forward.batch)
    distinct = sorted({(number, seed) for number, seed, _ in runs})
    rounds = learned(task, distinct, sets, forward)
    places = [distinct.index((number, seed)) for number, seed, _ in runs]
    found = endings(rounds, places, [level for *_, level in runs])
    return [
        {
            "exact": judged,
            "sampled": worth(task, ending.policy),
            **facts(rounds, ending),
            "policies": policies_met(ending),
            "versions": versions.installed(),
        }
        for judged, ending in zip(exact, found, strict=True)
    ]


def learned(
    task: TabularTask,
    distinct: list[tuple[int, int]],
    sets: dict[tuple[int, int], Any],
    forward: PPO,
) -> SampledRounds:
    """By sampling; a data set finds out once what tempts, for all of its confidences."""
    counts = [DataSet.of(task, sets[pair]) for pair in distinct]
    rounds = SampledRounds(task, counts, [seed for _, seed in distinct], forward)
    while not rounds.finished:
        rounds.advance()
    return rounds


def policies_met(ending: Ending) -> list[dict[str, float]]:
    """What each policy costs, at which price, and how much of it is in the mixture."""
    numbers, names = (ending.weights, ending.spent, ending.prices), ("weight", "cost", "price")
    return [dict(zip(names, map(float, each), strict=True)) for each in zip(*numbers, strict=True)]


def worth(task: TabularTask, policy: np.ndarray) -> list[float]:
    """Violation and reward of a policy, exactly."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        judged = exact_performance(task, policy)
    return [judged.violation, judged.reward]


def reward_scale(task: TabularTask) -> tuple[float, float]:
    """What random actions earn, and the best policy without any rule."""
    random, best = np.zeros(task.number_of_states), np.zeros(task.number_of_states)
    for _ in range(task.horizon):
        random = (task.rewards + task.transitions @ random).mean(axis=1)
        best = (task.rewards + task.transitions @ best).max(axis=1)
    return float(task.initial @ random), float(task.initial @ best)


def summed_up(
    task: TabularTask, settings: ParitySettings, records: list[dict[str, Any]]
) -> list[Row]:
    """The rows of one task, from its runs in their order."""
    shape = (len(settings.numbers), len(settings.seeds), len(settings.confidences), 2)
    exact, sampled = (
        np.array([record[way] for record in records]).reshape(shape) for way in ("exact", "sampled")
    )
    low, high = reward_scale(task)
    for values in (exact, sampled):
        values[..., 1] = (values[..., 1] - low) / (high - low)
    rows = []
    for i, number in enumerate(settings.numbers):
        for j, level in enumerate(settings.confidences):
            mine, theirs = sampled[i, :, j], exact[i, :, j]
            compared = [
                (
                    float(theirs[:, k].mean()),
                    float(mine[:, k].mean()),
                    mean_interval(mine[:, k] - theirs[:, k]),
                )
                for k in range(2)
            ]
            off = float((np.abs(mine - theirs).max(axis=1) > WITHIN).mean())
            rows.append(Row(task.name, number, level, compared[0], compared[1], off))
    return rows


def parity_table(
    rows: Sequence[Row], *, intervals: bool = True
) -> tuple[list[str], list[list[str]]]:
    """Columns and cells."""

    def compared(values: tuple[float, float, Estimate]) -> list[str]:
        exact, sampled, gap = values
        difference = f"{gap.value:+.3f}"
        if intervals:
            difference += f" [{gap.low:+.3f}, {gap.high:+.3f}]"
        return [f"{exact:.3f}", f"{sampled:.3f}", difference]

    return COLUMNS, [
        [
            row.task,
            str(row.number),
            f"{row.confidence:g}",
            *compared(row.violation),
            *compared(row.reward),
            f"{100 * row.off:.0f} %" + ("" if row.agrees else " !"),
        ]
        for row in rows
    ]


def write_table(out: Path, rows: Sequence[Row]) -> None:
    """parity.md for people, parity.json for programs."""
    agreeing = sum(row.agrees for row in rows)
    text = (
        "# Sampling against the exact computation\n\n"
        f"{agreeing} of {len(rows)} cells agree: violation and reward differ by at most {WITHIN} "
        "in the mean over data sets. Reward is 0 for random actions and 1 for the best policy "
        "without any rule. Differences with 95 % intervals (bootstrap over data sets). Runs off: "
        f"those that differ by more than {WITHIN} by themselves. !: the cell does not agree.\n\n"
    )
    with atomic_write(out / "parity.md") as part:
        part.write_text(text + pipes(*parity_table(rows)) + "\n", encoding="utf-8")
    write_json(out / "parity.json", [asdict(row) for row in rows])
