"""Pictures of the road: the ego in blue, others in red, and what is written above."""

import io

import jax.numpy as jnp
import numpy as np
import pytest
from made_roads import moving, road, task_of
from matplotlib.colors import to_rgb
from PIL import Image

from tacit.highway import picture
from tacit.highway.highway_environment import start_scenario
from tacit.highway.observation import FEATURES
from tacit.highway.picture import BROKEN, EGO, GOAL, OTHERS, animation, draw

SHAPE = (240, 1200, 3)


@pytest.fixture(scope="module")
def task():
    beside = [moving(2, 80, 1.75), moving(3, 30, 5.25), moving(4, 400, 1.75)]
    return task_of((road(moving(1, 50, 1.75, frames=30), *beside), 1))


@pytest.fixture(scope="module")
def start(task):
    state, observation = start_scenario(task, jnp.int32(0))
    return state, np.array(observation)


def seen(drawn, colour):
    """Where a picture has this colour."""
    wanted = np.round(255 * np.array(to_rgb(colour)))
    return np.argwhere((np.abs(drawn.astype(int) - wanted) <= 2).all(-1))


def test_vehicles_and_the_goal_are_where_they_should_be(task, start):
    drawn = draw(task, *start)
    assert (drawn.shape, drawn.dtype) == (SHAPE, np.uint8)
    ego, others, goal = (seen(drawn, colour) for colour in (EGO, OTHERS, GOAL))
    assert len(ego) > 100
    assert len(others) > 200
    assert len(goal) > 50
    # The leader is on the right of the ego, the other one behind it and further up.
    row, column = ego.mean(0)
    ahead, behind = (others[others[:, 1] > column], others[others[:, 1] < column])
    assert abs(ahead[:, 0].mean() - row) < 3
    assert behind[:, 0].mean() < row - 10
    assert goal[:, 1].min() > column


def test_what_is_far_away_is_not_drawn(task, start):
    state, observation = start
    alone = state._replace(position=jnp.float32([800.0, 1.75]))
    drawn = draw(task, alone, observation)
    assert len(seen(drawn, OTHERS)) == 0
    assert len(seen(drawn, EGO)) > 100


def test_a_broken_limit_is_written_in_red(task, start):
    state, observation = start
    plain = len(seen(draw(task, state, observation), BROKEN))
    assert plain == 0
    fast = observation.copy()
    fast[FEATURES.index("speed_along")] = 41
    assert len(seen(draw(task, state, fast), BROKEN)) > 50
    close = observation.copy()
    close[FEATURES.index("gap_ahead")] = 5
    assert len(seen(draw(task, state, close), BROKEN)) > 50


def texts_of(monkeypatch, task, state, observation):
    written = []

    class Remembering(picture.Figure):
        def text(self, x, y, s, **style):
            written.append(s)
            return super().text(x, y, s, **style)

    monkeypatch.setattr(picture, "Figure", Remembering)
    draw(task, state, observation)
    return written


def test_gap_speed_limits_time_and_the_end_are_written_out(monkeypatch, task, start):
    state, observation = start
    ended = observation.copy()
    ended[FEATURES.index("collision")] = 1
    state = state._replace(step=jnp.int32(12))
    assert texts_of(monkeypatch, task, state, ended) == [
        "gap 25.5 m (at least 20 m)",
        "speed 30.0 m/s (at most 40 m/s)",
        "scenario 0, 1.2 s, collision",
    ]
    free = observation.copy()
    free[FEATURES.index("gap_ahead")] = 100
    assert texts_of(monkeypatch, task, state, free)[0] == "no leader within 100 m (at least 20 m)"


def test_an_animation_shows_each_frame_for_its_time():
    frames = (np.full((20, 30, 3), 40 * k, np.uint8) for k in range(4))
    moving_picture = Image.open(io.BytesIO(animation(frames, 0.2)))
    assert (moving_picture.format, moving_picture.size) == ("GIF", (30, 20))
    assert moving_picture.n_frames == 4
    for number in range(4):
        moving_picture.seek(number)
        assert moving_picture.info["duration"] == 200
        assert moving_picture.convert("RGB").getpixel((5, 5)) == (40 * number,) * 3
    assert moving_picture.info["loop"] == 0
