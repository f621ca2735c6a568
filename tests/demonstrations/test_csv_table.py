import numpy as np
import pytest

from tacit.demonstrations.trajectories import Trajectories
from tacit.errors import ArgumentError, DemonstrationError

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


BAD = {
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


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_with_file_row_and_column(tmp_path, case):
    text, message = BAD[case]
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
