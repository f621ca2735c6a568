"""`tacit data`: look at demonstrations, turn one format into another, make up recordings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from tacit.command_line.console import percent, show_facts, show_written
from tacit.command_line.drives import ImportHighway, SynthesizeHighway, show_scenario
from tacit.command_line.inputs import Options, load_experts, parse_setting
from tacit.errors import ArgumentError


@dataclass(frozen=True)
class Show:
    """Show what is in a file of demonstrations, or a recorded drive as a moving picture.

    Args:
        file: .hdf5, .npz, .csv or a folder in Minari's layout; with --scenario a folder of driving
            recordings, or "built-in".
        scenario: number of the recorded drive to show.
        out: with --scenario: the .gif to write.
        set: with --scenario: options of the driving task, as in --set split=test egos=all.
    """

    file: tyro.conf.Positional[Path]
    scenario: int | None = None
    out: Path | None = None
    set: Options = ()

    def run(self) -> None:
        """Print sizes, rewards, violation and provenance of what is there, or write the picture."""
        from tacit.evaluation.intervals import mean_interval
        from tacit.evaluation.violation import violation_rate

        if (self.scenario is None) != (self.out is None):
            raise ArgumentError("--scenario and --out belong together: which drive, and which .gif")
        if self.scenario is not None and self.out is not None:
            options = dict(parse_setting(setting) for setting in self.set)
            show_scenario(str(self.file), self.scenario, self.out, options)
            return
        demonstrations = load_experts(self.file)
        lengths = demonstrations.lengths
        facts = {
            "episodes": str(len(demonstrations)),
            "steps": str(demonstrations.steps),
            "length of an episode": f"{lengths.min()} to {lengths.max()}",
            "observation": f"{demonstrations.observations.shape[2]} x "
            f"{demonstrations.observations.dtype}",
            "action": f"{demonstrations.actions.shape[2]} x {demonstrations.actions.dtype}",
            "reward per episode": str(mean_interval(demonstrations.returns)),
        }
        if demonstrations.costs is not None:
            facts["violation"] = percent(violation_rate(demonstrations))
        for name, value in demonstrations.provenance.items():
            facts[f"provenance: {name}"] = str(value)
        show_facts(str(self.file), facts)


@dataclass(frozen=True)
class Convert:
    """Write a file of demonstrations in another format.

    Args:
        file: .hdf5, .npz, .csv or a folder in Minari's layout.
        out: what to write; the ending tells the format.
    """

    file: tyro.conf.Positional[Path]
    out: Path

    def run(self) -> None:
        """Read one file and write the other."""
        from tacit.demonstrations.trajectories import check_destination

        check_destination(self.out)
        load_experts(self.file).save(self.out)
        show_written(self.out)


def data(
    action: Annotated[Show | Convert | SynthesizeHighway | ImportHighway, tyro.conf.arg(name="")],
) -> None:
    """Look at demonstrations, write them in another format, or make up recordings.

    Args:
        action: what to do.
    """
    action.run()
