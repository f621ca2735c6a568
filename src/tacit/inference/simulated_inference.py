"""Inference on a simulated task: set up, run in a folder, sum up."""

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.control.expert import check_training
from tacit.control.ppo import PPO
from tacit.control.simulated_expert import checkpoint_every
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.task import SimulatedTask
from tacit.inference.constraint import LearnedConstraint
from tacit.inference.counts.model import check_confidence
from tacit.inference.ending import chosen_policy
from tacit.inference.experts import ExpertSteps
from tacit.inference.loop import Inference
from tacit.inference.methods import forward_preset, make_method
from tacit.inference.simulated_result import SimulatedResult
from tacit.runs.resumable_run import ProgressCallback, run_until_finished
from tacit.runs.settings_file import installed_versions


class Asked(NamedTuple):
    """What decides the numbers of an inference; see `tacit.infer`."""

    method: str
    confidence: float
    seed: int
    settings: dict[str, Any]
    forward: PPO | None


def infer_simulated(
    task: SimulatedTask,
    demonstrations: Trajectories,
    asked: Asked,
    folder: Path | str | None,
    threads: int | None,
    progress: ProgressCallback | None,
    notice: Callable[[str], None] | None,
) -> SimulatedResult:
    """`tacit.infer` on a simulated task; see there."""
    run, described = prepared(task, demonstrations, asked, threads)
    try:
        completed(run, described, folder, progress, notice)
        result = summed_up(run, described, threads)
    finally:
        run.close()
    if folder is not None:
        result.save(folder)
    return result


def prepared(
    task: SimulatedTask, demonstrations: Trajectories, asked: Asked, threads: int | None
) -> tuple[Inference, dict[str, Any]]:
    """A run that has not begun, and all that decides its numbers."""
    check_confidence(asked.confidence)
    check_training(asked.seed, asked.forward)
    method = make_method(asked.method, task, asked.settings)
    forward = asked.forward or forward_preset(type(method), task)
    experts = ExpertSteps.of(task, demonstrations)
    run = Inference(
        task, experts, method, asked.confidence, forward, seed=asked.seed, threads=threads
    )
    described = {
        "task": task.name,
        "options": dict(task.options),
        **({"data_sha256": task.data_sha256} if task.data_sha256 else {}),
        "method": method.name,
        "settings": method.settings(),
        "confidence": float(asked.confidence),
        "seed": asked.seed,
        "demonstrations": len(experts),
        "demonstrations_sha256": fingerprint(experts),
        "ppo": dataclasses.asdict(run.trainer.settings),
    }
    return run, described


def completed(
    run: Inference,
    described: dict[str, Any],
    folder: Path | str | None,
    progress: ProgressCallback | None,
    notice: Callable[[str], None] | None,
) -> None:
    """Run to the end, from wherever the last attempt in the folder was stopped."""
    run_until_finished(
        run,
        folder,
        described,
        label="inference",
        every=checkpoint_every(run.trainer),
        progress=progress,
        notice=notice,
    )


def summed_up(
    run: Inference, described: dict[str, Any], threads: int | None = None
) -> SimulatedResult:
    """The result of a run that is finished."""
    ledger = run.trainer.ledger
    facts = {"method": described["method"], "task": run.task.name, "seed": run.seed}
    constraint = LearnedConstraint(
        model=run.method.constraint(run.learned),
        confidence=float(run.confidence),
        action_space=run.task.action_space,
        any_confidence=run.method.any_confidence,
        facts={**facts, "demonstrations": len(run.experts)},
    )
    return SimulatedResult(
        constraint=constraint,
        policy=chosen_policy(run.trainer, constraint, threads),
        metrics={
            **{f"training_{name}": value for name, value in ledger.summary().items()},
            **run.latest,
            "steps": run.steps,
            "minutes": run.seconds / 60,
        },
        training=ledger.ended.copy(),
        settings={**described, "versions": installed_versions()},
        task=run.task,
    )


def fingerprint(experts: ExpertSteps | Trajectories) -> str:
    """A sha256 of the demonstrations, so that a run is not continued with others."""
    digest = hashlib.sha256(np.ascontiguousarray(experts.lengths).tobytes())
    for array in (experts.observations, experts.actions):
        digest.update(f"{array.dtype} {array.shape}".encode())
        # Whole arrays at once would double the memory of 20,000 experts.
        for episode in array:
            digest.update(np.ascontiguousarray(episode).data)
    return digest.hexdigest()
