"""How much longer inference takes than training on a cost that is given.

    python benchmarks/inference.py [--quick]

Every method on BlockedHalfCheetah with 100 experts and the shipped settings, against plain
PPO-Lagrange on the true cost with the same number of steps, in turns: as many updates of the policy
as there are between two of the constraint, so that every block has one of those. The demonstrations
are made up; their content does not change the work. Compiling is not counted.
"""

import argparse
import dataclasses
import sys

from expert_sets import TASK, make_experts
from timing import Row, Target, describe_machine, in_turns, rate, ratio, show, timed, verdict

import tacit
from tacit.control.trainer import Trainer
from tacit.experiments.methods_cell import METHODS, acting
from tacit.inference.loop import Inference

EXPERTS, LENGTH = 100, 1000
TARGETS = {"reach": Target(2.0, at_most=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    quick = parser.parse_args().quick
    describe_machine()
    experts = make_experts(10 if quick else EXPERTS, 50 if quick else LENGTH)
    rows = [against_plain(name, experts, quick) for name in (["icrl"] if quick else METHODS)]
    met = show(
        f"Inference with {len(experts)} experts / plain PPO-Lagrange: time of as many steps",
        ("method", "steps/s", "plain", "ratio"),
        rows,
    )
    return verdict(met, quick=quick)


def against_plain(name: str, experts, quick: bool) -> Row:
    """One method, in turns with training on the true cost."""
    task = tacit.make(TASK)
    kind = acting(name)
    settings = kind.forward(task)
    if quick:
        settings = dataclasses.replace(settings, worlds=4, rollout=64, epochs=1)
    method = kind.preset(task)
    learning = Inference(task, experts, method, 0.8, settings, seed=0)
    plain = Trainer(task, settings, seed=0)
    updates = method.every
    try:
        # The first update of the constraint compiles it, the second fills what the first began.
        for _ in range(2 * updates + 1):
            learning.advance()
            plain.advance()
        seconds = in_turns(
            {
                run: lambda job=job: sum(timed(job.advance) for _ in range(updates))
                for run, job in (("learning", learning), ("plain", plain))
            },
            rounds=2 if quick else 12,
            seconds=30.0,
        )
    finally:
        learning.close()
        plain.close()
    slower = ratio(seconds["learning"], seconds["plain"])
    steps = updates * settings.batch
    cells = (name, rate(steps, seconds["learning"]), rate(steps, seconds["plain"]))
    return Row(cells, str(slower), slower.middle, TARGETS.get(name))


if __name__ == "__main__":
    sys.exit(main())
