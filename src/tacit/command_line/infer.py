"""`tacit infer`: learn a constraint and a policy that keeps it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.command_line.console import facts_of, show_facts, show_note
from tacit.command_line.inputs import Learning
from tacit.errors import ArgumentError

if TYPE_CHECKING:
    from tacit.inference.constraint import Constraint
    from tacit.inference.result import Result

SHOWN_RULES = 3


@dataclass(frozen=True, kw_only=True)
class Infer(Learning):
    """Learn the rule that the experts obeyed, and a policy that keeps it.

    Args:
        confidence: how sure the constraint must be at least as tight as the truth; heeded by
            counts, likelihood, reach and ca-icrl.
        number: use so many demonstrations, drawn at random by the seed; by default all.
        out: folder to keep the result in, and the run: the same command continues it there.
    """

    confidence: float = 0.8
    number: int | None = None
    out: Path | None = None

    def run(self) -> None:
        """Learn with a bar, then show what was learned."""
        from tacit.inference.infer import infer

        asked = self.read(self.number)
        with self.shown(asked, asked.method.name) as options:
            result = infer(
                asked.task,
                asked.demonstrations,
                confidence=self.confidence,
                folder=self.out,
                notice=show_note,
                **options,
            )
        facts = {"method": result.method + (" (the default here)" if self.method is None else "")}
        facts |= facts_of(result) | strongest_rules(result.constraint) | effort(result, self.out)
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
