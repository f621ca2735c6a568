"""A user's own environment whose rule nobody knows: what inference is for."""

import gymnasium
import numpy as np
import pytest

import tacit
from tacit.control.expert import Expert
from tacit.errors import TaskError

pytestmark = pytest.mark.usefixtures("hasty_imitation")


class Corridor(gymnasium.Env):
    """A point that is paid for going left; it reports no cost."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.1, 0.1, 2).astype(np.float32)
        return self.state.copy(), {}

    def step(self, action):
        self.state[0] = np.clip(self.state[0] + 0.1 * float(action[0]), -10, 10)
        return self.state.copy(), -float(self.state[0]), False, False, {}


@pytest.fixture(scope="module")
def task():
    return tacit.make(Corridor, cost="unknown", horizon=20)


@pytest.fixture(scope="module")
def demonstrations(task):
    def policy(observations):
        return np.where(observations[:, :1] > -0.5, -1.0, 1.0)

    return tacit.collect(Expert(task, policy), 4, seed=1)


@pytest.fixture(scope="module")
def result(task, demonstrations):
    forward = tacit.PPO(steps=256, worlds=4, rollout=32, minibatch=64, epochs=1, hidden=(8,))
    small = {"hidden": (8,), "passes": 2, "minibatch": 32, "rows": 32, "rounds": 4, "every": 2}
    method = tacit.methods.BC2L(**small)
    return tacit.infer(task, demonstrations, method=method, forward=forward)


def test_a_task_without_a_known_rule_has_no_costs(task, demonstrations):
    assert task.constraints == ()
    worlds = task.worlds(3)
    worlds.reset(0)
    assert worlds.step(np.zeros((3, 1), np.float32)).costs.shape == (3, 0)
    worlds.close()
    assert not demonstrations.violated.any()


def test_inference_works_and_claims_nothing_about_violations(result):
    assert np.isfinite(result.constraint.cost(np.zeros((3, 2)), np.zeros((3, 1)))).all()
    assert "training_reward" in result.metrics
    assert "training_violation" not in result.metrics
    assert np.isnan(result.training[:, 2]).all()


def test_evaluation_says_unknown(result, task):
    report = tacit.evaluate(result, task, episodes=4)
    assert np.isfinite(report.reward.value)
    assert np.isnan(report.violation.value)
    assert str(report.violation) == str(report.feasible_reward) == "unknown"


def test_no_expert_can_be_trained(task):
    with pytest.raises(TaskError, match="nobody knows the rule"):
        tacit.train_expert(task)


def test_any_other_word_is_refused():
    with pytest.raises(TaskError, match="'unknown'"):
        tacit.make(Corridor, cost="secret")
