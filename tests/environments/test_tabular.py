"""TabularTask takes the arrays as people have them and says which entry is wrong."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.environments.tabular import TabularTask
from tacit.errors import TacitError, TaskError

STATES, ACTIONS = 4, 3
STATE, ACTION = 2, 1


def random_arrays(seed=0):
    random = np.random.default_rng(seed)
    return {
        "transitions": random.dirichlet(np.ones(STATES), (STATES, ACTIONS)),
        "rewards": random.normal(size=(STATES, ACTIONS)),
        "costs": (random.random((STATES, ACTIONS)) < 0.4).astype(float),
        "initial": random.dirichlet(np.ones(STATES)),
        "horizon": 5,
    }


def build(**changes):
    return TabularTask(**(random_arrays() | changes))


def spoiled(field, value, place):
    array = random_arrays()[field]
    array[place] = value
    return {field: array}


def assert_rejected(match, **changes):
    with pytest.raises(TaskError, match=match) as caught:
        build(**changes)
    assert isinstance(caught.value, TacitError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["transitions", "rewards", "costs"])
def test_a_number_that_is_not_finite_is_named_with_state_and_action(field, value):
    assert_rejected(rf"{field} .*state 2, action 1", **spoiled(field, value, (STATE, ACTION)))


def test_a_number_that_is_not_finite_in_a_long_form_is_named_with_its_place():
    rewards = np.zeros((STATES, ACTIONS, STATES))
    rewards[STATE, ACTION, 3] = np.nan
    assert_rejected("rewards is nan at state 2, action 1, next state 3", rewards=rewards)
    assert_rejected("costs is nan at state 1", costs=[0, np.nan, 0, 1])
    assert_rejected("initial is nan at state 3", initial=[0.5, 0.5, 0, np.nan])


@given(state=st.integers(0, STATES - 1), action=st.integers(0, ACTIONS - 1))
@settings(max_examples=12, deadline=None)
def test_a_bad_row_of_transitions_is_named_wherever_it_is(state, action):
    place = rf"state {state}, action {action}\b"
    halved = random_arrays()["transitions"]
    halved[state, action] *= 0.5
    assert_rejected(rf"{place} sum to 0\.5", transitions=halved)
    negative = random_arrays()["transitions"]
    negative[state, action, 0] -= 2
    negative[state, action, 1] += 2
    assert_rejected(rf"negative.*{place}", transitions=negative)


def test_the_number_of_bad_rows_is_told():
    assert_rejected("12 such rows", transitions=random_arrays()["transitions"] * 1.01)


def test_a_negative_cost_is_named_with_state_and_action():
    assert_rejected("state 2, action 1.*negative", **spoiled("costs", -0.1, (STATE, ACTION)))


@pytest.mark.parametrize(
    ("field", "array", "match"),
    [
        ("transitions", np.ones((4, 3)) / 4, r"\[S, A, S\], not \[4, 3\]"),
        ("transitions", np.ones((4, 3, 5)) / 5, r"\[S, A, S\], not \[4, 3, 5\]"),
        ("transitions", np.ones((4, 0, 4)), r"\[S, A, S\], not \[4, 0, 4\]"),
        ("rewards", np.zeros((3, 4)), r"rewards .*S = 4 and A = 3, not \[3, 4\]"),
        ("rewards", 1.0, r"rewards .* not \[\]"),
        ("costs", np.zeros(3), r"costs .*S = 4 and A = 3, not \[3\]"),
        ("costs", np.zeros((4, 3, 4)), r"costs .* not \[4, 3, 4\]"),
        ("initial", np.ones(3) / 3, r"initial .*\[4\], not \[3\]"),
        ("initial", [0.5, 0.6, 0, 0], "initial .*sums to 1.1"),
        ("initial", [1.5, -0.5, 0, 0], "initial is negative at state 1"),
        ("rewards", [[1, 2], [3]], "rewards is not an array of numbers"),
        ("costs", "none", "costs is not an array of numbers"),
        ("horizon", 0, "horizon .*not 0"),
        ("horizon", 2.5, r"horizon .*not 2\.5"),
        ("temperature", 0.0, "temperature must be a finite number, positive"),
        ("temperature", np.nan, "temperature must be a finite number, positive"),
        ("budget", -0.1, "budget must be a finite number, zero or more"),
        ("budget", np.nan, "budget must be a finite number, zero or more"),
        ("rule_on", "action", "rule_on must be 'state' or 'pair', not 'action'"),
    ],
)
def test_a_field_that_cannot_work_is_named(field, array, match):
    assert_rejected(match, **{field: array})


def test_rewards_of_states_of_pairs_and_of_moves_mean_the_same():
    of_states = np.arange(STATES) - 1.5
    of_pairs = np.tile(of_states[:, None], ACTIONS)
    of_moves = np.tile(of_pairs[:, :, None], STATES)
    for rewards in (of_states, of_pairs, of_moves, of_states.tolist()):
        np.testing.assert_allclose(build(rewards=rewards).rewards, of_pairs, atol=1e-15)


def test_rewards_of_moves_are_averaged_over_next_states():
    rewards = np.random.default_rng(1).normal(size=(STATES, ACTIONS, STATES))
    task = build(rewards=rewards)
    for state, action in np.ndindex(STATES, ACTIONS):
        expected = sum(
            task.transitions[state, action, successor] * rewards[state, action, successor]
            for successor in range(STATES)
        )
        assert task.rewards[state, action] == pytest.approx(expected)


def test_rewards_with_as_many_states_as_actions_are_read_as_states_by_actions():
    rewards = np.arange(9.0).reshape(3, 3)
    task = TabularTask(np.full((3, 3, 3), 1 / 3), rewards, np.zeros(3), np.eye(3)[0], 2)
    np.testing.assert_array_equal(task.rewards, rewards)


@pytest.mark.parametrize("costs", [[0, 0, 1, 0], [False, False, True, False], [0, 0, 0.5, 0]])
def test_costs_of_states_make_a_rule_about_states(costs):
    task = build(costs=costs)
    assert task.rule_on == "state"
    assert task.number_of_queries == STATES
    np.testing.assert_array_equal(task.allowed, [True, True, False, True])
    np.testing.assert_array_equal(task.costs, np.tile(np.array(costs, float)[:, None], ACTIONS))


def test_costs_that_differ_between_actions_make_a_rule_about_pairs():
    costs = np.zeros((STATES, ACTIONS))
    costs[STATE, ACTION] = 1
    task = build(costs=costs)
    assert task.rule_on == "pair"
    assert task.number_of_queries == STATES * ACTIONS
    np.testing.assert_array_equal(task.allowed, costs.reshape(-1) == 0)


def test_costs_of_pairs_that_do_not_differ_make_a_rule_about_states_unless_asked():
    costs = np.tile(np.array([0.0, 1, 0, 0])[:, None], ACTIONS)
    assert build(costs=costs).rule_on == "state"
    asked = build(costs=costs, rule_on="pair")
    assert asked.rule_on == "pair"
    assert asked.allowed.shape == (STATES * ACTIONS,)


def test_a_rule_on_states_with_costs_that_differ_names_the_state():
    costs = np.zeros((STATES, ACTIONS))
    costs[STATE, ACTION] = 1
    assert_rejected("costs of state 2 differ", costs=costs, rule_on="state")


@pytest.mark.parametrize("field", ["transitions", "rewards", "costs", "initial"])
def test_arrays_are_read_only_copies(field):
    given_arrays = random_arrays()
    task = TabularTask(**given_arrays)
    array = getattr(task, field)
    assert array.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    before = array.copy()
    given_arrays[field][:] = 0
    np.testing.assert_array_equal(array, before)


def test_fields_cannot_be_set():
    with pytest.raises(dataclasses.FrozenInstanceError):
        build().horizon = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_rows_within_tolerance_are_made_to_sum_to_one():
    arrays = random_arrays()
    arrays["transitions"] = arrays["transitions"].astype(np.float32)
    arrays["initial"] = arrays["initial"].astype(np.float32)
    task = TabularTask(**arrays)
    np.testing.assert_allclose(task.transitions.sum(axis=2), 1, atol=1e-15)
    assert task.initial.sum() == pytest.approx(1, abs=1e-15)


def test_a_whole_number_of_numpy_is_a_horizon():
    horizon = build(horizon=np.int32(7)).horizon
    assert type(horizon) is int
    assert horizon == 7


@pytest.mark.parametrize("rule_on", ["state", "pair"])
def test_on_pairs_and_queries_agree(rule_on):
    task = build(costs=np.zeros(STATES), rule_on=rule_on)
    values = np.random.default_rng(2).normal(size=task.number_of_queries)
    spread = task.on_pairs(values)
    assert spread.shape == (STATES, ACTIONS)
    states, actions = np.divmod(np.arange(STATES * ACTIONS), ACTIONS)
    np.testing.assert_array_equal(spread[states, actions], values[task.queries(states, actions)])
    assert set(task.queries(states, actions)) == set(range(task.number_of_queries))


@pytest.mark.parametrize("rule_on", ["state", "pair"])
def test_on_pairs_keeps_leading_axes(rule_on):
    task = build(costs=np.zeros(STATES), rule_on=rule_on)
    values = np.random.default_rng(3).normal(size=(2, 5, task.number_of_queries))
    spread = task.on_pairs(values)
    assert spread.shape == (2, 5, STATES, ACTIONS)
    np.testing.assert_array_equal(spread[1, 4], task.on_pairs(values[1, 4]))


@pytest.mark.parametrize("costs", [[0, 1, 0, 1], np.eye(STATES, ACTIONS)])
def test_allowed_spread_over_pairs_is_where_the_cost_is_zero(costs):
    task = build(costs=costs)
    np.testing.assert_array_equal(task.on_pairs(task.allowed), task.costs == 0)
