"""The clips of US-101: their counts, and what is refused."""

import numpy as np
import pytest
from written_recordings import HIGHWAY_DATA, write_table

from tacit.highway.recording import RecordingError
from tacit.highway.recording_folder import find_recordings
from tacit.highway.us101_clips import read_us101_clip, us101_clip_names

STATES, CLIPS = "us101_states.csv", "us101_clips.csv"


def clip_tables():
    clips = [
        {"clip": name, "dt": 0.1, "steps": 5, "lanes": 2, "lane_width_m": 3.6} for name in "AB"
    ]
    states = [
        {"clip": clip, "id": vehicle, "step": step, "length": 4.5 * vehicle, "width": 1.8}
        | {"s": 10.0 * vehicle + step, "d": -3.6, "v": 10.0, "heading": 0.1, "lane": 2}
        for clip in "AB"
        for vehicle in (1, 2)
        for step in range(5)
    ]
    return states, clips


def write_clips(folder, states, clips):
    return write_table(folder / STATES, states), write_table(folder / CLIPS, clips)


def test_a_clip_is_one_carriageway(tmp_path):
    states, clips = write_clips(tmp_path, *clip_tables())
    assert us101_clip_names(clips) == ("A", "B")
    way = read_us101_clip(states, clips, "B")
    assert (way.name, way.direction, way.dt, way.frames, len(way)) == ("B", 1, 0.1, 5, 2)
    np.testing.assert_allclose(way.boundaries, [1.8, -1.8, -5.4])
    assert (way.start, way.end) == (10 - 2.25, 24 + 4.5)
    assert [track.kind for track in way] == [1, 4]
    np.testing.assert_allclose(way.tracks[0].vs, 10 * np.cos(0.1), rtol=1e-6)
    np.testing.assert_allclose(way.tracks[0].vd, 10 * np.sin(0.1), rtol=1e-6)


def test_unknown_clips_and_bad_numbers_are_named(tmp_path):
    states, clips = clip_tables()
    paths = write_clips(tmp_path, states, clips)
    with pytest.raises(RecordingError, match=r"us101_clips\.csv: column 'clip': 'C' is there 0"):
        read_us101_clip(*paths, "C")
    clips[1]["lanes"] = 0
    with pytest.raises(RecordingError, match=r"us101_clips\.csv: row 3, column 'lanes'"):
        read_us101_clip(*write_clips(tmp_path, states, clips), "B")
    clips[1]["lanes"] = 2
    with pytest.raises(RecordingError, match=r"us101_states\.csv: column 'clip': no row"):
        read_us101_clip(*write_clips(tmp_path, states[:10], clips), "B")
    states[13]["s"] = "far"
    with pytest.raises(RecordingError, match=r"us101_states\.csv: row 15, column 's': is 'far'"):
        read_us101_clip(*write_clips(tmp_path, states, clips), "B")


@pytest.mark.skipif(HIGHWAY_DATA is None, reason="shared data are not here")
def test_the_real_clips_have_the_counts_of_their_readme():
    sources = find_recordings(HIGHWAY_DATA)
    assert {source.data_set for source in sources} == {"US-101 clips"}
    ways = [way for source in sources for way in source.read(cache=False)]
    tracks = [track for way in ways for track in way]
    speed = np.concatenate([np.hypot(track.vs, track.vd) for track in tracks])
    assert (len(ways), len(tracks), len(speed)) == (25, 904, 58_166)
    assert speed.mean() == pytest.approx(12.9, abs=0.05)
    assert {way.dt for way in ways} == {0.1}
    assert {len(way.boundaries) - 1 for way in ways} == {5, 6, 7}
    for way in ways:
        d = np.concatenate([track.d for track in way])
        assert ((d < way.boundaries[0]) & (d > way.boundaries[-1])).mean() > 0.98
        assert all(track.first >= 0 and track.last < way.frames for track in way)
