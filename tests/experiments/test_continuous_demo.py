"""The page of `tacit demo --continuous`, from a tiny run."""

import numpy as np
import pytest

import tacit
from tacit.command_line.demo import on_a_point
from tacit.control.multiplier import Multiplier
from tacit.evaluation.intervals import Estimate
from tacit.evaluation.tradeoff import Choice
from tacit.experiments import continuous_demo
from tacit.experiments.continuous_demo import (
    ContinuousDemonstration,
    continuous_page,
    rule_facts,
)
from tacit.inference.reach.limits import Rule
from tacit.reports.page import write_page

pytestmark = pytest.mark.usefixtures("hasty_imitation")

TINY = tacit.PPO(
    steps=160,
    worlds=4,
    rollout=20,
    minibatch=40,
    epochs=1,
    hidden=(8,),
    intent=0.5,
    multiplier=Multiplier(kind="share", budget_per="worst", largest=10.0),
)


@pytest.fixture(scope="module")
def found(point):
    task, demonstrations = point
    expert = tacit.Expert(task, lambda seen: np.zeros_like(seen))
    result = tacit.infer(task, demonstrations, confidence=0.8, forward=TINY)
    level = Estimate(0.05, 0.02, 0.1)
    choices = [Choice(confidence, level, level) for confidence in (0.3, 0.9)]
    report = tacit.evaluate(result, episodes=4)
    return ContinuousDemonstration(task, expert, demonstrations, result, report, choices)


def test_the_page_has_the_rule_and_both_pictures(found, tmp_path):
    page = continuous_page(found)
    text = write_page(page, tmp_path / "report.html").read_text()
    assert text.count("<svg") == 2
    assert "promised: at most 20 %" in text
    for fact in rule_facts(found.result.constraint.rules()):
        assert fact.value in text


def test_no_rule_is_said_to_be_none():
    assert [fact.value for fact in rule_facts([])] == ["none found"]


def test_the_two_strongest_rules_are_shown():
    limits = [Rule(1, "y", "above", 0.6, 3, 47.0), Rule(0, "x", "below", -0.99, 3, 40.0)]
    facts = rule_facts([*limits, *limits])
    assert [(fact.label, fact.value) for fact in facts] == [
        ("strongest rule", "y ≤ 0.600"),
        ("second rule", "x ≥ -0.990"),
    ]


def test_the_command_prints_the_rules_or_that_there_are_none(found, tmp_path, monkeypatch, capsys):
    def shown(rules):
        monkeypatch.setattr(type(found.result.constraint), "rules", lambda _: rules)
        monkeypatch.setattr(continuous_demo, "run_continuous_demo", lambda *_, **__: found)
        on_a_point(tmp_path, 1)
        return capsys.readouterr().out.splitlines()[0]

    limit = Rule(0, "x", "below", -0.99, 3, 40.0)
    assert shown([limit]) == (
        "strongest rule: x ≥ -0.990 (40 of 50 experts speak against going further)"
    )
    assert shown([]) == "the rule: none found"
