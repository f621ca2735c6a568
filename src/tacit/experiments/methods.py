"""Which method learns best? The six, and none at all, on one task, from the same demonstrations."""

import dataclasses
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tacit.argument_checks import check_confidence, check_count, check_seed, nearest
from tacit.control.expert import Expert, collect
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, StorageError, TacitError
from tacit.experiments.methods_cell import (
    NAMES,
    NONE,
    SETTINGS,
    Comparison,
    Record,
    cell_file,
    read_record,
)
from tacit.experiments.methods_table import command_for, markdown, performance, summaries
from tacit.experiments.methods_workers import (
    Board,
    Notice,
    Progress,
    run_here,
    run_in_processes,
)
from tacit.inference.experts import ExpertSteps, fingerprint
from tacit.runs.atomic_write import atomic_write
from tacit.runs.json_file import write_json
from tacit.runs.settings_file import installed_versions, keep_settings

LABEL = "comparison of methods"


def run_methods(
    out: Path | str,
    comparison: Comparison,
    *,
    methods: Sequence[str] = NAMES,
    seeds: Sequence[int] = (1, 2),
    processes: int = 1,
    threads: int | None = 1,
    progress: Progress | None = None,
    notice: Notice | None = None,
) -> list[Record]:
    """Run every method with every seed into the folder `out`, or go on where it was stopped.

    Each of these cells has a run folder, cells/METHOD-SEED, and once it is finished a record beside
    it. Methods and seeds may be added later. At the end methods.json and methods.md are written.

    Arguments:
        out: the folder.
        comparison: what all cells share.
        methods: `none` (PPO without any constraint) or names of methods.
        seeds: one cell of each method for each.
        processes: cells that run at a time; with 1 they run in this process.
        threads: for the simulator of each cell, None for all cores.
        progress: is told how many cells are finished, of how many, and which are running.
        notice: is told a sentence about every cell that is finished.
    """
    out = Path(out)
    cells = [(method, seed) for seed in seeds for method in methods]
    prints = check_request(comparison, methods, seeds, processes, threads)
    tell = notice or (lambda sentence: None)
    for sentence in keep_settings(out / SETTINGS, asdict(comparison), LABEL):
        tell(sentence)
    finished = [cell for cell in cells if cell_file(out, *cell).exists()]
    for method, seed in finished:
        check_same(out, read_record(out, method, seed), prints.get(seed))
    board = Board(out, len(cells), len(finished), progress or (lambda *_: None), tell)
    waiting = [cell for cell in cells if cell not in finished]
    if processes == 1:
        run_here(out, comparison, waiting, threads, board)
    else:
        run_in_processes(out, waiting, processes, threads, board)
    if board.problems:
        raise TacitError(
            f"{len(board.problems)} of {len(cells)} cells failed, the others are kept: "
            + "; ".join(board.problems)
        )
    records = [read_record(out, method, seed) for method in methods for seed in seeds]
    write_all(out, comparison, records, threads, processes)
    return records


def check_request(
    comparison: Comparison,
    methods: Sequence[str],
    seeds: Sequence[int],
    processes: int,
    threads: int | None,
) -> dict[int, str]:
    """Find out now what could go wrong after hours; a checksum of each seed's demonstrations."""
    for name in methods:
        if name not in NAMES:
            hint = nearest(str(name).lower(), {known: known for known in NAMES})
            raise ArgumentError(f"methods are {', '.join(NAMES)}, not {name!r}{hint}")
    for label, chosen in (("methods", methods), ("seeds", seeds)):
        if not chosen or len(set(chosen)) < len(chosen):
            raise ArgumentError(f"{label} must be some that differ, not {list(chosen)}")
    for seed in seeds:
        check_seed(seed)
    check_count("processes", processes)
    check_count("threads", 1 if threads is None else threads)
    check_count("number", comparison.number)
    check_confidence(comparison.confidence)
    fields = {field.name: field.name for field in dataclasses.fields(PPO)}
    for name in comparison.train:
        if name not in fields or name in ("steps", "multiplier"):
            raise ArgumentError(f"train cannot set {name!r}{nearest(str(name).lower(), fields)}")
    task = comparison.make_task()
    for name in methods:
        comparison.forward(name, task)
    return {} if set(methods) == {NONE} else check_experts(comparison, task, seeds)


def check_experts(
    comparison: Comparison, task: SimulatedTask, seeds: Sequence[int]
) -> dict[int, str]:
    """There must be enough demonstrations of this task for every seed; their checksums."""
    files = {seed: comparison.experts_file(seed) for seed in seeds}
    missing = [str(file) for file in files.values() if not file.exists()]
    if missing:
        raise StorageError(f"there is no {', '.join(dict.fromkeys(missing))} (experts)")
    return {
        seed: fingerprint(ExpertSteps.of(task, comparison.demonstrations(seed))) for seed in seeds
    }


def check_same(out: Path, record: Record, wanted: str | None) -> None:
    """A finished cell must have learned from the demonstrations that are there now."""
    found = record.settings.get("demonstrations_sha256")
    if found is not None and found != wanted:
        raise StorageError(
            f"{cell_file(out, record.method, record.seed)}: learned from other demonstrations than "
            "there are now; choose another folder, or remove this file and the folder beside it"
        )


def collect_idle(comparison: Comparison, file: Path) -> None:
    """Demonstrations by experts that do nothing, to try things out with."""
    if file.exists():
        return
    task = comparison.make_task()
    shape = task.action_space.shape or ()
    idle = Expert(task, lambda observations: np.zeros((len(observations), *shape), np.float32))
    collect(idle, 2 * comparison.number, seed=0, threads=1).save(file)


def write_all(
    out: Path,
    comparison: Comparison,
    records: list[Record],
    threads: int | None,
    processes: int,
) -> None:
    """The numbers for programs, and tables for people."""
    methods, seeds = (
        list(dict.fromkeys(getattr(record, name) for record in records))
        for name in ("method", "seed")
    )
    command = command_for(out, comparison, methods, seeds, threads=threads, processes=processes)
    content: dict[str, Any] = {
        "command": command,
        "comparison": asdict(comparison),
        "versions": installed_versions(),
        "summary": [asdict(line) for line in summaries(records)],
        "cells": [described(out, comparison, record, threads) for record in records],
    }
    write_json(out / "methods.json", content)
    with atomic_write(out / "methods.md") as part:
        part.write_text(markdown(comparison, records, command), encoding="utf-8")


def described(
    out: Path, comparison: Comparison, record: Record, threads: int | None
) -> dict[str, Any]:
    """A cell without its episodes, which are in its own file, and how to make it alone."""
    facts = asdict(dataclasses.replace(record, training=[], execution=[]))
    del facts["training"], facts["execution"]
    command = command_for(out, comparison, [record.method], [record.seed], threads=threads)
    file = str(cell_file(out, record.method, record.seed).relative_to(out))
    return {**facts, **performance(record), "command": command, "episodes": file}
