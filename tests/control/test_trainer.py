"""Training on worlds that the host steps: the same numbers every time, stopped or not."""

import dataclasses
import time

import jax
import numpy as np
import pytest

import tacit
from tacit.control import record, simulated_expert
from tacit.control import trainer as trainer_module
from tacit.control.actor import Actor
from tacit.control.expert import ACTOR_FILE
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.control.trainer import Trainer
from tacit.environments.gymnasium_task import gymnasium_task
from tacit.errors import ArgumentError, DivergenceError, StorageError
from tacit.runs.files import read_arrays
from tacit.runs.metrics_file import read_metrics

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


def leaning_left(observation, action, next_observation):
    return next_observation[2] < 0


PENDULUM = tacit.make("BiasedPendulum", horizon=12)
CART = gymnasium_task("CartPole-v1", cost=leaning_left, horizon=12)
both = pytest.mark.parametrize("task", [PENDULUM, CART], ids=["resumable", "not resumable"])


def run(task, *, seed=0, change=None, **options):
    """The facts of every update, and the trainer, which learns from `change(rollout)`."""
    trainer = Trainer(task, SETTINGS, seed=seed, **options)
    told = []
    while not trainer.finished:
        rollout = trainer.roll_out()
        told.append(trainer.learn(rollout if change is None else change(rollout)))
    trainer.close()
    return told, trainer


def without_seconds(told):
    return [{name: value for name, value in facts.items() if name != "seconds"} for facts in told]


def assert_same_leaves(one, other):
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


def assert_same_folder(one, other):
    """Everything in two run folders is the same, except how long it took."""
    first, second = (read_arrays(path / "checkpoint.safetensors")[0] for path in (one, other))
    assert set(first) == set(second)
    for key in set(first) - {"['seconds']"}:
        assert first[key].tobytes() == second[key].tobytes(), key
    first, second = (read_metrics(folder / "metrics.jsonl") for folder in (one, other))
    assert len(first) == SETTINGS.iterations
    assert without_seconds(first) == without_seconds(second)


@pytest.fixture(scope="module", autouse=True)
def short_memory():
    """Six episodes are enough to judge an actor by."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "REMEMBERED", 6)
        yield


@pytest.fixture(scope="module", params=[PENDULUM, CART], ids=["pendulum", "cart"])
def finished(request):
    """A task with one run of it."""
    return request.param, *run(request.param)


def test_one_seed_gives_one_run_bit_for_bit(finished):
    task, told, trainer = finished
    again, other = run(task)
    assert without_seconds(again) == without_seconds(told)
    assert_same_leaves(trainer.now.learner, other.now.learner)
    assert_same_leaves(trainer.now.best.actor.arrays(), other.now.best.actor.arrays())


def test_another_seed_gives_another_run(finished):
    task, told, trainer = finished
    others, other = run(task, seed=1)
    assert without_seconds(others) != without_seconds(told)
    weights = (t.now.learner.critics.stack.weights[0] for t in (trainer, other))
    assert not np.allclose(*weights)
    assert trainer.world_seed(3) != other.world_seed(3)


def test_every_update_is_told_with_finite_numbers(finished):
    task, told, trainer = finished
    assert [facts["steps"] for facts in told] == [64 * number for number in range(1, 7)]
    assert trainer.steps == SETTINGS.steps
    names = {"reward", "feasible_reward", "violation", "episode_length", "episodes", "seconds"}
    names |= {"steps", "iteration", "kl", "clipped", "epochs", "entropy", "value_error"}
    names |= {"cost", "multiplier", "cost_value_error"}
    for facts in told:
        assert set(facts) == names
        assert all(np.isfinite(value) for value in facts.values())
        assert facts["episode_length"] <= task.horizon
        assert 0 <= facts["violation"] <= 1
    assert told[-1]["episodes"] >= 4 * 96 // 12


def test_the_best_actor_is_the_one_that_played_for_the_highest_feasible_reward():
    trainer = Trainer(PENDULUM, SETTINGS, seed=3)
    scores, actors = [], []
    while not trainer.finished:
        actors.append(trainer.actor.arrays())
        trainer.advance()
        score = trainer.now.ledger.score()
        scores.append(-np.inf if score is None else score)
    trainer.close()
    best = int(np.argmax(scores))
    assert trainer.now.best.score == scores[best]
    assert trainer.now.best.steps == (best + 1) * SETTINGS.batch
    assert_same_leaves(trainer.now.best.actor.arrays(), actors[best])


def test_no_worse_or_equal_score_replaces_the_best_actor(monkeypatch):
    trainer = Trainer(PENDULUM, SETTINGS, seed=0)
    kept = []
    for number, score in enumerate([1.0, 3.0, 2.0, None, 3.5, 3.5], start=1):
        trainer.now.iteration = number
        monkeypatch.setattr(trainer.now.ledger, "score", lambda score=score: score)
        trainer.keep_best(trainer.actor)
        kept.append((trainer.now.best.score, trainer.now.best.steps))
    trainer.close()
    assert kept == [(1.0, 64), (3.0, 128), (3.0, 128), (3.0, 128), (3.5, 320), (3.5, 320)]


def test_any_number_of_threads_gives_the_same_numbers():
    one, first = run(PENDULUM, threads=1)
    two, second = run(PENDULUM, threads=2)
    assert without_seconds(one) == without_seconds(two)
    assert_same_leaves(first.now.learner, second.now.learner)


@both
def test_a_state_taken_up_by_another_trainer_goes_on_bit_for_bit(task):
    trainer, other = (Trainer(task, SETTINGS, seed=5) for _ in range(2))
    for _ in range(2):
        trainer.advance()
    state = jax.tree.map(np.array, trainer.state())
    told = [trainer.advance() for _ in range(3)]
    other.restore(state)
    assert without_seconds([other.advance() for _ in range(3)]) == without_seconds(told)
    assert_same_leaves(trainer.now.learner, other.now.learner)
    assert trainer.now.best.steps == other.now.best.steps
    trainer.close()
    other.close()


def test_episodes_that_a_saved_state_cuts_off_count_for_nothing():
    trainer = Trainer(CART, SETTINGS, seed=1)
    trainer.advance()
    assert trainer.now.ledger.running[:, 2].any()
    assert trainer.now.learner.sums.any()
    trainer.state()
    assert not trainer.now.ledger.running.any()
    assert not trainer.now.learner.sums.any()
    for _ in range(2):
        trainer.advance()
        trainer.state()
    trainer.close()
    assert trainer.now.ledger.ended[:, 3].max() <= CART.horizon


class StopError(Exception):
    """Raised by those who have seen enough."""


def stop_after(iterations):
    def progress(facts):
        if facts["iteration"] == iterations:
            raise StopError

    return progress


@both
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(task, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer_module, "CHECKPOINT_EVERY", 2)
    simulated_expert.train(task, SETTINGS, seed=2, folder=tmp_path / "straight")
    folder, notices = tmp_path / "stopped", []
    # Before the first checkpoint, between two, and right after one.
    for iterations in (1, 3, 4):
        with pytest.raises(StopError):
            simulated_expert.train(
                task, SETTINGS, seed=2, folder=folder, progress=stop_after(iterations)
            )
    simulated_expert.train(task, SETTINGS, seed=2, folder=folder, notice=notices.append)
    assert len(notices) == 1
    assert "goes on after 256 steps" in notices[0]
    assert_same_folder(tmp_path / "straight", folder)
    trainer = simulated_expert.train(task, SETTINGS, seed=2, folder=folder)
    assert trainer.finished
    assert_same_folder(tmp_path / "straight", folder)


def test_of_the_best_and_the_last_actor_the_better_in_a_test_is_the_expert(tmp_path, monkeypatch):
    monkeypatch.setattr(simulated_expert, "TESTED_EPISODES", 64)
    expert = tacit.train_expert(PENDULUM, settings=SETTINGS, seed=2, folder=tmp_path)
    trainer = simulated_expert.train(PENDULUM, SETTINGS, seed=2, folder=tmp_path)
    candidates = (trainer.actor, trainer.now.best.actor)
    tests = [simulated_expert.measure(PENDULUM, actor, seed=2) for actor in candidates]
    better = int(np.argmax([test["score"] for test in tests]))
    assert_same_leaves(expert.policy.arrays(), candidates[better].arrays())
    assert expert.feasible_reward == tests[better]["feasible_reward"]
    assert expert.violation == tests[better]["violation"]
    assert expert.facts["trained_steps"] == SETTINGS.steps
    kept, header = read_arrays(tmp_path / ACTOR_FILE)
    assert_same_leaves(Actor.from_arrays(kept).arrays(), expert.policy.arrays())
    assert header["task"] == "BiasedPendulum"


def test_two_learned_costs_have_two_multipliers():
    trainer = Trainer(PENDULUM, SETTINGS, seed=0, constraints=2)
    rollout = trainer.roll_out()
    two = np.stack([rollout.rewards > 0, rollout.rewards < 0], axis=-1)
    facts = trainer.learn(rollout._replace(costs=two))
    trainer.close()
    assert facts["multiplier 0"] > facts["multiplier 1"]
    assert facts["cost 0"] == 1


def test_costs_or_rewards_of_the_wrong_shape_are_an_error_that_tells_the_right_one():
    trainer = Trainer(PENDULUM, SETTINGS, seed=0)
    rollout = trainer.roll_out()
    with pytest.raises(ArgumentError, match=r"costs.*\[16, 4\].*must be \[16, 4, 1\]"):
        trainer.learn(rollout._replace(costs=rollout.rewards))
    with pytest.raises(ArgumentError, match=r"rewards.*\[16, 4, 1\].*must be \[16, 4\]"):
        trainer.learn(rollout._replace(rewards=rollout.costs))
    trainer.learn(rollout)
    trainer.close()


def test_without_constraints_the_rollout_holds_no_costs():
    trainer = Trainer(PENDULUM, SETTINGS, seed=0, constraints=0)
    rollout = trainer.roll_out()
    with pytest.raises(ArgumentError, match=r"must be \[16, 4, 0\]"):
        trainer.learn(rollout)
    facts = trainer.learn(rollout._replace(costs=rollout.costs[..., :0]))
    trainer.close()
    assert not {"cost", "multiplier"} & set(facts)
    assert 0 <= facts["violation"] <= 1


def test_a_rollout_and_an_update_are_one_advance():
    halves, first = run(PENDULUM, seed=6)
    whole = Trainer(PENDULUM, SETTINGS, seed=6)
    told = [whole.advance() for _ in range(SETTINGS.iterations)]
    whole.close()
    assert without_seconds(told) == without_seconds(halves)
    assert_same_leaves(first.now.learner, whole.now.learner)


def test_only_rollouts_and_updates_count_as_seconds():
    trainer = Trainer(PENDULUM, SETTINGS, seed=0)
    trainer.advance()
    before = trainer.now.seconds
    rollout = trainer.roll_out()
    middle = trainer.now.seconds
    assert 0 < before < middle
    time.sleep(0.5)
    began = time.perf_counter()
    facts = trainer.learn(rollout)
    assert middle < facts["seconds"] <= middle + time.perf_counter() - began
    trainer.close()


def test_a_folder_is_not_taken_for_another_run(tmp_path):
    simulated_expert.train(PENDULUM, SETTINGS, seed=2, folder=tmp_path)
    with pytest.raises(StorageError, match="seed"):
        simulated_expert.train(PENDULUM, SETTINGS, seed=3, folder=tmp_path)
    other = dataclasses.replace(SETTINGS, clip=0.1)
    with pytest.raises(StorageError, match="clip"):
        simulated_expert.train(PENDULUM, other, seed=2, folder=tmp_path)


ALWAYS_FORBIDDEN = tacit.make("BiasedPendulum", horizon=12, limit=10.0)


def test_a_cost_of_ones_own_is_learned_from_while_true_violations_are_counted():
    seen = []

    def change(rollout):
        seen.append(rollout)
        return rollout._replace(costs=np.full((16, 4, 1), 0.01))

    told, _ = run(ALWAYS_FORBIDDEN, change=change)
    assert len(seen) == SETTINGS.iterations
    for rollout in seen:
        assert rollout.observations.shape == rollout.arrived.shape == (16, 4, 4)
        assert rollout.actions.shape == (16, 4, 1)
        assert rollout.terminated.shape == rollout.rewards.shape == (16, 4)
        assert (rollout.costs == 1).all()
    prices = [facts["multiplier"] for facts in told]
    assert prices == sorted(prices, reverse=True)  # 0.01 is below the budget
    assert prices[-1] < 1
    assert all(facts["cost"] == pytest.approx(0.01) for facts in told)
    assert all(facts["violation"] == 1 for facts in told)
    assert all(facts["feasible_reward"] == 0 < facts["reward"] for facts in told)
    true, _ = run(ALWAYS_FORBIDDEN)
    assert true[-1]["multiplier"] > 1
    assert true[-1]["cost"] == 1


def test_a_rollout_says_where_each_step_started_and_where_it_led():
    trainer = Trainer(PENDULUM, SETTINGS, seed=0)
    before = trainer.now.observations
    rollout = trainer.roll_out()
    trainer.close()
    ended = rollout.terminated | rollout.truncated
    assert ended.any()
    assert not ended.all()
    np.testing.assert_allclose(rollout.observations[0], before, rtol=1e-6)
    stays = np.isclose(rollout.arrived[:-1], rollout.observations[1:]).all(axis=-1)
    np.testing.assert_array_equal(stays, ~ended[:-1])
    # A fallen pole leans by more than 0.2; a new episode starts within 0.01.
    assert (np.abs(rollout.arrived[rollout.terminated][:, 1]) > 0.2).all()
    assert (np.abs(rollout.observations[1:][ended[:-1]]) <= 0.01 + 1e-6).all()
    np.testing.assert_array_equal(rollout.costs[..., 0], rollout.arrived[..., 0] < -0.015)


def test_a_cost_that_is_no_number_is_a_divergence_that_names_quantity_and_step():
    trainer = Trainer(PENDULUM, SETTINGS, seed=0)
    rollout = trainer.roll_out()._replace(costs=np.full((16, 4, 1), np.nan))
    with pytest.raises(DivergenceError, match=r"BiasedPendulum diverged: .* is nan after 64 steps"):
        trainer.learn(rollout)
    trainer.close()


def test_the_actions_of_a_rollout_are_as_drawn_and_can_be_cut_to_their_box():
    task = tacit.make("BlockedSwimmer")
    trainer = Trainer(task, dataclasses.replace(SETTINGS, steps=64), seed=0)
    rollout = trainer.roll_out()
    trainer.close()
    taken = rollout.within(task.action_space)
    assert np.abs(rollout.actions).max() > 1
    assert np.abs(taken.actions).max() == 1
    assert (np.abs(taken.actions) < 1).any()
    np.testing.assert_array_equal(taken.actions, np.clip(rollout.actions, -1, 1))
    assert taken.costs is rollout.costs


def test_episodes_that_staggering_cuts_short_are_not_counted():
    task = tacit.make("BlockedSwimmer", horizon=16)
    trainer = Trainer(task, SETTINGS, seed=0)
    facts = trainer.advance()  # 16 steps: one whole episode, three that began in the middle
    assert facts["episodes"] == 1
    assert facts["episode_length"] == 16
    facts = trainer.advance()
    trainer.close()
    assert facts["episodes"] == 5
    assert facts["episode_length"] == 16


def test_worlds_that_cannot_be_saved_get_whole_episodes_between_checkpoints():
    trainer = Trainer(gymnasium_task("CartPole-v1", cost=leaning_left), SETTINGS, seed=0)
    assert trainer_module.checkpoint_every(trainer) == 2 * -(-500 // 16)
    trainer.close()
