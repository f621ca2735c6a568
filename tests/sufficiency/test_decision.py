"""Are the demonstrations enough? The answer, its reasons, and fetching more."""

import dataclasses

import numpy as np
import pytest

import tacit
from tacit.environments.lab_tasks import chain
from tacit.errors import ArgumentError, TacitError
from tacit.sufficiency import decision
from tacit.sufficiency.answer import FEW
from tacit.sufficiency.decision import LEVELS, best_reward, further_number
from tacit.sufficiency.learning_curve import LearningCurve

CONFIDENCE = 0.8


@pytest.fixture(scope="module")
def task():
    return chain(length=11, limit=-2, horizon=10, reward_scale=10)


@pytest.fixture(scope="module")
def expert(task):
    return tacit.train_expert(task)


@pytest.fixture(scope="module")
def few(expert):
    return tacit.collect(expert, 3, seed=1)


@pytest.fixture(scope="module")
def many(expert):
    return tacit.collect(expert, 20, seed=1)


@pytest.fixture(scope="module")
def wanted(expert):
    return 0.99 * expert.reward


@pytest.fixture(scope="module")
def no(task, few, wanted):
    return tacit.sufficient(task, few, confidence=CONFIDENCE, reward=wanted)


@pytest.fixture(scope="module")
def yes(task, many, wanted):
    return tacit.sufficient(task, many, confidence=CONFIDENCE, reward=wanted)


@pytest.fixture(scope="module")
def impossible(task, few):
    return tacit.sufficient(task, few, confidence=CONFIDENCE, reward=best_reward(task) + 1)


def value_of(task, data, confidence):
    return tacit.evaluate(tacit.infer(task, data, confidence=confidence)).reward.value


def collector(expert, calls):
    """Brings what is asked for, and keeps the numbers."""

    def collect(number):
        calls.append(number)
        return tacit.collect(expert, number, seed=100 + len(calls))

    return collect


def test_the_answer_agrees_with_the_exact_value_of_the_inferred_policy(task, few, many, no, yes):
    for data, answer in ((few, no), (many, yes)):
        exact = value_of(task, data, CONFIDENCE)
        assert answer.value.value == pytest.approx(exact, abs=1e-6)
        assert answer.enough is bool(exact >= answer.wanted)
    assert not no.enough
    assert yes.enough


@pytest.mark.parametrize("shift", [-1e-3, 1e-3])
def test_the_answer_turns_at_the_value(task, many, yes, shift):
    answer = tacit.sufficient(task, many, confidence=CONFIDENCE, reward=yes.value.value + shift)
    assert answer.enough is (shift < 0)


def test_the_answer_carries_its_question_and_its_constraint(task, few, no, wanted):
    assert (no.wanted, no.confidence, no.number) == (wanted, CONFIDENCE, 3)
    result = tacit.infer(task, few, confidence=CONFIDENCE)
    assert isinstance(no.constraint, tacit.Constraint)
    np.testing.assert_array_equal(no.constraint.model.alpha, result.constraint.model.alpha)
    np.testing.assert_array_equal(no.constraint.model.beta, result.constraint.model.beta)
    assert no.constraint.confidence == CONFIDENCE
    assert no.demonstrations == few
    assert no.history == ((3, no.value.value),)
    assert no.curve.sizes[-1] == 3


def test_no_comes_with_a_recommended_number_and_a_reason(no):
    assert no.reason.startswith("no: ")
    assert no.recommended_number is not None
    assert no.recommended_number > no.number
    assert str(no.recommended_number) in no.reason
    low, high = no.recommended_interval
    assert no.number < low <= no.recommended_number
    assert high is None or high >= no.recommended_number


def test_yes_recommends_what_there_is(yes):
    assert yes.reason.startswith("yes: ")
    assert yes.recommended_number == yes.number == 20
    assert yes.recommended_interval is None


def test_the_recommended_number_is_the_one_of_the_curve():
    sizes = np.array([25, 35, 50, 71, 100])
    orders = np.random.default_rng(0).normal(scale=0.01, size=(5, 8)) * [[1], [1], [1], [1], [0]]
    curve = LearningCurve(sizes, (5 - 100 / sizes)[:, None] + orders)
    number, (low, high) = decision.recommend(curve, 5 - 100 / 250, seed=0)
    assert number == pytest.approx(250, rel=0.15)
    assert 100 < low <= number
    assert high is None or high >= number


def test_no_number_is_recommended_when_many_demonstrations_have_levelled_off():
    sizes = np.array([FEW, 2 * FEW, 4 * FEW])
    curve = LearningCurve(sizes, np.full((3, 8), 1.0))
    assert decision.recommend(curve, 2.0, seed=0) == (None, None)


def test_a_goal_beyond_the_task_is_no_for_that_reason(task, impossible):
    assert not impossible.enough
    assert impossible.reason.startswith("no: ")
    assert "even without any rule" in impossible.reason
    assert f"{best_reward(task):.4g}" in impossible.reason
    assert impossible.largest_confidence is None


def test_no_number_is_recommended_for_a_goal_beyond_the_task(impossible):
    assert impossible.recommended_number is None


def test_best_reward_is_that_of_the_best_deterministic_policy(task):
    # Walk left at every step: the chain rewards nothing else, and slips are symmetric.
    here, total = task.initial, 0.0
    for _ in range(task.horizon):
        total += here @ task.rewards[:, 0]
        here = here @ task.transitions[:, 0]
    assert best_reward(task) == pytest.approx(total)


def test_largest_confidence_is_the_largest_level_that_does(task, few, no, wanted):
    values = {float(level): value_of(task, few, float(level)) for level in LEVELS}
    assert no.largest_confidence in values
    assert values[no.largest_confidence] >= wanted
    above = [value for level, value in values.items() if level > no.largest_confidence]
    assert above
    assert max(above) < wanted


def test_largest_confidence_of_a_yes_is_at_least_the_one_asked_for(yes):
    assert yes.largest_confidence >= CONFIDENCE


def test_the_same_seed_gives_the_same_answer(task, few, no, wanted):
    again = tacit.sufficient(task, few, confidence=CONFIDENCE, reward=wanted, seed=0)
    for field in dataclasses.fields(no):
        if field.name not in ("constraint", "curve", "demonstrations"):
            assert getattr(again, field.name) == getattr(no, field.name), field.name
    np.testing.assert_array_equal(again.curve.values, no.curve.values)


def test_more_are_collected_until_the_answer_is_yes(task, expert, few, wanted):
    calls = []
    answer = tacit.sufficient(
        task, few, confidence=CONFIDENCE, reward=wanted, collect=collector(expert, calls)
    )
    assert answer.enough
    assert calls
    numbers = [number for number, _ in answer.history]
    assert numbers == [3, *(3 + np.cumsum(calls)).tolist()]
    values = [value for _, value in answer.history]
    assert all(value < wanted for value in values[:-1])
    assert values[-1] == answer.value.value >= wanted
    assert answer.number == len(answer.demonstrations) == numbers[-1]
    assert answer.demonstrations.take(range(3)) == few
    brought = answer.demonstrations.take(range(3, 3 + calls[0]))
    assert brought == tacit.collect(expert, calls[0], seed=101)


def test_collecting_stops_at_the_limit(task, expert, few):
    calls = []
    answer = tacit.sufficient(
        task,
        few,
        confidence=CONFIDENCE,
        reward=best_reward(task) - 0.01,
        collect=collector(expert, calls),
        limit=17,
    )
    assert not answer.enough
    assert 3 + sum(calls) == answer.number == 17
    assert len(calls) > 1
    assert len(answer.history) == len(calls) + 1


def test_nothing_is_collected_when_the_data_are_enough_or_the_limit_is_reached(
    task, few, many, wanted
):
    def collect(number):
        raise AssertionError("called")

    ask = {"confidence": CONFIDENCE, "reward": wanted, "collect": collect}
    assert tacit.sufficient(task, many, **ask).enough
    assert not tacit.sufficient(task, few, **ask, limit=3).enough


@pytest.mark.parametrize("recommended", [None, 101, 150, 300, 10_000])
def test_the_next_number_neither_crawls_nor_leaps_nor_passes_the_limit(no, recommended):
    answer = dataclasses.replace(no, number=100, recommended_number=recommended)
    assert 25 <= further_number(answer, 1000) <= 300
    assert further_number(answer, 110) == 10
    if recommended in (150, 300):
        assert 100 + further_number(answer, 1000) == recommended


@pytest.mark.parametrize("brought", [None, 7, "many", [], np.zeros(3)])
def test_a_collector_that_brings_no_demonstrations_is_an_error(task, few, wanted, brought):
    with pytest.raises(ArgumentError, match=r"collect\(\d+\) must bring"):
        tacit.sufficient(
            task, few, confidence=CONFIDENCE, reward=wanted, collect=lambda number: brought
        )


def test_a_collector_that_brings_demonstrations_of_another_task_is_an_error(task, few, wanted):
    foreign = tacit.Trajectories.from_arrays([[900, 901]], [[0]], [[0.0]], [[0.0]])
    with pytest.raises(TacitError, match=r"90[01]"):
        tacit.sufficient(
            task, few, confidence=CONFIDENCE, reward=wanted, collect=lambda number: foreign
        )


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.5, float("nan"), None, "high"])
def test_a_bad_confidence_is_an_error(task, few, confidence):
    with pytest.raises(ArgumentError, match="confidence"):
        tacit.sufficient(task, few, confidence=confidence, reward=1.0)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), -float("inf")])
def test_a_reward_that_is_no_number_is_an_error(task, few, reward):
    with pytest.raises(ArgumentError, match="reward"):
        tacit.sufficient(task, few, confidence=0.8, reward=reward)


def test_a_limit_below_what_there_is_is_an_error(task, few):
    with pytest.raises(ArgumentError, match="limit 2 is below the 3"):
        tacit.sufficient(task, few, confidence=0.8, reward=1.0, limit=2)


def test_methods_are_chosen_as_for_infer(task, few, no, wanted):
    asked = {"confidence": CONFIDENCE, "reward": wanted}
    for method in ("counts", tacit.methods.Counts()):
        assert tacit.sufficient(task, few, **asked, method=method).value == no.value
    learned = tacit.methods.Likelihood(votes="abstain")
    other = tacit.sufficient(task, few, **asked, method=learned)
    exact = tacit.evaluate(tacit.infer(task, few, method=learned, confidence=CONFIDENCE))
    assert other.value.value == pytest.approx(exact.reward.value, abs=1e-6)
    with pytest.raises(ArgumentError, match=r"did you mean likelihood\?"):
        tacit.sufficient(task, few, **asked, method="likelihod")


@pytest.mark.parametrize("given", [{"forward": tacit.PPO()}, {"threads": 2}, {"folder": "runs"}])
def test_what_only_a_method_that_acts_knows_is_refused(task, few, given):
    with pytest.raises(ArgumentError, match=f"{next(iter(given))} has no meaning for 'counts'"):
        tacit.sufficient(task, few, 0.8, 1.0, **given)
