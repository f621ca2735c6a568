"""The published simulator's own outputs, reproduced from the same recording."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest
from written_recordings import HIGHWAY_DATA

from tacit.environments.registry import make
from tacit.highway.observation import FEATURES, REASONS

pytestmark = pytest.mark.skipif(HIGHWAY_DATA is None, reason="shared data are not here")

CLOSE = 0.02
ROUTE = 38
"""The first feature about the route."""


@pytest.fixture(scope="module")
def environment():
    options = {"geometry": "legacy", "split": "all"}
    task = make("HighwayVelocity", recordings=str(HIGHWAY_DATA / "parity"), **options)
    return task.environment()


def number_of(environment, direction):
    """The scenario of a carriageway's first window."""
    return next(
        number
        for number, scenario in enumerate(environment.scenarios)
        if (scenario.direction, scenario.window) == (direction, 1)
    )


@pytest.fixture(scope="module")
def episodes(environment):
    """Each recorded episode with what we return for its actions."""
    trace = np.load(HIGHWAY_DATA / "parity" / "fork_trace.npz")
    with gzip.open(HIGHWAY_DATA / "parity" / "fork_trace.json.gz") as file:
        about = json.load(file)["episodes"]
    assert len(about) == 10
    pairs = []
    for episode in about:
        theirs = trace["episode"] == episode["episode"]
        number = number_of(environment, 2 if "Lower" in episode["scenario"] else 1)
        observation, info = environment.reset(options={"scenario": number})
        seen, rewards, ended = [observation], [], False
        for action in trace["action"][theirs]:
            assert not ended
            observation, reward, terminated, truncated, info = environment.step(action)
            seen.append(observation)
            rewards.append(reward)
            ended = terminated or truncated
        expected = np.concatenate([trace["obs"][theirs], [episode["final_obs"]]])
        # At the first step the published simulator shows what was left of the last episode.
        expected[0, [1, 3]] = 0
        pairs.append(
            {
                **episode,
                "number": number,
                "ours": np.array(seen),
                "theirs": expected,
                "rewards": np.array(rewards),
                "their_rewards": trace["reward"][theirs],
                "ended": ended,
                "our_reason": info["reason"],
            }
        )
    return pairs


def on_a_marking(environment, episode):
    """Steps at which the centre of some vehicle lies exactly on a lane marking."""
    replay, number = environment.task.replay, episode["number"]
    first = int(replay.first_row[number])
    frames = np.asarray(replay.frames)[first : first + len(episode["ours"])]
    lanes = int(replay.around.lanes[number])
    markings = np.asarray(replay.around.boundaries)[number, 1:lanes]
    away = np.abs(frames[:, :, 1, None] - markings).min(-1)
    return ((away < 1e-4) & (frames[:, :, 6] > 0)).any(-1)


def test_egos_starts_goals_and_limits_are_the_same(environment, episodes):
    for episode in episodes:
        scenario = environment.scenarios[episode["number"]]
        # The published simulator gives vehicles numbers of its own; the place tells who it is.
        assert scenario.limit == episode["episode_length"]
        assert scenario.position == pytest.approx((episode["x0"], episode["y0"]), abs=1e-4)
        assert scenario.start_speed == pytest.approx(episode["v0"], abs=1e-4)
        goal = [episode[f"goal_{name}"] for name in ("x", "y", "length", "width", "theta")]
        assert scenario.goal == pytest.approx(goal, abs=1e-4)


def test_every_episode_ends_for_the_same_reason_at_the_same_step(episodes):
    for episode in episodes:
        assert episode["ended"]
        assert len(episode["ours"]) == episode["steps"] + 1
        assert episode["our_reason"] == episode["reason"].removeprefix("is_")
    assert {episode["our_reason"] for episode in episodes} == set(REASONS)


def test_rewards_are_the_same(episodes):
    for episode in episodes:
        np.testing.assert_array_equal(episode["rewards"], episode["their_rewards"])


def differing(environment, episode, features):
    """(step, feature) of all that differ by more than `CLOSE`."""
    far = np.abs(episode["ours"] - episode["theirs"])[:, features] > CLOSE
    return {(int(t), FEATURES[features][f]) for t, f in np.argwhere(far)}


def test_motion_neighbours_and_lanes_are_the_same_on_every_step(environment, episodes):
    odd = Counter()
    for episode in episodes:
        marked = on_a_marking(environment, episode)
        for step, feature in differing(environment, episode, slice(ROUTE)):
            assert marked[step], (episode["episode"], step, feature)
            odd[step] += 1
    # One frame of one carriageway, in which a vehicle changes lane.
    assert len(odd) <= 1


def test_the_route_is_the_same_where_it_changes_no_lane(environment, episodes):
    compared = 0
    for episode in episodes:
        around, number = environment.task.replay.around, episode["number"]
        if int(around.start_lane[number]) != int(around.goal_lane[number]):
            continue
        compared += 1
        assert differing(environment, episode, slice(ROUTE, None)) == set()
    assert compared == 5
