"""`make` of the driving tasks: options, splits, egos, windows, and who is left out."""

import shutil
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from written_recordings import highd_tables, write_three

from tacit.environments.registry import make
from tacit.errors import ArgumentError, TaskError
from tacit.highway.driving import (
    Selection,
    build_highway,
    gather,
    load_scenarios,
    only,
    part_of,
)
from tacit.highway.recording import RecordingError
from tacit.highway.recording_folder import find_recordings

PLAIN = {"constraint": "both", "gap": 20.0, "speed": 40.0, "geometry": "centre", "split": "all"}
PLAIN |= {"split_by": "recording", "egos": "all", "window": 12.0, "drop_infeasible": False}
PLAIN |= {"seed": 0}


@pytest.fixture(scope="module")
def build(recorded_traffic):
    return lambda **options: build_highway(
        "test", {**PLAIN, "recordings": str(recorded_traffic), **options}
    )


@pytest.fixture(scope="module")
def tight(build):
    """Limits that some of the starts break."""
    return build(gap=60.0, speed=36.0)


def test_starts_know_their_gap_and_which_constraints_they_break(tight):
    broken = set()
    for scenario in tight.scenarios:
        rules = []
        if scenario.start_gap < 60:
            rules.append("distance")
        if scenario.start_speed > 36:
            rules.append("velocity")
        assert scenario.violates == tuple(rules)
        assert 0 < scenario.start_gap <= 100
        broken.add(scenario.violates)
    assert broken >= {(), ("distance",), ("velocity",)}


@pytest.mark.parametrize("constraint", ["distance", "velocity", "both"])
def test_scenarios_that_start_broken_can_be_left_out(build, tight, constraint):
    rules = ("distance", "velocity") if constraint == "both" else (constraint,)
    kept = build(gap=60.0, speed=36.0, constraint=constraint, drop_infeasible=True)
    expected = [s for s in tight.scenarios if not set(rules) & set(s.violates)]
    assert list(kept.scenarios) == expected
    assert len(kept.task.replay) == len(kept.paths) == len(expected) < len(tight.scenarios)
    assert kept.task.horizon == max(scenario.limit for scenario in expected)
    starts = np.asarray(kept.task.replay.position)
    np.testing.assert_allclose(starts, [s.position for s in expected], rtol=1e-6)


def test_an_error_says_that_every_start_is_broken(build):
    with pytest.raises(TaskError, match="drop_infeasible leaves no scenario"):
        build(speed=1.0, drop_infeasible=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": 0.0}, "gap must be above 0, not 0.0"),
        ({"speed": float("nan")}, "speed must be above 0, not nan"),
        ({"speed": float("inf")}, "speed must be above 0, not inf"),
        ({"window": -1.0}, "window must be above 0, not -1.0"),
        ({"constraint": "none"}, "option 'constraint' of HighwayDistance must be"),
        ({"geometry": "corner"}, "option 'geometry' of HighwayDistance must be"),
        ({"split": "validation"}, "option 'split' of HighwayDistance must be"),
        ({"split_by": "car"}, "option 'split_by' of HighwayDistance must be"),
        ({"egos": "two"}, "option 'egos' of HighwayDistance must be"),
        ({"recordings": 3}, "option 'recordings' of HighwayDistance must be"),
        ({"gaps": 3}, "has no option 'gaps'.*did you mean gap"),
        ({"recordings": "nowhere/at/all"}, "nowhere/at/all: is not a folder"),
    ],
)
def test_a_bad_option_is_a_plain_error(options, message):
    with pytest.raises((TaskError, ValueError), match=message):
        make("HighwayDistance", **options)


def test_a_bad_seed_is_a_plain_error():
    with pytest.raises(ArgumentError, match="seed must be"):
        make("HighwayVelocity", seed=-1)


def test_the_two_names_differ_in_their_constraint(recorded_traffic):
    options = {"recordings": str(recorded_traffic), "window": 12.0, "split": "all"}
    options["egos"] = "all"
    distance, velocity = (make(name, **options) for name in ("HighwayDistance", "HighwayVelocity"))
    assert (distance.constraints, velocity.constraints) == (("distance",), ("velocity",))
    assert (distance.name, velocity.name) == ("HighwayDistance", "HighwayVelocity")
    assert distance.options["window"] == 12
    assert distance.options["constraint"] == "distance"
    assert distance.observation_space.shape == (74,)
    assert distance.action_space == gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    assert distance.jax_world.constraints == ("distance",)
    assert distance.horizon == max(s.limit for s in distance.environment().scenarios)
    both = make("highwaydistance", constraint="both", **options)
    assert both.constraints == ("distance", "velocity")
    assert both.jax_world.constraints == ("distance", "velocity")


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
        distance = scenario.goal.s - scenario.goal.length / 2 - scenario.position[0]
        assert 0 < distance / (scenario.limit * scenario.dt) < 1.1 * scenario.start_speed


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
