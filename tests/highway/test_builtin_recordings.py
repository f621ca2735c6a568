"""The built-in recordings: written once, whole, and never twice over each other."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from written_recordings import read_highd

from tacit.errors import StorageError
from tacit.highway import builtin_recordings
from tacit.highway.builtin_recordings import BUILTIN, builtin_folder, folder_for
from tacit.highway.synthetic_traffic import Traffic

SMALL = (Traffic(seed=1, duration=2.0), Traffic(seed=2, duration=2.0, lanes=3))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_set_has_at_least_60_windows_and_both_numbers_of_lanes():
    assert sum(2 * int(traffic.duration // 40) for traffic in BUILTIN) >= 60
    assert {traffic.lanes for traffic in BUILTIN} == {2, 3}
    assert len({traffic.seed for traffic in BUILTIN}) == len(BUILTIN)


def test_it_is_written_on_first_use_only(cache):
    told, notes = [], []
    folder = builtin_folder(SMALL, progress=lambda *done: told.append(done), notice=notes.append)
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert len(notes) == 1
    assert str(folder) in notes[0]
    assert cache in folder.parents
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(before) == 6
    assert builtin_folder(SMALL, notice=notes.append) == folder
    assert len(notes) == 1
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_reader_finds_nothing_to_repair():
    folder = builtin_folder(SMALL)
    for number, traffic in enumerate(SMALL, start=1):
        ways = read_highd(folder, f"{number:02d}")
        assert [way.direction for way in ways] == [1, 2]
        assert {len(way.boundaries) for way in ways} == {traffic.lanes + 1}


def test_other_settings_and_versions_have_other_folders(monkeypatch):
    folder = folder_for(SMALL)
    assert folder_for(SMALL[:1]) != folder
    monkeypatch.setattr(builtin_recordings, "VERSION", builtin_recordings.VERSION + 1)
    assert folder_for(SMALL) != folder


def test_a_folder_that_lacks_a_file_is_written_anew():
    folder = builtin_folder(SMALL)
    text = (folder / "02_tracks.csv").read_bytes()
    (folder / "02_tracks.csv").unlink()
    assert builtin_folder(SMALL) == folder
    assert (folder / "02_tracks.csv").read_bytes() == text


def test_an_interrupted_writing_leaves_nothing(cache):
    def interrupt(done, total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builtin_folder(SMALL, progress=interrupt)
    assert list(cache.rglob("*.csv")) == []
    assert builtin_folder(SMALL).is_dir()


def test_two_at_a_time_get_the_same_whole_folder():
    with ThreadPoolExecutor(2) as pool:
        folders = set(pool.map(lambda _: builtin_folder(SMALL), range(2)))
    (folder,) = folders
    assert len(list(folder.iterdir())) == 6
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_cache_that_cannot_be_written_is_named(cache):
    cache.write_text("a file")
    with pytest.raises(StorageError, match="cache"):
        builtin_folder(SMALL[:1])
