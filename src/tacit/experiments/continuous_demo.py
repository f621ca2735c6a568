"""`tacit demo --continuous` shows a rule that is learned by acting, on a noisy point."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.control.expert import Expert, collect, train_expert
from tacit.demonstrations.trajectories import Trajectories
from tacit.environments.registry import make
from tacit.environments.task import SimulatedTask
from tacit.evaluation.evaluate import Evaluation, evaluate
from tacit.evaluation.tradeoff import Choice, tradeoff
from tacit.experiments.demo import violation_fact
from tacit.inference.infer import infer
from tacit.inference.reach.limits import Rule
from tacit.inference.result import Result
from tacit.reports.confidence_curves import Curve, number_panels
from tacit.reports.feasibility import feasibility_curve
from tacit.reports.page import Fact, Page, Section

NUMBER = 50
CONFIDENCE = 0.8
LEVELS = (0.3, 0.6, 0.9)
# Where experts turned back and policies did not.
PLACES = np.linspace(-1.05, -0.9, 601, dtype=np.float32)
USUAL_Y = 0.5


@dataclass(frozen=True, eq=False)
class ContinuousDemonstration:
    """All that the demo learns and measures."""

    task: SimulatedTask
    expert: Expert
    demonstrations: Trajectories
    result: Result
    report: Evaluation
    choices: list[Choice]


def run_continuous_demo(seed: int, report: Callable[[str], None]) -> ContinuousDemonstration:
    """Train an expert, learn the rule from its demonstrations, and try other confidences."""
    task = make("BlockedPoint")
    report("training an expert on the true rule")
    expert = train_expert(task, seed=seed)
    demonstrations = collect(expert, NUMBER, seed=seed)
    report(f"learning the rule from {NUMBER} demonstrations")
    result = infer(task, demonstrations, confidence=CONFIDENCE, seed=seed)
    report("trying other confidences")
    choices = tradeoff(task, demonstrations, confidences=LEVELS, seed=seed)
    return ContinuousDemonstration(task, expert, demonstrations, result, evaluate(result), choices)


def continuous_page(demo: ContinuousDemonstration) -> Page:
    """The rule in words and as a curve, then what confidence costs."""
    return Page(
        title="What rule did the experts obey?",
        lead=(
            "A point is pushed about by noise and paid for going left. Experts stopped at some "
            "place without saying why. tacit watched them, let a policy of its own be tempted, and "
            "found what they avoided."
        ),
        facts=[
            *rule_facts(demo.result.constraint.rules()),
            Fact("demonstrations", str(NUMBER)),
            violation_fact(demo.report.violation, CONFIDENCE),
            Fact(
                "reward per episode",
                f"{demo.report.feasible_reward.value:.1f}",
                f"experts: {demo.demonstrations.returns.mean():.1f}",
            ),
        ],
        sections=[rule_section(demo), tradeoff_section(demo)],
        foot="Made by `tacit demo --continuous`, one seed. Violation and reward are of 100 fresh "
        "episodes without exploration; intervals are 95 % over episodes.",
    )


def rule_facts(rules: Sequence[Rule]) -> list[Fact]:
    """The two rules with the strongest evidence."""
    if not rules:
        return [Fact("the rule", "none found", tone="bad")]
    return [
        Fact(
            f"{place} rule",
            f"{rule.name} {'≥' if rule.side == 'below' else '≤'} {rule.limit:.3f}",
            f"{rule.against:.0f} of {NUMBER} experts speak against going further",
        )
        for place, rule in zip(("strongest", "second"), rules, strict=False)
    ]


def rule_section(demo: ContinuousDemonstration) -> Section:
    """Feasibility against x."""
    observations = np.stack([PLACES, np.full_like(PLACES, USUAL_Y)], axis=1)
    idle = np.zeros_like(observations)
    constraint = demo.result.constraint
    return Section(
        heading="The rule",
        text=(
            "Where experts have been they vouch for a place. Where none has been although the "
            "policy wanted to go there, they speak against it. One belief is read at three "
            "confidences: the more is asked for, the more experts must have been there. tacit is "
            "not told that x is what matters. Experts waited near y = 0.5, as that pays, and where "
            "policies strayed from it, y may be named too, now and then first."
        ),
        figure=feasibility_curve(
            PLACES,
            {level: constraint.feasibility(observations, idle, level) for level in LEVELS},
            np.array([episode.observations[:, 0].min() for episode in demo.demonstrations]),
            quantity="x, at y = 0.5",
            forbidden_below=float(demo.task.options["limit"]),
        ),
        caption="Feasibility against x. Shaded: truly forbidden, which tacit was not told.",
    )


def tradeoff_section(demo: ContinuousDemonstration) -> Section:
    """What each confidence gives."""
    return Section(
        heading="What confidence costs and buys",
        text="One run at the highest level, continued for a quarter of the steps at each other.",
        figure=number_panels([Curve(f"{NUMBER} demonstrations", demo.choices)]),
        caption="100 fresh episodes for each level, with 95 % intervals.",
    )
