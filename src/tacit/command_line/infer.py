"""`tacit infer`: learn a constraint and a policy that keeps it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from tacit.command_line.console import console, show_facts, show_note, watched
from tacit.command_line.inputs import find_task, load_experts, method_with, ppo_with
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.control.settings import PPO
    from tacit.demonstrations.trajectories import Trajectories
    from tacit.environments.tabular import TabularTask
    from tacit.environments.task import SimulatedTask
    from tacit.inference.constraint import Constraint
    from tacit.inference.method import NamedMethod

SHOWN_RULES = 3


def infer(
    task: tyro.conf.Positional[str],
    experts: Path,
    method: str | None = None,
    confidence: float = 0.8,
    number: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    threads: int | None = None,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
    learn: tuple[str, ...] = (),
    train: tuple[str, ...] = (),
) -> None:
    """Learn the rule that the experts obeyed, and a policy that keeps it.

    Args:
        task: name of a task (GridWorld, BlockedHalfCheetah ...), a Gymnasium id, or an .npz file
            with your own arrays.
        experts: file or folder with the demonstrations.
        method: one of those that `tacit methods` lists; by default counts on tables and reach
            elsewhere. Add --help-method to list the settings of a method and stop.
        confidence: how sure the constraint must be at least as tight as the truth, between 0 and 1;
            heeded by counts, likelihood, reach and ca-icrl.
        number: use so many of the demonstrations, drawn at random by the seed; by default all.
        seed: of everything random.
        out: folder to keep the result in, and the run: the same command continues it there.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
        learn: settings of the method, as in --learn votes=visits-fallible.
        train: settings of PPO, as in --train steps=2000000 multiplier.largest=10; for methods that
            learn by acting.
    """
    from tacit.command_line.evaluate import facts_of
    from tacit.inference.infer import infer as learned

    check_name(method)
    chosen_task = find_task(task, settings)
    demonstrations = load_experts(experts, number, seed)
    chosen = method_with(method, chosen_task, learn)
    forward = forward_for(chosen, chosen_task, demonstrations, train)
    asked = {"method": chosen, "confidence": confidence, "seed": seed, "folder": out}
    if forward is None:
        with console.status("learning"):
            result = learned(chosen_task, demonstrations, threads=threads, **asked)
    else:
        with watched(f"{chosen.name} on {chosen_task.name}", forward) as watch:
            result = learned(
                chosen_task,
                demonstrations,
                forward=forward,
                threads=threads,
                progress=watch,
                notice=show_note,
                **asked,
            )
    facts = {"method": result.method + (" (the default here)" if method is None else "")}
    facts |= facts_of(result) | strongest_rules(result.constraint)
    if "minutes" in result.metrics:
        facts["steps"] = f"{int(result.metrics['steps']):,}"
        facts["time"] = f"{result.metrics['minutes']:.1f} min"
    if out is not None:
        facts["saved in"] = str(out)
    title = f"{result.method} on {chosen_task.name}, {len(demonstrations)} demonstrations"
    show_facts(title, facts)


def check_name(method: str | None) -> None:
    """Raise an error if there is no such method, before anything takes time."""
    from tacit.inference.method import find_method

    if method is not None:
        find_method(method)


def forward_for(
    method: "NamedMethod",
    task: "TabularTask | SimulatedTask",
    demonstrations: "Trajectories",
    train: tuple[str, ...],
) -> "PPO | None":
    """The method's settings of PPO with those of --train; None where nothing acts."""
    from tacit.inference.experts import as_simulated
    from tacit.inference.method import Method

    if isinstance(method, Method):
        simulator, _ = as_simulated(task, demonstrations)
        return ppo_with(method.forward(simulator), train)
    if train:
        raise ArgumentError(
            f"--train has no meaning for {method.name!r} on {task.name}, which is computed without "
            "acting; leave it away, or name a method that acts, as in --method vicrl"
        )
    return None


def strongest_rules(constraint: "Constraint") -> dict[str, str]:
    """The first few rules in words; none of a network, which nobody can read."""
    try:
        rules = constraint.rules()
    except ArgumentError:
        return {}
    return {f"rule {place}": str(rule) for place, rule in enumerate(rules[:SHOWN_RULES], start=1)}
