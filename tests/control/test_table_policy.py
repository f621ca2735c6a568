"""Policies of tables: the likeliest action at the step of the episode, asked for as of an agent."""

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.control.actor import Actor
from tacit.control.expert import Expert
from tacit.control.play import as_function
from tacit.control.table_policy import TablePolicy, load_policy
from tacit.errors import ArgumentError, StorageError
from tacit.runs.files import write_arrays

# Two steps, three states, two actions.
TABLE = np.array([[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], [[0.1, 0.9], [1.0, 0.0], [0.3, 0.7]]])
POLICY = TablePolicy(TABLE)


def evaluate_policy(model, environments, episodes):
    """Rewards of episodes: the loop of Stable-Baselines3's function of the same name."""
    observations = environments.reset(seed=0)[0]
    states = None
    episode_starts = np.ones(environments.num_envs, dtype=bool)
    running, earned = np.zeros(environments.num_envs), []
    while len(earned) < episodes:
        actions, states = model.predict(
            observations, state=states, episode_start=episode_starts, deterministic=True
        )
        observations, rewards, terminated, truncated, _ = environments.step(actions)
        running += rewards
        episode_starts = terminated | truncated
        earned.extend(running[episode_starts])
        running[episode_starts] = 0
    return np.array(earned)


def test_an_expert_on_a_chain_earns_in_gymnasium_what_it_expects_to():
    task = tacit.make("Chain")
    expert = tacit.train_expert(task)
    environments = gymnasium.make_vec(
        "tacit/Chain-v0",
        num_envs=4,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
    )
    found = evaluate_policy(expert.policy, environments, 400)
    environments.close()
    likeliest = np.eye(task.number_of_actions)[expert.policy.table.argmax(axis=-1)]
    present, expected = task.initial, 0.0
    for step in range(task.horizon):
        pairs = present[:, None] * likeliest[step]
        expected += (pairs * task.rewards).sum()
        present = np.einsum("sa,sat->t", pairs, task.transitions)
    assert abs(found.mean() - expected) < 5 * found.std() / 20 + 1e-9


def test_a_single_environment_is_walked_through_with_one_state_at_a_time():
    task = tacit.make("Chain")
    policy = tacit.train_expert(task).policy
    environment = gymnasium.make("tacit/Chain-v0")
    for seed in range(2):
        observation, _ = environment.reset(seed=seed)
        step, over = None, False
        while not over:
            before = 0 if step is None else step
            action, step = policy.predict(observation, step)
            assert action == policy.table[before, observation].argmax()
            assert step == before + 1
            observation, _, _, over, _ = environment.step(action)
        assert step == task.horizon
    environment.close()


def test_every_world_has_a_step_of_its_own():
    actions, steps = POLICY.predict(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    assert actions.tolist() == [0, 1, 1, 0]
    assert steps.tolist() == [1, 2, 1, 2]
    actions, steps = POLICY.predict(np.array([0, 0]), np.array([2, 1]), np.array([True, False]))
    assert actions.tolist() == [0, 1]
    assert steps.tolist() == [1, 2]
    assert POLICY.predict(np.array([2, 1]))[0].tolist() == [0, 1]
    assert POLICY.predict(np.array([2, 1]), 1)[0].tolist() == [1, 0]
    assert POLICY.predict(0, 7, np.array([True])) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 2), "steps 0 to 1 of an episode, not 2"),
        ((np.array([0, 0]), np.array([1, 2])), "not 2.*episode_start"),
        ((0, -1), "not -1"),
        ((3,), "0 to 2"),
        ((-1,), "0 to 2"),
        ((0.5,), "numbers of states"),
        ((np.zeros((2, 1), int),), r"shape \[2, 1\]"),
        ((np.array([0, 0]), np.array([0, 0, 0])), r"state must be one value or \[2\]"),
        ((np.array([0, 0]), 0.5), "whole numbers"),
        ((np.array([0, 0]), None, np.array([True] * 3)), "episode_start must be"),
    ],
)
def test_what_is_not_in_the_table_is_an_error(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        POLICY.predict(*arguments)


def test_random_actions_are_the_callers_business():
    with pytest.raises(ArgumentError, match="generator of your own"):
        POLICY.predict(0, deterministic=False)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (TABLE[0], r"shape \[3, 2\]"),
        (np.zeros((0, 3, 2)), r"shape \[0, 3, 2\]"),
        (np.ones((2, 3, 1), int), "type int64"),
        (TABLE * 0.9, "add up to 1"),
        (np.full((2, 3, 2), np.nan), "add up to 1"),
        (np.tile([1.5, -0.5], (2, 3, 1)), "at least 0"),
    ],
)
def test_a_table_must_hold_probabilities(table, words):
    with pytest.raises(ArgumentError, match=words):
        TablePolicy(table)


def test_an_expert_wraps_an_array_and_checks_its_shape():
    task = tacit.make("Chain")
    sizes = task.horizon, task.number_of_states, task.number_of_actions
    table = np.full(sizes, 1 / sizes[2])
    bare, wrapped = Expert(task, table), Expert(task, TablePolicy(table))
    assert isinstance(bare.policy, TablePolicy)
    np.testing.assert_array_equal(bare.policy.table, wrapped.policy.table)
    assert tacit.collect(bare, 5, seed=0) == tacit.collect(wrapped, 5, seed=0)
    with pytest.raises(ArgumentError, match="does not fit chain x1"):
        Expert(task, table[1:])


def test_simulators_do_not_tell_the_step():
    with pytest.raises(ArgumentError, match="step of the episode"):
        as_function(POLICY)


def test_a_policy_of_either_kind_is_read_as_it_was_written(tmp_path):
    read = load_policy(POLICY.save(tmp_path / "table.safetensors", {"task": "some task"}))
    assert isinstance(read, TablePolicy)
    assert read.table.tobytes() == TABLE.tobytes()
    layer = np.eye(2, dtype=np.float32)
    path = Actor((layer,), (layer[0],), None, None, None).save(tmp_path / "actor.safetensors")
    actor = load_policy(path)
    assert isinstance(actor, Actor)
    np.testing.assert_array_equal(actor.weights[0], layer)


def test_files_that_hold_no_policy_are_errors(tmp_path):
    other = write_arrays(tmp_path / "other.safetensors", {"table": TABLE}, {"kind": "tree"})
    with pytest.raises(StorageError, match="holds no policy"):
        load_policy(other)
    with pytest.raises(StorageError, match="holds no policy of a table"):
        TablePolicy.load(other)
    part = write_arrays(tmp_path / "part.safetensors", {}, {"kind": "table policy"})
    with pytest.raises(StorageError, match="the table is missing"):
        load_policy(part)
    wrong = write_arrays(tmp_path / "w.safetensors", {"table": TABLE[0]}, {"kind": "table policy"})
    with pytest.raises(StorageError, match="shape"):
        load_policy(wrong)
