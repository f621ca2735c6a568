"""`tacit tradeoff`: what each confidence gives, to pick one by."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro

from tacit.command_line.infer import as_simulator, kind_named
from tacit.command_line.tables import console, percent, show_table
from tacit.command_line.tasks import find_task
from tacit.command_line.training import method_settings, watched, with_settings
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.evaluation.tradeoff import LEVELS, Choice
from tacit.evaluation.tradeoff import tradeoff as measured
from tacit.inference.methods import forward_preset
from tacit.reports.confidence_curves import Curve, number_panels
from tacit.reports.style import write_png
from tacit.runs.json_file import write_json


def tradeoff(
    task: tyro.conf.Positional[str],
    experts: Path,
    out: Path,
    confidences: tuple[float, ...] = LEVELS,
    number: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    learn: tuple[str, ...] = (),
    train: tuple[str, ...] = (),
) -> None:
    """Show reward and violation against confidence, as a table and a figure.

    Args:
        task: name of a task, a Gymnasium id, or an .npz file with your own arrays.
        experts: file or folder with the demonstrations.
        out: folder for tradeoff.json, tradeoff.png and the run.
        confidences: levels to choose from.
        number: use so many demonstrations, drawn at random by the seed; by default all.
        seed: of everything random.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set noise_std=0.1.
        learn: settings of CA-ICRL, as in --learn budget=0.05.
        train: settings of PPO, as in --train steps=2000000.
    """
    chosen = find_task(task, settings)
    demonstrations = Trajectories.load(experts)
    if number is not None:
        demonstrations = demonstrations.subset(number, seed=seed)
    if isinstance(chosen, TabularTask):
        if learn or train:
            raise ArgumentError(
                f"{chosen.name} is computed exactly: --learn and --train are not used"
            )
        with console.status("learning"):
            choices = measured(chosen, demonstrations, confidences=confidences, seed=seed)
    else:
        kind = kind_named("ca-icrl", learn, {})
        forward = with_settings(forward_preset(kind, as_simulator(chosen)), train)
        with watched(f"tradeoff on {chosen.name}", forward) as watch:
            choices = measured(
                chosen,
                demonstrations,
                confidences=confidences,
                seed=seed,
                forward=forward,
                folder=out / "run",
                threads=threads,
                progress=watch,
                **method_settings(kind, learn),
            )
    write(out, choices, len(demonstrations))
    show(chosen.name, len(demonstrations), choices)
    console.print(f"written: {out / 'tradeoff.png'}, {out / 'tradeoff.json'}", markup=False)


def show(name: str, number: int, choices: list[Choice]) -> None:
    """The table."""
    show_table(
        f"What a confidence gives on {name}, {number} demonstrations",
        ["confidence", "violation", "promised", "feasible reward"],
        [
            [
                f"{choice.confidence:g}",
                percent(choice.violation),
                f"<= {100 * choice.promised:.0f} %",
                str(choice.reward),
            ]
            for choice in choices
        ],
    )


def without_nan(facts: dict[str, Any]) -> dict[str, Any]:
    """What is unknown as null: JSON has no NaN."""
    return {
        name: without_nan(value) if isinstance(value, dict) else value if value == value else None
        for name, value in facts.items()
    }


def write(out: Path, choices: list[Choice], demonstrations: int) -> None:
    """The numbers for programs and the figure for people."""
    write_json(out / "tradeoff.json", [without_nan(asdict(choice)) for choice in choices])
    figure = number_panels([Curve(f"{demonstrations} demonstrations", choices)])
    write_png(out / "tradeoff.png", figure)
