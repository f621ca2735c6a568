"""Curves carry the numbers they were given, with labels that say what they are."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from tacit.errors import ArgumentError
from tacit.reports.confidence_curves import confidence_curves, coverage_against_confidence
from tacit.reports.number_curve import reward_against_number
from tacit.reports.style import BLUE, PAPER, Band

CONFIDENCES = np.array([0.5, 0.7, 0.9])
VIOLATION = Band([0.2, 0.1, 0.02], [0.1, 0.05, 0.01], [0.3, 0.2, 0.05])
REWARD = Band([16, 15, 14], [15, 14, 13], [17, 16, 15])


def line(axes, label):
    (found,) = [candidate for candidate in axes.lines if candidate.get_label() == label]
    return found


def words(legend):
    return [text.get_text() for text in legend.get_texts()]


def interval_ends(axes, place=0):
    segments = [c for c in axes.collections if hasattr(c, "get_segments")][place].get_segments()
    return np.array([[segment[0, 1], segment[1, 1]] for segment in segments])


def two_panels():
    return confidence_curves(CONFIDENCES, VIOLATION, REWARD, 0.03, 15.4).axes


def test_violation_and_its_interval_are_drawn_at_their_confidences():
    left, _ = two_panels()
    found = line(left, "learned rule, with interval")
    assert found.get_xdata().tolist() == CONFIDENCES.tolist()
    assert found.get_ydata().tolist() == VIOLATION.value.tolist()
    assert interval_ends(left) == pytest.approx(np.stack([VIOLATION.low, VIOLATION.high], 1))


def test_the_promise_is_one_minus_confidence_across_the_whole_panel():
    left, _ = two_panels()
    promise = line(left, "promise: 1 − confidence")
    assert promise.get_ydata() == pytest.approx(1 - promise.get_xdata())
    assert promise.get_xdata()[[0, -1]] == pytest.approx(left.get_xlim())


def test_experts_are_a_level_in_both_panels():
    left, right = two_panels()
    assert set(line(left, "experts").get_ydata()) == {0.03}
    assert set(line(right, "experts").get_ydata()) == {15.4}


def test_reward_panel_has_the_rewards_and_words_on_its_axes():
    left, right = two_panels()
    assert line(right, "learned rule, with interval").get_ydata().tolist() == [16, 15, 14]
    assert interval_ends(right)[2].tolist() == [13, 15]
    assert right.get_ylabel() == "reward per episode"
    assert left.get_xlabel() == right.get_xlabel() == "confidence asked for"
    assert words(left.get_legend()) == [
        "promise: 1 − confidence",
        "learned rule, with interval",
        "experts",
    ]


def test_points_may_come_in_any_order():
    turned = [2, 0, 1]
    axes = confidence_curves(
        CONFIDENCES[turned],
        VIOLATION.in_order(np.array(turned)),
        REWARD.in_order(np.array(turned)),
        0.03,
        15.4,
    ).axes
    assert line(axes[0], "learned rule, with interval").get_ydata().tolist() == [0.2, 0.1, 0.02]


@pytest.mark.parametrize("violation", [0.0, 1.0])
def test_one_confidence_and_extreme_violation_can_be_drawn(violation):
    band = Band([violation], [violation], [violation])
    figure = confidence_curves([0.9], band, Band([1], [0], [2]), violation, 1.0)
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_ylim()
    assert low < violation < high


def test_coverage_has_both_kinds_and_the_diagonal():
    joint, pointwise = Band([0.6, 0.7, 0.95], [0.5, 0.6, 0.9], [0.7, 0.8, 1]), VIOLATION
    figure = coverage_against_confidence(CONFIDENCES, joint, pointwise)
    axes = figure.axes[0]
    whole = line(axes, "whole rule: allows nothing that is forbidden")
    assert whole.get_ydata().tolist() == joint.value.tolist()
    single = line(axes, "single states: an allowed one is truly allowed")
    assert single.get_ydata().tolist() == pointwise.value.tolist()
    nominal = line(axes, "exactly as asked for")
    assert nominal.get_ydata().tolist() == nominal.get_xdata().tolist()
    assert len(words(figure.legends[0])) == 3


def number_figure(**options):
    band = Band([5, 12, 14, 13], [3, 11, 13, 12], [7, 13, 15, 14])
    return reward_against_number([3, 10, 100, 30], band, 12.5, **options)


def test_reward_against_number_is_sorted_on_a_logarithmic_axis():
    axes = number_figure().axes[0]
    assert axes.get_xscale() == "log"
    found = line(axes, "reward reached, with interval")
    assert found.get_xdata().tolist() == [3, 10, 30, 100]
    assert found.get_ydata().tolist() == [5, 12, 13, 14]
    assert set(line(axes, "wanted: 12.5").get_ydata()) == {12.5}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["3", "10", "30", "100"]


def test_answers_fill_the_markers_of_their_own_points():
    axes = number_figure(answers=[False, False, True, True]).axes[0]
    enough, short = line(axes, "answer: enough"), line(axes, "answer: not enough")
    assert enough.get_xdata().tolist() == [30, 100]
    assert short.get_ydata().tolist() == [5, 12]
    assert to_hex(enough.get_markerfacecolor()) == BLUE
    assert to_hex(short.get_markerfacecolor()) == PAPER


def test_the_recommended_number_and_its_interval_are_marked():
    figure = number_figure(recommended=(200, 150, 400))
    axes = figure.axes[0]
    label = "recommended: 200 (between 150 and 400)"
    assert set(line(axes, label).get_xdata()) == {200}
    assert label in words(figure.legends[0])
    strip = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert [strip.x0, strip.x1] == pytest.approx([150, 400])
    assert axes.get_xlim()[1] > 400


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match="as many lower and upper ends"):
        Band([1, 2], [1], [1, 2])
    with pytest.raises(ArgumentError, match="2 confidences but 3 values"):
        coverage_against_confidence([0.1, 0.2], VIOLATION, VIOLATION)
    with pytest.raises(ArgumentError, match="4 numbers but 2 answers"):
        number_figure(answers=[True, False])
    with pytest.raises(ArgumentError, match="list of numbers"):
        Band([], [], [])
    with pytest.raises(ArgumentError, match="not a list of numbers"):
        Band(["many"], [1], [1])


def test_impossible_numbers_are_refused():
    with pytest.raises(ArgumentError, match="positive"):
        reward_against_number([0, 1, 2], REWARD, 1.0)
    with pytest.raises(ArgumentError, match="ends of its interval"):
        number_figure(recommended=(10, 20, 30))
