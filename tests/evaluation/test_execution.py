"""The execution phase on simulated tasks, against exact numbers where there are any."""

import re
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import tacit
from tacit.command_line import main
from tacit.command_line.console import console, percent
from tacit.control.actor import Actor
from tacit.control.play import play
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_world import simulator_of
from tacit.errors import ArgumentError
from tacit.evaluation import simulated_calibration
from tacit.evaluation.evaluate import evaluate, execute, summary
from tacit.evaluation.intervals import rate_interval
from tacit.evaluation.violation import exact_performance
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.inference.inputs import Inputs
from tacit.inference.reach.model import Extent, Extremes, ReachModel

CHAIN = chain(length=11, limit=-2, horizon=8, reward_scale=3)
TASK = simulator_of(CHAIN)
LIMIT_PLACE = 3
PENDULUM = tacit.make("BiasedPendulum", horizon=15)


class TrueRule:
    """Feasible is what the task's costs allow."""

    confidence, promises, over_time = 0.8, False, False

    def feasibility(self, observations, actions, confidence=None):
        places = observations[..., :-1].argmax(axis=-1)
        return (CHAIN.costs[places, actions[..., 0].astype(int)] <= 0).astype(float)


class Promise(TrueRule):
    """The same with a confidence that is a promise."""

    promises = True

    def cost(self, observations, actions, confidence=None):
        return 1 - self.feasibility(observations, actions, confidence)


def lower(observations):
    return np.zeros(len(observations), int)


def upper(observations):
    return np.full(len(observations), CHAIN.number_of_actions - 1)


def result_of(policy, task=TASK, training=()):
    rows = np.asarray(training, float).reshape(-1, 4)
    return SimpleNamespace(constraint=TrueRule(), policy=policy, training=rows, task=task)


def tilt(observations):
    return observations[:, :1] * 3


def actor(observed, actions, discrete=False):
    weights = (np.zeros((observed, actions), np.float32),)
    std = None if discrete else np.ones(actions)
    bound = None if discrete else np.full(actions, 3.0)
    low = None if bound is None else -bound
    return Actor(weights, (np.zeros(actions, np.float32),), None, None, std, low, bound)


def hover(observations):
    """Stay near the limit, so that slips break the rule now and then."""
    inside = observations[:, :-1].argmax(axis=1) > LIMIT_PLACE
    return np.where(inside, lower(observations), upper(observations))


def test_intervals_contain_the_exact_numbers_as_often_as_they_say():
    places = np.eye(CHAIN.number_of_states, CHAIN.number_of_states + 1)
    always = np.zeros((CHAIN.horizon, CHAIN.number_of_states, CHAIN.number_of_actions))
    always[:, np.arange(CHAIN.number_of_states), hover(places)] = 1
    exact = exact_performance(CHAIN, always)
    assert 0.1 < exact.violation < 0.9
    blocks = execute(TASK, hover, episodes=40 * 60, seed=0).reshape(40, 60, 4)
    reports = [summary(rows) for rows in blocks]
    for name in ("violation", "reward", "feasible_reward"):
        wanted = getattr(exact, name)
        found = [getattr(report, name) for report in reports]
        assert sum(one.low <= wanted <= one.high for one in found) >= 34, name


def test_episode_i_is_the_one_of_seed_plus_i():
    rows = execute(PENDULUM, tilt, episodes=70, seed=51)
    assert rows.shape == (70, 4)
    for start in (0, 49, 50, 69):
        worlds = PENDULUM.worlds(1)
        alone = play(worlds, tilt, seed=51 + start)
        worlds.close()
        np.testing.assert_allclose(rows[start, 0], alone.rewards.sum(), rtol=1e-12)
        assert rows[start, 2:].tolist() == [alone.violated[0], alone.lengths[0]]
    np.testing.assert_array_equal(execute(PENDULUM, tilt, episodes=20, seed=81), rows[30:50])


def test_threads_do_not_matter_and_seeds_do():
    result = result_of(tilt, PENDULUM)
    one = evaluate(result, episodes=12, threads=1)
    assert evaluate(result, episodes=12, threads=3) == one
    assert evaluate(result, episodes=12, seed=900) != one


def test_a_hundred_episodes_by_default():
    assert evaluate(result_of(upper)).episodes == 100


def test_the_end_of_training_comes_along():
    rows = [[4, 0, 1, 8], [2, 2, 0, 8], [3, 3, 0, 7], [1, 0, 1, 8]]
    report = evaluate(result_of(upper, training=rows), episodes=50)
    assert report.training is not None
    assert report.training.episodes == 4
    assert report.training.violation.value == 0.5
    assert report.training.reward.value == 2.5
    assert report.training.feasible_reward.value == 1.25
    assert report.training.reward.low < 2.5 < report.training.reward.high


def test_feasible_reward_counts_violating_episodes_as_nothing():
    rows = execute(TASK, lower, episodes=60, seed=0)
    broken = rows[:, 2] > 0
    assert broken.any()
    assert (rows[broken, 1] == 0).all()
    np.testing.assert_array_equal(rows[~broken, 1], rows[~broken, 0])


def test_a_result_without_a_task_needs_one():
    with pytest.raises(ArgumentError, match="give the task"):
        evaluate(result_of(upper, None))
    assert evaluate(result_of(upper, None), TASK, episodes=50).episodes == 50


@pytest.mark.parametrize(
    ("policy", "own", "given", "message"),
    [
        (actor(7, 1), None, PENDULUM, "takes 7 observed numbers .* BiasedPendulum shows"),
        (actor(4, 3), None, PENDULUM, "gives 3 continuous actions"),
        (actor(12, 5, discrete=True), None, TASK, "gives 1 of 5 actions"),
        (upper, TASK, PENDULUM, "takes 12 observed numbers"),
        (upper, TASK, "Chain", "cannot be judged on a str"),
    ],
)
def test_a_task_that_does_not_fit_is_an_error(policy, own, given, message):
    with pytest.raises(ArgumentError, match=message):
        evaluate(result_of(policy, own), given)


@pytest.mark.parametrize(("episodes", "message"), [(1, "at least 2"), (2.5, "whole number")])
def test_episodes_are_enough_whole_ones(episodes, message):
    with pytest.raises(ArgumentError, match=message):
        evaluate(result_of(upper), episodes=episodes)


def pendulum_rule(lowest, confidence):
    """By reach: no expert's cart was below `lowest`, where policies would go; all else is free."""
    low = jnp.full((4, 9), -np.inf).at[0].set(lowest)
    far, who = jnp.full((4, 9), np.inf), jnp.zeros((4, 9), jnp.int32)
    model = ReachModel(
        Inputs.blank(4, PENDULUM.action_space),
        Extent(low, far),
        Extremes(who, who, who, who),
        Extent(jnp.full((4, 9), -np.inf), far),
        "graded",
    )
    spaces = Spaces(PENDULUM.observation_space, PENDULUM.action_space)
    return Constraint(model, confidence, spaces, True)


def test_breaking_the_learned_rule_is_counted_without_knowing_the_true_one():
    result = result_of(tilt, PENDULUM)
    result.constraint = pendulum_rule(0.002, confidence=0.8)
    played = play(PENDULUM.worlds(50), tilt, seed=51)
    present = np.arange(15) < played.lengths[:, None]
    below = (present & (played.observations[:, :-1, 0] < 0.002)).any(axis=1)[:40]
    assert 0 < below.sum() < 40
    for limit in (-0.015, -9.0):
        task = tacit.make("BiasedPendulum", horizon=15, limit=limit)
        report = evaluate(result, task, episodes=40)
        assert report.rule_violation == rate_interval(int(below.sum()), 40)
    # Nothing is promised here, so that nothing can be kept.
    assert evaluate(result_of(tilt, PENDULUM), episodes=40).rule_violation is None


def test_the_command_says_when_a_policy_does_not_keep_its_own_rule(printed):
    result = result_of(tilt, PENDULUM)
    result.constraint = pendulum_rule(0.002, confidence=0.8)
    share = percent(evaluate(result, episodes=40).rule_violation)
    text = printed(result, "--episodes", "40", "--no-calibration")
    assert f"violation of the learned rule {share}" in text
    assert "where at most 20.0 % were asked for: nothing shows that the promise is kept" in text
    result.constraint = pendulum_rule(-9.0, confidence=0.8)
    text = printed(result, "--episodes", "40", "--no-calibration")
    assert "violation of the learned rule 0.0 %" in text
    assert "nothing shows" not in text


@pytest.fixture
def printed(monkeypatch, capsys):
    # The width is read when the console is made, which another test may have caused before.
    monkeypatch.setattr(console, "width", 200)

    def run(result, *arguments):
        monkeypatch.setattr("tacit.inference.result.load", lambda folder: result)
        main(["evaluate", "some-folder", *arguments])
        return re.sub(r"[\s│┃]+", " ", capsys.readouterr().out)

    return run


def test_the_command_shows_both_phases(printed):
    result = result_of(upper, training=[[4, 0, 1, 8], [2, 2, 0, 8]])
    assert "confidence" not in printed(result, "--episodes", "4", "--no-calibration")
    result.constraint = Promise()
    text = printed(result, "--episodes", "50")
    report = evaluate(result, episodes=50)
    assert "training (last 2 episodes) execution (seeds 51 to 100)" in text
    assert "confidence 0.8" in text
    assert f"reward per episode {report.training.reward} {report.reward} " in text
    assert "calibration error (ECE) 0.000" in text


def test_the_command_can_leave_calibration_out_and_says_what_is_unknown(printed):
    text = printed(result_of(upper), "--episodes", "50", "--no-calibration")
    assert "calibration" not in text
    assert "reward per episode unknown" in text


def test_the_command_keeps_its_numbers_when_nothing_violates(printed, monkeypatch):
    monkeypatch.setattr(simulated_calibration, "MOST_BATCHES", 4)
    free = tacit.make("BiasedPendulum", horizon=5, limit=-9.0)
    result = result_of(tilt, free)
    result.constraint = SimpleNamespace(
        confidence=0.8,
        promises=False,
        over_time=False,
        feasibility=lambda observations, *_: np.ones(observations.shape[:-1]),
    )
    text = printed(result, "--episodes", "4")
    assert "calibration error (ECE) unknown" in text
    assert "only 0 of 250 infeasible trajectories" in text
    assert "reward per episode" in text
