"""`tacit sufficient`: are these demonstrations enough?"""

from pathlib import Path
from typing import Annotated

import tyro

from tacit.command_line.demonstration_file import read
from tacit.command_line.tables import console, show_facts, show_table
from tacit.command_line.tasks import find_task
from tacit.environments.tabular import check_tabular
from tacit.sufficiency import decision


def sufficient(
    task: tyro.conf.Positional[str],
    experts: Path,
    reward: float,
    confidence: float = 0.8,
    seed: int = 0,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
) -> None:
    """Say whether the demonstrations are enough, and how many would be.

    Args:
        task: name of a task (Chain, GridWorld) or an .npz file with your own arrays.
        experts: file or folder with the demonstrations.
        reward: the expected reward wanted.
        confidence: how sure the constraint must be at least as tight as the truth.
        seed: of the random subsets.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
    """
    chosen = check_tabular(find_task(task, settings))
    demonstrations = read(experts)
    with console.status("learning from nested subsets"):
        answer = decision.sufficient(
            chosen, demonstrations, confidence=confidence, reward=reward, seed=seed
        )
    show_table(
        "Value of the learned policy",
        ["demonstrations", "mean value", "lowest", "highest"],
        [
            [str(size), f"{values.mean():.2f}", f"{values.min():.2f}", f"{values.max():.2f}"]
            for size, values in zip(answer.curve.sizes, answer.curve.values, strict=True)
        ],
    )
    show_facts(
        f"Are {answer.number} demonstrations enough on {chosen.name}?",
        {
            "answer": answer.reason,
            "value (interval: other data sets)": str(answer.value),
            "recommended number": recommendation(answer),
            "largest confidence that would do": f"{answer.largest_confidence:g}"
            if answer.largest_confidence is not None
            else "none",
        },
    )


def recommendation(answer: decision.Answer) -> str:
    """The recommended number with its interval, in words."""
    if answer.recommended_number is None:
        return "none: more demonstrations alone will not do"
    if answer.recommended_interval is None:
        return str(answer.recommended_number)
    low, high = answer.recommended_interval
    return f"{answer.recommended_number} [{low}, {'?' if high is None else high}]"
