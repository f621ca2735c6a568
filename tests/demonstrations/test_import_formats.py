import io
import zipfile

import numpy as np
import pytest

from tacit.demonstrations import import_formats
from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError, DemonstrationError

PADDED = {
    "observations": np.arange(12.0).reshape(2, 3, 2),
    "actions": np.ones((2, 2, 1)),
    "rewards": np.ones((2, 2)),
    "lengths": np.array([2, 1]),
}
FLAT = {
    "observations": np.array([[0.0], [1], [2], [9], [8]]),
    "next_observations": np.array([[1.0], [2], [3], [8], [7]]),
    "actions": np.array([0, 1, 0, 1, 1]),
    "rewards": np.arange(5.0),
    "terminals": np.array([0, 0, 1, 0, 0]),
}


def load(tmp_path, fields):
    np.savez(tmp_path / "experts.npz", **fields)
    return Trajectories.from_npz(tmp_path / "experts.npz")


def test_padded_arrays_are_read(tmp_path):
    loaded = load(tmp_path, {**PADDED, "costs": np.zeros((2, 2)), "terminated": [True, False]})
    assert loaded.lengths.tolist() == [2, 1]
    assert loaded.observations[1].tolist() == [[6, 7], [8, 9], [0, 0]]
    assert loaded.terminated.tolist() == [True, False]
    assert not loaded.violated.any()


def test_flat_arrays_are_cut_into_episodes(tmp_path):
    loaded = load(tmp_path, {**FLAT, "costs": np.array([0, 0, 1, 0, 0]), "infos": np.ones(5)})
    assert [episode.observations[:, 0].tolist() for episode in loaded] == [[0, 1, 2, 3], [9, 8, 7]]
    assert loaded.terminated.tolist() == [True, False]
    assert loaded.actions.dtype == np.int64
    assert loaded.violated.tolist() == [True, False]


def test_timeouts_end_episodes_without_termination(tmp_path):
    loaded = load(tmp_path, {**FLAT, "terminals": np.zeros(5), "timeouts": FLAT["terminals"]})
    assert loaded.lengths.tolist() == [3, 2]
    assert not loaded.terminated.any()


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


BAD = {
    "no fields": ({}, "field 'lengths': is missing"),
    "other fields": ({"x": np.ones(3)}, "field 'lengths': is missing .*x"),
    "no actions": (without(PADDED, "actions"), "field 'actions': is missing"),
    "typing error": ({**PADDED, "cost": np.ones((2, 2))}, "field 'cost': is unknown"),
    "negative": ({**PADDED, "lengths": [2, -1]}, "episode 1, field 'lengths': is -1"),
    "zero": ({**PADDED, "lengths": [0, 1]}, "episode 0, field 'lengths': is 0"),
    "NaN": (
        {**PADDED, "rewards": np.array([[0, np.nan], [0, 0]])},
        "episode 0, field 'rewards', step 1: is nan",
    ),
    "wrong shape": ({**PADDED, "actions": np.ones((2, 2))}, r"field 'actions': has shape \(2, 2\)"),
    "text": ({**PADDED, "rewards": np.array([["a"]])}, "field 'rewards': holds <U1"),
    "facts": ({**PADDED, "provenance": np.array("{")}, "field 'provenance'"),
    "facts list": ({**PADDED, "provenance": np.array("[1]")}, "field 'provenance'"),
    "no next": (without(FLAT, "next_observations"), "field 'next_observations': is missing"),
    "lengths differ": ({**FLAT, "actions": np.ones(4)}, "field 'actions': has shape"),
    "jump": ({**FLAT, "terminals": np.zeros(5)}, "episode 0, field 'next_observations': row 2"),
    "flat NaN": (
        {**FLAT, "rewards": np.array([0, 0, 0, 0, np.inf])},
        "episode 1, field 'rewards', step 1: is inf",
    ),
    "marks": ({**FLAT, "terminals": np.full(5, 3)}, "field 'terminals'"),
    "no steps": ({name: array[:0] for name, array in FLAT.items()}, "no steps"),
    "next shape": ({**FLAT, "next_observations": np.ones((5, 2))}, "field 'next_observations'"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_archive_is_refused_with_file_and_field(tmp_path, case):
    fields, message = BAD[case]
    with pytest.raises(DemonstrationError, match=rf"experts\.npz: .*{message}"):
        load(tmp_path, fields)


def test_python_objects_are_never_unpickled(tmp_path):
    ragged = np.array([np.ones(2), np.ones(3)], dtype=object)
    np.savez(tmp_path / "objects.npz", **{**PADDED, "rewards": ragged})
    with pytest.raises(DemonstrationError, match=r"objects\.npz: field 'rewards'.*objects"):
        Trajectories.from_npz(tmp_path / "objects.npz")


def test_what_is_not_an_archive_is_refused(tmp_path):
    for name, content in {"empty": b"", "random": b"random" * 99, "zip": b"PK\x03\x04" * 9}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DemonstrationError, match=f"{name}: the archive cannot be read"):
            Trajectories.from_npz(tmp_path / name)
    np.save(tmp_path / "one.npy", np.ones(3))
    for path in (tmp_path / "one.npy", tmp_path / "nowhere.npz", tmp_path):
        with pytest.raises(DemonstrationError, match=path.name):
            Trajectories.from_npz(path)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_archive_is_refused(tmp_path, part):
    load(tmp_path, PADDED)
    content = (tmp_path / "experts.npz").read_bytes()
    (tmp_path / "experts.npz").write_bytes(content[: int(part * len(content))])
    with pytest.raises(DemonstrationError, match=r"experts\.npz"):
        Trajectories.from_npz(tmp_path / "experts.npz")


def test_any_flipped_byte_is_noticed_or_harmless(tmp_path):
    original = load(tmp_path, PADDED)
    original.to_npz(tmp_path / "experts.npz")
    content = (tmp_path / "experts.npz").read_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        (tmp_path / "experts.npz").write_bytes(damaged)
        try:
            assert Trajectories.from_npz(tmp_path / "experts.npz") == original
        except DemonstrationError as error:
            assert "experts.npz" in str(error)  # noqa: PT017


@pytest.mark.parametrize("rows", [2**36, 2**60])
def test_an_archive_that_promises_too_much_is_refused(tmp_path, rows):
    header = io.BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": (rows, 8)}
    np.lib.format.write_array_header_1_0(header, facts)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("rewards.npy", header.getvalue() + bytes(64))
    with pytest.raises(DemonstrationError, match=r"bomb\.npz"):
        Trajectories.from_npz(tmp_path / "bomb.npz")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(import_formats, "LARGEST_BYTES", 100)
    with pytest.raises(DemonstrationError, match=r"experts\.npz: declares"):
        load(tmp_path, PADDED)


TABLE = """\
episode,step,observation_0,observation_1,action_0,reward,cost,terminated
7,0,0.5,1,3,1,0,0
7,1,0.25,2,4,2,1,1
7,2,0.125,3,,,,
9,0,1e-3,4,5,3,0,0
9,1,-1,5,,,,
"""


def read(tmp_path, text, **options):
    (tmp_path / "experts.csv").write_text(text)
    return Trajectories.from_csv(tmp_path / "experts.csv", **options)


def test_a_table_is_read(tmp_path):
    loaded = read(tmp_path, TABLE)
    assert loaded.lengths.tolist() == [2, 1]
    assert loaded.observations[0].tolist() == [[0.5, 1], [0.25, 2], [0.125, 3]]
    assert loaded.observations.dtype == np.float64
    assert loaded.actions.dtype == np.int64
    assert loaded.actions[1].tolist() == [[5], [0]]
    assert loaded.rewards.tolist() == [[1, 2], [3, 0]]
    assert loaded.violated.tolist() == [True, False]
    assert loaded.terminated.tolist() == [True, False]


def test_costs_and_terminated_may_be_left_out(tmp_path):
    text = "episode,step,observation_0,action_0,reward\na,0,1,1,1\na,1,2,,\n"
    loaded = read(tmp_path, text)
    assert loaded.costs is None
    assert not loaded.terminated.any()


def test_columns_may_come_in_any_order_and_from_a_spreadsheet(tmp_path):
    text = "\ufeffreward,action_0,step,observation_0,episode\r\n1,1,0,1,0\r\n\r\n,,1,2,0\r\n"
    assert read(tmp_path, text).observations.tolist() == [[[1], [2]]]


def test_precision_is_chosen(tmp_path):
    assert read(tmp_path, TABLE, precision=np.float32).observations.dtype == np.float32
    with pytest.raises(ArgumentError, match="precision"):
        read(tmp_path, TABLE, precision=np.int64)


BAD_TABLES = {
    "empty": ("", "holds no episodes"),
    "header only": (TABLE.split("\n")[0] + "\n", "holds no episodes"),
    "ragged": (TABLE.replace("0.25,2,4,2,1,1", "0.25,2,4,2,1"), "row 3: has 7 cells"),
    "word": (
        TABLE.replace("0.25", "fast"),
        r"row 3, column 'observation_0' \(episode 7, step 1\): is 'fast'",
    ),
    "blank": (TABLE.replace("4,5,3,0", "4,5,,0"), r"row 5, column 'reward' \(episode 9, step 0\)"),
    "NaN": (TABLE.replace("0.125", "nan"), r"row 4, column 'observation_0' \(episode 7, step 2\)"),
    "infinite": (TABLE.replace("2,4,2,1,1", "2,inf,2,1,1"), "row 3, column 'action_0'"),
    "too large": (TABLE.replace("1e-3", "1e999"), "row 5, column 'observation_0'"),
    "no reward": (TABLE.replace("reward", "payment"), "column 'reward': is missing"),
    "unknown": (TABLE.replace("cost", "costs"), "column 'costs': is unknown"),
    "gap in names": (TABLE.replace("observation_1", "observation_2"), "column 'observation_2'"),
    "twice": (TABLE.replace("cost", "reward"), "column 'reward': is there twice"),
    "gap in steps": (TABLE.replace("7,1,", "7,2,", 1), "row 3, column 'step'.*expected step 1"),
    "steps from 1": (TABLE.replace("9,1,", "9,2,").replace("9,0,", "9,1,"), "expected step 0"),
    "not together": (TABLE + TABLE.split("\n", 1)[1], r"row 7, column 'episode' \(episode 7"),
    "no episode": (TABLE.replace("9,", ","), "row 5, column 'episode'"),
    "no steps": (TABLE + "10,0,1,1,,,,\n", r"row 7, column 'step' \(episode 10.*no steps"),
    "no final row": (
        TABLE.replace("9,1,-1,5,,,,\n", "9,1,-1,5,1,1,0,0\n"),
        "row 6, column 'action_0'.*must be empty",
    ),
    "ends early": (TABLE.replace("7,0,0.5,1,3,1,0,0", "7,0,0.5,1,3,1,0,1"), "column 'terminated'"),
    "perhaps": (TABLE.replace("2,4,2,1,1", "2,4,2,1,perhaps"), "row 3, column 'terminated'"),
    "open quote": (TABLE + '"', "cannot be read as a UTF-8 CSV"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_refused_with_file_row_and_column(tmp_path, case):
    text, message = BAD_TABLES[case]
    with pytest.raises(DemonstrationError, match=rf"experts\.csv: .*{message}"):
        read(tmp_path, text)


def test_a_number_too_large_for_the_precision_is_refused(tmp_path):
    with pytest.raises(DemonstrationError, match=r"row 5, column 'observation_0'"):
        read(tmp_path, TABLE.replace("1e-3", "1e99"), precision=np.float32)


def test_what_is_not_text_is_refused(tmp_path):
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)) * 4)
    for name in ("binary.csv", "nowhere.csv", "."):
        with pytest.raises(DemonstrationError):
            Trajectories.from_csv(tmp_path / name)
