"""Run the cells of the comparison of methods, here or in processes of their own."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from tacit.errors import TacitError
from tacit.experiments.methods_cell import (
    Comparison,
    cell_file,
    cell_folder,
    read_record,
    run_cell,
)

SECONDS_BETWEEN_LOOKS = 0.2

Cell = tuple[str, int]
Progress = Callable[[int, int, str], None]
Notice = Callable[[str], None]


class Board:
    """Keeps and tells what is running, what is finished and what went wrong."""

    def __init__(self, out: Path, total: int, done: int, progress: Progress, notice: Notice):
        self.out, self.total, self.done = out, total, done
        self.progress, self.notice = progress, notice
        self.running: list[Cell] = []
        self.problems: list[str] = []
        self.tell()

    def tell(self) -> None:
        """How far it is."""
        now = ", ".join(f"{method} {seed}" for method, seed in self.running)
        self.progress(self.done, self.total, now or "methods")

    def began(self, cell: Cell) -> None:
        """A cell runs."""
        self.running.append(cell)
        self.tell()

    def ended(self, cell: Cell, problem: str | None) -> None:
        """A cell is finished, or will not be."""
        self.running.remove(cell)
        method, seed = cell
        if problem is None:
            self.done += 1
            record = read_record(self.out, method, seed)
            _, feasible, violated, _ = np.mean(record.execution, axis=0)
            self.notice(
                f"{method}, seed {seed}: violation {100 * violated:.0f} %, feasible reward "
                f"{feasible:.1f}, {record.minutes:.1f} min"
            )
        else:
            self.problems.append(f"{method}, seed {seed}: {problem}")
            self.notice(f"{method}, seed {seed}: failed: {problem}")
        self.tell()


def run_here(
    out: Path, comparison: Comparison, cells: list[Cell], threads: int | None, board: Board
) -> None:
    """One cell after the other."""
    for cell in cells:
        board.began(cell)
        problem = None
        try:
            run_cell(out, comparison, *cell, threads=threads)
        except TacitError as error:
            problem = str(error)
        board.ended(cell, problem)


def run_in_processes(
    out: Path, cells: list[Cell], processes: int, threads: int | None, board: Board
) -> None:
    """Several cells at a time; when this is stopped, so are they."""
    waiting = list(cells)
    running: dict[Cell, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                cell = waiting.pop(0)
                running[cell] = start(out, cell, threads)
                board.began(cell)
            ended = [cell for cell, worker in running.items() if worker.poll() is not None]
            for cell in ended:
                board.ended(cell, outcome(out, cell, running.pop(cell)))
            if not ended:
                time.sleep(SECONDS_BETWEEN_LOOKS)
    finally:
        for worker in running.values():
            worker.terminate()
        for worker in running.values():
            with suppress(OSError):
                worker.communicate()


def start(out: Path, cell: Cell, threads: int | None) -> subprocess.Popen[bytes]:
    """A process that runs the cell; it ends when its standard input is closed."""
    log = log_file(out, cell)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        return subprocess.Popen(
            worker_command(out, cell, threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def worker_command(out: Path, cell: Cell, threads: int | None) -> list[str]:
    """How a worker is called."""
    method, seed = cell
    module = "tacit.experiments.methods_cell"
    return [sys.executable, "-m", module, str(out), method, str(seed), str(threads or 0)]


def log_file(out: Path, cell: Cell) -> Path:
    """What a worker says; removed when it ends well."""
    return cell_folder(out, *cell).with_name(f"{cell[0]}-{cell[1]}.log")


def outcome(out: Path, cell: Cell, worker: subprocess.Popen[bytes]) -> str | None:
    """Clean up after a worker that has ended; what went wrong, if anything did."""
    worker.communicate()
    log = log_file(out, cell)
    if cell_file(out, *cell).exists():
        log.unlink(missing_ok=True)
        return None
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    reason = said[-1] if said else f"its process ended with {worker.returncode}"
    return f"{reason} (see {log})"
