"""Objective 2 of the paper where policies learn by acting; see `tacit.sufficiency.decision`."""

from pathlib import Path
from typing import Any

from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.task import SimulatedTask
from tacit.sufficiency.answer import Answer, History, recommend, words
from tacit.sufficiency.simulated_curve import simulated_curve


def decide_by_acting(
    task: SimulatedTask,
    demonstrations: Trajectories,
    history: History,
    *,
    confidence: float,
    wanted: float,
    seed: int,
    folder: Path | str | None,
    **chosen: Any,
) -> Answer:
    """The answer for the demonstrations at hand; `chosen` is for `simulated_curve`."""
    number = len(demonstrations)
    curve, constraint = simulated_curve(
        task,
        demonstrations,
        confidence=confidence,
        seed=seed,
        # Each number of demonstrations is a run of its own.
        folder=None if folder is None else Path(folder) / str(number),
        **chosen,
    )
    value = curve.value
    enough = value.low >= wanted
    recommended, interval = (number, None) if enough else recommend(curve, wanted, seed)
    reason = words(value, wanted, enough, recommended, interval)
    if not enough and value.high >= wanted:
        reason = f"not clear, so {reason} (interval {value.low:.4g} to {value.high:.4g})"
    return Answer(
        enough=bool(enough),
        value=value,
        wanted=float(wanted),
        confidence=float(confidence),
        number=number,
        constraint=constraint,
        recommended_number=recommended,
        recommended_interval=interval,
        largest_confidence=None,
        curve=curve,
        reason=reason,
        history=(*history, (number, value.value)),
        demonstrations=demonstrations,
    )
