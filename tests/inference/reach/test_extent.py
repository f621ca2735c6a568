"""How far policies and experts go: against loops written out."""

import jax.numpy as jnp
import numpy as np
import pytest

import tacit
from tacit.control.learner import Rollout
from tacit.inference.experts import ExpertSteps
from tacit.inference.reach.extent import LEVELS, RunningExtent, extent_of, extremes_of, followed
from tacit.inference.reach.model import Extent
from tacit.inference.reach.quantities import Quantities

LENGTH, WORLDS, QUANTITIES = 9, 3, 2
AT_ZERO = Extent(jnp.zeros((QUANTITIES, 1)), jnp.zeros((QUANTITIES, 1)))


def rollout(seed, rewards=1.0):
    draws = np.random.default_rng(seed)
    shape = (LENGTH, WORLDS)
    ended = draws.random(shape) < 0.25
    return Rollout(
        observations=draws.normal(size=(*shape, QUANTITIES)).astype(np.float32),
        arrived=draws.normal(size=(*shape, QUANTITIES)).astype(np.float32),
        actions=np.zeros((*shape, 1), np.float32),
        rewards=np.full(shape, rewards, np.float32),
        costs=np.zeros((*shape, 1), np.float32),
        terminated=ended & (draws.random(shape) < 0.5),
        truncated=ended & (draws.random(shape) < 2),
    )


def written_out(rollouts, worth):
    """Of each world the values that count of its running and of its last episode."""
    now, last = ([[] for _ in range(WORLDS)] for _ in "ab")
    earned, steps, last_steps = np.zeros(WORLDS), np.zeros(WORLDS), np.zeros(WORLDS)
    for part in rollouts:
        for time in range(LENGTH):
            for world in range(WORLDS):
                end = part.terminated[time, world] or part.truncated[time, world]
                if earned[world] < worth:
                    now[world].append(part.observations[time, world])
                earned[world] += part.rewards[time, world]
                steps[world] += 1
                if end:
                    last[world], last_steps[world] = now[world], steps[world]
                    now[world], earned[world], steps[world] = [], 0, 0
    return [
        np.array(now[world] if steps[world] >= last_steps[world] else last[world])
        for world in range(WORLDS)
    ]


@pytest.mark.parametrize("worth", [0.0, 3.0])
def test_episodes_are_followed_over_rollouts_until_they_have_earned_enough(worth):
    rollouts = [rollout(seed) for seed in (1, 2, 3)]
    running = RunningExtent.start(WORLDS, AT_ZERO, worth)
    for part in rollouts:
        running = followed(running, part)
    longest = written_out(rollouts, worth or np.inf)
    reach = running.extent()
    # The expert never moves from 0, so that to leave it once is enough.
    np.testing.assert_array_equal(reach.lowest, np.sort([v.min(axis=0) for v in longest], axis=0).T)
    np.testing.assert_array_equal(
        reach.highest, np.sort([v.max(axis=0) for v in longest], axis=0).T
    )


def test_who_is_beyond_the_experts_for_a_moment_only_means_nothing_by_it():
    quiet = rollout(1)
    none = np.zeros((LENGTH, WORLDS), bool)
    seen = np.zeros((30 * LENGTH, WORLDS, QUANTITIES), np.float32)
    seen[5, 0, 0] = -3.0  # 1 of 270 steps
    seen[::15, 1, 0] = -3.0  # 18 of 270
    seen[::30, 2, 0] = 3.0  # 9 of 270
    moving = Extent(jnp.full((QUANTITIES, 1), -1.0), jnp.full((QUANTITIES, 1), 2.0))

    def reach_beyond(experts):
        running = RunningExtent.start(WORLDS, experts, 0.0)
        for part in seen.reshape(30, LENGTH, WORLDS, QUANTITIES):
            running = followed(
                running,
                quiet._replace(
                    observations=part, arrived=part, rewards=part[..., 0] * 0,
                    terminated=none, truncated=none,
                ),
            )  # fmt: skip
        return running.extent()

    reach = reach_beyond(moving)
    np.testing.assert_array_equal(reach.lowest[0], [-3, -1, 0])
    np.testing.assert_array_equal(reach.highest[0], [0, 0, 2])
    still = reach_beyond(AT_ZERO)
    np.testing.assert_array_equal(still.lowest[0], [-3, -3, 0])
    np.testing.assert_array_equal(still.highest[0], [0, 0, 3])


def test_experts_are_counted_where_they_acted_and_not_where_the_episode_ended():
    draws = np.random.default_rng(0)
    lengths = np.array([4, 7, 2])
    observations = draws.normal(size=(3, 8, 4)).astype(np.float32)
    observations[np.arange(3), lengths] = 100
    task = tacit.make("BiasedPendulum", horizon=7)
    steps = ExpertSteps.of(
        task,
        tacit.Trajectories(
            observations=observations,
            actions=np.zeros((3, 7, 1), np.float32),
            rewards=np.ones((3, 7), np.float32),
            lengths=lengths,
        ),
    )
    reach, extremes = extent_of(steps, Quantities())
    for place in range(3):
        for quantity in range(4):
            for ends, who, when in (
                (reach.lowest, extremes.lowest_expert, extremes.lowest_step),
                (reach.highest, extremes.highest_expert, extremes.highest_step),
            ):
                expert, step = int(who[quantity, place]), int(when[quantity, place])
                assert step < lengths[expert]
                assert observations[expert, step, quantity] == ends[quantity, place]
    assert (np.diff(reach.lowest, axis=1) >= 0).all()
    assert (np.diff(reach.highest, axis=1) >= 0).all()
    inside = observations[1, : lengths[1]]
    assert (np.asarray(reach.passing(inside)) >= 1).all()


def test_an_interrupted_count_keeps_the_last_episodes_and_begins_new_ones():
    running = followed(RunningExtent.start(WORLDS, AT_ZERO, 0.0), rollout(1))
    cut = running.forget_running()
    np.testing.assert_array_equal(cut.last.lowest, running.last.lowest)
    assert (np.asarray(cut.now.steps) == 0).all()
    assert (np.asarray(cut.now.earned) == 0).all()
    assert np.isinf(cut.now.lowest).all()


def test_episodes_that_earn_next_to_nothing_show_no_will():
    part = rollout(1)
    paid = np.array([0.0, 1.0, 1.0], np.float32)
    part = part._replace(rewards=np.broadcast_to(paid, part.rewards.shape).copy())
    reach = followed(RunningExtent.start(WORLDS, AT_ZERO, 4.0), part).extent()
    # World 0 earns nothing, the others more than a quarter of 4 in their longer episode.
    assert np.isposinf(reach.lowest).sum(axis=1).tolist() == [1, 1]
    assert np.isneginf(reach.highest).sum(axis=1).tolist() == [1, 1]
    # Who shows none is not taken from those who do.
    values = np.concatenate([part.observations[:, world] for world in (1, 2)])
    np.testing.assert_array_equal(
        reach.passing(values),
        np.sum(
            [
                (low <= values) & (values <= high)
                for low, high in zip(
                    np.asarray(reach.lowest).T[:2], np.asarray(reach.highest).T[1:], strict=True
                )
            ],
            axis=0,
        ),
    )
    without = followed(RunningExtent.start(WORLDS, AT_ZERO, 0.0), part).extent()
    assert np.isfinite(without.lowest).all()


def test_who_may_err_has_been_where_it_stayed():
    seen = np.zeros((100, 2), np.float32)
    seen[:4, 0], seen[4:10, 0] = -9, -5
    seen[50:52, 1] = 7
    low, high, when_low, when_high = extremes_of(seen, dwelling=True)
    # A twentieth of 100 steps are 5: four at -9 are too few, with one at -5 they are enough.
    np.testing.assert_array_equal(low, [-5, 0])
    np.testing.assert_array_equal(high, [0, 0])
    assert seen[when_low[0], 0] == -5
    assert seen[when_high[1], 1] == 0
    assert extremes_of(seen, dwelling=False)[0].tolist() == [-9, 0]
    assert extremes_of(seen[:2], dwelling=True)[0].tolist() == [-9, 0]


def test_with_levels_an_episode_goes_as_far_as_it_dwells():
    ends = jnp.linspace(-10, 0, 101)[None]
    experts = Extent(jnp.repeat(ends, 2, axis=0), jnp.full((2, 101), 20.0))
    # 40 steps, of which 3 count: at -4.5, then beyond all, then nowhere beyond for long enough.
    seen = np.zeros((40, 3, 2), np.float32)
    seen[:3, 0, 0], seen[:3, 1, 0], seen[:2, 2, 0] = -4.5, -11, -8
    none = np.zeros((40, 3), bool)
    running = RunningExtent.start(3, experts, 0.0, LEVELS)
    running = followed(
        running,
        Rollout(seen, seen, np.zeros((40, 3, 1)), none * 1.0, none[..., None] * 1.0, none, none),
    )
    beyond, between, inside = np.asarray(running.extent().lowest[0])
    assert beyond == -11
    assert inside == 0
    # As far as the level next to -4.5, on the cautious side.
    assert -4.5 <= between <= -4.5 + 10 / LEVELS + 0.1
