"""Draws the curve on the page of each method, into docs/images/methods/METHOD.png.

    python docs/methods/curves.py                          # all: a quarter of an hour on two cores
    python docs/methods/curves.py --methods reach icrl     # some
    python docs/methods/curves.py --steps 8000 --out /tmp  # only to see that it runs

Methods that act are trained on BlockedPoint with the settings they ship with, from the same 50
demonstrations; runs are kept in --runs and continue. `counts` and `likelihood` train nothing: they
are drawn against the confidence, exactly.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import tacit
from tacit.reports import style

IMAGES = Path(__file__).parent.parent / "images" / "methods"
ACTING = ("reach", "ca-icrl", "icrl", "vicrl", "bc2l", "gacl", "icl")
ON_TABLES = ("counts", "likelihood")
SEEDS = (1, 2, 3)
DEMONSTRATIONS, CONFIDENCE = 50, 0.8
LEVELS, NUMBERS, DATA_SETS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9), (5, 20, 100), 5
HEIGHT, PIXELS_PER_INCH = 2.7, 96


def main() -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description="The curves on the pages of the methods.")
    parser.add_argument("--methods", nargs="+", default=[*ON_TABLES, *ACTING])
    parser.add_argument("--steps", type=int, help="of each run, in place of the task's own")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "curves")
    parser.add_argument("--out", type=Path, default=IMAGES)
    arguments = parser.parse_args()
    matplotlib.use("Agg")
    arguments.out.mkdir(parents=True, exist_ok=True)
    task, demonstrations = None, None
    for name in arguments.methods:
        if name in ON_TABLES:
            figure = drawn_on_table(name)
        else:
            if task is None:
                task = tacit.make("BlockedPoint")
                demonstrations = experts_of(task, arguments)
            figure = drawn_while_acting(name, task, demonstrations, arguments)
        file = arguments.out / f"{name}.png"
        figure.savefig(file, dpi=PIXELS_PER_INCH, metadata={"Software": None})
        print(f"{file}: {file.stat().st_size // 1024} KiB", flush=True)


def experts_of(task, arguments) -> tacit.Trajectories:
    """Demonstrations of one trained expert, kept beside the runs."""
    file = arguments.runs / "experts.hdf5"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        tacit.collect(tacit.train_expert(task, seed=1), DEMONSTRATIONS, seed=1).save(file)
    return tacit.Trajectories.load(file)


def drawn_while_acting(name, task, demonstrations, arguments) -> Figure:
    """Reward and violation of the last 100 episodes while a method trains."""
    forward = None
    if arguments.steps:
        ours = tacit.methods.METHODS[name].forward(task)
        forward = dataclasses.replace(ours, steps=arguments.steps)
    curves = []
    for seed in SEEDS:
        folder = arguments.runs / f"{name}-{seed}-{arguments.steps or 'all'}"
        asked = {"confidence": CONFIDENCE, "seed": seed, "folder": folder, "forward": forward}
        tacit.infer(task, demonstrations, method=name, **asked)
        lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        curves.append([json.loads(line) for line in lines])
    figure, (left, right) = panels()
    own = float(np.mean(demonstrations.returns))
    for axes, key, colour in (
        (left, "reward", style.BLUE),
        (right, "violation", style.VERMILION),
    ):
        for curve in curves:
            known = [line for line in curve if key in line]
            steps = [line["steps"] / 1000 for line in known]
            axes.plot(steps, [line[key] for line in known], color=colour, linewidth=1.1, alpha=0.8)
    left.axhline(own, color=style.QUIET, linewidth=1, linestyle="--")
    right.axhline(1 - CONFIDENCE, color=style.QUIET, linewidth=1, linestyle="--")
    style.style_axes(left, title=f"{name}: reward of an episode", across="thousand steps")
    style.style_axes(right, title="episodes that break the true rule", across="thousand steps")
    style.share_axis(right)
    promised = f"experts' reward; 1 - confidence = {1 - CONFIDENCE:.0%}"
    lines = [
        Line2D([], [], color=style.INK, linewidth=1.1, label=f"{len(SEEDS)} seeds"),
        Line2D([], [], color=style.QUIET, linewidth=1, linestyle="--", label=promised),
    ]
    style.legend_under(figure, lines, columns=2)
    return figure


def drawn_on_table(name) -> Figure:
    """Violation and reward against the confidence, exactly, for several numbers of experts."""
    task = tacit.make("GridWorld", layout="open")
    expert = tacit.train_expert(task)
    figure, (left, right) = panels()
    colours = style.ordered_colours(len(NUMBERS))
    for number, colour in zip(NUMBERS, colours, strict=True):
        data_sets = [tacit.collect(expert, number, seed=seed) for seed in range(DATA_SETS)]
        found = np.array(
            [[judged(task, few, name, level) for level in LEVELS] for few in data_sets]
        ).mean(axis=0)
        for axes, values in ((left, found[:, 1]), (right, found[:, 0])):
            axes.plot(LEVELS, values, color=colour, marker="o", markersize=3.5, linewidth=1.4)
    right.plot(LEVELS, [1 - level for level in LEVELS], color=style.QUIET, linestyle="--")
    left.axhline(expert.reward, color=style.QUIET, linewidth=1, linestyle="--")
    style.style_axes(left, title=f"{name}: reward of an episode", across="confidence")
    style.style_axes(right, title="episodes that break the true rule", across="confidence")
    style.stretched_share_axis(right, 1.0)
    for axes in (left, right):
        style.confidence_axis(axes, np.array(LEVELS))
    lines = [
        Line2D([], [], color=colour, marker="o", markersize=3.5, label=f"{number} demonstrations")
        for number, colour in zip(NUMBERS, colours, strict=True)
    ]
    dashed = "experts' reward; 1 - confidence"
    lines.append(Line2D([], [], color=style.QUIET, linestyle="--", label=dashed))
    style.legend_under(figure, lines, columns=4)
    return figure


def judged(task, demonstrations, name, level) -> tuple[float, float]:
    """Violation and reward of the learned policy."""
    report = tacit.evaluate(tacit.infer(task, demonstrations, method=name, confidence=level))
    return float(report.violation), float(report.reward)


def panels():
    """A figure with two panels side by side."""
    figure = style.new_figure(HEIGHT)
    return figure, figure.subplots(1, 2)


if __name__ == "__main__":
    main()
