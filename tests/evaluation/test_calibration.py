"""Expected calibration error by hand, and what must hold for any data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ArgumentError
from tacit.evaluation.calibration import calibration_table, expected_calibration_error

shares = st.integers(0, 100).map(lambda percent: percent / 100)
data = st.lists(st.tuples(shares, st.booleans()), min_size=1, max_size=60)
subjects = st.sampled_from(["prediction", "feasible"])
often = settings(max_examples=100, deadline=None)


def test_the_papers_recipe_by_hand():
    # confidences .9 .8 .7 .95 .55 .9; right: yes, yes, no, yes, no, no
    probabilities = [0.9, 0.2, 0.7, 0.05, 0.55, 0.1]
    labels = [1, 0, 0, 0, 0, 1]
    # (.4, .6]: .55 wrong; (.6, .8]: .8 right, .7 wrong; (.8, 1]: .9 right, .95 right, .9 wrong
    wanted = (abs(0 - 0.55) + 2 * abs(1 / 2 - 1.5 / 2) + 3 * abs(2 / 3 - 2.75 / 3)) / 6
    assert expected_calibration_error(probabilities, labels) == pytest.approx(wanted)
    table = calibration_table(probabilities, labels)
    assert table.counts.tolist() == [0, 0, 1, 2, 3]
    np.testing.assert_allclose(table.accuracy, [np.nan, np.nan, 0, 1 / 2, 2 / 3])
    np.testing.assert_allclose(table.confidence, [np.nan, np.nan, 0.55, 0.75, 2.75 / 3])
    np.testing.assert_allclose(table.edges, [0, 0.2, 0.4, 0.6, 0.8, 1])


def test_the_probability_of_feasible_by_hand():
    probabilities = [0.9, 0.2, 0.7, 0.05, 0.55, 0.1]
    labels = [1, 0, 0, 0, 0, 1]
    # (0, .2]: .2 no, .05 no, .1 yes; (.4, .6]: .55 no; (.6, .8]: .7 no; (.8, 1]: .9 yes
    wanted = (3 * abs(1 / 3 - 0.35 / 3) + 0.55 + 0.7 + 0.1) / 6
    found = expected_calibration_error(probabilities, labels, subject="feasible")
    assert found == pytest.approx(wanted)
    table = calibration_table(probabilities, labels, subject="feasible")
    assert table.counts.tolist() == [3, 0, 1, 1, 1]


def test_a_half_is_labelled_infeasible_and_ends_belong_to_the_lower_bin():
    assert expected_calibration_error([0.5], [0]) == pytest.approx(0.5)
    assert calibration_table([0.5], [0]).accuracy[2] == 1
    stated = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    table = calibration_table(stated, [0] * 6, subject="feasible")
    assert table.counts.tolist() == [2, 1, 1, 1, 1]


def test_opposite_errors_cancel_only_when_the_prediction_is_judged():
    # Of 10 stated at .9 all are feasible, of 10 stated at .1 two are: both are stated too low.
    probabilities = np.repeat([0.9, 0.1], 10)
    labels = np.r_[np.ones(10), np.ones(2), np.zeros(8)]
    assert expected_calibration_error(probabilities, labels) == pytest.approx(0)
    both = expected_calibration_error(probabilities, labels, subject="feasible")
    assert both == pytest.approx(0.1)


@often
@given(data, st.integers(1, 20), subjects)
def test_the_error_lies_between_zero_and_one(pairs, bins, subject):
    stated, labels = zip(*pairs, strict=True)
    error = expected_calibration_error(stated, labels, bins, subject=subject)
    assert 0 <= error <= 1
    table = calibration_table(stated, labels, bins, subject=subject)
    assert table.counts.sum() == len(pairs)
    used = table.counts > 0
    assert np.isnan(table.accuracy[~used]).all()
    assert np.all(table.confidence[used] > table.edges[:-1][used] - 1e-9)
    assert np.all(table.confidence[used] <= table.edges[1:][used] + 1e-9)


@often
@given(st.lists(st.integers(0, 20), min_size=1), subjects)
def test_perfect_calibration_has_no_error(groups, subject):
    """Of every group stated at k/20 exactly k in 20 are feasible."""
    stated = np.repeat(np.array(groups) / 20, 20)
    labels = np.concatenate([np.arange(20) < share for share in groups])
    assert expected_calibration_error(stated, labels, subject=subject) == pytest.approx(0)


@often
@given(data, st.randoms(use_true_random=False))
def test_the_order_does_not_matter_nor_which_label_is_called_feasible(pairs, random):
    stated, labels = (np.array(column) for column in zip(*pairs, strict=True))
    error = expected_calibration_error(stated, labels)
    mixed = random.sample(range(len(pairs)), len(pairs))
    assert expected_calibration_error(stated[mixed], labels[mixed]) == pytest.approx(error)
    sure = stated != 0.5
    if sure.any():
        assert expected_calibration_error(1 - stated[sure], ~labels[sure], 4) == pytest.approx(
            expected_calibration_error(stated[sure], labels[sure], 4)
        )


def test_certain_and_right_is_zero_certain_and_wrong_is_one():
    assert expected_calibration_error([0.0, 1.0], [0, 1]) == 0
    assert expected_calibration_error([0.0, 1.0], [True, False]) == 1
    assert expected_calibration_error([0.0, 1.0], [1, 0], subject="feasible") == 1


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        ([], [], "empty"),
        ([0.5], [0, 1], "shape"),
        ([[0.5]], [[1]], "shape"),
        ([0.1, np.nan], [0, 1], r"probabilities is nan at \[1\]"),
        ([0.1, 1.5], [0, 1], r"probabilities\[1\] = 1.5"),
        ([0.1, 0.5], [0, 2], r"labels\[1\] = 2"),
    ],
)
def test_bad_data_are_named(probabilities, labels, message):
    with pytest.raises(ArgumentError, match=message):
        expected_calibration_error(probabilities, labels)


@pytest.mark.parametrize("bins", [0, -1, 2.5, True])
def test_bins_are_counted_in_whole_numbers(bins):
    with pytest.raises(ArgumentError, match="bins"):
        expected_calibration_error([0.5], [1], bins)


def test_an_unknown_subject_is_refused():
    with pytest.raises(ArgumentError, match="subject"):
        expected_calibration_error([0.5], [1], subject="label")  # type: ignore[arg-type]
