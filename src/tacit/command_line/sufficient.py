"""`tacit sufficient`: are these demonstrations enough?"""

from pathlib import Path
from typing import Annotated

import tyro

from tacit.command_line.infer import kind_named
from tacit.command_line.tables import console, show_facts, show_table
from tacit.command_line.tasks import find_task
from tacit.command_line.training import watched, with_settings
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.inference.methods import forward_preset
from tacit.sufficiency import decision
from tacit.sufficiency.answer import Answer


def sufficient(
    task: tyro.conf.Positional[str],
    experts: Path,
    reward: float,
    confidence: float = 0.8,
    seed: int = 0,
    out: Path | None = None,
    threads: int | None = None,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    train: tuple[str, ...] = (),
) -> None:
    """Say whether the demonstrations are enough, and how many would be.

    Args:
        task: name of a task, a Gymnasium id, or an .npz file with your own arrays.
        experts: file or folder with the demonstrations.
        reward: the expected reward wanted.
        confidence: how sure the constraint must be at least as tight as the truth.
        seed: of the random subsets, and of the simulation.
        out: folder to keep the run on a simulated task in; the same command goes on with it.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
        train: settings of PPO on a simulated task, as in --train steps=2000000.
    """
    chosen = find_task(task, settings)
    demonstrations = Trajectories.load(experts)
    asked = {"confidence": confidence, "reward": reward, "seed": seed}
    if isinstance(chosen, TabularTask):
        if train or out is not None or threads is not None:
            raise ArgumentError(
                f"{chosen.name} is computed exactly: --train, --out and --threads are not used"
            )
        with console.status("learning from nested subsets"):
            answer = decision.sufficient(chosen, demonstrations, **asked)
    else:
        forward = with_settings(forward_preset(kind_named("ca-icrl", (), {}), chosen), train)
        simulation = {"forward": forward, "folder": out, "threads": threads}
        with watched(f"nested subsets on {chosen.name}", forward) as watch:
            answer = decision.sufficient(
                chosen, demonstrations, **asked, **simulation, progress=watch
            )
    show(chosen.name, answer, exact=isinstance(chosen, TabularTask))


def show(name: str, answer: Answer, *, exact: bool) -> None:
    """The curve and the answer."""
    show_table(
        "Value of the learned policy",
        ["demonstrations", "mean value", "lowest", "highest"],
        [
            [str(size), f"{values.mean():.2f}", f"{values.min():.2f}", f"{values.max():.2f}"]
            for size, values in zip(answer.curve.sizes, answer.curve.values, strict=True)
        ],
    )
    facts = {
        "answer": answer.reason,
        "value (interval: other data sets)": str(answer.value),
        "recommended number": recommendation(answer),
    }
    if exact:
        largest = answer.largest_confidence
        facts["largest confidence that would do"] = "none" if largest is None else f"{largest:g}"
    show_facts(f"Are {answer.number} demonstrations enough on {name}?", facts)


def recommendation(answer: Answer) -> str:
    """The recommended number with its interval, in words."""
    if answer.recommended_number is None:
        return "none: more demonstrations alone will not do"
    if answer.recommended_interval is None:
        return str(answer.recommended_number)
    low, high = answer.recommended_interval
    return f"{answer.recommended_number} [{low}, {'?' if high is None else high}]"
