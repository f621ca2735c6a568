"""`tacit expert`: train an expert and write its demonstrations."""

import importlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.command_line.console import percent, progress_bar, show_facts, show_note, watched
from tacit.command_line.inputs import Options, Pairs, TaskName, find_task, importable, ppo_with
from tacit.environments.tabular import TabularTask
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.control.expert import Expert


@dataclass(frozen=True)
class Train:
    """Train an expert on the true rule and write feasible demonstrations.

    Args:
        task: name of a task (Chain, GridWorld, BlockedHalfCheetah ...), a Gymnasium id whose
            environment reports info["cost"], or an .npz file with your own arrays.
        out: where to write: a .hdf5 file, or a folder in Minari's layout.
        number: how many feasible episodes to write.
        seed: of training and of the episodes.
        folder: where the training run is kept; the same command continues it there. By default
            beside `out`, with .run added to its name.
        policy: module:name of your own policy, which then acts and nothing is trained; a function
            from observations to actions, or an agent of Stable-Baselines3.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set noise_std=0.1 variant=benchmark.
        train: settings of PPO, as in --train steps=2000000 learning_rate=1e-4 multiplier.rate=0.05.
    """

    task: TaskName
    out: Path
    number: int = 100
    seed: int = 1
    folder: Path | None = None
    policy: str | None = None
    threads: int | None = None
    settings: Options = ()
    train: Pairs = ()

    def run(self) -> None:
        """Train and collect with bars, write, and show what was written."""
        from tacit.control.expert import check_request, collect
        from tacit.demonstrations.trajectories import check_destination

        check_request(self.number, self.seed)
        check_destination(self.out)
        task = find_task(self.task, self.settings)
        expert = self.expert(task)
        with progress_bar("collecting", self.number) as show:
            demonstrations = collect(
                expert, self.number, seed=self.seed, threads=self.threads, progress=show
            )
        demonstrations.save(self.out)
        facts = expert_facts(expert) | {
            "feasible episodes written": str(len(demonstrations)),
            "their reward": f"{demonstrations.returns.mean():.2f}",
            "episodes discarded": str(demonstrations.provenance["discarded"]),
            "file": str(self.out),
        }
        show_facts(f"Expert on {task.name}", facts)

    def expert(self, task: TabularTask | SimulatedTask) -> "Expert":
        """The expert of a table, the user's own policy, or one that is trained now."""
        from tacit.control.expert import Expert, train_expert
        from tacit.control.play import as_function
        from tacit.control.presets import expert_preset

        if isinstance(task, TabularTask):
            if self.train or self.policy or self.folder:
                raise ArgumentError(
                    f"the expert of {task.name} is computed exactly: --train, --policy and "
                    "--folder are for simulated tasks"
                )
            return train_expert(task, seed=self.seed)
        if self.policy is not None:
            if self.train or self.folder:
                raise ArgumentError(
                    "with --policy nothing is trained: leave --train and --folder away"
                )
            act = as_function(named_policy(self.policy))
            return Expert(task, act, facts={"policy": self.policy})
        ppo = ppo_with(expert_preset(task), self.train)
        with watched(f"training on {task.name}", ppo) as watch:
            return train_expert(
                task,
                seed=self.seed,
                settings=ppo,
                folder=self.folder or self.out.with_name(f"{self.out.name}.run"),
                threads=self.threads,
                progress=watch,
                notice=show_note,
            )


def named_policy(name: str) -> Any:
    """What `module:name` stands for, looked for in the present folder too."""
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ArgumentError(f"--policy takes module:name, as in my_robot:controller, not {name!r}")
    try:
        with importable(Path.cwd()):
            return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"--policy {name}: {error}") from error


def expert_facts(expert: "Expert") -> dict[str, str]:
    """What is known about the expert, in words."""
    facts = {}
    if not math.isnan(expert.reward):
        facts["reward per episode"] = f"{expert.reward:.2f}"
    if not math.isnan(expert.feasible_reward):
        facts["feasible reward per episode"] = f"{expert.feasible_reward:.2f}"
    if not math.isnan(expert.violation):
        facts["violation before filtering"] = percent(float(expert.violation))
    if not math.isnan(expert.multiplier):
        facts["price of a violated step"] = f"{expert.multiplier:.1f}"
    if "trained_steps" in expert.facts:
        facts["trained for"] = f"{expert.facts['trained_steps']:,} steps"
        facts["training time"] = f"{expert.facts['minutes']:.1f} min"
        facts["best policy after"] = f"{expert.facts['steps']:,} steps"
    return facts
