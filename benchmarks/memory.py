"""Measure the memory that training takes: the peak of a fresh process after three updates.

    python benchmarks/memory.py [--quick]

prints the peak resident memory of a process that trains with the shipped settings and 64 worlds,
for every MuJoCo task, as a share of the 2 GiB that it should stay below. Exits with 1 if it does
not.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from bare_physics import NAMES
from timing import Row, Target, describe_machine, show, verdict

import tacit
from tacit.control.presets import preset
from tacit.control.trainer import Trainer
from tacit.environments.registry import Simulated

MOST_GIB = 2.0
UPDATES = 3


def train(name: Simulated) -> None:
    """Train for three updates with 64 worlds."""
    task = tacit.make(name)
    trainer = Trainer(task, replace(preset(task), worlds=64), seed=0)
    for _ in range(UPDATES):
        trainer.advance()
    trainer.close()


def peak() -> float:
    """Most memory that this process has held so far, in GiB.

    Not from `getrusage`: there a process inherits the peak of the one that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("VmHWM:"))
    return int(found.split()[1]) / 2**20


def measure(name: Simulated) -> Row:
    """The peak in a process of its own."""
    command = (sys.executable, __file__, "--train", name)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    gib = float(done.stdout.split()[-1])
    share = f"{gib / MOST_GIB:.2f}"
    return Row((name, f"{gib:.2f} GiB"), share, gib / MOST_GIB, Target(1.0, at_most=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    parser.add_argument("--train", metavar="TASK", help="train and print the peak in GiB")
    given = parser.parse_args()
    if given.train:
        train(given.train)
        print(peak())
        return 0
    if not Path("/proc/self/status").exists():
        print("no measure of memory: this system has no /proc")
        return 0
    describe_machine()
    with ThreadPoolExecutor(max_workers=2) as pool:
        rows = list(pool.map(measure, NAMES[-1:] if given.quick else NAMES))
    met = show(
        f"Peak memory after {UPDATES} updates, 64 worlds: share of {MOST_GIB:g} GiB",
        ("task", "peak", "share"),
        rows,
    )
    return verdict(met, quick=given.quick)


if __name__ == "__main__":
    sys.exit(main())
