"""The step: motion, how episodes end, costs, and what must not depend on side or direction."""

import csv
import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_roads import DT, moving, road, task_of
from plain_geometry import box_distance, vehicle_box
from written_recordings import highd_tables, read_highd, write_three

from tacit.highway.driving import build_highway
from tacit.highway.driving_step import STRONGEST
from tacit.highway.observation import FEATURES, PLACES
from tacit.highway.recording import TRUCK
from tacit.precision import double_precision


@eqx.filter_jit
def begin(task, number):
    return task.start(number)


@eqx.filter_jit
def go_on(task, state, action):
    return task.step(state, action, jax.random.key(0))


def at(observation, name):
    return float(observation[FEATURES.index(name)])


def rollout(task, number, actions):
    """Start, then the steps up to the first that ends."""
    state, observation = begin(task, jnp.int32(NUMBERS.get(number, number)))
    steps = []
    for action in actions:
        steps.append(go_on(task, state, jnp.asarray(action, jnp.float32)))
        state = steps[-1].state
        if steps[-1].terminated | steps[-1].truncated:
            break
    return observation, steps


LONG = np.zeros((200, 2))
EGO = moving(1, 50, 1.75, 30)
BESIDE = [(60, 5.0, 31, 0.05), (20, 5.2, 25, 0), (75, 1.5, 28, -0.05), (10, 2, 33, 0)]
BESIDE += [(45, -1.9, 20, 0.1)]
SMALL = (4.0, 2.0)
SCENES = {
    "free": road(EGO, moving(2, 300, 5.25, 30)),
    "truck": road(EGO, moving(2, 150, 1.75, 0, kind=TRUCK, size=(12.0, 2.5))),
    "short road": road(EGO, moving(2, 300, 5.25, 30), end=200.0),
    "leader": road(EGO, moving(2, 180, 1.75, 15)),
    "thin": road(EGO, moving(2, 97, 1.75, 0, size=(1.0, 1.0))),
    "entering": road(EGO, moving(2, 62, 1.75, first=3, frames=97), moving(3, 400, 1.75)),
    "standing": road(EGO, moving(2, 130, 1.75, 0, size=SMALL)),
    "coming": road(EGO, moving(2, 130, 1.75, -20, size=SMALL)),
} | {
    # No lane is as wide as another: nothing in it is symmetric.
    name: road(
        moving(1, 40, sign * 0.9, 30, vd=sign * 0.3),
        *(moving(k, s, sign * d, vs, sign * vd) for k, (s, d, vs, vd) in enumerate(BESIDE, 2)),
        boundaries=boundaries,
    )
    for name, sign, boundaries in (
        ("plain", 1, (7.1, 3.4, 0.1, -3.7)),
        ("mirrored", -1, (3.7, -0.1, -3.4, -7.1)),
    )
}
RECORDED = {"recorded 1": 1, "recorded 3": 3, "recorded 2": 2, "recorded 4": 4}
"""Cars of a recording whose direction 1 is direction 2 turned by 180 degrees, 1 as 2 and 3 as 4."""
NUMBERS = {name: number for number, name in enumerate([*SCENES, *RECORDED])}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """All scenes in one task: programs are compiled once."""
    tables = highd_tables(vehicles=16, frames=80)
    one, two = read_highd(write_three(tmp_path_factory.mktemp("two ways"), tables), "03")
    # A picture of 420 m, whose end nobody has reached yet.
    ways = dataclasses.replace(one, start=-420.0), dataclasses.replace(two, end=420.0)
    recorded = [(ways[(ego + 1) % 2], ego) for ego in RECORDED.values()]
    return task_of(*((way, 1) for way in SCENES.values()), *recorded)


def test_a_step_is_the_exact_double_integrator(task):
    random = np.random.default_rng(0)
    actions = random.uniform(-0.6, 0.6, (40, 2)) * [1, 0.1]
    _, steps = rollout(task, "free", actions)
    assert len(steps) == 40
    accelerations = STRONGEST * actions
    place, velocity = np.array([50, 1.75]), np.array([30.0, 0])
    for acceleration, step in zip(accelerations, steps, strict=True):
        place = place + velocity * DT + acceleration * DT**2 / 2
        velocity = velocity + acceleration * DT
        np.testing.assert_allclose(step.state.position, place, atol=1e-3)
        np.testing.assert_allclose(step.state.velocity, velocity, atol=1e-4)
        np.testing.assert_allclose(step.observation[6:10], [*velocity, *acceleration], atol=1e-4)


@pytest.mark.parametrize(
    ("action", "acceleration"),
    [
        ((1, 0), (11.5, 0)),
        ((-1, 0), (-11.5, 0)),
        ((0.3, -0.2), (3.45, -2.3)),
        ((1, 1), (11.5 / math.sqrt(2), 11.5 / math.sqrt(2))),
        ((0.9, -0.8), (11.5 * 0.9 / math.hypot(0.9, 0.8), -11.5 * 0.8 / math.hypot(0.9, 0.8))),
        ((7, 0), (11.5, 0)),
        ((0, 0), (0, 0)),
    ],
)
def test_accelerations_are_cut_to_a_length_of_11_5(task, action, acceleration):
    _, (step,) = rollout(task, "free", [action])
    np.testing.assert_allclose(step.state.acceleration, acceleration, atol=1e-5)


def test_the_first_observation_shows_the_start(task):
    observation, _ = rollout(task, "free", [])
    shown = dict(zip(FEATURES, np.asarray(observation).tolist(), strict=True))
    assert shown["goal_distance_along"] == pytest.approx(297 - 2.25, abs=1e-3)
    assert shown["goal_distance_across"] == 0
    assert shown["remaining_steps"] == 99
    assert (shown["speed_along"], shown["speed_across"]) == (30, 0)
    for name in ("goal_advance_along", "goal_advance_across", "acceleration_along", "lane_offset"):
        assert shown[name] == 0
    assert shown["left_marking_distance"] == shown["right_marking_distance"] == 1.75
    assert (shown["left_edge_distance"], shown["right_edge_distance"]) == (5.25, 5.25)
    assert shown["route_distance_to_goal"] == pytest.approx(297 - 2.25, abs=1e-3)
    assert (shown["route_offset"], shown["on_route"]) == (0, 1)
    assert shown["route_-1000m_forward"] == -50
    assert shown["route_100m_forward"] == 100
    assert (shown["gap_ahead"], shown["approach_ahead"], shown["kind_ahead"]) == (100, 0, 0)


def test_the_goal_comes_nearer_by_what_was_driven(task):
    _, steps = rollout(task, "free", np.zeros((5, 2)))
    for count, step in enumerate(steps, start=1):
        assert at(step.observation, "goal_advance_along") == pytest.approx(3, abs=1e-3)
        assert at(step.observation, "remaining_steps") == 99 - count
        assert float(step.reward) == 0


def only_flag(step, name):
    flags = ("goal_reached", "time_out", "collision", "off_road")
    return [at(step.observation, flag) for flag in flags] == [flag == name for flag in flags]


def test_at_the_goal_the_episode_terminates_with_50(task):
    _, steps = rollout(task, "free", LONG)
    last = steps[-1]
    # 297 m at 3 m a step, less the 2.25 m from the goal's edge to its centre: not yet at step 98.
    assert len(steps) == 99
    assert at(last.observation, "goal_reached")
    # Time is out in the same step: both count, and the goal terminates.
    assert at(last.observation, "time_out")
    assert float(last.reward) == 50 - 10
    assert (bool(last.terminated), bool(last.truncated)) == (True, False)


def test_reaching_the_goal_early_pays_50(task):
    _, steps = rollout(task, "free", np.tile([0.1, 0], (200, 1)))
    assert only_flag(steps[-1], "goal_reached")
    assert float(steps[-1].reward) == 50
    assert bool(steps[-1].terminated)
    assert all(float(step.reward) == 0 and not step.terminated for step in steps[:-1])


def test_a_collision_terminates_with_minus_50_where_boxes_first_meet(task):
    _, steps = rollout(task, "truck", LONG)
    assert only_flag(steps[-1], "collision")
    assert float(steps[-1].reward) == -50
    assert bool(steps[-1].terminated)
    # The front bumper reaches the standing truck 6 m before its centre.
    needed = (150 - 6 - 50 - 4.508 / 2) / 3
    assert len(steps) == math.ceil(needed)


def test_a_fast_ego_does_not_jump_over_others(task):
    """At 100 m/s a step is 10 m long; what was covered in between counts."""
    state, _ = begin(task, jnp.int32(NUMBERS["thin"]))
    state = state._replace(position=jnp.float32([92, 1.75]), velocity=jnp.float32([100, 0]))
    step = go_on(task, state, jnp.zeros(2, jnp.float32))
    assert at(step.observation, "collision")


def test_leaving_the_road_sideways_terminates_with_minus_20(task):
    for side in (1, -1):
        _, steps = rollout(task, "free", np.tile([0, 0.3 * side], (200, 1)))
        last = steps[-1]
        assert only_flag(last, "off_road")
        assert float(last.reward) == -20
        assert bool(last.terminated)
        # A corner of the turned box has passed the edge; one step earlier none had.
        for step, outside in ((last, True), (steps[-2], False)):
            s, d = np.asarray(step.state.position, float)
            box = vehicle_box(s, d, *np.asarray(step.state.velocity, float), 4.508, 1.61)
            reach = box[2] * abs(box[5]) + box[3] * abs(box[4])
            assert (abs(d - 1.75) + reach > 5.25) == outside


def test_when_time_is_out_the_episode_is_truncated_with_minus_10(task):
    _, steps = rollout(task, "free", np.tile([-0.05, 0], (200, 1)))
    assert len(steps) == 99
    assert only_flag(steps[-1], "time_out")
    assert float(steps[-1].reward) == -10
    assert (bool(steps[-1].terminated), bool(steps[-1].truncated)) == (False, True)


@pytest.mark.parametrize("action", [(0.2, 0), (-1, 0)])
def test_beyond_either_end_of_the_road_time_is_out_and_nobody_is_beside(task, action):
    _, steps = rollout(task, "short road", np.tile(action, (200, 1)))
    last = steps[-1]
    assert only_flag(last, "time_out")
    assert bool(last.truncated)
    place = float(last.state.position[0])
    assert place > 200 if action[0] > 0 else place < 0
    for name in PLACES:
        assert at(last.observation, f"gap_{name}") == 100


def test_costs_are_those_of_the_state_after_the_step(task):
    first, steps = rollout(task, "leader", np.tile([0.5, 0], (200, 1)))
    assert at(first, "gap_ahead") == 100
    for step in steps:
        gap, speed = at(step.observation, "gap_ahead"), float(jnp.linalg.norm(step.state.velocity))
        assert step.costs.tolist() == [gap < 20, speed > 40]
    costs = np.array([step.costs for step in steps])
    assert costs.any(axis=0).all()
    assert not costs.all(axis=0).any()


def test_one_constraint_has_one_cost(task):
    observation, _ = rollout(task, "leader", [])
    close = np.asarray(observation).copy()
    close[FEATURES.index("gap_ahead")] = 19.9
    fast = np.asarray(observation).copy()
    fast[[FEATURES.index("speed_along"), FEATURES.index("speed_across")]] = 39, 9
    for rules, expected in (
        (("distance",), [[0], [1], [0]]),
        (("velocity",), [[0], [0], [1]]),
        (("distance", "velocity"), [[0, 0], [1, 0], [0, 1]]),
    ):
        ruled = dataclasses.replace(task, constraints=rules)
        assert ruled.constraints == rules
        seen = jnp.asarray(np.stack([observation, close, fast]))
        np.testing.assert_array_equal(ruled.costs(seen), expected)


LEFT_RIGHT = (
    ("left_marking_distance", "right_marking_distance"),
    ("left_edge_distance", "right_edge_distance"),
    *(
        (f"{what}_left_{where}", f"{what}_right_{where}")
        for what in ("approach", "gap", "kind")
        for where in ("behind", "ahead")
    ),
)
TURNED = ("across", "_left", "_angle", "_offset")
"""Endings of features that change their sign on a mirrored road; the goal's distance has one."""


def mirrored(observation):
    """What the same driver sees on the mirrored road."""
    seen = dict(zip(FEATURES, np.asarray(observation).tolist(), strict=True))
    other = {name: -value if name.endswith(TURNED) else value for name, value in seen.items()}
    other["goal_advance_across"] = seen["goal_advance_across"]
    for left, right in LEFT_RIGHT:
        other[left], other[right] = seen[right], seen[left]
    return np.array([other[name] for name in FEATURES])


def test_a_mirrored_road_gives_mirrored_features(task):
    actions = np.random.default_rng(2).uniform(-0.3, 0.3, (30, 2)) * [1, 0.3]
    one_start, one = rollout(task, "plain", actions)
    other_start, other = rollout(task, "mirrored", actions * [1, -1])
    assert len(one) == len(other) > 10
    pairs = [(a.observation, b.observation) for a, b in zip(one, other, strict=True)]
    pairs.append((one_start, other_start))
    kinds = np.zeros(6, bool)
    for seen, turned in pairs:
        np.testing.assert_allclose(mirrored(seen), turned, atol=2e-3)
        kinds |= np.array([at(seen, f"kind_{place}") > 0 for place in PLACES])
    assert kinds.sum() >= 4


@pytest.mark.parametrize(("one", "other"), [(1, 2), (3, 4)])
def test_both_directions_of_a_recording_are_driven_alike(task, one, other):
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (30, 2)) * [1, 0.1]
    one_start, one = rollout(task, f"recorded {one}", actions)
    other_start, other = rollout(task, f"recorded {other}", actions)
    np.testing.assert_allclose(one_start, other_start, atol=2e-3)
    assert len(one) == len(other) > 10
    for step, same in zip(one, other, strict=True):
        np.testing.assert_allclose(step.observation, same.observation, atol=2e-3)
        np.testing.assert_array_equal(step.costs, same.costs)


def test_gaps_and_costs_are_those_of_the_files(recorded_traffic):
    """Recomputed from the rows of the CSV files, for drivers that go straight on."""
    options = {"constraint": "both", "split": "all", "split_by": "recording", "egos": "all"}
    options |= {"gap": 60.0, "speed": 40.0, "geometry": "centre", "window": 12.0, "seed": 0}
    highway = build_highway(
        "test", {**options, "drop_infeasible": False, "recordings": str(recorded_traffic)}
    )
    files = {name: read_files(recorded_traffic, name) for name in ("01", "02")}
    led, violated = 0, np.zeros(2, int)
    for number, scenario in enumerate(highway.scenarios[::3]):
        frames, markings = files[scenario.recording]
        _, steps = rollout(highway.task, 3 * number, np.tile([0.3, 0], (60, 1)))
        sign = 1 if scenario.direction == 2 else -1
        for count, step in list(enumerate(steps, start=1))[::7]:
            # Frames are counted from 1 in the files.
            rows = frames[(scenario.window - 1) * 300 + count + 1]
            s, d = np.asarray(step.state.position, float)
            gap = gap_of(rows, scenario, sign, markings[scenario.direction], s, d, step)
            assert at(step.observation, "gap_ahead") == pytest.approx(gap, abs=0.02)
            speed = math.hypot(*np.asarray(step.state.velocity, float))
            if min(abs(gap - 60), abs(speed - 40)) > 0.05:
                assert step.costs.tolist() == [gap < 60, speed > 40]
                violated += np.array([gap < 60, speed > 40])
            led += gap < 100
    assert led > 30
    assert (violated > 5).all()


def read_files(folder, name):
    """Rows by frame, and the y of the markings of both directions."""
    frames = {}
    with (folder / f"{name}_tracks.csv").open() as file:
        for row in csv.DictReader(file):
            values = {key: float(value) for key, value in row.items()}
            frames.setdefault(int(values["frame"]), []).append(values)
    with (folder / f"{name}_recordingMeta.csv").open() as file:
        about = next(csv.DictReader(file))
    return frames, {
        direction: [float(y) for y in about[f"{side}LaneMarkings"].split(";")]
        for direction, side in ((1, "upper"), (2, "lower"))
    }


def gap_of(rows, scenario, sign, markings, s, d, step):
    """The gap to the nearest vehicle ahead on the same lane, in the picture's own axes."""
    x, y = sign * s, -sign * d
    vx, vy = np.asarray(step.state.velocity, float) * [sign, -sign]
    ego, best = vehicle_box(x, y, vx, vy, 4.508, 1.61), 100.0
    lane = np.searchsorted(markings, y)
    for row in rows:
        other_x, other_y = row["x"] + row["width"] / 2, row["y"] + row["height"] / 2
        same_road = markings[0] < other_y < markings[-1]
        if row["id"] == scenario.ego or not same_road or np.searchsorted(markings, other_y) != lane:
            continue
        if sign * (other_x - x) < 0 or math.hypot(other_x - x, other_y - y) > 100:
            continue
        other = vehicle_box(
            other_x, other_y, row["xVelocity"], row["yVelocity"], row["width"], row["height"]
        )
        best = min(best, box_distance(ego, other))
    return best


def test_the_published_simulator_foresees_one_step_of_the_others(task):
    scenes = [(SCENES[name], 1) for name in ("standing", "coming")]
    legacy = task_of(*scenes, geometry="legacy")
    between = 80 - 2 - 4.508 / 2
    ends = [len(rollout(task, name, LONG)[1]) for name in ("standing", "coming")]
    assert ends == [math.ceil(between / 3), math.ceil(between / 5)]
    ends = [len(rollout(legacy, number, LONG)[1]) for number in (0, 1)]
    assert ends == [math.ceil(between / 3), math.ceil((between - 2) / 5)]


def test_a_vehicle_that_enters_in_a_step_collides_where_it_is(task):
    _, steps = rollout(task, "entering", LONG)
    assert len(steps) == 3
    assert at(steps[-1].observation, "collision")


def test_after_its_last_frame_a_scenario_keeps_that_frame(task):
    state, _ = begin(task, jnp.int32(NUMBERS["short road"]))
    last = int(task.replay.last_row[NUMBERS["short road"]])
    state = state._replace(step=jnp.int32(5000))
    np.testing.assert_array_equal(task.frame(state), task.replay.frames[last])


def test_starts_are_drawn_from_all_scenarios(task):
    keys = jax.random.split(jax.random.key(0), 1200)
    drawn = jax.jit(jax.vmap(lambda key: task.reset(key)[0].scenario))(keys)
    counts = np.bincount(drawn, minlength=len(NUMBERS))
    assert len(counts) == len(NUMBERS)
    assert (counts > 50).all()


def test_types_do_not_depend_on_jaxs_precision(task):
    with double_precision():
        state, observation = jax.eval_shape(task.start, jnp.int32(0))
        step = jax.eval_shape(
            task.step, state, jax.ShapeDtypeStruct((2,), np.float32), jax.random.key(0)
        )
    for one, other in zip(step.state, state, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert observation.dtype == step.observation.dtype == step.reward.dtype == np.float32
    assert step.costs.dtype == np.float32
