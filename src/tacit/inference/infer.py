"""From demonstrations to a constraint and a policy, by any method."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, overload

import jax.numpy as jnp
import numpy as np

from tacit.argument_checks import check_seed
from tacit.control.planning import Dynamics, Plan
from tacit.control.ppo import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.registry import nearest
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import tables_sha256
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.inference.confidence.votes import visits_of
from tacit.inference.counts.method import (
    Objective,
    Reading,
    TabularCAICRL,
    Votes,
    fitting_votes,
    forward_control,
    learn_constraint,
)
from tacit.inference.counts.model import TabularConstraint
from tacit.inference.methods import check_method
from tacit.inference.result import Result
from tacit.inference.sampled_lab import as_simulated
from tacit.inference.simulated_inference import Asked, fingerprint, infer_simulated
from tacit.inference.simulated_result import SimulatedResult
from tacit.precision import in_double_precision
from tacit.runs.resumable_run import ProgressCallback
from tacit.runs.run_folder import SETTINGS
from tacit.runs.settings_file import installed_versions, keep_settings


@overload
def infer(
    task: TabularTask,
    demonstrations: Trajectories,
    *,
    method: Literal["ca-icrl"] = "ca-icrl",
    confidence: float = 0.8,
    seed: int = 0,
    sampled: Literal[False] = False,
    **settings: Any,
) -> Result: ...
@overload
def infer(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    *,
    method: str = "ca-icrl",
    confidence: float = 0.8,
    seed: int = 0,
    sampled: bool = False,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    notice: Callable[[str], None] | None = None,
    **settings: Any,
) -> Any: ...
def infer(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    *,
    method: str = "ca-icrl",
    confidence: float = 0.8,
    seed: int = 0,
    sampled: bool = False,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    notice: Callable[[str], None] | None = None,
    **settings: Any,
) -> Result | SimulatedResult:
    """Learn the rule that the experts obeyed, and a policy that keeps it.

    CA-ICRL on a tabular task is computed without sampling, unless asked to sample, and gives a
    `Result`. All else learns by acting, PPO-Lagrange against the learned cost, and gives a
    `SimulatedResult`.

    Arguments:
        task: from `tacit.make`; its true costs are not looked at, only reported.
        demonstrations: what the experts did.
        method: `ca-icrl`, `icrl`, `vicrl`, `bc2l`, `gacl` or `icl`.
        confidence: how sure the constraint must be at least as tight as the truth, in (0, 1); only
            CA-ICRL heeds it.
        seed: of everything random.
        sampled: whether CA-ICRL is to sample on a tabular task too, in rounds (see
            `tacit.inference.sampled_ca_icrl`), or with an encoder where settings of one are named.
        forward: settings of PPO; None for those of the task.
        folder: where to keep the run; the same call again continues it, bit for bit. One that
            holds another run is refused.
        threads: for the simulator, None for all cores.
        progress: is told the numbers of every update, or of every round.
        notice: is told sentences about what was found in the folder.
        settings: of the method, see its class, such as `CAICRL`; on a
            tabular task `objective`, `votes` and `reading` of `TabularCAICRL`.
    """
    check_request(task, method, seed)
    if isinstance(task, TabularTask) and method == "ca-icrl" and not sampled:
        check_exact(task, forward=forward, threads=threads)
        result = infer_tabular(task, demonstrations, confidence, seed, **tabular(settings))
        if folder is not None:
            # Now, so that a request that makes no sense claims nothing.
            asked = {"method": method, "confidence": float(confidence), "seed": seed, **settings}
            claim_folder(Path(folder), task, demonstrations, asked)
            result.save(folder)
        return result
    asked = Asked(method, confidence, seed, settings, forward)
    if isinstance(task, TabularTask):
        task, demonstrations = as_simulated(task, demonstrations)
    return infer_simulated(task, demonstrations, asked, folder, threads, progress, notice)


def claim_folder(
    folder: Path, task: TabularTask, demonstrations: Trajectories, asked: dict[str, Any]
) -> None:
    """The folder must be new, or hold the result of the same request."""
    described = {
        "task": task.name,
        "tables_sha256": tables_sha256(task),
        "demonstrations": len(demonstrations),
        "demonstrations_sha256": fingerprint(demonstrations),
        **asked,
    }
    keep_settings(folder / SETTINGS, described, "exact inference")


def check_request(task: object, method: str, seed: int) -> None:
    """There must be a task, a method of that name and a seed."""
    check_method(method)
    check_seed(seed)
    if not isinstance(task, TabularTask | SimulatedTask):
        raise ArgumentError(
            f"task must be a task, as tacit.make gives one, not {type(task).__name__}"
        )


def check_exact(task: TabularTask, **given: Any) -> None:
    """Nothing may be asked for that only sampling knows."""
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(
                f"{name} has no meaning for CA-ICRL on {task.name}, which is computed without "
                "sampling; leave it away, or ask for sampled=True"
            )


def tabular(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, if they are those of CA-ICRL on tabular tasks."""
    known = ("objective", "votes", "reading")
    for name in settings:
        if name not in known:
            raise ArgumentError(
                f"CA-ICRL on a tabular task has no setting {name!r}; it has {', '.join(known)}"
                f"{nearest(name, {setting: setting for setting in known})}"
            )
    return settings


@in_double_precision
def infer_tabular(
    task: TabularTask,
    demonstrations: Trajectories,
    confidence: float,
    seed: int,
    objective: Objective = "counts",
    votes: Votes | None = None,
    reading: Reading = "graded",
) -> Result:
    """CA-ICRL on a tabular task; `seed` is kept with the result, as nothing is drawn."""
    votes = votes or fitting_votes(objective)
    chosen = TabularCAICRL(objective=objective, votes=votes, reading=reading)
    check_demonstrations(demonstrations, votes)
    constraint, facts = learn_constraint(task, demonstrations, confidence, chosen)
    mean_visits = visits_of(task, demonstrations).mean(axis=0)
    plan = plan_under(task, constraint, mean_visits)
    return Result(
        constraint=constraint,
        policy=np.asarray(plan.policy),
        metrics={
            **facts,
            "learned_cost": float(plan.cost),
            "multiplier": float(plan.multiplier),
            "expert_cost": float(mean_visits @ constraint.cost_map()),
            "allowed_share": float(constraint.allowed_map().mean()),
        },
        settings={
            "method": "ca-icrl",
            "objective": objective,
            "votes": votes,
            "reading": reading,
            "confidence": float(confidence),
            "seed": seed,
            "demonstrations": len(demonstrations),
            "versions": installed_versions(),
        },
        task=task,
    )


def plan_under(task: TabularTask, constraint: TabularConstraint, mean_visits: np.ndarray) -> Plan:
    """The best policy under the constraint at its own confidence."""
    return forward_control(
        Dynamics.of(task),
        jnp.asarray(constraint.alpha),
        jnp.asarray(constraint.beta),
        jnp.asarray(mean_visits),
        constraint.confidence,
        task.budget,
        reading=constraint.reading,
        horizon=task.horizon,
    )


def check_demonstrations(demonstrations: Trajectories, votes: Votes) -> None:
    """They must be demonstrations; a warning if they show violations that would count as proof."""
    if not isinstance(demonstrations, Trajectories):
        raise ArgumentError(f"demonstrations must be Trajectories, not {type(demonstrations)}")
    if votes == "visits" and demonstrations.costs is not None and demonstrations.violated.any():
        warnings.warn(
            f"{demonstrations.violated.sum()} demonstrations have steps with a cost, which votes "
            "'visits' takes as proof that they are allowed: leave them out (take), or use "
            "votes='visits-fallible'",
            stacklevel=4,
        )
