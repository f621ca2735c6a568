"""Names of the observed numbers."""

import jax.numpy as jnp
from made_roads import moving, road, task_of

from tacit.highway.observation import GAP_AHEAD, OBSERVATION_NAMES, SPEED


def test_every_observed_number_has_a_name_of_its_own():
    task = task_of((road(moving(1, 50, 1.75), moving(2, 90, 1.75)), 1))
    _, observation = task.start(jnp.int32(0))
    assert len(OBSERVATION_NAMES) == len(observation) == task.observation_space.shape[0]
    assert len(set(OBSERVATION_NAMES)) == len(OBSERVATION_NAMES)
    assert not any("_" in name for name in OBSERVATION_NAMES)


def test_names_stand_in_the_order_of_the_numbers():
    task = task_of((road(moving(1, 50, 1.75, 30), moving(2, 90, 1.75, 30)), 1))
    _, observation = task.start(jnp.int32(0))
    shown = dict(zip(OBSERVATION_NAMES, observation.tolist(), strict=True))
    assert shown["speed along"] == 30
    assert 30 < shown["gap ahead"] < 40
    assert OBSERVATION_NAMES[GAP_AHEAD] == "gap ahead"
    assert [OBSERVATION_NAMES[place] for place in SPEED] == ["speed along", "speed across"]
