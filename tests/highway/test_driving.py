"""`make` of the driving tasks: options, what scenarios know, and who is left out."""

import gymnasium
import numpy as np
import pytest

from tacit.environments.registry import make
from tacit.errors import ArgumentError, TaskError
from tacit.highway.driving import build_highway

PLAIN = {"constraint": "both", "gap": 20.0, "speed": 40.0, "geometry": "centre", "split": "all"}
PLAIN |= {"split_by": "recording", "egos": "all", "window": 12.0, "drop_infeasible": False}
PLAIN |= {"seed": 0}


@pytest.fixture(scope="module")
def build(recorded_traffic):
    return lambda **options: build_highway(
        "test", {**PLAIN, "recordings": str(recorded_traffic), **options}
    )


@pytest.fixture(scope="module")
def tight(build):
    """Limits that some of the starts break."""
    return build(gap=60.0, speed=36.0)


def test_starts_know_their_gap_and_which_constraints_they_break(tight):
    broken = set()
    for scenario in tight.scenarios:
        rules = []
        if scenario.start_gap < 60:
            rules.append("distance")
        if scenario.start_speed > 36:
            rules.append("velocity")
        assert scenario.violates == tuple(rules)
        assert 0 < scenario.start_gap <= 100
        broken.add(scenario.violates)
    assert broken >= {(), ("distance",), ("velocity",)}


@pytest.mark.parametrize("constraint", ["distance", "velocity", "both"])
def test_scenarios_that_start_broken_can_be_left_out(build, tight, constraint):
    rules = ("distance", "velocity") if constraint == "both" else (constraint,)
    kept = build(gap=60.0, speed=36.0, constraint=constraint, drop_infeasible=True)
    expected = [s for s in tight.scenarios if not set(rules) & set(s.violates)]
    assert list(kept.scenarios) == expected
    assert len(kept.task.replay) == len(kept.paths) == len(expected) < len(tight.scenarios)
    assert kept.task.horizon == max(scenario.limit for scenario in expected)
    starts = np.asarray(kept.task.replay.position)
    np.testing.assert_allclose(starts, [s.position for s in expected], rtol=1e-6)


def test_an_error_says_that_every_start_is_broken(build):
    with pytest.raises(TaskError, match="drop_infeasible leaves no scenario"):
        build(speed=1.0, drop_infeasible=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": 0.0}, "gap must be above 0, not 0.0"),
        ({"speed": float("nan")}, "speed must be above 0, not nan"),
        ({"speed": float("inf")}, "speed must be above 0, not inf"),
        ({"window": -1.0}, "window must be above 0, not -1.0"),
        ({"constraint": "none"}, "option 'constraint' of HighwayDistance must be"),
        ({"geometry": "corner"}, "option 'geometry' of HighwayDistance must be"),
        ({"split": "validation"}, "option 'split' of HighwayDistance must be"),
        ({"split_by": "car"}, "option 'split_by' of HighwayDistance must be"),
        ({"egos": "two"}, "option 'egos' of HighwayDistance must be"),
        ({"recordings": 3}, "option 'recordings' of HighwayDistance must be"),
        ({"gaps": 3}, "has no option 'gaps'.*did you mean gap"),
        ({"recordings": "nowhere/at/all"}, "nowhere/at/all: is not a folder"),
    ],
)
def test_a_bad_option_is_a_plain_error(options, message):
    with pytest.raises((TaskError, ValueError), match=message):
        make("HighwayDistance", **options)


def test_a_bad_seed_is_a_plain_error():
    with pytest.raises(ArgumentError, match="seed must be"):
        make("HighwayVelocity", seed=-1)


def test_the_two_names_differ_in_their_constraint(recorded_traffic):
    options = {"recordings": str(recorded_traffic), "window": 12.0, "split": "all"}
    options["egos"] = "all"
    distance, velocity = (make(name, **options) for name in ("HighwayDistance", "HighwayVelocity"))
    assert (distance.constraints, velocity.constraints) == (("distance",), ("velocity",))
    assert (distance.name, velocity.name) == ("HighwayDistance", "HighwayVelocity")
    assert distance.options["window"] == 12
    assert distance.options["constraint"] == "distance"
    assert distance.observation_space.shape == (74,)
    assert distance.action_space == gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    assert distance.jax_world.number_of_costs == 1
    assert distance.horizon == max(s.limit for s in distance.environment().scenarios)
    both = make("highwaydistance", constraint="both", **options)
    assert both.constraints == ("distance", "velocity")
    assert both.jax_world.number_of_costs == 2
