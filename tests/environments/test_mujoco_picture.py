"""A picture shows where the robot is and where it must not be, on any machine."""

import hashlib
import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from tacit.environments.mujoco_picture import (
    HEIGHT,
    LIMIT,
    RULER,
    SCENE,
    WIDTH,
    Picture,
    metres,
    ticks_around,
)
from tacit.environments.mujoco_rules import load_model
from tacit.environments.tabular_environment import AGENT, FORBIDDEN
from tacit.errors import ArgumentError

TASKS = {
    "half_cheetah": (-3.0, "below"),
    "ant": (-3.0, "below"),
    "inverted_pendulum": (-0.015, "below"),
    "walker2d": (-3.0, "below"),
    "swimmer": (0.5, "above"),
}
MODELS = {name: load_model(f"{name}.xml") for name in TASKS}

FOOT = (SCENE[0] + 1, SCENE[0] + 12)

every_task = pytest.mark.parametrize("name", TASKS)


def pose(name, x):
    data = mujoco.MjData(MODELS[name])
    data.qpos[0] = x
    return data


def picture_at(name, x, limit=None, forbidden=None):
    """The picture of the robot at `x`, and where its limit should be, in pixels."""
    limit = TASKS[name][0] if limit is None else limit
    picture = Picture(MODELS[name], limit, forbidden or TASKS[name][1])
    pixels = picture.draw(pose(name, x))
    return pixels, float(picture.columns(limit, picture.span))


def red_columns(pixels, rows):
    """Columns with something red in `rows`, which are counted from below."""
    strip = pixels[HEIGHT - rows[1] : HEIGHT - rows[0]].astype(int)
    return np.flatnonzero((strip[:, :, 0] - strip[:, :, 2] > 20).any(axis=0))


def columns_of(pixels, colour):
    return np.flatnonzero((pixels == colour).all(axis=2).any(axis=0))


@every_task
def test_a_picture_has_even_sides_and_whole_colours(name):
    pixels, _ = picture_at(name, 0.0)
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    assert pixels.dtype == np.uint8
    assert HEIGHT % 2 == WIDTH % 2 == 0


@every_task
def test_the_same_pose_gives_the_same_picture(name):
    data = pose(name, TASKS[name][0] * 0.8)
    picture = Picture(MODELS[name], *TASKS[name])
    first = picture.draw(data)
    kept = first.copy()
    other = picture.draw(pose(name, 0.3))
    again = Picture(MODELS[name], *TASKS[name]).draw(data)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, picture.draw(data))
    assert (first != other).any()


@every_task
def test_drawing_changes_nothing_in_the_data(name):
    data = pose(name, 0.1)
    size = mujoco.mj_stateSize(MODELS[name], mujoco.mjtState.mjSTATE_INTEGRATION)
    states = np.empty((2, size))
    positions = data.geom_xpos.copy()
    for state in states:
        mujoco.mj_getState(MODELS[name], data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        Picture(MODELS[name], *TASKS[name]).draw(data)
    np.testing.assert_array_equal(*states)
    np.testing.assert_array_equal(data.geom_xpos, positions)


@every_task
@pytest.mark.parametrize("forbidden", ["below", "above"])
def test_red_is_the_forbidden_side_and_nothing_else(name, forbidden):
    limit, x = 0.3, 0.0
    pixels, edge = picture_at(name, x, limit, forbidden)
    red = red_columns(pixels, FOOT)
    expected = np.arange(WIDTH)
    expected = expected[expected < edge] if forbidden == "below" else expected[expected > edge]
    assert abs(red.min() - expected.min()) <= 3
    assert abs(red.max() - expected.max()) <= 3
    # Only lines of the grid and a shadow interrupt it.
    assert len(red) > 0.9 * len(expected) > 50


@every_task
def test_the_red_side_moves_with_the_limit(name):
    edges = []
    for limit in (-0.4, -0.2, 0.2, 0.4):
        picture = Picture(MODELS[name], limit, "below")
        pixels = picture.draw(pose(name, 0.0))
        edges.append(red_columns(pixels, FOOT).max())
        # The picture follows by half, so the edge moves by the other half.
        assert edges[-1] == pytest.approx(WIDTH / 2 * (1 + limit / picture.span), abs=3)
    assert edges == sorted(set(edges))


@every_task
def test_the_ruler_shows_the_same_limit(name):
    limit, forbidden = TASKS[name]
    picture = Picture(MODELS[name], limit, forbidden)
    red = red_columns(picture.draw(pose(name, limit)), (RULER[0] + 8, RULER[0] + 10))
    edge = float(picture.columns(limit, picture.ruler_span))
    assert abs((red.max() if forbidden == "below" else red.min()) - edge) <= 10


def test_only_the_pendulum_needs_a_magnified_ruler():
    pictures = {name: Picture(MODELS[name], *TASKS[name]) for name in TASKS}
    magnified = {name for name, each in pictures.items() if each.ruler_span < each.span}
    assert magnified == {"inverted_pendulum"}
    distance = np.diff(pictures["inverted_pendulum"].columns([-0.015, 0.0], 0.15))
    assert distance > 50


@every_task
def test_the_robot_moves_with_x_towards_the_limit_and_past_it(name):
    limit, forbidden = TASKS[name]
    sign = -1 if forbidden == "below" else 1
    step = 0.2
    places = []
    for beyond in (-2 * step, -step, step, 2 * step):
        pixels, edge = picture_at(name, limit + sign * beyond)
        blue = columns_of(pixels, AGENT)
        places.append((blue.min() + blue.max()) / 2 - edge)
    scale = WIDTH / Picture(MODELS[name], limit, forbidden).span
    moved = sign * np.diff(places) / scale
    np.testing.assert_allclose(moved, [step, 2 * step, step], atol=0.03)


@every_task
def test_x_is_the_first_coordinate_of_the_robot(name):
    picture = Picture(MODELS[name], *TASKS[name])
    picture.draw(pose(name, 0.123))
    assert picture.robot.x == pytest.approx(0.123)


@every_task
def test_the_words_turn_red_beyond_the_limit(name):
    limit, forbidden = TASKS[name]
    sign = -1 if forbidden == "below" else 1
    inside, _ = picture_at(name, limit - sign * 0.01)
    outside, _ = picture_at(name, limit + sign * 0.01)
    above = slice(0, HEIGHT - SCENE[1])
    assert len(columns_of(inside[above], LIMIT)) == 0
    assert len(columns_of(outside[above], LIMIT)) > 20
    on_the_limit, _ = picture_at(name, limit)
    assert len(columns_of(on_the_limit[above], LIMIT)) == 0


@every_task
def test_far_away_there_is_no_red_or_only_red(name):
    for x, share in ((30.0, 0), (-30.0, WIDTH)):
        pixels, _ = picture_at(name, x, -3.0, "below")
        red = red_columns(pixels, FOOT)
        assert abs(len(red) - share) <= 0.1 * share


@every_task
def test_robot_and_limit_are_both_visible_when_near(name):
    limit, _ = TASKS[name]
    for distance in (-0.6, 0.0, 0.6):
        pixels, edge = picture_at(name, limit + distance)
        blue = columns_of(pixels, AGENT)
        assert 0 < blue.min() < blue.max() < WIDTH - 1
        assert 0 < edge < WIDTH
        assert len(columns_of(pixels, FORBIDDEN)) > 20


def test_a_robot_that_flies_off_stays_inside_the_scene():
    data = pose("ant", 0.0)
    data.qpos[2] = 2.2
    picture = Picture(MODELS["ant"], -3.0, "below")
    pixels = picture.draw(data)
    data.qpos[2] = 2.3
    outside = np.r_[0 : HEIGHT - SCENE[1], HEIGHT - SCENE[0] + 1 : HEIGHT]
    np.testing.assert_array_equal(pixels[outside], picture.draw(data)[outside])


def test_wrong_arguments_are_named():
    with pytest.raises(ArgumentError, match="forbidden must be 'below' or 'above', not 'left'"):
        Picture(MODELS["ant"], 0.0, "left")
    with pytest.raises(ArgumentError, match="limit must be a finite number of metres, not nan"):
        Picture(MODELS["ant"], float("nan"), "below")


def test_a_limit_at_zero_is_fine():
    picture = Picture(MODELS["inverted_pendulum"], 0.0, "above")
    assert picture.draw(pose("inverted_pendulum", 0.1)).any()


def test_all_shapes_have_their_outline():
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><joint type="slide" axis="1 0 0"/>
        <geom type="sphere" size="0.1" pos="1 0 0"/><geom type="box" size="0.1 0.2 0.3"/>
        <geom type="cylinder" size="0.1 0.4" euler="0 90 0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" euler="0 90 0"/>
        <geom type="capsule" size="0.1 0.4"/></body></worldbody></mujoco>"""
    )
    picture = Picture(model, 0.0, "below")
    sizes = np.ptp(picture.robot.outlines(), axis=1)
    expected = [(0.2, 0.2), (0.2, 0.6), (0.8, 0.2), (0.6, 0.2), (0.2, 1.0)]
    np.testing.assert_allclose(sizes, expected, atol=1e-9)
    assert picture.draw(mujoco.MjData(model)).shape == (HEIGHT, WIDTH, 3)


def test_lengths_are_written_with_a_unit_and_never_as_minus_zero():
    assert metres(-3.0) == "\N{MINUS SIGN}3 m"
    assert metres(0.06 + 1e-16) == "0.06 m"
    assert metres(-0.001, "z.2f") == "0.00 m"


@pytest.mark.parametrize(("span", "step"), [(4.0, 0.5), (4.1, 1), (7.1, 1), (9.3, 2), (0.15, 0.02)])
def test_ticks_are_round_numbers(span, step):
    ticks = ticks_around(0.3 * step, span)
    np.testing.assert_allclose(np.diff(ticks), step)
    np.testing.assert_allclose(ticks / step, np.rint(ticks / step), atol=1e-9)
    assert ticks.min() > 0.3 * step - span
    assert ticks.max() < 0.3 * step + span


def test_a_process_without_display_and_settings_draws_the_same_picture():
    script = (
        "import sys, mujoco, hashlib\n"
        "from tacit.environments.mujoco_rules import load_model\n"
        "from tacit.environments.mujoco_picture import Picture\n"
        "model = load_model('walker2d.xml')\n"
        "data = mujoco.MjData(model)\n"
        "data.qpos[0] = -2.5\n"
        "pixels = Picture(model, -3.0, 'below').draw(data)\n"
        "sys.stdout.write(hashlib.sha256(pixels.tobytes()).hexdigest())\n"
    )
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM", "MPLBACKEND")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    pixels, _ = picture_at("walker2d", -2.5)
    assert result.stdout == hashlib.sha256(pixels.tobytes()).hexdigest()
