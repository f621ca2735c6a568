"""Demonstrations on simulated tasks: whole, feasible, and from any policy there is."""

import dataclasses

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.control import play as playing
from tacit.control import simulated_expert
from tacit.control.actor import Actor
from tacit.control.multiplier import Multiplier
from tacit.control.play import play
from tacit.control.settings import PPO
from tacit.environments.gymnasium_task import gymnasium_task
from tacit.environments.worlds import Step
from tacit.errors import ArgumentError, TaskError

HORIZON, LIMIT = 60, -0.05
WALKER = tacit.make("BlockedWalker", horizon=HORIZON, limit=LIMIT)
PENDULUM = tacit.make("BiasedPendulum", horizon=12)
SETTINGS = PPO(
    steps=4 * 16 * 6,
    worlds=4,
    rollout=16,
    minibatch=32,
    epochs=2,
    learning_rate=3e-3,
    hidden=(8,),
    multiplier=Multiplier(budget=0.1),
)


def lazy(observations):
    """A walker that lets itself fall; it breaks the rule in two of three episodes."""
    assert observations.shape == (simulated_expert.WORLDS, 18)
    return 0.1 * np.sin(observations[:, :6])


class Agent:
    """What an agent of Stable-Baselines3 looks like from outside."""

    def __init__(self):
        self.asked = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked.append(deterministic)
        return lazy(observation), None


@pytest.fixture(scope="module")
def walked():
    return tacit.collect(tacit.Expert(WALKER, lazy), 30, seed=3)


def world_seed(seed, batch, stream=simulated_expert.COLLECTING):
    """The first world's seed of a batch of 64 episodes."""
    return int(np.random.SeedSequence([seed, batch, stream]).generate_state(1, np.uint32)[0])


def broke_the_rule(worlds, seed):
    """[64] whether the lazy walker goes beyond the limit in its first episode, step by step."""
    observations = worlds.reset(seed)
    running, broken = np.ones(64, bool), np.zeros(64, bool)
    while running.any():
        step = worlds.step(lazy(observations))
        broken |= running & (step.arrived[:, 0] < LIMIT)
        running &= ~(step.terminated | step.truncated)
        observations = step.observations
    return broken


def test_every_written_episode_obeys_the_rule(walked):
    assert len(walked) == 30
    assert not walked.violated.any()
    for episode in walked:
        assert (episode.costs == 0).all()
        assert (episode.observations[1:, 0] >= LIMIT).all()


def test_violating_episodes_are_dropped_and_counted(walked):
    worlds = WALKER.worlds(64)
    broken = np.concatenate([broke_the_rule(worlds, world_seed(3, batch)) for batch in range(2)])
    worlds.close()
    kept = np.flatnonzero(~broken)[:30]
    assert kept[-1] >= 64  # a second batch was needed
    assert walked.provenance["discarded"] == kept[-1] + 1 - 30
    assert walked.provenance["feasible"] == 30


def test_a_written_episode_is_what_happens_when_its_actions_are_taken_again(walked):
    several = WALKER.worlds(64)
    kept = np.flatnonzero(~broke_the_rule(several, world_seed(3, 0)))
    several.close()
    for number, world in enumerate(kept[:4]):
        alone = WALKER.worlds(1)
        rows = [alone.reset(world_seed(3, 0) + int(world))[0]]
        episode, rewards, ended = walked[number], [], False
        for action in episode.actions:
            assert not ended
            step = alone.step(action[None])
            rows.append(step.arrived[0])
            rewards.append(step.rewards[0])
            ended = bool(step.terminated[0] | step.truncated[0])
        alone.close()
        assert ended
        assert bool(step.terminated[0]) == episode.terminated
        np.testing.assert_array_equal(rows, episode.observations)
        np.testing.assert_allclose(rewards, episode.rewards, rtol=1e-12)


def test_episodes_end_where_the_walker_falls_or_its_time_is_up(walked):
    assert len(set(walked.lengths.tolist())) > 3
    assert walked.terminated.any()
    assert not walked.terminated.all()
    for episode in walked:
        height, angle = episode.observations[1:, 1], episode.observations[1:, 2]
        fallen = (height <= 0.8) | (height >= 2.0) | (np.abs(angle) >= 1.0)
        assert not fallen[:-1].any()
        assert fallen[-1] == episode.terminated
        assert episode.terminated or len(episode) == HORIZON


def test_there_are_only_zeros_behind_the_end_of_an_episode(walked):
    for number, length in enumerate(walked.lengths):
        assert not walked.observations[number, length + 1 :].any()
        assert not walked.actions[number, length:].any()
        assert not walked.rewards[number, length:].any()
    assert walked.lengths.max() == walked.rewards.shape[1]


def test_an_agent_with_predict_is_asked_for_its_best_actions(walked):
    agent = Agent()
    assert tacit.collect(tacit.Expert(WALKER, agent), 30, seed=3) == walked
    assert agent.asked
    assert all(agent.asked)


@pytest.mark.parametrize("policy", [None, 3, "left", np.zeros((3, 2))])
def test_what_is_neither_a_function_nor_an_agent_is_an_error(policy):
    with pytest.raises(ArgumentError, match=f"{type(policy).__name__} is neither"):
        tacit.collect(tacit.Expert(WALKER, policy), 1, seed=0)


def test_actions_of_a_wrong_shape_are_an_error():
    expert = tacit.Expert(PENDULUM, lambda observations: np.zeros((len(observations), 2)))
    with pytest.raises(ArgumentError, match="actions must be numbers of the shape"):
        tacit.collect(expert, 1, seed=0)


def test_an_expert_that_always_violates_is_an_error_not_an_endless_loop():
    task = tacit.make("BiasedPendulum", horizon=3, limit=10.0)
    expert = tacit.Expert(task, lambda observations: np.zeros((len(observations), 1)))
    with pytest.raises(TaskError, match="only 0 of 256 episodes on BiasedPendulum obey the rule"):
        tacit.collect(expert, 1, seed=0)


def test_one_seed_gives_one_data_set_and_another_seed_another():
    expert = tacit.Expert(PENDULUM, lambda observations: np.zeros((len(observations), 1)))
    assert tacit.collect(expert, 10, seed=1) == tacit.collect(expert, 10, seed=1)
    assert tacit.collect(expert, 10, seed=1) != tacit.collect(expert, 10, seed=2)


def test_progress_rises_to_the_wanted_number():
    told = []
    expert = tacit.Expert(PENDULUM, lambda observations: np.zeros((len(observations), 1)))
    tacit.collect(expert, 150, seed=0, progress=told.append)
    assert told == sorted(told)
    assert len(told) > 2
    assert told[-1] == 150


def two_rules(observation, action, next_observation):
    return np.array([next_observation[0] > 0.1, next_observation[2] > 0.05], float)


def test_a_violation_of_one_of_several_rules_drops_an_episode():
    task = gymnasium_task("CartPole-v1", cost=two_rules, horizon=10)
    expert = tacit.Expert(task, lambda observations: (observations[:, 2] > 0).astype(int))
    data = tacit.collect(expert, 40, seed=0)
    assert data.provenance["discarded"] > 0
    assert data.actions.dtype == np.int64
    for episode in data:
        assert (episode.observations[1:, 0] <= 0.1).all()
        assert (episode.observations[1:, 2] <= 0.05).all()


def test_episodes_without_end_are_an_error(monkeypatch):
    monkeypatch.setattr(playing, "MOST_STEPS", 20)
    worlds = tacit.make("BlockedSwimmer", horizon=50).worlds(2)
    with pytest.raises(TaskError, match="did not end within 20 steps"):
        play(worlds, lambda observations: np.zeros((2, 2)), seed=0)
    worlds.close()


class Scripted:
    """Two worlds: one is cut short after 2 steps and falls 1 step later, one falls after 4."""

    number = 2
    action_space = gymnasium.spaces.Box(-100, 100, (1,))

    def reset(self, seed):
        self.steps = 0
        return np.zeros((2, 1))

    def step(self, actions):
        self.steps += 1
        here = np.full((2, 1), float(self.steps))
        terminated = np.array([self.steps == 3, self.steps == 4])
        truncated = np.array([self.steps == 2, False])
        ended = (terminated | truncated)[:, None]
        return Step(np.where(ended, -1.0, here), here, here[:, 0], here, terminated, truncated)


def test_what_happens_after_the_first_episode_of_a_world_is_not_part_of_it():
    episodes = play(Scripted(), lambda observations: 10 * observations, seed=0)
    np.testing.assert_array_equal(episodes.lengths, [2, 4])
    np.testing.assert_array_equal(episodes.terminated, [False, True])
    np.testing.assert_array_equal(episodes.observations[..., 0], [[0, 1, 2, 0, 0], [0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(episodes.actions[..., 0], [[0, 10, 0, 0], [0, 10, 20, 30]])
    np.testing.assert_array_equal(episodes.rewards, [[1, 2, 0, 0], [1, 2, 3, 4]])
    np.testing.assert_array_equal(episodes.costs[..., 0], [[1, 2, 0, 0], [1, 2, 3, 4]])


@pytest.fixture(scope="module")
def expert():
    return tacit.train_expert(PENDULUM, settings=SETTINGS, seed=5)


def test_a_trained_expert_knows_how_it_does_on_fresh_episodes(expert):
    assert isinstance(expert.policy, Actor)
    rewards, feasible, broken = [], [], []
    worlds = PENDULUM.worlds(64)
    for batch in range(2):
        seed = world_seed(5, batch, simulated_expert.MEASURING)
        episodes = play(worlds, expert.policy, seed=seed)
        for place, length in enumerate(episodes.lengths):
            violated = (episodes.observations[place, 1 : length + 1, 0] < -0.015).any()
            rewards.append(episodes.rewards[place, :length].sum())
            feasible.append(0.0 if violated else rewards[-1])
            broken.append(violated)
    worlds.close()
    assert expert.reward == pytest.approx(np.mean(rewards), rel=1e-6)
    assert expert.feasible_reward == pytest.approx(np.mean(feasible), rel=1e-6)
    assert expert.violation == np.mean(broken)
    assert expert.multiplier > 0


def test_demonstrations_survive_a_file_with_their_provenance(expert, tmp_path):
    data = tacit.collect(expert, 20, seed=8)
    data.save(tmp_path / "demonstrations.hdf5")
    read = tacit.Trajectories.load(tmp_path / "demonstrations.hdf5")
    assert read == data
    for facts in (data.provenance, read.provenance):
        assert facts["task"] == "BiasedPendulum"
        assert facts["seed"] == 8
        assert facts["feasible"] == 20
        assert facts["discarded"] == data.provenance["discarded"] > 0
        assert facts["options"]["horizon"] == 12
        assert facts["options"]["limit"] == -0.015
        assert facts["expert_violation"] == expert.violation
        assert facts["expert"]["seed"] == 5
        assert facts["expert"]["ppo"]["learning_rate"] == SETTINGS.learning_rate
        assert facts["expert"]["ppo"]["multiplier"]["budget"] == 0.1
        assert 0 < facts["expert"]["steps"] <= SETTINGS.steps
        assert {"tacit", "jax", "mujoco", "numpy"} <= set(facts["versions"])


def test_an_expert_is_the_same_whether_its_run_is_kept_or_not(expert, tmp_path):
    kept = tacit.train_expert(PENDULUM, settings=SETTINGS, seed=5, folder=tmp_path)
    for name, array in expert.policy.arrays().items():
        np.testing.assert_array_equal(kept.policy.arrays()[name], array)
    numbers = ("violation", "reward", "feasible_reward", "multiplier")
    assert [getattr(kept, n) for n in numbers] == [getattr(expert, n) for n in numbers]


def test_an_expert_of_ones_own_need_not_know_anything(walked):
    facts = walked.provenance
    assert facts["expert_violation"] is None
    assert facts["expert_reward"] is None
    assert facts["expert"] == {}


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_that_is_none_is_an_error(seed):
    with pytest.raises(ArgumentError, match="seed must be a whole number"):
        tacit.train_expert(PENDULUM, settings=dataclasses.replace(SETTINGS), seed=seed)


def test_a_policy_that_writes_into_its_arrays_spoils_nothing():
    worlds = PENDULUM.worlds(3)
    buffer = np.zeros((3, 1))

    def careless(observations):
        buffer[:] = observations[:, :1]
        observations *= 0
        return buffer

    episodes = play(worlds, careless, seed=4)
    worlds.close()
    first = episodes.lengths.min()
    np.testing.assert_array_equal(episodes.actions[:, :first], episodes.observations[:, :first, :1])
    assert len(np.unique(episodes.actions[:, :first])) > first


def test_actions_are_recorded_as_the_world_takes_them():
    worlds = PENDULUM.worlds(2)
    episodes = play(worlds, lambda seen: np.full((len(seen), 1), 100.0), seed=0)
    worlds.close()
    assert (episodes.actions[episodes.rewards > 0] == 3).all()


def test_choosing_judging_and_collecting_look_at_different_episodes():
    streams = (simulated_expert.CHOOSING, simulated_expert.MEASURING, simulated_expert.COLLECTING)
    seeds = [world_seed(3, batch, stream) for stream in streams for batch in range(4)]
    # World i of a batch is seeded with its seed + i, so the seeds must lie apart.
    assert np.diff(np.sort(seeds)).min() > simulated_expert.WORLDS


def test_whole_numbers_are_recorded_as_the_actions_they_become():
    worlds = PENDULUM.worlds(2)
    episodes = play(worlds, lambda seen: np.full((len(seen), 1), 5), seed=0)
    worlds.close()
    assert episodes.actions.dtype.kind == "f"
    assert (episodes.actions[episodes.rewards > 0] == 3).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"settings": {"steps": 3}}, "must be a tacit.PPO, not dict"), ({"seed": 2**63}, "below 2")],
)
def test_training_that_cannot_begin_is_refused_in_words(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        tacit.train_expert(PENDULUM, **arguments)
