"""Carriageways with a few vehicles, made by hand."""

import numpy as np

from tacit.highway.driving_step import HighwayTask
from tacit.highway.recording import CAR, Carriageway, Track
from tacit.highway.replay import piece_of, stack_replay
from tacit.highway.scenarios import Window, cast_window

DT = 0.1


def moving(vehicle, s, d, vs=30.0, vd=0.0, first=0, frames=100, kind=CAR, size=(4.5, 1.8)):
    """A vehicle that keeps its velocity."""
    times = DT * np.arange(frames)
    values = (s + vs * times, d + vd * times, np.full(frames, vs), np.full(frames, vd))
    return Track(vehicle, kind, *size, first, *(np.float32(value) for value in values))


def road(*tracks, frames=100, boundaries=(7.0, 3.5, 0.0, -3.5), start=0.0, end=1000.0):
    """Three lanes, 1000 m long, ten frames a second."""
    return Carriageway("hand", 2, DT, frames, np.array(boundaries), start, end, tracks)


def scene(carriageway, geometry="centre", egos="all", seed=0):
    """The casts of the whole recording as one window."""
    window = Window(1, 0, carriageway.frames - 1)
    return cast_window(carriageway, window, geometry, egos, seed)


def task_of(*scenes, constraints=("distance", "velocity"), geometry="centre"):
    """A task that plays (carriageway, ego's id) in this order."""
    pieces = []
    for carriageway, ego in scenes:
        casts = scene(carriageway, geometry)[0]
        cast = next(cast for cast in casts if cast.scenario.ego == ego)
        pieces.append(piece_of(carriageway, cast, geometry))
    horizon = max(piece.scenario.limit for piece in pieces)
    return HighwayTask(stack_replay(pieces), "made", constraints, 20.0, 40.0, geometry, horizon)
