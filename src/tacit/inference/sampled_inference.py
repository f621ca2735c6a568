"""CA-ICRL on a tabular task by sampling: set up, run in a folder, sum up."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.control.expert import check_training
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import tables_sha256
from tacit.errors import ArgumentError
from tacit.inference.confidence.votes import visits_of
from tacit.inference.counts.method import TabularCAICRL, constraint_of
from tacit.inference.counts.model import check_confidence
from tacit.inference.data_set import DataSet
from tacit.inference.methods import kind_of
from tacit.inference.reach.method import ReachCAICRL
from tacit.inference.result import Result
from tacit.inference.round_settings import checked_settings
from tacit.inference.sampled_ca_icrl import SampledRounds
from tacit.inference.sampled_ending import endings, facts
from tacit.inference.simulated_inference import Asked, fingerprint
from tacit.runs import versions
from tacit.runs.continued import Told, run_to_the_end

SETTINGS = {"objective": "counts", "votes": "visits", "reading": "graded"}
"""The only ones there are, so far."""


def in_rounds(method: str, settings: dict[str, Any]) -> bool:
    """Whether sampling on a table is done in rounds of counted votes, not in the loop for all.

    It is unless settings of an encoder are named. Those of CA-ICRL by reach, which is not for
    tables, are to be refused here.
    """
    counted = all(SETTINGS.get(name) == value for name, value in settings.items())
    reach = kind_of(method, settings) is ReachCAICRL
    return method == "ca-icrl" and (counted or reach)


def infer_sampled(
    task: TabularTask,
    demonstrations: Trajectories,
    asked: Asked,
    folder: Path | str | None,
    progress: Told | None,
    notice: Callable[[str], None] | None,
) -> Result:
    """`tacit.infer` by sampling with counted votes; a result like that of exact inference."""
    check_confidence(asked.confidence)
    check_training(asked.seed, asked.forward)
    for name, value in asked.settings.items():
        if SETTINGS.get(name) != value:
            raise ArgumentError(
                f"CA-ICRL that samples on a table has no setting {name}={value!r}: it counts "
                "visits and reads them graded; `forward` has the settings of PPO"
            )
    forward = checked_settings(task, asked.forward)
    described = {
        "task": task.name,
        "tables_sha256": tables_sha256(task),
        "method": "ca-icrl",
        **SETTINGS,
        "sampled": True,
        "confidence": float(asked.confidence),
        "seed": asked.seed,
        "demonstrations": len(demonstrations),
        "demonstrations_sha256": fingerprint(demonstrations),
        "ppo": dataclasses.asdict(forward),
    }
    counted = DataSet.of(task, demonstrations)
    run = SampledRounds(task, [counted], [asked.seed], forward)
    run_to_the_end(
        run, folder, described, label="inference", every=1, progress=progress, notice=notice
    )
    result = summed_up(run, task, demonstrations, described)
    if folder is not None:
        result.save(folder)
    return result


def summed_up(
    run: SampledRounds, task: TabularTask, demonstrations: Trajectories, described: dict[str, Any]
) -> Result:
    """The result of the only run."""
    alpha, beta = (np.asarray(votes[0], float) for votes in run.belief())
    constraint = constraint_of(task, alpha, beta, described["confidence"], TabularCAICRL())
    (ending,) = endings(run, [0], [described["confidence"]])
    mean_visits = visits_of(task, demonstrations).mean(axis=0)
    return Result(
        constraint=constraint,
        policy=ending.policy,
        metrics={
            **facts(run, ending),
            "expert_cost": float(mean_visits @ constraint.cost_map()),
            "allowed_share": float(constraint.allowed_map().mean()),
        },
        settings={**described, "versions": versions.installed()},
        task=task,
    )
