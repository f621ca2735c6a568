"""Scenarios: where recordings are cut, who may be the ego, and what is written down of it."""

import random

import numpy as np
import pytest
from made_roads import moving, road, scene

from tacit.highway.recording import TRUCK
from tacit.highway.scenarios import (
    Window,
    cast_window,
    choose,
    published_choice,
    windows,
)


def egos_of(carriageway, **options):
    return [cast.scenario.ego for cast in scene(carriageway, **options)[0]]


def test_windows_follow_each_other_and_the_last_one_may_be_shorter():
    way = road(frames=250)
    assert list(windows(way, 10.0, "centre")) == [(1, 0, 99), (2, 100, 199), (3, 200, 249)]


def test_the_published_simulator_leaves_one_frame_out_between_two_windows():
    # In its own count from 1, window k starts at frame (k - 1) * length + k.
    way = road(frames=350)
    assert list(windows(way, 10.0, "legacy")) == [
        (1, 0, 99),
        (2, 101, 200),
        (3, 202, 301),
        (4, 303, 349),
    ]


def test_windows_shorter_than_two_frames_are_two_frames_long():
    assert list(windows(road(frames=5), 0.01, "centre")) == [(1, 0, 1), (2, 2, 3), (3, 4, 4)]


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 13, 21, 64, 100, 1000])
def test_the_published_choice_is_that_of_pythons_generator_seeded_with_0(number):
    assert published_choice(number) == random.Random(0).choice(range(number))


def test_the_scenario_says_everything_about_the_drive():
    others = (moving(7, 60, 1.5, 25), moving(9, 10, -1.75, 20, kind=TRUCK, size=(12.0, 2.5)))
    way = road(moving(4, 20, 1.75, 30, vd=-0.1), *others)
    cast = next(cast for cast in scene(way)[0] if cast.scenario.ego == 4)
    scenario = cast.scenario
    assert (scenario.recording, scenario.direction, scenario.window) == ("hand", 2, 1)
    assert scenario.position == pytest.approx((20, 1.75))
    assert scenario.velocity == pytest.approx((30, -0.1))
    assert scenario.start_speed == pytest.approx(np.hypot(30, 0.1))
    assert scenario.goal == pytest.approx((20 + 297, 1.75 - 0.99, 4.5, 1.8, -0.1 / 30), abs=1e-4)
    assert scenario.dt == 0.1
    # 99 steps and 1 s of grace, but nobody else is seen after step 99.
    assert scenario.limit == 99
    assert [track.vehicle for track in cast.others] == [7, 9]
    assert cast.path.shape == (100, 2)
    np.testing.assert_allclose(cast.path[-1], scenario.goal[:2])


def test_the_limit_is_a_second_more_than_the_recorded_drive_took():
    way = road(moving(1, 20, 1.75, frames=50), moving(2, 80, 1.75))
    assert next(cast for cast in scene(way)[0] if cast.scenario.ego == 1).scenario.limit == 59


def test_a_drive_is_cut_at_the_end_of_the_window():
    way = road(moving(1, 20, 1.75, frames=200), moving(2, 80, 1.75, frames=200), frames=200)
    casts, _ = cast_window(way, Window(2, 50, 99), "centre", "all", 0)
    assert casts[0].scenario.position[0] == pytest.approx(20 + 150)
    assert casts[0].scenario.goal.s == pytest.approx(20 + 30 * 9.9)
    assert casts[0].scenario.limit == 49
    assert len(casts[0].path) == 50


def test_only_cars_in_the_first_frame_become_egos():
    late = moving(3, 200, 1.75, first=1, frames=99)
    truck = moving(2, 100, 1.75, kind=TRUCK)
    assert egos_of(road(moving(1, 20, 1.75), truck, late)) == [1]
    assert scene(road(truck, late)) == ([], "no car in the first frame")


@pytest.mark.parametrize(
    "unfit",
    [
        moving(1, 20, 1.75, frames=20),  # 1.9 s
        moving(1, 20, 1.75, vs=0.4),  # moves on by less than its length
        moving(1, 20, 1.75, vs=-20.0),  # the goal would lie behind
        moving(1, 20, 6.4),  # on the left edge
        moving(1, 20, -3.0),  # on the right edge
        moving(1, -1, 1.75),  # before the road begins
        moving(1, 77, 1.9),  # its box would overlap another one
    ],
    ids=["brief", "standing", "backwards", "left", "right", "before", "overlapping"],
)
def test_who_does_not_start_well_is_no_ego(unfit):
    way = road(unfit, moving(2, 80, 1.75, kind=TRUCK))
    why = "no car that lasts, moves on and starts on a free piece of road"
    assert scene(way) == ([], why)


def test_the_published_simulator_takes_any_car_in_the_first_frame():
    unfit = moving(5, 20, 6.4, frames=20)
    way = road(unfit, moving(2, 80, 1.75, kind=TRUCK))
    assert egos_of(way, geometry="legacy", egos="one") == [5]


def test_a_lonely_car_has_no_scenario():
    assert scene(road(moving(1, 20, 1.75))) == ([], "the ego is alone")


def test_vehicles_of_a_single_frame_take_no_part():
    way = road(moving(1, 20, 1.75), moving(2, 80, 1.75, frames=1), moving(3, 50, -1.75))
    cast = next(cast for cast in scene(way)[0] if cast.scenario.ego == 1)
    assert [track.vehicle for track in cast.others] == [3]


def test_a_car_that_was_lost_from_sight_does_not_meet_itself():
    lost = moving(1, 20, 1.75, frames=40), moving(1, 170, 1.75, first=50, frames=50)
    way = road(*lost, moving(2, 60, -1.75))
    cast = next(cast for cast in scene(way)[0] if cast.scenario.ego == 1)
    assert [track.vehicle for track in cast.others] == [2]
    assert scene(road(*lost)) == ([], "the ego is alone")


def test_one_ego_is_drawn_for_each_window_by_seed_and_place():
    cars = [moving(number, 20.0 * number, 1.75, frames=200) for number in range(1, 21)]
    way = road(*cars, frames=200)
    assert egos_of(way) == list(range(1, 21))
    first, last = Window(1, 0, 99), Window(2, 100, 199)

    def drawn(window, seed, geometry="centre"):
        return choose(cars, way, window, geometry, seed).vehicle

    assert drawn(first, 0) == drawn(first, 0)
    assert len({drawn(first, seed) for seed in range(20)}) > 5
    assert any(drawn(first, seed) != drawn(last, seed) for seed in range(5))
    published = cars[random.Random(0).choice(range(20))].vehicle
    assert {drawn(window, seed, "legacy") for window in (first, last) for seed in (0, 1)} == {
        published
    }
    assert egos_of(way, egos="one") == [drawn(Window(1, 0, 199), 0)]
