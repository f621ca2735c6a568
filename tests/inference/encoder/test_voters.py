"""Who votes: steps from every part of a trajectory, in an order that gives nobody away."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ArgumentError
from tacit.inference.encoder.voters import Voters, choose_steps, gather_steps
from tacit.inference.experts import ExpertSteps
from tacit.inference.inputs import Steps


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    tokens=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_chosen_steps_are_spread_over_the_trajectory(lengths, tokens, seed):
    lengths, experts = np.array(lengths), np.arange(len(lengths))[::-1]
    step, present = choose_steps(lengths, experts, tokens, np.random.default_rng(seed))
    assert step.dtype == np.int32
    assert step.shape == present.shape == (len(experts), tokens)
    for row, (expert, there) in enumerate(zip(experts, present, strict=True)):
        length, chosen = lengths[expert], step[row][there]
        assert len(chosen) == min(length, tokens)
        assert np.all(np.diff(there.astype(int)) <= 0)
        assert np.all(np.diff(chosen) > 0)
        assert 0 <= chosen[0] <= chosen[-1] < length
        if length <= tokens:
            assert np.array_equal(chosen, np.arange(length))
        else:
            strata = np.arange(tokens + 1) * length // tokens
            assert np.array_equal(np.searchsorted(strata, chosen, "right") - 1, np.arange(tokens))


def test_every_step_is_chosen_sometimes():
    drawn = [
        choose_steps(np.array([23]), np.array([0]), 5, np.random.default_rng(seed))[0]
        for seed in range(200)
    ]
    assert np.array_equal(np.unique(drawn), np.arange(23))
    with pytest.raises(ArgumentError, match="at least one step"):
        choose_steps(np.array([0]), np.array([0]), 5, np.random.default_rng(0))


def test_gathered_steps_are_the_chosen_ones():
    observations = np.arange(4 * 6 * 2, dtype=np.float32).reshape(4, 6, 2)
    actions = np.arange(20).reshape(4, 5)
    experts, step = np.array([2, 0]), np.array([[1, 4], [3, 0]])
    steps = gather_steps(
        observations, actions, experts, step, np.array([[True] * 2, [True, False]])
    )
    assert np.array_equal(steps.actions, [[11, 14], [3, 0]])
    assert np.array_equal(steps.observations[0, 1], observations[2, 4])
    assert np.all(steps.observations[1, 1] == 0)
    assert np.array_equal(steps.present, [[True, True], [True, False]])


def test_an_experts_steps_have_no_order_that_could_give_it_away():
    seen = np.arange(3 * 41, dtype=np.float32).reshape(3, 41, 1)
    experts = ExpertSteps(seen, np.zeros((3, 40, 1), np.float32), np.array([40] * 3), None, 0.0)
    ordered = Voters.draw(experts, 3, 16, np.random.default_rng(0))
    mixed = ordered.shuffled(np.random.default_rng(1))
    assert (np.diff(np.asarray(ordered.step), axis=1) > 0).all()
    assert (np.diff(np.asarray(mixed.step), axis=1) < 0).any(axis=1).all()
    np.testing.assert_array_equal(np.sort(mixed.step, axis=1), ordered.step)
    assert isinstance(mixed.steps, Steps)
    starts = np.asarray(seen[:, 0, 0])[:, None]
    np.testing.assert_array_equal(
        np.asarray(mixed.steps.observations)[..., 0], starts + np.asarray(mixed.step)
    )
