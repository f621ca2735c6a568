"""`tacit infer`: learn a constraint and a policy that keeps it."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.command_line.console import facts_of, show_facts, show_note
from tacit.command_line.inputs import MethodName, Options, Pairs, TaskName, learning, read_request
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.inference.constraint import Constraint
    from tacit.inference.result import Result

SHOWN_RULES = 3


def infer(
    task: TaskName,
    experts: Path,
    method: MethodName = None,
    confidence: float = 0.8,
    number: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    threads: int | None = None,
    settings: Options = (),
    learn: Pairs = (),
    train: Pairs = (),
) -> None:
    """Learn the rule that the experts obeyed, and a policy that keeps it.

    Args:
        task: name of a task (GridWorld, BlockedHalfCheetah ...), a Gymnasium id, or an .npz file
            with your own arrays.
        experts: file or folder with the demonstrations.
        method: one of those that `tacit methods` lists; by default counts on tables and reach
            elsewhere. Add --help-method to list the settings of a method and stop.
        confidence: how sure the constraint must be at least as tight as the truth; heeded by
            counts, likelihood, reach and ca-icrl.
        number: use so many demonstrations, drawn at random by the seed; by default all.
        seed: of everything random.
        out: folder to keep the result in, and the run: the same command continues it there.
        threads: for the simulator; all cores by default.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
        learn: settings of the method, as in --learn votes=visits-fallible.
        train: settings of PPO, as in --train steps=2000000 multiplier.largest=10.
    """
    from tacit.inference.infer import infer as learned

    asked = read_request(task, settings, experts, method, learn, train, number=number, seed=seed)
    with learning(asked, asked.method.name) as watching:
        result = learned(
            asked.task,
            asked.demonstrations,
            method=asked.method,
            confidence=confidence,
            seed=seed,
            folder=out,
            threads=threads,
            notice=show_note,
            **watching,
        )
    facts = {"method": result.method + (" (the default here)" if method is None else "")}
    facts |= facts_of(result) | strongest_rules(result.constraint) | effort(result, out)
    title = f"{result.method} on {asked.task.name}, {len(asked.demonstrations)} demonstrations"
    show_facts(title, facts)


def effort(result: "Result", out: Path | None) -> dict[str, str]:
    """What it took to learn by acting, and where the result is kept."""
    facts = {}
    if "minutes" in result.metrics:
        facts["steps"] = f"{int(result.metrics['steps']):,}"
        facts["time"] = f"{result.metrics['minutes']:.1f} min"
    if out is not None:
        facts["saved in"] = str(out)
    return facts


def strongest_rules(constraint: "Constraint") -> dict[str, str]:
    """The first few rules in words; none of a network, which nobody can read."""
    try:
        rules = constraint.rules()
    except ArgumentError:
        return {}
    return {f"rule {place}": str(rule) for place, rule in enumerate(rules[:SHOWN_RULES], start=1)}
