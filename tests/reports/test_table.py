"""Tables in Markdown and the numbers in their cells; tables in HTML are tested with pages."""

from tacit.evaluation.intervals import Estimate
from tacit.reports.table import MISSING, four_digits, markdown_table, p_value, percent


def test_a_markdown_table_has_numbers_to_the_right():
    assert markdown_table(["method", "reward"], [["reach", "1.5"], ["icrl", "2"]]).split("\n") == [
        "| method | reward |",
        "| --- | ---: |",
        "| reach | 1.5 |",
        "| icrl | 2 |",
    ]


def test_shares_are_percentages_with_their_intervals():
    assert percent(0.125) == "12.5 %"
    assert percent(Estimate(0.1, 0.05, 0.2)) == "10.0 % [5.0, 20.0]"
    assert percent(Estimate.exact(0.1)) == "10.0 %"


def test_numbers_have_about_four_digits_and_small_p_values_a_power_of_ten():
    assert [four_digits(value) for value in (1.23456, -123.456, 12345.6)] == [
        *("1.235", "-123.5", "12346")
    ]
    assert [p_value(value) for value in (0.04, 0.00002)] == ["0.040", "2e-05"]


def test_what_is_unknown_is_a_dash():
    assert [write(None) for write in (percent, four_digits, p_value)] == [MISSING] * 3
