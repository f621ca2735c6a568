"""Demonstrations as constraint models read them: every step alike, and nothing unfit."""

import gymnasium
import numpy as np
import pytest
from scipy import stats

from tacit import Trajectories
from tacit.environments.lab_tasks import chain
from tacit.environments.task import SimulatedTask
from tacit.errors import ArgumentError, DemonstrationError
from tacit.inference.experts import ExpertSteps, as_simulated, fingerprint

LENGTHS = np.array([5, 1, 3])
BOX = gymnasium.spaces.Box(np.array([-1.0, -2.0], np.float32), np.array([1.0, 4.0], np.float32))


def task_with(action_space, size=3):
    """A task that nobody steps."""
    return SimulatedTask(
        name="Sketch",
        options={},
        observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32),
        action_space=action_space,
        horizon=5,
        constraints=("rule",),
        make_worlds=None,
        make_environment=None,
    )


def demonstrations(lengths=LENGTHS, kind=np.float32, actions=None):
    """Observations that tell where they are from: [episode, step, 0]."""
    number, longest = len(lengths), max(lengths)
    observations = np.zeros((number, longest + 1, 3), kind)
    observations[..., 0] = np.arange(number)[:, None]
    observations[..., 1] = np.arange(longest + 1)
    if actions is None:
        actions = observations[:, :-1, :2].astype(kind) / 10
    return Trajectories(observations, actions, np.zeros((number, longest), kind), lengths)


@pytest.fixture(scope="module")
def experts():
    return ExpertSteps.of(task_with(BOX), demonstrations())


def test_every_step_of_every_expert_is_drawn_equally_often(experts):
    steps = experts.draw(90_000, np.random.default_rng(0))
    places, counts = np.unique(steps.observations[:, :2], axis=0, return_counts=True)
    everything = [(n, t) for n, length in enumerate(LENGTHS) for t in range(length)]
    np.testing.assert_array_equal(places, everything)
    assert stats.chisquare(counts).pvalue > 1e-3
    assert steps.present.all()


def test_a_drawn_action_is_the_one_that_was_taken_there(experts):
    steps = experts.draw(100, np.random.default_rng(1))
    np.testing.assert_allclose(steps.actions, steps.observations[:, :2] / 10, rtol=1e-6)


def test_draws_follow_their_generator(experts):
    one, same, other = (experts.draw(50, np.random.default_rng(seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.observations, same.observations)
    assert (one.observations != other.observations).any()


def test_windows_run_on_to_the_end_of_their_trajectory_and_no_further(experts):
    windows = experts.windows(500, 4, np.random.default_rng(0))
    assert windows.observations.shape == (500, 4, 3)
    assert windows.actions.shape == (500, 4, 2)
    episode = windows.observations[:, 0, 0].astype(int)
    begin = windows.observations[:, 0, 1].astype(int)
    assert (windows.observations[..., 0] == episode[:, None]).all()
    step = begin[:, None] + np.arange(4)
    np.testing.assert_array_equal(windows.present, step < LENGTHS[episode][:, None])
    assert windows.present[:, 0].all()
    assert not windows.present.all()
    np.testing.assert_array_equal(
        windows.observations[..., 1][windows.present], step[windows.present]
    )
    # A window begins anywhere, also in the middle and at the last step.
    assert {(n, t) for n, t in zip(episode, begin, strict=True)} == {
        (n, t) for n, length in enumerate(LENGTHS) for t in range(length)
    }


def test_padding_repeats_the_last_step_and_never_shows_the_final_observation(experts):
    windows = experts.windows(200, 7, np.random.default_rng(0))
    episode = windows.observations[:, 0, 0].astype(int)
    last = np.broadcast_to(LENGTHS[episode][:, None] - 1, windows.present.shape)
    padding = ~windows.present
    np.testing.assert_array_equal(windows.observations[..., 1][padding], last[padding])


def test_large_arrays_are_views_not_copies():
    given = demonstrations()
    experts = ExpertSteps.of(task_with(BOX), given)
    assert np.shares_memory(experts.observations, given.observations)
    assert np.shares_memory(experts.actions, given.actions)
    whole = demonstrations(actions=np.zeros((3, 5, 1), np.int64))
    discrete = ExpertSteps.of(task_with(gymnasium.spaces.Discrete(2)), whole)
    assert np.shares_memory(discrete.actions, whole.actions)


def test_steps_come_in_the_types_that_models_compute_in():
    experts = ExpertSteps.of(task_with(BOX), demonstrations(kind=np.float64))
    steps = experts.draw(4, np.random.default_rng(0))
    assert steps.observations.dtype == steps.actions.dtype == np.float32
    whole = demonstrations(actions=np.ones((3, 5, 1), np.int64))
    discrete = ExpertSteps.of(task_with(gymnasium.spaces.Discrete(2)), whole)
    steps = discrete.draw(4, np.random.default_rng(0))
    assert steps.actions.dtype == np.int32
    np.testing.assert_array_equal(steps.actions, [1, 1, 1, 1])
    assert discrete.windows(6, 4, np.random.default_rng(0)).actions.shape == (6, 4)


def test_an_observation_of_the_wrong_size_is_an_error_that_tells_both():
    with pytest.raises(DemonstrationError, match=r"Sketch has 4 numbers.*have 3"):
        ExpertSteps.of(task_with(BOX, size=4), demonstrations())


def test_an_action_of_the_wrong_size_is_an_error_that_tells_both():
    wide = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    with pytest.raises(DemonstrationError, match=r"actions: Sketch has 3 numbers.*have 2"):
        ExpertSteps.of(task_with(wide), demonstrations())


@pytest.mark.parametrize(("place", "value"), [(0, 1.2), (1, -2.1), (1, 5.0)])
def test_an_action_out_of_range_is_an_error_that_names_episode_and_step(place, value):
    actions = np.zeros((3, 5, 2), np.float32)
    actions[2, 1, place] = value
    words = rf"number {place} at episode 2, step 1 is {value:g}, outside of Sketch's range"
    with pytest.raises(DemonstrationError, match=words):
        ExpertSteps.of(task_with(BOX), demonstrations(actions=actions))


def test_actions_at_the_edge_of_their_range_are_fine():
    actions = np.broadcast_to(BOX.high + np.float32(1e-5), (3, 5, 2))
    assert len(ExpertSteps.of(task_with(BOX), demonstrations(actions=actions))) == 3


def test_padding_may_lie_outside_of_the_range():
    away = gymnasium.spaces.Box(1.0, 2.0, (2,), np.float32)
    ones = np.ones((3, 5, 2), np.float32)
    given = demonstrations(actions=ones)
    assert (given.actions[1, 1:] == 0).all()
    ExpertSteps.of(task_with(away), given)


def test_an_unbounded_action_may_be_anything():
    free = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    actions = np.full((3, 5, 2), 1e6, np.float32)
    assert len(ExpertSteps.of(task_with(free), demonstrations(actions=actions))) == 3


def test_a_discrete_action_must_be_one_whole_number_in_range():
    task = task_with(gymnasium.spaces.Discrete(4))
    with pytest.raises(DemonstrationError, match=r"one whole number per step.*2 x float32"):
        ExpertSteps.of(task, demonstrations())
    actions = np.zeros((3, 5, 1), np.int64)
    actions[0, 3] = 4
    with pytest.raises(DemonstrationError, match="episode 0, step 3 is 4, outside"):
        ExpertSteps.of(task, demonstrations(actions=actions))


def test_whole_numbers_do_for_a_continuous_action_of_that_range():
    line = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    given = demonstrations(actions=np.ones((3, 5, 1), np.int64))
    steps = ExpertSteps.of(task_with(line), given).draw(8, np.random.default_rng(0))
    np.testing.assert_array_equal(steps.actions, np.ones((8, 1)))


def test_an_array_is_no_record_of_demonstrations():
    with pytest.raises(ArgumentError, match="must be Trajectories"):
        ExpertSteps.of(task_with(BOX), np.zeros((3, 5, 2)))


def walks(lengths=(3, 1)):
    """Demonstrations on a chain, padded with the number of a state."""
    task = chain(length=5, limit=-1, horizon=4)
    stay = task.actions.index("stay")
    return task, Trajectories.from_arrays(
        [[2] * (length + 1) for length in lengths],
        [[stay] * length for length in lengths],
        [[0.0] * length for length in lengths],
    )


def test_demonstrations_of_a_table_show_what_its_simulator_shows_state_and_time():
    task, shown = walks()
    simulator, seen = as_simulated(task, shown)
    assert isinstance(simulator, SimulatedTask)
    assert simulator.observation_space.shape == (6,)
    assert seen.observations.dtype == np.float32
    wanted = np.zeros((2, 4, 6), np.float32)
    wanted[0, :, 2] = wanted[1, :2, 2] = 1
    wanted[0, :, 5], wanted[1, :2, 5] = np.arange(4) / 4, np.arange(2) / 4
    np.testing.assert_array_equal(seen.observations, wanted)
    np.testing.assert_array_equal(seen.actions, shown.actions)
    np.testing.assert_array_equal(seen.lengths, shown.lengths)
    worlds = simulator.worlds(1)
    np.testing.assert_array_equal(worlds.reset(0).shape, (1, 6))
    worlds.close()
    assert len(ExpertSteps.of(simulator, seen)) == 2


def test_a_simulated_task_and_its_demonstrations_stay_as_they_are():
    task, shown = task_with(BOX), demonstrations()
    given = as_simulated(task, shown)
    assert given[0] is task
    assert given[1] is shown


def test_demonstrations_that_are_not_of_the_table_are_an_error():
    task, _ = walks()
    alien = Trajectories.from_arrays([[0, 9]], [[0]], [[0.0]])
    with pytest.raises(DemonstrationError, match="episode 0, step 1"):
        as_simulated(task, alien)
    with pytest.raises(ArgumentError, match="must be Trajectories"):
        as_simulated(task, [])


def test_other_demonstrations_have_another_fingerprint_and_the_same_the_same(experts):
    same = ExpertSteps.of(task_with(BOX), demonstrations())
    assert fingerprint(same) == fingerprint(experts)
    prints = {fingerprint(experts)}
    for lengths in ((5, 1, 2), (5, 1), (4, 1, 3)):
        prints.add(fingerprint(ExpertSteps.of(task_with(BOX), demonstrations(np.array(lengths)))))
    actions = demonstrations().actions.copy()
    actions[2, 1, 0] += 1e-3
    prints.add(fingerprint(ExpertSteps.of(task_with(BOX), demonstrations(actions=actions))))
    assert len(prints) == 5
    _, shown = walks()
    assert fingerprint(shown) == fingerprint(walks()[1]) != fingerprint(walks((3, 2))[1])
