"""`tacit experiment run rule`: is what was learned a rule, or an imitation?"""

from dataclasses import dataclass
from pathlib import Path

from tacit.command_line.tables import console, follow, progress_bar, show_table
from tacit.experiments.rule import rule_table, run_rule, summed_table
from tacit.inference.methods import METHODS


@dataclass(frozen=True)
class Rule:
    """Is what was learned a rule, or an imitation? Of the runs of `tacit experiment run methods`.

    Recovery is the chance that of two states, one truly forbidden and one allowed, the forbidden
    one is doubted more. The figure shows feasibility against one observed number, in the postures
    of those who keep the rule and of those who break it.

    Args:
        out: folder for the table and the figure.
        runs: folder of the comparison, with `none` among its methods.
        quantity: place in the observation of the number that the postures are moved along.
        methods: whose runs are judged; by default all that are there.
        calibration: also measure the calibration error; half a minute or more for each run on a
            robot.
        threads: for the simulator.
    """

    out: Path
    runs: Path
    quantity: int = 0
    methods: tuple[str, ...] = METHODS
    calibration: bool = True
    threads: int | None = None

    def run(self) -> None:
        """Judge all finished runs with a bar, then show the table."""
        with progress_bar() as bar:
            job = bar.add_task("rule", total=1)
            rows = run_rule(
                self.out,
                self.runs,
                quantity=self.quantity,
                methods=self.methods,
                calibration=self.calibration,
                threads=self.threads,
                progress=follow(bar, job),
            )
        show_table("A rule or an imitation?", *rule_table(rows))
        show_table("Over seeds", *summed_table(rows))
        console.print(f"written: {self.out / 'rule.md'}, {self.out / 'postures.png'}", markup=False)
