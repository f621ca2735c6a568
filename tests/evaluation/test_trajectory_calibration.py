import dataclasses

import numpy as np
import pytest

import tacit
from tacit.environments.lab_tasks import chain
from tacit.errors import TaskError
from tacit.evaluation.trajectory_calibration import calibration_error, labelled_episodes


@pytest.fixture(scope="module")
def result():
    task = chain(length=21, limit=-3, horizon=8, reward_scale=3)
    return tacit.infer(task, tacit.collect(tacit.train_expert(task), 20, seed=0), confidence=0.7)


def test_half_of_the_episodes_obey_the_true_rule_and_are_labelled_so(result):
    states, actions, feasible = labelled_episodes(result, 30, np.random.default_rng(0))
    assert states.shape == actions.shape == (60, 8)
    truth = ~(result.task.costs[states, actions] > 0).any(axis=1)
    np.testing.assert_array_equal(feasible, truth)
    assert feasible.sum() == 30


def test_a_constraint_that_is_the_truth_has_no_error_and_its_opposite_the_largest(result):
    allowed = result.task.allowed

    def belief(right):
        constraint = dataclasses.replace(
            result.constraint,
            alpha=np.where(right, 1e4, 1.0),
            beta=np.where(right, 1.0, 1e4),
            reading="hard",
        )
        return dataclasses.replace(result, constraint=constraint)

    assert calibration_error(belief(allowed), number=30) == 0
    assert calibration_error(belief(np.zeros_like(allowed)), number=30) == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_error(result):
    assert calibration_error(result, number=30, seed=3) == calibration_error(
        result, number=30, seed=3
    )


def test_a_task_without_infeasible_trajectories_is_an_error(result):
    task = dataclasses.replace(result.task, costs=np.zeros_like(result.task.costs))
    with pytest.raises(TaskError, match="only 0 of 30 infeasible"):
        calibration_error(dataclasses.replace(result, task=task), number=30)
