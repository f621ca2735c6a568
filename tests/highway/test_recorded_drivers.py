"""Recorded drivers as demonstrations: their actions, recovered, drive where they drove."""

import numpy as np
import pytest

from tacit.evaluation.violation import violation_rate
from tacit.highway.driving import Highway, build_highway
from tacit.highway.driving_step import STRONGEST, HighwayTask
from tacit.highway.highway_environment import HighwayEnvironment
from tacit.highway.recorded_drivers import CLOSE, FAITHFUL, drive, recover_actions
from tacit.highway.recording import CAR, Carriageway, RecordingError, Track
from tacit.highway.replay import piece_of, stack_replay
from tacit.highway.scenarios import Window, cast_window

DT = 0.04


def followed(actions, place, velocity, dt=DT):
    """Where the point mass goes."""
    places = [np.array(place, float)]
    velocity = np.array(velocity, float)
    for acceleration in STRONGEST * actions:
        places.append(places[-1] + velocity * dt + acceleration * dt**2 / 2)
        velocity = velocity + acceleration * dt
    return np.array(places)


def smooth_actions(steps, seed=0):
    random = np.random.default_rng(seed)
    knots = random.uniform(-0.15, 0.15, (steps // 25 + 2, 2)) * [1, 0.2]
    at = np.arange(steps) / 25
    return np.stack([np.interp(at, np.arange(len(knots)), knots[:, k]) for k in range(2)], -1)


def test_a_path_of_the_point_mass_gives_back_its_actions():
    actions = smooth_actions(150)
    path = followed(actions, (10, -3), (30, 0.2))
    found = recover_actions(path, np.array([30, 0.2]), DT)
    assert found.shape == (150, 2)
    error = np.linalg.norm(followed(found, (10, -3), (30, 0.2)) - path, axis=1)
    assert error.max() < FAITHFUL
    np.testing.assert_allclose(found, actions, atol=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_to_a_centimetre_makes_no_wild_actions(seed):
    actions = smooth_actions(250, seed)
    path = np.round(followed(actions, (0, 0), (33, 0)), 2)
    found = recover_actions(path, np.array([33, 0]), DT)
    away = followed(found, (0, 0), (33, 0)) - path
    assert np.abs(away).max() <= CLOSE
    # A centimetre within one frame of 0.04 s would be 12.5 m/s^2.
    assert np.abs(STRONGEST * (found - actions)).max() < 1


def test_actions_stay_within_the_box_where_a_path_cannot_be_followed():
    path = np.stack([np.linspace(0, 30, 26), np.zeros(26)], -1)
    path[13:, 1] += 2.0
    found = recover_actions(path, np.array([30, 0]), DT)
    assert np.abs(found).max() <= 1
    assert np.abs(followed(found, (0, 0), (30, 0)) - path).max() > FAITHFUL


def test_the_shortest_path_has_one_action():
    path = followed(np.array([[0.2, -0.1]]), (5, 1), (20, 0))
    np.testing.assert_allclose(
        followed(recover_actions(path, np.array([20, 0]), DT), (5, 1), (20, 0)), path, atol=CLOSE
    )


@pytest.fixture(scope="module")
def highway(recorded_traffic):
    options = {"constraint": "both", "gap": 60.0, "speed": 36.0, "geometry": "centre"}
    options |= {"split": "all", "split_by": "recording", "egos": "one", "window": 12.0, "seed": 0}
    options |= {"drop_infeasible": False, "recordings": str(recorded_traffic)}
    return build_highway("recorded", options)


@pytest.fixture(scope="module")
def recovered(highway):
    return drive(highway)


def test_every_driver_stays_within_five_centimetres_and_reaches_its_goal(highway, recovered):
    assert recovered.scenarios == tuple(range(len(highway.scenarios)))
    assert not recovered.dropped
    assert 0 < recovered.error <= FAITHFUL
    demonstrations = recovered.trajectories
    assert len(demonstrations) == len(highway.scenarios)
    assert set(demonstrations.returns.tolist()) <= {40.0, 50.0}
    for number, path in enumerate(highway.paths):
        # The driver's centre reaches the goal's rectangle before its recorded end.
        assert demonstrations.lengths[number] < len(path)


def test_demonstrations_are_what_the_environment_returns(highway, recovered):
    demonstrations = recovered.trajectories
    environment = HighwayEnvironment(highway.task, highway.scenarios)
    for number in (0, 3, 7):
        observation, _ = environment.reset(options={"scenario": number})
        length = int(demonstrations.lengths[number])
        for step in range(length):
            np.testing.assert_allclose(
                demonstrations.observations[number, step], observation, rtol=1e-3, atol=5e-3
            )
            observation, reward, *ended, info = environment.step(
                demonstrations.actions[number, step]
            )
            assert reward == demonstrations.rewards[number, step]
            assert demonstrations.costs[number, step] == info["cost"].max()
            assert any(ended) == (step == length - 1)
        np.testing.assert_allclose(
            demonstrations.observations[number, length], observation, rtol=1e-3, atol=5e-3
        )
        assert info["is_success"]


def test_true_costs_and_origin_are_noted(recovered):
    demonstrations = recovered.trajectories
    assert 0 < violation_rate(demonstrations).value < 1
    assert demonstrations.provenance["task"] == "recorded"
    assert demonstrations.provenance["experts"] == "recorded drivers"


def moving(vehicle, s, d, vs, width=1.8, frames=100, jump=0.0):
    """A car at 10 frames a second; it can jump aside in mid-way."""
    times = np.arange(frames) / 10
    aside = np.where(times > 5, d + jump, d)
    values = s + vs * times, aside, np.full(frames, vs), np.zeros(frames)
    return Track(vehicle, CAR, 4.5, width, 0, *(np.float32(value) for value in values))


def highway_of(*tracks):
    way = Carriageway("hand", 2, 0.1, 100, np.array([7, 3.5, 0, -3.5]), 0.0, 900.0, tracks)
    casts, _ = cast_window(way, Window(1, 0, 99), "centre", "all", 0)
    pieces = [piece_of(way, cast, "centre") for cast in casts]
    scenarios = tuple(piece.scenario for piece in pieces)
    rules = (("distance",), 20.0, 40.0, "centre", max(s.limit for s in scenarios))
    task = HighwayTask(stack_replay(pieces), "hand", *rules)
    return Highway(task, scenarios, tuple(piece.path for piece in pieces), {}, {})


def test_who_cannot_be_followed_or_collides_is_left_out_and_counted():
    steady = moving(1, 20, -1.75, 30)
    jumping = moving(2, 20, 5.25, 30, jump=-1.5)
    # Two narrow ones pass each other on one lane, which the wider ego cannot.
    passing, passed = moving(3, 100, 1.2, 30, width=1.0), moving(4, 150, 2.4, 20, width=1.0)
    told = []
    highway = highway_of(steady, jumping, passing, passed)
    found = drive(highway, lambda done, total: told.append((done, total)))
    egos = [highway.scenarios[number].ego for number in found.scenarios]
    assert egos == [1]
    assert found.dropped == {"recorded motion beyond 11.5 m/s^2": 1, "collision": 2}
    assert len(found.trajectories) == 1
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_error_says_that_nobody_is_left():
    jumping = [moving(k, 40 * k, 5.25, 30, jump=-1.5) for k in (1, 2, 3, 4)]
    with pytest.raises(RecordingError, match="no recorded driver can drive its own scenario again"):
        drive(highway_of(*jumping))
