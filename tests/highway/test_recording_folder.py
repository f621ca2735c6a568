"""Folders of recordings: what is found in them, and what is kept of it."""

import os
import warnings

import numpy as np
import pytest
from written_recordings import (
    HIGHWAY_DATA,
    clip_tables,
    exid_tables,
    highd_tables,
    ngsim_rows,
    portal_rows,
    write_clips,
    write_table,
    write_three,
)

from tacit.errors import ArgumentError
from tacit.highway import recording_folder
from tacit.highway.recording import RecordingError, RecordingWarning
from tacit.highway.recording_folder import cache_folder, find_recordings


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "highway"


@pytest.fixture
def highd(tmp_path):
    """A folder with recordings 03 and 12; a vehicle of 03 has a frame less than described."""
    tables = highd_tables()
    tables["tracksMeta"][4]["numFrames"] = 11
    write_three(tmp_path / "highd", tables)
    return write_three(tmp_path / "highd", highd_tables(number=12), "12")


@pytest.fixture
def readings(monkeypatch):
    """Counts how often highD files are really read."""
    calls = []
    real = recording_folder.highd_reading

    def counted(files, geometry):
        calls.append(files.name)
        return real(files, geometry)

    monkeypatch.setattr(recording_folder, "highd_reading", counted)
    return calls


def assert_same(ways, others):
    for one, other in zip(ways, others, strict=True):
        assert (one.name, one.direction, one.dt, one.frames) == (
            *(other.name, other.direction),
            *(other.dt, other.frames),
        )
        assert (one.start, one.end) == (other.start, other.end)
        np.testing.assert_array_equal(one.boundaries, other.boundaries)
        for track, same in zip(one, other, strict=True):
            assert track[:5] == same[:5]
            for left, right in zip(track[5:], same[5:], strict=True):
                np.testing.assert_array_equal(left, right)
                assert left.dtype == right.dtype == np.float32


def test_every_data_set_is_recognised_without_being_loaded(tmp_path, monkeypatch):
    for name in ("highd_reading", "exid_reading", "ngsim_reading", "us101_reading"):
        monkeypatch.setattr(recording_folder, name, None)
    write_three(tmp_path, highd_tables())
    write_three(tmp_path, exid_tables(), "07")
    write_clips(tmp_path, *clip_tables())
    rows = portal_rows(ngsim_rows(), "us-101") + portal_rows(ngsim_rows(), "peachtree")
    write_table(tmp_path / "portal.csv", rows)
    write_table(tmp_path / "0750am.txt", ngsim_rows(), header=False, separator=" ")
    (tmp_path / "README.txt").write_text("Nothing to see here.")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "03_highway.png").write_bytes(b"\x89PNG")
    found = [(source.name, source.data_set, source.part) for source in find_recordings(tmp_path)]
    assert found == [
        ("03", "highD", None),
        ("07", "exiD", None),
        ("0750am", "NGSIM", None),
        ("A", "US-101 clips", "A"),
        ("B", "US-101 clips", "B"),
        ("us-101", "NGSIM", "us-101"),
    ]


@pytest.mark.parametrize("where", [".", "data"])
def test_each_source_reads_its_own_recording(tmp_path, cache, where):
    folder = tmp_path / "recordings"
    write_three(folder / where, highd_tables())
    write_three(folder / where, exid_tables(), "07")
    write_clips(folder / where, *clip_tables())
    rows = portal_rows(ngsim_rows(frames=1300), "us-101")
    write_table(folder / where / "portal.csv", rows + portal_rows(ngsim_rows(), "peachtree"))
    sources = find_recordings(folder)
    names = [[way.name for way in source.read()] for source in sources]
    assert names == [["03", "03"], ["07", "07"], ["A"], ["B"], ["us-101"]]
    assert len(list(cache.glob("*.npz"))) == 5
    for source in sources:
        assert_same(source.read(), source.read(cache=False))


def test_a_portal_file_with_both_motorways_is_two_recordings(tmp_path):
    rows = portal_rows(ngsim_rows(), "us-101") + portal_rows(ngsim_rows(), "i-80")
    write_table(tmp_path / "portal.csv", rows)
    assert [source.name for source in find_recordings(tmp_path)] == ["i-80", "us-101"]


def test_two_recordings_of_one_name_are_refused(tmp_path):
    for name in ("portal.csv", "portal2.csv"):
        write_table(tmp_path / name, portal_rows(ngsim_rows(), "i-80"))
    with pytest.raises(RecordingError, match=r"portal2\.csv: holds recording 'i-80', as does"):
        find_recordings(tmp_path)


def test_folders_without_recordings_say_what_is_expected(tmp_path):
    with pytest.raises(RecordingError, match="is not a folder; expected highD") as caught:
        find_recordings(tmp_path / "nowhere")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RecordingError, match="holds no recording; expected highD") as caught:
        find_recordings(tmp_path)
    for word in (str(tmp_path), "03_tracks.csv", "NGSIM", "us101_clips.csv"):
        assert word in str(caught.value)


@pytest.mark.parametrize("part", ["recordingMeta", "tracksMeta", "tracks"])
def test_a_recording_without_one_of_its_files_is_named_at_once(highd, part):
    (highd / f"12_{part}.csv").unlink()
    with pytest.raises(RecordingError, match=rf"12_{part}\.csv: is missing"):
        find_recordings(highd)


def test_only_highd_has_the_legacy_geometry(tmp_path, highd, cache):
    assert find_recordings(highd)[1].read("legacy")[1].start == -40
    write_clips(tmp_path, *clip_tables())
    with pytest.raises(ArgumentError, match="geometry: 'legacy'"):
        find_recordings(tmp_path)[0].read("legacy")
    with pytest.raises(ArgumentError, match="geometry: is 'corner'"):
        find_recordings(tmp_path)[0].read("corner")


def test_what_was_read_is_kept_with_its_warning(highd, cache, readings):
    source = find_recordings(highd)[0]
    with pytest.warns(RecordingWarning, match="number of frames than described: 1") as first:
        ways = source.read()
    with pytest.warns(RecordingWarning) as second:
        again = source.read()
    assert str(first[0].message) == str(second[0].message)
    assert readings == ["03"]
    assert_same(ways, again)


def test_geometries_are_kept_apart_and_a_changed_file_is_read_again(highd, cache, readings):
    source = find_recordings(highd)[1]
    centre, legacy = source.read(), source.read("legacy")
    assert centre[1].start != legacy[1].start
    source.read()
    assert readings == ["12", "12"]
    tables = highd_tables(vehicles=6, number=12)
    write_three(highd, tables, "12")
    assert len(source.read()[0]) == 3
    os.utime(highd / "12_tracksMeta.csv", (1, 1))
    source.read()
    assert readings == ["12"] * 4


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_a_damaged_file_in_the_cache_is_made_anew(highd, cache, readings, damage):
    source = find_recordings(highd)[1]
    expected = source.read()
    (path,) = cache.glob("*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert_same(source.read(), expected)
    assert path.stat().st_size == len(whole)
    source.read()
    assert readings == ["12", "12"]


def test_every_flipped_byte_in_the_cache_is_noticed_or_harmless(highd, cache):
    source = find_recordings(highd)[1]
    expected = source.read()
    (path,) = cache.glob("*.npz")
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 60).astype(int):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert_same(source.read(), expected)


def test_a_cache_that_cannot_be_written_is_no_problem(highd, tmp_path, monkeypatch, readings):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "file"))
    source = find_recordings(highd)[1]
    assert_same(source.read(), source.read())
    assert readings == ["12", "12"]


def test_no_cache_is_touched_if_none_is_wanted(highd, cache):
    find_recordings(highd)[1].read(cache=False)
    assert not cache.exists()


def test_files_that_disappear_are_named(highd, cache):
    source = find_recordings(highd)[1]
    (highd / "12_tracks.csv").unlink()
    with pytest.raises(RecordingError, match=r"12_tracks\.csv"):
        source.read()


def test_the_cache_lies_where_the_system_keeps_such_files(monkeypatch, tmp_path):
    monkeypatch.delenv("TACIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / "tacit" / "highway"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "tacit" / "highway"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "tacit" / "highway"


@pytest.mark.skipif(HIGHWAY_DATA is None, reason="shared data are not here")
def test_the_parity_recording_is_found_and_kept(cache):
    (source,) = find_recordings(HIGHWAY_DATA / "parity")
    assert (source.name, source.data_set) == ("99", "highD")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(source.read("legacy"), source.read("legacy"))
