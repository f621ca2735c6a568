"""Columns by name, and errors that say where."""

import gzip

import numpy as np
import pytest

from tacit.highway import csv_columns
from tacit.highway.csv_columns import Layout, read_columns
from tacit.highway.recording import RecordingError

LAYOUT = Layout(whole=("frame", "id"), real=("x",), gappy=("width",), text=("class",))
GOOD = "frame,id,x,width,class\n1,7,0.5,4.2,Car\n2,7,1.5,4.3,Car\n"


def written(tmp_path, text, name="03_tracks.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def refusal(path, layout=LAYOUT):
    with pytest.raises(RecordingError) as caught:
        read_columns(path, layout)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored(tmp_path):
    text = "class, junk ,x,id,width,frame,more\nCar,a b,0.5,7,4.2,1,\nTruck,,1.5,8,nan,2,\n"
    columns = read_columns(written(tmp_path, text), LAYOUT)
    assert columns["frame"].tolist() == [1, 2]
    assert columns["frame"].dtype == np.int64
    assert columns["x"].tolist() == [0.5, 1.5]
    assert columns["class"].tolist() == ["Car", "Truck"]
    np.testing.assert_equal(columns["width"], [4.2, np.nan])
    assert columns.row.tolist() == [2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("Car\n2", "Car\n\n  \n2"),
        GOOD.rstrip("\n"),
        GOOD.replace("0.5", '" 0.5"'),
        GOOD.replace("0.5", "5e-1").replace("1,7", "1.0,7"),
    ],
    ids=["byte order mark", "carriage returns", "blank lines", "no last newline", "quotes", "e"],
)
def test_harmless_differences_do_not_matter(tmp_path, text):
    columns = read_columns(written(tmp_path, text), LAYOUT)
    assert columns["x"].tolist() == [0.5, 1.5]
    assert columns["frame"].tolist() == [1, 2]


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "03_tracks.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert read_columns(path, LAYOUT)["x"].tolist() == [0.5, 1.5]
    path.write_bytes(path.read_bytes()[:-12])
    assert "unpack" in refusal(path)
    path.write_bytes(b"no gzip at all")
    assert "cannot be read" in refusal(path)


def test_blocks_are_put_together_and_rows_keep_their_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_columns, "BLOCK_ROWS", 3)
    lines = "".join(f"{i},1,{i / 2},,Car\n" for i in range(10))
    text = "frame,id,x,width,class\n" + lines
    columns = read_columns(written(tmp_path, text), LAYOUT)
    assert columns["x"].tolist() == [i / 2 for i in range(10)]
    assert columns.row.tolist() == list(range(2, 12))
    assert np.isnan(columns["width"]).all()
    path = written(tmp_path, text.replace("7,1,3.5", "7,1,what"))
    assert "row 9, column 'x': is 'what'" in refusal(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("frame,id,x,width,class\n", "holds no rows"),
        (GOOD.replace(",x,", ",X,"), "column 'x': is missing"),
        (GOOD.replace(",x,", ",id,"), "column 'id': is there twice"),
        (GOOD.replace(",", ";"), "column 'frame': cells are separated by ';'"),
        (GOOD.replace(",", ";").replace(".", ","), "separated by ';'"),
        (GOOD.replace("1.5", "1,5"), "row 3, column 'x': the row has 6 cells instead of 5"),
        (GOOD.replace("1.5", '"1,5"'), "row 3, column 'x': is '1,5', not a finite number; write a"),
        (GOOD.replace("1.5", '"1,500"'), "row 3, column 'x': is '1,500', not a finite number"),
        (GOOD.replace("1.5", ""), "row 3, column 'x': is '', not a finite number"),
        (GOOD.replace("1.5", "nan"), "row 3, column 'x': is 'nan', not a finite"),
        (GOOD.replace("1.5", "-inf"), "row 3, column 'x': is '-inf'"),
        (GOOD.replace("1.5", "1e999"), "row 3, column 'x'"),
        (GOOD.replace("1.5", "1_5"), "row 3, column 'x'"),
        (GOOD.replace("2,7", "2.5,7"), "row 3, column 'frame': is '2.5', not a whole number"),
        (GOOD.replace("2,7", "1e300,7"), "row 3, column 'frame'"),
        (GOOD.replace(",4.3,Car", ""), "row 3, column 'width': the row has 3 cells"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, text, message):
    assert message in refusal(written(tmp_path, text))


def test_missing_and_strangely_encoded_files_are_named(tmp_path):
    assert "is missing" in refusal(tmp_path / "03_tracks.csv")
    assert "UTF-8" in refusal(written(tmp_path, GOOD, encoding="utf-16"))


def test_thousands_and_lists_are_read_where_a_format_has_them(tmp_path):
    layout = Layout(real=("x", "width"), thousands=True, lists=True)
    text = 'x,width,note\n"1,004.323",3.5;3.7,"a, b"\n"-12,345",4;5;6,\n'
    columns = read_columns(written(tmp_path, text), layout)
    assert columns["x"].tolist() == [1004.323, -12345.0]
    assert columns["width"].tolist() == [3.5, 4.0]
    assert "is '12,5'" in refusal(written(tmp_path, text.replace("-12,345", "12,5")), layout)


def test_files_without_header_and_with_white_space_are_read(tmp_path):
    layout = Layout(whole=("a",), real=("b",), header=("a", "b", "c"), separator=None)
    path = written(tmp_path, "  1   2.5 x\n 2\t3.5 y \n")
    assert read_columns(path, layout)["b"].tolist() == [2.5, 3.5]
    path = written(tmp_path, "  1   2.5 x\n 2 3.5\n")
    assert "row 2, column 'c': the row has 2 cells instead of 3" in refusal(path, layout)


def test_unwanted_rows_are_passed_over_unread(tmp_path):
    layout = Layout(real=("x",), text=("site",), only="i-80")
    text = "x,site\n1,I-80\nnonsense,us-101\n2,i-80\n"
    columns = read_columns(written(tmp_path, text), layout)
    assert columns["x"].tolist() == [1.0, 2.0]
    assert columns.row.tolist() == [2, 4]
