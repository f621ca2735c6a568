"""The panels of the coverage experiment show the rows of one combination."""

import numpy as np
import pytest

from tacit.errors import ArgumentError
from tacit.experiments.coverage import coverage_panels


def row(task="chain", experts=10, confidence=0.5, **changes):
    return {
        "task": task,
        "objective": "visits",
        "votes": "fallible",
        "reading": "hard",
        "experts": experts,
        "confidence": confidence,
        "violation": 0.1 / experts,
        "violation_low": 0.05 / experts,
        "violation_high": 0.2 / experts,
        "reward": 10 + confidence,
        "joint_coverage": confidence,
        "pointwise_coverage": 0.9,
        "distance_to_oracle": confidence / experts,
        **changes,
    }


def all_rows():
    tasks, numbers, levels = ("chain", "grid $x$"), (10, 100), (0.9, 0.5)
    return [row(task, n, level) for task in tasks for n in numbers for level in levels]


def curve(axes, label):
    (found,) = [candidate for candidate in axes.lines if candidate.get_label() == label]
    return found.get_xdata().tolist(), found.get_ydata().tolist()


def test_each_task_has_a_row_of_four_panels_with_its_name():
    figure = coverage_panels(all_rows())
    places = np.array(figure.axes).reshape(2, 4)
    assert [axes.get_ylabel() for axes in places[:, 0]] == ["chain", "grid $x$"]
    titles = [axes.get_title(loc="left") for axes in places[0]]
    assert titles == ["Violation", "Reward", "Coverage", "Distance to oracle"]
    assert figure.get_suptitle() == "objective: visits, votes: fallible, reading: hard"
    figure.draw_without_rendering()


def test_lines_carry_the_rows_in_order_of_confidence():
    violation, reward, coverage, distance = coverage_panels(all_rows()).axes[:4]
    assert curve(violation, "10 demonstrations") == ([0.5, 0.9], [0.01, 0.01])
    assert curve(reward, "100 demonstrations, reward") == ([0.5, 0.9], [10.5, 10.9])
    assert curve(coverage, "10 demonstrations, joint_coverage")[1] == [0.5, 0.9]
    assert curve(coverage, "10 demonstrations, pointwise_coverage")[1] == [0.9, 0.9]
    numbers, means = curve(distance, "distance to oracle")
    assert numbers == [10, 100]
    assert means == pytest.approx([0.07, 0.007])


def test_a_number_of_demonstrations_has_one_colour_everywhere():
    figure = coverage_panels(all_rows())
    colours = {
        found.get_color()
        for axes in figure.axes
        for found in axes.lines
        if str(found.get_label()).startswith("100 demonstrations")
    }
    assert len(colours) == 1
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words[:2] == ["10 demonstrations", "100 demonstrations"]


def test_another_combination_can_be_chosen():
    rows = [*all_rows(), row(reading="soft", reward=3.0)]
    reward = coverage_panels(rows, reading="soft").axes[1]
    assert curve(reward, "10 demonstrations, reward") == ([0.5], [3.0])


def test_missing_values_leave_gaps():
    rows = [row(distance_to_oracle=None, joint_coverage=None), row(confidence=0.9, reward=None)]
    figure = coverage_panels(rows)
    figure.draw_without_rendering()
    assert np.isnan(curve(figure.axes[2], "10 demonstrations, joint_coverage")[1][0])


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "at least one row"),
        ([{"task": "chain"}], {}, "row 0 has no objective"),
        ([row()], {"votes": "infallible"}, r"no rows with votes 'infallible'; .*fallible"),
        ([row(), row()], {}, "is twice"),
    ],
)
def test_rows_that_make_no_sense_are_refused(rows, options, words):
    with pytest.raises(ArgumentError, match=words):
        coverage_panels(rows, **options)
