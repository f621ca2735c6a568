"""Folders of recordings turned into scenarios: splits, egos, windows, and what has none."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from written_recordings import highd_tables, write_three

from tacit.errors import TaskError
from tacit.highway.recording import RecordingError
from tacit.highway.recording_folder import find_recordings
from tacit.highway.scenario_set import Selection, gather, load_scenarios, only, part_of

ALL = Selection(window=12.0, split="all")


def load(folder, **options):
    return load_scenarios(str(folder), replace(ALL, **options))


def key(scenario):
    return (scenario.recording, scenario.direction, scenario.window, scenario.ego)


def keys(play):
    return [key(scenario) for scenario in play.scenarios]


def test_every_window_of_every_carriageway_has_one_ego(recorded_traffic):
    play = load(recorded_traffic)
    assert [place[:3] for place in keys(play)] == [
        (recording, direction, window)
        for recording in ("01", "02")
        for direction in (1, 2)
        for window in (1, 2)
    ]
    assert len(play.paths) == len(play.replay) == 8
    assert not play.skipped
    for scenario, path in zip(play.scenarios, play.paths, strict=True):
        assert path[0].tolist() == list(scenario.position)
        assert path[-1].tolist() == [scenario.goal.s, scenario.goal.d]
        assert len(path) <= scenario.limit + 1
        assert 0 < scenario.required_speed < 1.1 * scenario.start_speed


def test_all_egos_contain_the_one_and_all_drive_in_the_same_windows(recorded_traffic):
    one, every = load(recorded_traffic), load(recorded_traffic, egos="all")
    assert set(keys(one)) < set(keys(every))
    assert len(set(keys(every))) == len(every.scenarios) == len(every.replay)
    assert {place[:3] for place in keys(every)} == {place[:3] for place in keys(one)}


def test_another_seed_draws_other_egos_from_the_same_windows(recorded_traffic):
    one, other = load(recorded_traffic), load(recorded_traffic, seed=1)
    assert [place[:3] for place in keys(one)] == [place[:3] for place in keys(other)]
    assert keys(one) != keys(other)


def test_windows_have_the_length_asked_for(recorded_traffic):
    assert {s.window for s in load(recorded_traffic, window=6.0).scenarios} == {1, 2, 3, 4}
    short = load(recorded_traffic, window=6.0, egos="all")
    assert max(scenario.limit for scenario in short.scenarios) <= 149


def test_training_and_test_share_no_recording(recorded_traffic):
    train, test = (load(recorded_traffic, split=split) for split in ("train", "test"))
    assert len({s.recording for s in train.scenarios}) == 1
    assert {s.recording for s in train.scenarios} | {s.recording for s in test.scenarios} == {
        "01",
        "02",
    }
    assert sorted(keys(train) + keys(test)) == keys(load(recorded_traffic))


@pytest.mark.parametrize(("number", "border"), [(2, 1), (3, 2), (10, 7), (51, 36)])
def test_seven_tenths_are_for_training(number, border):
    names = [f"{k:02d}" for k in range(number)]
    train, test = (part_of(names, Selection(split=split)) for split in ("train", "test"))
    assert (len(train), len(test)) == (border, number - border)
    assert train | test == set(names)
    assert part_of(names, Selection(split="train")) == train
    assert number < 10 or part_of(names, Selection(split="train", seed=1)) != train


def test_a_split_by_scenario_cuts_the_whole_list(recorded_traffic):
    train, test = (
        load(recorded_traffic, split=split, split_by="scenario") for split in ("train", "test")
    )
    assert (len(train.scenarios), len(test.scenarios)) == (6, 2)
    assert sorted(keys(train) + keys(test)) == keys(load(recorded_traffic))


@pytest.fixture
def one_recording(recorded_traffic, tmp_path):
    for path in recorded_traffic.glob("01_*"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_one_recording_is_all_for_training_and_has_no_test_part(one_recording):
    assert keys(load(one_recording, split="train")) == keys(load(one_recording))
    with pytest.raises(TaskError, match="needs two recordings or more; choose split_by='scenario'"):
        load(one_recording, split="test")
    assert len(load(one_recording, split="test", split_by="scenario").scenarios) == 1


def test_one_scenario_has_no_test_part(tmp_path):
    tables = highd_tables(frames=60)
    # Only the cars of one direction last.
    tables["tracks"] = [row for row in tables["tracks"] if row["id"] % 2 == 0 or row["frame"] < 9]
    for about in tables["tracksMeta"]:
        about["numFrames"] = sum(row["id"] == about["id"] for row in tables["tracks"])
    write_three(tmp_path, tables)
    assert len(load(tmp_path, split_by="scenario", split="train").scenarios) == 1
    with pytest.raises(TaskError, match=r"needs two scenarios or more; choose split='all'"):
        load(tmp_path, split_by="scenario", split="test")


def test_recordings_without_a_scenario_say_why(tmp_path):
    write_three(tmp_path, highd_tables(frames=10))
    why = r"no scenario can be made: no car that lasts.* \(2 windows\)"
    with pytest.raises(RecordingError, match=why):
        load(tmp_path)
    with pytest.raises(RecordingError, match="no scenario can be made: no car that lasts"):
        load(tmp_path, window=0.01)


def test_a_folder_without_recordings_is_named(tmp_path):
    with pytest.raises(RecordingError, match="holds no recording; expected highD"):
        load(tmp_path)
    with pytest.raises(RecordingError, match="is not a folder"):
        load(tmp_path / "none")


def test_what_was_loaded_is_remembered_until_a_file_changes(one_recording, recorded_traffic):
    play = load(one_recording)
    assert load(one_recording) is play
    for path in recorded_traffic.glob("02_*"):
        shutil.copy(path, one_recording)
    assert keys(load(one_recording)) == keys(load(recorded_traffic))


def test_a_relative_folder_is_that_of_the_present_place(tmp_path, monkeypatch, recorded_traffic):
    for number in ("01", "02"):
        (tmp_path / number / "drives").mkdir(parents=True)
        for path in recorded_traffic.glob(f"{number}_*"):
            shutil.copy(path, tmp_path / number / "drives")
        monkeypatch.chdir(tmp_path / number)
        assert {place[0] for place in keys(load("drives"))} == {number}


def test_what_is_kept_of_a_scenario_holds_no_array_of_its_recording(recorded_traffic):
    """Else all recordings would stay in memory, not one at a time."""
    pieces, _ = gather(find_recordings(recorded_traffic), ALL)
    assert len(pieces) == 8
    assert all(piece.table.base is None and piece.path.base is None for piece in pieces)


def test_some_scenarios_keep_their_tables(recorded_traffic):
    play = load(recorded_traffic)
    some = only(play, [5, 2])
    assert keys(some) == [keys(play)[5], keys(play)[2]]
    assert len(some.replay) == 2
    for number, was in enumerate((5, 2)):
        assert some.paths[number] is play.paths[was]
        for name in ("first_row", "last_row", "dt", "position", "velocity"):
            np.testing.assert_array_equal(
                getattr(some.replay, name)[number], getattr(play.replay, name)[was]
            )
        np.testing.assert_array_equal(
            some.replay.around.goal.s[number], play.replay.around.goal.s[was]
        )
