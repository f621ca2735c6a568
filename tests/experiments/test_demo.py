"""The demo: one page with everything in it, from a made-up finding; the real run is slow."""

import re

import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.control.expert import Expert
from tacit.control.table_policy import TablePolicy
from tacit.environments.lab_tasks import grid_world
from tacit.evaluation.intervals import Estimate
from tacit.experiments.demo import CONFIDENCES, Demonstration, Row, demo_page, run_demo
from tacit.inference.counts.counts import Counts
from tacit.reports.page import page_html, write_page
from tacit.sufficiency.answer import Answer
from tacit.sufficiency.learning_curve import LearningCurve


def made_up_answer(task, constraint, number, enough, **changes):
    sizes = np.array([number // 2, number])
    curve = LearningCurve(sizes, np.array([[-9.0, -8.0], [-7.0, -7.0]]) + (0 if enough else -1))
    fields = {
        "enough": enough,
        "value": curve.value,
        "wanted": -7.5,
        "confidence": 0.8,
        "number": number,
        "constraint": constraint,
        "recommended_number": number if enough else 17,
        "recommended_interval": None if enough else (12, None),
        "largest_confidence": 0.85 if enough else None,
        "curve": curve,
        "reason": "yes: it is worth it" if enough else "no: 17 <might> do & more",
        "history": ((number, -7.0),),
        "demonstrations": tacit.Trajectories.from_arrays([[0, 1]], [[2]], [[-1.0]]),
    }
    return Answer(**{**fields, **changes})


def made_up(**changes):
    """What a demo might have found on a 3 x 5 grid, without any learning."""
    task = grid_world((".....", "S.x.G", "....."))
    states = task.number_of_states
    constraint = Counts().constraint(
        task, np.linspace(1, 8, states), np.linspace(6, 1, states), confidence=0.7
    )
    policy = np.full((task.horizon, states, 5), 0.2)
    fields = {
        "task": task,
        "expert": Expert(task, policy, violation=0.012, reward=-7.25, multiplier=3.0),
        "discarded": 42,
        "result": tacit.Result(constraint, TablePolicy(policy), {}, {}, task),
        "rows": [
            Row(
                confidence=float(level),
                violation=Estimate(0.31 * (1 - level), 0.2 * (1 - level), 0.4 * (1 - level)),
                reward=Estimate(-7 - level, -7.5 - level, -6.5 - level),
                joint=Estimate(0.9, 0.8, 1.0),
                pointwise=Estimate(0.95, 0.9, 1.0),
            )
            for level in CONFIDENCES
        ],
        "wanted": -7.5,
        "answers": [
            made_up_answer(task, constraint, 10, enough=False),
            made_up_answer(task, constraint, 100, enough=True),
        ],
    }
    return Demonstration(**{**fields, **changes})


@pytest.fixture(scope="module")
def page():
    return page_html(demo_page(made_up()))


def test_the_report_needs_nothing_from_outside(page):
    assert not re.search(r"<\s*(script|iframe|link|object|embed)\b", page)
    for target in re.findall(r"(?:src|href)\s*=\s*[\"']([^\"']*)", page):
        assert target.startswith(("#", "data:")), target
    assert "@import" not in page
    assert not re.search(r"url\(\s*[\"']?(?!#|data:)", page)


def test_the_report_has_four_figures_with_captions(page):
    assert page.count("<svg") == page.count("</svg>") == 4
    assert len(re.findall(r"<figcaption[^>]*>[^<]{20,}", page)) == 4
    assert page.count("<h2") == 4


def test_the_report_has_the_table_of_confidences(page):
    assert page.count("<table") == 1
    table = page[page.index("<table") : page.index("</table>")]
    assert table.count("<tr") == 1 + len(CONFIDENCES)
    assert "reward of the experts" in table
    for level in CONFIDENCES:
        assert f">{level:g}<" in table
        assert f"≤ {1 - level:.1f}" in table
    assert table.count("-7.25") >= len(CONFIDENCES)


def test_the_report_gives_both_answers_and_escapes_them(page):
    text = re.sub(r"<[^>]+>", " ", page)
    assert "With 10 demonstrations: no: 17 &lt;might&gt; do &amp; more" in text
    assert "With 100 demonstrations: yes: it is worth it" in text
    assert re.search(r"10 demonstrations enough\?\s+no\b", text)
    assert re.search(r"100 demonstrations enough\?\s+yes\b", text)
    assert "they would do: none" in text
    assert "they would do: 0.85" in text
    assert "42 broke the rule" in text


def test_a_promise_that_is_not_kept_is_shown_as_such():
    broken = [
        Row(row.confidence, Estimate(0.5, 0.4, 0.6), row.reward, row.joint, row.pointwise)
        for row in made_up().rows
    ]
    tones = {
        fact.label: fact.tone
        for facts in (demo_page(made_up()).facts, demo_page(made_up(rows=broken)).facts)
        for fact in facts
        if fact.label.startswith("violation at confidence 0.9")
    }
    assert tones == {"violation at confidence 0.9": "bad"}
    kept = [fact for fact in demo_page(made_up()).facts if fact.label.startswith("violation")]
    assert [fact.tone for fact in kept] == ["good", "good"]


@pytest.mark.parametrize(
    "changes",
    [
        {"recommended_number": None, "recommended_interval": None},
        {"recommended_interval": (12, 40)},
        pytest.param({"recommended_number": 400, "recommended_interval": (150, None)}),
    ],
)
def test_the_report_stands_whatever_is_recommended(changes):
    found = made_up()
    constraint = found.result.constraint
    few = made_up_answer(found.task, constraint, 10, enough=False, **changes)
    page = page_html(demo_page(made_up(answers=[few, found.answers[1]])))
    assert page.count("<svg") == 4


def test_the_same_finding_gives_the_same_bytes(page, tmp_path):
    path = write_page(demo_page(made_up()), tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == page


def test_the_command_writes_the_report_and_prints_the_answers(tmp_path, monkeypatch, capsys):
    asked = []

    def find(seed, report):
        asked.append(seed)
        report("looking")
        return made_up()

    monkeypatch.setattr("tacit.experiments.demo.run_demo", find)
    monkeypatch.setenv("COLUMNS", "200")
    main(["demo", "--out", str(tmp_path / "new" / "folder"), "--seed", "7"])
    assert asked == [7]
    assert (tmp_path / "new" / "folder" / "report.html").read_text().count("<svg") == 4
    printed = capsys.readouterr().out
    assert "Are 10 demonstrations enough" in printed
    assert "yes: it is worth it" in printed
    assert "report.html" in printed
    for level in CONFIDENCES:
        assert f"<= {100 * (1 - level):.0f} %" in printed


@pytest.mark.slow
def test_the_real_demo_keeps_its_promises(tmp_path):
    told = []
    found = run_demo(1, told.append)
    assert len(told) >= 4
    for row in found.rows:
        assert row.violation.value <= 1 - row.confidence
    rewards = [row.reward.value for row in found.rows]
    assert rewards[-1] < rewards[0]
    few, many = found.answers
    assert (few.number, many.number) == (10, 100)
    assert many.enough
    assert not few.enough
    path = write_page(demo_page(found), tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert few.reason.split(":")[0] == "no"
    assert "http-equiv" in page
