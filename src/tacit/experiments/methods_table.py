"""The tables of the comparison of methods: one line per method, one line per cell."""

import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from tacit.evaluation.evaluate import summary
from tacit.evaluation.intervals import Estimate
from tacit.experiments.methods_cell import NONE, Comparison, Record
from tacit.reports.table import four_digits, markdown_table, p_value, percent
from tacit.runs.settings_file import installed_versions

REFERENCE = "reach"
SEEDS_FOR_TESTS = 3
PLACES = {"reward": 0, "feasible_reward": 1, "violation": 2}
COLUMNS = (
    "violation training",
    "violation execution",
    "feasible reward training",
    "feasible reward execution",
    "reward",
    "minutes",
)


@dataclass(frozen=True)
class Summary:
    """Means of one method over all seeds, in execution; None where nothing is known.

    Those of training are of its last episodes. `p_` is P of a t-test against `reach`, the default.
    """

    method: str
    seeds: int
    training_violation: float | None
    violation: Estimate
    training_feasible_reward: float | None
    feasible_reward: Estimate
    reward: Estimate
    minutes: float
    p_feasible_reward: float | None = None
    p_violation: float | None = None


def summaries(records: Sequence[Record]) -> list[Summary]:
    """One line per method, in the order of the records."""
    by_method: dict[str, list[Record]] = {}
    for record in records:
        by_method.setdefault(record.method, []).append(record)
    reference = by_method.get(REFERENCE, [])
    return [summary_of(own, reference) for own in by_method.values()]


def summary_of(records: list[Record], reference: list[Record]) -> Summary:
    """The summary of one method, given the records of the reference too."""
    if len(records) >= SEEDS_FOR_TESTS:
        over_seeds = {name: means(records, name) for name in PLACES}
        violation = student_interval(over_seeds["violation"], low=0.0, high=1.0)
        feasible = student_interval(over_seeds["feasible_reward"])
        reward = student_interval(over_seeds["reward"])
    else:
        pooled = summary(np.concatenate([record.execution for record in records]))
        violation, feasible, reward = pooled.violation, pooled.feasible_reward, pooled.reward
    other = reference if records[0].method != REFERENCE else []
    p = {name: t_test(means(records, name), means(other, name)) for name in PLACES}
    return Summary(
        method=records[0].method,
        seeds=len(records),
        training_violation=training_mean(records, "violation"),
        violation=violation,
        training_feasible_reward=training_mean(records, "feasible_reward"),
        feasible_reward=feasible,
        reward=reward,
        minutes=float(np.mean([record.minutes for record in records])),
        p_feasible_reward=p["feasible_reward"],
        p_violation=p["violation"],
    )


def means(records: Sequence[Record], name: str) -> np.ndarray:
    """The mean over the executed episodes of each record."""
    return np.array([np.mean(record.execution, axis=0)[PLACES[name]] for record in records])


def training_mean(records: Sequence[Record], name: str) -> float | None:
    """The mean over the last episodes of training, each seed weighing the same."""
    known = [np.mean(record.training, axis=0) for record in records if record.training]
    return float(np.mean(known, axis=0)[PLACES[name]]) if known else None


def student_interval(values: np.ndarray, low: float = -np.inf, high: float = np.inf) -> Estimate:
    """The mean with its 95 % t-interval, cut to what is possible.

    A bootstrap of so few values would be too narrow.
    """
    mean = float(values.mean())
    if np.ptp(values) == 0:
        return Estimate.exact(mean)
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return Estimate(mean, max(low, float(mean - half)), min(high, float(mean + half)))


def t_test(one: np.ndarray, two: np.ndarray) -> float | None:
    """P of the unpaired two-sided t-test; None with few seeds, or where nothing varies."""
    if min(len(one), len(two)) < SEEDS_FOR_TESTS:
        return None
    if np.ptp(one) == 0 and np.ptp(two) == 0:
        return None
    with warnings.catch_warnings():
        # SciPy warns of one sample without spread, such as violations of 0 with every seed.
        warnings.simplefilter("ignore", RuntimeWarning)
        test: Any = stats.ttest_ind(one, two)
    return float(test.pvalue)


def method_table(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: one row per method."""
    lines = summaries(records)
    columns = ["method", "seeds", *COLUMNS]
    rows = [
        [
            line.method,
            str(line.seeds),
            percent(line.training_violation),
            percent(line.violation),
            four_digits(line.training_feasible_reward),
            str(line.feasible_reward),
            str(line.reward),
            f"{line.minutes:.1f}",
        ]
        for line in lines
    ]
    if any(line.p_feasible_reward is not None or line.p_violation is not None for line in lines):
        columns += ["p feasible reward", "p violation"]
        for row, line in zip(rows, lines, strict=True):
            row += [p_value(line.p_feasible_reward), p_value(line.p_violation)]
    return columns, rows


def seed_table(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: one row per cell."""
    rows = []
    for record in records:
        facts = performance(record)
        rows.append(
            [
                record.method,
                str(record.seed),
                percent(facts["training_violation"]),
                percent(facts["violation"]),
                four_digits(facts["training_feasible_reward"]),
                four_digits(facts["feasible_reward"]),
                four_digits(facts["reward"]),
                f"{record.minutes:.1f}",
            ]
        )
    return ["method", "seed", *COLUMNS], rows


def performance(record: Record) -> dict[str, float | None]:
    """The means of one cell."""
    return {
        "training_violation": training_mean([record], "violation"),
        "training_feasible_reward": training_mean([record], "feasible_reward"),
        **{name: float(means([record], name)[0]) for name in PLACES},
    }


def caption(comparison: Comparison, records: Sequence[Record]) -> str:
    """A sentence about what the table shows, and one about its intervals."""
    seeds = len({record.seed for record in records})
    learning = [record for record in records if record.method != NONE]
    sentences = [
        f"Execution: {len(records[0].execution)} fresh episodes per seed without exploration; "
        "training: the last 100 episodes."
    ]
    if learning:
        sentences.append(
            f"Methods learned from {comparison.number} demonstrations, at confidence "
            f"{comparison.confidence:g} where they heed it."
        )
    if seeds >= SEEDS_FOR_TESTS:
        sentences.append(f"Intervals: 95 % (Student's t) over {seeds} seeds.")
        if any(record.method == REFERENCE for record in records):
            sentences.append(f"p: unpaired two-sided t-test over seeds against {REFERENCE}.")
    else:
        sentences.append(
            "Intervals: 95 % over the pooled episodes of execution; with fewer than "
            f"{SEEDS_FOR_TESTS} seeds they do not tell how much seeds differ."
        )
    return " ".join(sentences)


def markdown(comparison: Comparison, records: Sequence[Record], command: str) -> str:
    """The report in Markdown: the command, the table over methods and the one over seeds."""
    options = "".join(f", {setting}" for setting in settings_words(comparison.options))
    used = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    steps = sorted({f"{record.steps:,}" for record in records})
    parts = [
        f"# Methods on {comparison.task}{options}, {' or '.join(steps)} steps",
        f"```\n{command}\n```",
        caption(comparison, records),
        markdown_table(*method_table(records)),
        "## Each seed",
        markdown_table(*seed_table(records)),
        f"Made with {used}.",
    ]
    return "\n\n".join(parts) + "\n"


def command_for(
    out: Path,
    comparison: Comparison,
    methods: Sequence[str],
    seeds: Sequence[int],
    *,
    threads: int | None = 1,
    processes: int = 1,
) -> str:
    """The command that makes these cells."""
    words = ["tacit", "experiment", "run", "methods", "--out", str(out), "--task", comparison.task]
    for flag, values in (
        ("--set", settings_words(comparison.options)),
        ("--experts", [comparison.experts] if comparison.experts else []),
        ("--number", [comparison.number]),
        ("--methods", methods),
        ("--seeds", seeds),
        ("--steps", [comparison.steps]),
        ("--confidence", [comparison.confidence]),
        ("--train", settings_words(comparison.train)),
        ("--threads", [] if threads is None else [threads]),
        ("--processes", [processes]),
    ):
        words += [flag, *map(str, values)] if values else []
    return shlex.join(words)


def settings_words(settings: Mapping[str, Any]) -> list[str]:
    """Settings as they are given on the command line."""
    return [f"{name}={setting_word(value)}" for name, value in settings.items()]


def setting_word(value: Any) -> str:
    """A value as it is given on the command line."""
    if isinstance(value, tuple | list):
        return ",".join(map(setting_word, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
