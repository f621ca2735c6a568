"""From demonstrations to a constraint and a policy, by any method."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import tacit.inference.baselines.bc2l
import tacit.inference.baselines.gacl
import tacit.inference.baselines.icl
import tacit.inference.baselines.icrl
import tacit.inference.baselines.vicrl
import tacit.inference.counts.counts
import tacit.inference.counts.likelihood
import tacit.inference.encoder.method
import tacit.inference.reach.method  # noqa: F401  (these make their methods known)
from tacit.argument_checks import check_confidence, check_seed
from tacit.control.settings import PPO
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.environments.tabular_world import tables_sha256
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError
from tacit.inference.experts import fingerprint
from tacit.inference.loop import Inference
from tacit.inference.method import ExactMethod, Method, NamedMethod, chosen_method
from tacit.inference.result import Result
from tacit.runs.resumable_run import ProgressCallback
from tacit.runs.run_folder import SETTINGS
from tacit.runs.settings_file import keep_settings


def infer(
    task: TabularTask | SimulatedTask,
    demonstrations: Trajectories,
    *,
    method: NamedMethod | str | None = None,
    confidence: float = 0.8,
    seed: int = 0,
    forward: PPO | None = None,
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    notice: Callable[[str], None] | None = None,
) -> Result:
    """Learn the rule that the experts obeyed, and a policy that keeps it.

    Methods for tables compute. All others learn by acting: PPO-Lagrange against the learned cost.

    >>> task = tacit.make("Chain", length=9, limit=-2, horizon=10)
    >>> result = infer(task, tacit.collect(tacit.train_expert(task), 20, seed=1), confidence=0.9)
    >>> result.method, tacit.evaluate(result).violation <= 0.1
    ('counts', True)

    Arguments:
        task: from `tacit.make`; its true costs are not looked at, only reported.
        demonstrations: what the experts did.
        method: an object such as `tacit.methods.VICRL(learning_rate=1e-3)`, or a name, for the
            settings that work on the task. None: `counts` on tables, `reach` on simulators.
        confidence: how sure the constraint must be at least as tight as the truth, in (0, 1).
        seed: of everything random.
        forward: settings of PPO; None for those of the task.
        folder: where to keep the run; the same call again continues it, bit for bit.
        threads: for the simulator, None for all cores.
        progress: is told the numbers of every update.
        notice: is told sentences about what was found in the folder.
    """
    check_seed(seed)
    check_confidence(confidence)
    check_task(task)
    chosen = chosen_method(method, task)
    if isinstance(chosen, ExactMethod) and isinstance(task, TabularTask):
        check_unused(chosen, task, forward=forward, threads=threads)
        return learn_exactly(task, demonstrations, chosen, confidence, seed, folder)
    assert isinstance(chosen, Method)
    asked = {"seed": seed, "forward": forward, "threads": threads}
    with Inference.of(task, demonstrations, chosen, confidence, **asked) as run:
        run.finish(folder, progress, notice)
        result = run.result()
    if folder is not None:
        result.save(folder)
    return result


def learn_exactly(
    task: TabularTask,
    demonstrations: Trajectories,
    method: ExactMethod,
    confidence: float,
    seed: int,
    folder: Path | str | None,
) -> Result:
    """Compute the result, and keep it in the folder if there is one."""
    result = method.learn(task, demonstrations, confidence, seed)
    if folder is not None:
        prints = {
            "tables_sha256": tables_sha256(task),
            "demonstrations_sha256": fingerprint(demonstrations),
        }
        result = replace(result, settings={**result.settings, **prints})
        # Not before the work, so that a request that makes no sense claims nothing.
        asked = {name: part for name, part in result.settings.items() if name != "versions"}
        keep_settings(Path(folder) / SETTINGS, asked, "exact inference")
        result.save(folder)
    return result


def check_task(task: object) -> None:
    """Raise an error unless it is a task."""
    if not isinstance(task, TabularTask | SimulatedTask):
        raise ArgumentError(
            f"task must be a task, as tacit.make gives one, not {type(task).__name__}"
        )


def check_unused(method: ExactMethod, task: TabularTask, **given: object) -> None:
    """Raise an error if something is asked for that only a method knows that acts."""
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(
                f"{name} has no meaning for {method.name!r} on {task.name}, which is computed "
                "without acting; leave it away, or name a method that acts, such as 'vicrl'"
            )
