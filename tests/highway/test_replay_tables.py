"""The tables: who is where in each frame, the route, and joining scenarios of different sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_roads import moving, road, scene, task_of

from tacit.highway.neighbours import lane_of
from tacit.highway.recording import TRUCK
from tacit.highway.replay import piece_of, surroundings_of, table_of


def cast_of(carriageway, ego, geometry="centre"):
    casts = scene(carriageway, geometry)[0]
    return next(cast for cast in casts if cast.scenario.ego == ego)


def test_every_vehicle_is_in_the_table_where_and_when_it_was_seen():
    random = np.random.default_rng(1)
    others = [
        moving(
            number,
            random.uniform(100, 900),
            random.uniform(-3, 6),
            random.uniform(-30, 30),
            random.uniform(-0.1, 0.1),
            first=int(first),
            frames=int(random.integers(2, 101 - first)),
            kind=int(random.choice([1, TRUCK])),
            size=(float(random.uniform(3, 15)), 2.0),
        )
        for number, first in enumerate(random.integers(0, 90, 30), start=2)
    ]
    cast = cast_of(road(moving(1, 20, 1.75), *others), 1)
    table = table_of(cast)
    assert len(table) == min(cast.scenario.limit + 2, 100)
    for frame, rows in enumerate(table):
        seen = [
            (*(field[frame - t.first] for field in t[5:]), t.length, t.width, t.kind)
            for t in others
            if t.first <= frame <= t.last
        ]
        kept = rows[rows[:, 6] > 0]
        np.testing.assert_allclose(sorted(map(tuple, kept)), sorted(seen), rtol=1e-6)
        assert not rows[rows[:, 6] == 0].any()


def test_between_two_vehicles_a_slot_is_empty_for_a_frame():
    """Else a sweep from one frame to the next would join two different vehicles."""
    relay = [moving(number, 100, 1.75, first=10 * number, frames=10) for number in range(2, 9)]
    table = table_of(cast_of(road(moving(1, 20, 1.75), *relay), 1))
    assert table.shape[1] == 2
    there = table[..., 6] > 0
    for slot in range(2):
        begins = np.flatnonzero(there[1:, slot] & there[:-1, slot])
        assert (np.abs(np.diff(table[..., slot, 0], axis=0)[begins]) < 4).all()


def test_the_route_changes_lane_from_where_the_ego_starts():
    way = road(moving(1, 20, 5.25, vd=-0.7), moving(2, 90, 1.75))
    around = surroundings_of(way, cast_of(way, 1), "centre")
    assert (int(around.start_lane), int(around.goal_lane), int(around.lanes)) == (0, 2, 3)
    np.testing.assert_allclose(around.route.s, [0, 20, 120, 1000])
    np.testing.assert_allclose(around.route.d, [5.25, 5.25, -1.75, -1.75])


def test_a_near_goal_is_reached_on_its_own_lane():
    way = road(moving(1, 20, 4.5, vs=6, vd=-0.3), moving(2, 190, 1.75, vs=6))
    around = surroundings_of(way, cast_of(way, 1), "centre")
    np.testing.assert_allclose(around.route.s, [0, 20, 20 + 6 * 9.9, 1000], rtol=1e-5)


@pytest.mark.parametrize(("vd", "end"), [(-0.3, 452.0), (0.0, 446.0)])
def test_routes_of_the_published_simulator_change_lane_in_mid_road(vd, end):
    way = road(moving(1, 20, 4.5, vd=vd), moving(2, 190, 1.75), start=-40.0, end=452.0)
    around = surroundings_of(way, cast_of(way, 1, "legacy"), "legacy")
    np.testing.assert_allclose(around.route.s, [-40, 200, 213.8, end], rtol=1e-5)
    assert float(around.end) == 452


def test_scenarios_of_different_roads_share_one_table():
    wide = road(moving(1, 20, 5.25), moving(2, 90, 5.25), moving(3, 60, 1.75))
    narrow = road(moving(5, 30, 1.75, frames=60), moving(6, 80, 1.75), boundaries=(3.5, 0, -3.5))
    replay = task_of((wide, 1), (narrow, 5)).replay
    assert len(replay) == 2
    pieces = [
        piece_of(wide, cast_of(wide, 1), "centre"),
        piece_of(narrow, cast_of(narrow, 5), "centre"),
    ]
    for number, piece in enumerate(pieces):
        first, last = int(replay.first_row[number]), int(replay.last_row[number])
        table = np.asarray(replay.frames[first : last + 1])
        np.testing.assert_array_equal(table[:, : piece.table.shape[1]], piece.table)
        assert not table[:, piece.table.shape[1] :].any()
        around = jax.tree.map(lambda field, k=number: field[k], replay.around)
        known = np.asarray(around.boundaries)[: int(around.lanes) + 1]
        np.testing.assert_array_equal(known, piece.around.boundaries)
    assert (np.asarray(replay.around.boundaries)[1, 3:] < -1e6).all()


def test_the_lane_of_a_point_counts_from_the_left():
    boundaries, places = np.array([7.0, 3.5, 0.0]), np.array([9, 5, 3.5, 3.4, 0, -4])
    lanes = lane_of(jnp.asarray(boundaries), jnp.int32(2), jnp.asarray(places))
    assert np.asarray(lanes).tolist() == [0, 0, 0, 1, 1, 1]
