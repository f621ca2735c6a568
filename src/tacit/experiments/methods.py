"""Which method learns best? All of them, and none, on one task, from the same demonstrations."""

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tacit.argument_checks import check_confidence, check_count, check_seed, nearest
from tacit.control.expert import Expert, collect
from tacit.control.settings import PPO
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, StorageError, TacitError
from tacit.experiments.methods_cell import NAMES, NONE, SETTINGS, Cell, Comparison, Record, run_cell
from tacit.experiments.methods_table import command_for, markdown, performance, summaries
from tacit.inference.experts import ExpertSteps, fingerprint
from tacit.runs.atomic_write import atomic_write
from tacit.runs.files import write_json
from tacit.runs.settings_file import installed_versions, keep_settings

LABEL = "comparison of methods"
SECONDS_BETWEEN_LOOKS = 0.2

Progress = Callable[[int, int, str], None]
Notice = Callable[[str], None]


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

    So many `processes` run at a time, each cell with so many `threads` for the simulator (None for
    all cores); with one process the cells run in this one. `progress` is told how many cells are
    finished, of how many, and which are running; `notice` a sentence about each that is finished.
    """
    out = Path(out)
    cells = [Cell(out, method, seed) for seed in seeds for method in methods]
    checksums = check_request(comparison, methods, seeds, processes, threads)
    tell = notice or (lambda sentence: None)
    for sentence in keep_settings(out / SETTINGS, asdict(comparison), LABEL):
        tell(sentence)
    finished = [cell for cell in cells if cell.file.exists()]
    for cell in finished:
        check_same(cell, checksums.get(cell.seed))
    board = Board(len(cells), len(finished), progress or (lambda *_: None), tell)
    waiting = [cell for cell in cells if cell not in finished]
    if processes == 1:
        run_here(comparison, waiting, threads, board)
    else:
        run_in_processes(waiting, processes, threads, board)
    if board.problems:
        raise TacitError(
            f"{len(board.problems)} of {len(cells)} cells failed, the others are kept: "
            + "; ".join(board.problems)
        )
    records = [Cell(out, method, seed).record for method in methods for seed in seeds]
    write_all(out, comparison, records, threads, processes)
    return records


def check_request(
    comparison: Comparison,
    methods: Sequence[str],
    seeds: Sequence[int],
    processes: int,
    threads: int | None,
) -> dict[int, str]:
    """Raise the errors now that would come after hours; checksums of the demonstrations."""
    for name in methods:
        if name not in NAMES:
            hint = nearest(str(name).lower(), {known: known for known in NAMES})
            raise ArgumentError(f"methods are {', '.join(NAMES)}, not {name!r}{hint}")
    check_distinct(methods=methods, seeds=seeds)
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


def check_distinct(**lists: Sequence[Any]) -> None:
    """Raise an error if a list is empty, or if something is in it twice."""
    for name, chosen in lists.items():
        if not chosen or len(set(chosen)) < len(chosen):
            raise ArgumentError(f"{name} must be some that differ, not {list(chosen)}")


def check_experts(
    comparison: Comparison, task: SimulatedTask, seeds: Sequence[int]
) -> dict[int, str]:
    """Raise an error if a seed has too few demonstrations; a checksum for each seed."""
    files = {seed: comparison.experts_file(seed) for seed in seeds}
    missing = [str(file) for file in files.values() if not file.exists()]
    if missing:
        raise StorageError(f"there is no {', '.join(dict.fromkeys(missing))} (experts)")
    return {
        seed: fingerprint(ExpertSteps.of(task, comparison.demonstrations(seed))) for seed in seeds
    }


def check_same(cell: Cell, wanted: str | None) -> None:
    """Raise an error if a finished cell learned from other demonstrations than there are now."""
    found = cell.record.settings.get("demonstrations_sha256")
    if found is not None and found != wanted:
        raise StorageError(
            f"{cell.file}: learned from other demonstrations than there are now; choose another "
            "folder, or remove this file and the folder beside it"
        )


class Board:
    """Keeps and tells what is running, what is finished and what went wrong."""

    def __init__(self, total: int, done: int, progress: Progress, notice: Notice):
        self.total, self.done = total, done
        self.progress, self.notice = progress, notice
        self.running: list[Cell] = []
        self.problems: list[str] = []
        self.tell()

    def tell(self) -> None:
        """Tell how many cells are finished, and which are running."""
        now = ", ".join(f"{cell.method} {cell.seed}" for cell in self.running)
        self.progress(self.done, self.total, now or "methods")

    def begin(self, cell: Cell) -> None:
        """Note that a cell runs."""
        self.running.append(cell)
        self.tell()

    def end(self, cell: Cell, problem: str | None) -> None:
        """Note that a cell is finished, or what went wrong with it."""
        self.running.remove(cell)
        if problem is None:
            self.done += 1
            record = cell.record
            _, feasible, violated, _ = np.mean(record.execution, axis=0)
            self.notice(
                f"{cell}: violation {100 * violated:.0f} %, feasible reward {feasible:.1f}, "
                f"{record.minutes:.1f} min"
            )
        else:
            self.problems.append(f"{cell}: {problem}")
            self.notice(f"{cell}: failed: {problem}")
        self.tell()


def run_here(comparison: Comparison, cells: list[Cell], threads: int | None, board: Board) -> None:
    """Run one cell after the other."""
    for cell in cells:
        board.begin(cell)
        problem = None
        try:
            run_cell(cell, comparison, threads=threads)
        except TacitError as error:
            problem = str(error)
        board.end(cell, problem)


def run_in_processes(cells: list[Cell], processes: int, threads: int | None, board: Board) -> None:
    """Run several cells at a time; stop them all if this is stopped."""
    waiting = list(cells)
    running: dict[Cell, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                cell = waiting.pop(0)
                running[cell] = start(cell, threads)
                board.begin(cell)
            ended = [cell for cell, worker in running.items() if worker.poll() is not None]
            for cell in ended:
                board.end(cell, problem_of(cell, running.pop(cell)))
            if not ended:
                time.sleep(SECONDS_BETWEEN_LOOKS)
    finally:
        for worker in running.values():
            worker.terminate()
        for worker in running.values():
            with suppress(OSError):
                worker.communicate()


def start(cell: Cell, threads: int | None) -> subprocess.Popen[bytes]:
    """Start a process that runs the cell; it ends when its standard input is closed."""
    log = log_file(cell)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        return subprocess.Popen(
            worker_command(cell, threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def worker_command(cell: Cell, threads: int | None) -> list[str]:
    """The command that runs a cell as a process."""
    given = [str(cell.out), cell.method, str(cell.seed), str(threads or 0)]
    return [sys.executable, "-m", Cell.__module__, *given]


def log_file(cell: Cell) -> Path:
    """The file of what the process of a cell says, which is removed when it ends well."""
    return cell.folder.with_name(f"{cell.folder.name}.log")


def problem_of(cell: Cell, worker: subprocess.Popen[bytes]) -> str | None:
    """What went wrong with a cell whose process has ended, if anything did."""
    worker.communicate()
    log = log_file(cell)
    if cell.file.exists():
        log.unlink(missing_ok=True)
        return None
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    reason = said[-1] if said else f"its process ended with {worker.returncode}"
    return f"{reason} (see {log})"


def collect_idle(comparison: Comparison, file: Path) -> None:
    """Write demonstrations of experts that do nothing, to try things out with."""
    if file.exists():
        return
    task = comparison.make_task()
    shape = task.action_space.shape or ()
    idle = Expert(task, lambda observations: np.zeros((len(observations), *shape), np.float32))
    collect(idle, 2 * comparison.number, seed=0, threads=1).save(file)


def write_all(
    out: Path, comparison: Comparison, records: list[Record], threads: int | None, processes: int
) -> None:
    """Write the numbers for programs, and tables for people."""
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
    file = str(Cell(out, record.method, record.seed).file.relative_to(out))
    return {**facts, **performance(record), "command": command, "episodes": file}
