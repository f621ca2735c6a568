"""What past policies did: an even sample of all rounds, with the newest always among them."""

import numpy as np
import pytest
from scipy import stats

from tacit.control.learner import Rollout
from tacit.inference.inputs import Steps
from tacit.inference.replay import Replay, sample_steps, sample_windows
from tacit.runs.tree_file import read_stored, write_tree

ROWS = 6


def sample(number):
    """A round whose every observation is its number and the row."""
    seen = np.stack([np.full(ROWS, number), np.arange(ROWS)], axis=1).astype(np.float32)
    return Steps(seen, np.full((ROWS, 1), number, np.float32), np.ones(ROWS, bool))


def replay_of(rounds, places=4, seed=0):
    replay = Replay.start(places, sample(0))
    generator = np.random.default_rng(seed)
    for number in range(1, rounds + 1):
        replay.add(sample(number), generator)
    return replay


def kept(replay):
    """The numbers of the rounds in the replay."""
    return np.asarray(replay.steps.observations)[: replay.filled, 0, 0].astype(int)


def rounds_of(steps):
    return np.asarray(steps.observations)[:, 0].astype(int)


def test_rounds_fill_the_places_one_after_the_other():
    for rounds in range(5):
        replay = replay_of(rounds)
        assert replay.filled == rounds
        np.testing.assert_array_equal(kept(replay), np.arange(1, rounds + 1))
    assert replay_of(3).newest == 2


def test_what_is_added_is_kept_as_it_was():
    replay = replay_of(3)
    for place in range(3):
        for field, wanted in zip(replay.steps, sample(place + 1), strict=True):
            np.testing.assert_array_equal(field[place], wanted)


def test_the_newest_round_is_always_kept():
    replay, generator = replay_of(0), np.random.default_rng(2)
    for number in range(1, 60):
        replay.add(sample(number), generator)
        assert kept(replay)[replay.newest] == number
        assert replay.filled == min(number, 4)
        assert len(set(kept(replay))) == replay.filled


def test_old_rounds_are_kept_equally_often():
    rounds, places, trials = 24, 4, 1500
    counts = np.zeros(rounds + 1)
    for trial in range(trials):
        replay = replay_of(rounds, places, seed=trial)
        old = np.delete(kept(replay), replay.newest)
        counts[old] += 1
    assert counts[rounds] == 0
    assert counts.sum() == trials * (places - 1)
    assert stats.chisquare(counts[1:rounds]).pvalue > 1e-3


def test_a_share_of_the_draws_is_past_and_the_rest_is_new():
    replay = replay_of(4)
    steps = replay.draw(40_000, 0.7, np.random.default_rng(0))
    shares = np.bincount(rounds_of(steps), minlength=5)[1:] / 40_000
    old = 0.7 / 4
    np.testing.assert_allclose(shares, [old, old, old, old + 0.3], atol=0.01)
    rows = np.bincount(np.asarray(steps.observations)[:, 1].astype(int)) / 40_000
    np.testing.assert_allclose(rows, 1 / ROWS, atol=0.01)


def test_without_a_past_share_only_the_newest_is_drawn():
    replay = replay_of(9)
    drawn = rounds_of(replay.draw(500, 0.0, np.random.default_rng(0)))
    assert set(drawn) == {9}
    past = rounds_of(replay.draw(500, 1.0, np.random.default_rng(0)))
    assert set(past) == set(kept(replay))


def test_empty_places_are_never_drawn():
    steps = replay_of(2).draw(500, 1.0, np.random.default_rng(0))
    assert set(rounds_of(steps)) == {1, 2}
    weights = np.array([1.0, 1.0, 50.0, 50.0])
    steps = replay_of(2).draw(500, 1.0, np.random.default_rng(0), weights)
    assert set(rounds_of(steps)) == {1, 2}


def test_weights_say_how_often_each_past_round_is_drawn():
    weights = np.array([0.0, 1.0, 3.0, 4.0])
    steps = replay_of(4).draw(40_000, 0.5, np.random.default_rng(0), weights)
    shares = np.bincount(rounds_of(steps), minlength=5)[1:] / 40_000
    np.testing.assert_allclose(shares, [0, 1 / 16, 3 / 16, 4 / 16 + 1 / 2], atol=0.01)


def test_an_action_stays_with_its_observation():
    steps = replay_of(4).draw(200, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(steps.actions[:, 0], steps.observations[:, 0])


def test_a_replay_comes_back_from_a_file_and_goes_on_alike(tmp_path):
    replay = replay_of(7)
    path = write_tree(tmp_path / "replay.safetensors", replay.state(), {})
    state = read_stored(path).tree(Replay.start(4, sample(0)).state())
    back = Replay.from_state(state)
    assert (back.rounds, back.newest) == (replay.rounds, replay.newest)
    for one in (replay, back):
        one.add(sample(8), np.random.default_rng(5))
    drawn = [one.draw(50, 0.7, np.random.default_rng(6)) for one in (replay, back)]
    for left, right in zip(*drawn, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_state_is_a_copy():
    replay = replay_of(4)
    state = replay.state()
    replay.add(sample(5), np.random.default_rng(0))
    assert kept(Replay.from_state(state)).max() == 4


LENGTH, WORLDS = 12, 3


@pytest.fixture(scope="module")
def rollout():
    """[12, 3] observations that tell the step and the world, with a few ends of episodes."""
    step, world = np.meshgrid(np.arange(LENGTH), np.arange(WORLDS), indexing="ij")
    seen = np.stack([step, world], axis=-1).astype(np.float32)
    terminated, truncated = np.zeros((2, LENGTH, WORLDS), bool)
    terminated[4, 0] = truncated[7, 0] = truncated[11, 1] = True
    zeros = np.zeros((LENGTH, WORLDS), np.float32)
    return Rollout(seen, seen, 2 * seen[..., :1], zeros, zeros[..., None], terminated, truncated)


def test_sampled_steps_are_all_different_as_long_as_there_are_enough(rollout):
    steps = sample_steps(rollout, LENGTH * WORLDS, np.random.default_rng(0))
    assert len(np.unique(steps.observations, axis=0)) == LENGTH * WORLDS
    np.testing.assert_array_equal(steps.actions[:, 0], 2 * steps.observations[:, 0])
    more = sample_steps(rollout, 100, np.random.default_rng(0))
    assert more.observations.shape == (100, 2)
    assert more.present.all()


def test_windows_stop_where_an_episode_ends(rollout):
    windows = sample_windows(rollout, 400, 5, np.random.default_rng(0))
    assert windows.observations.shape == (400, 5, 2)
    ended = rollout.terminated | rollout.truncated
    for seen, present in zip(windows.observations, windows.present, strict=True):
        begin, world = seen[0].astype(int)
        np.testing.assert_array_equal(seen[:, 0], begin + np.arange(5))
        assert (seen[:, 1] == world).all()
        ends = np.flatnonzero(ended[begin : begin + 5, world])
        # The step that ends an episode still belongs to it.
        assert present.sum() == (ends[0] + 1 if len(ends) else 5)
        assert present[: present.sum()].all()
    assert len(np.unique(windows.observations[:, 0], axis=0)) == (LENGTH - 4) * WORLDS


def test_windows_wider_than_the_rollout_are_padded(rollout):
    windows = sample_windows(rollout, 50, 20, np.random.default_rng(0))
    assert windows.present.shape == (50, 20)
    longest = {0: 5, 1: 12, 2: 12}
    for seen, present in zip(windows.observations, windows.present, strict=True):
        assert present.sum() == longest[int(seen[0, 1])]
