"""Maps show the feasibility they were given, where it belongs."""

from dataclasses import replace

import numpy as np
import pytest

from tacit.environments.lab_tasks import chain, grid_world
from tacit.environments.tabular import TabularTask
from tacit.errors import ArgumentError
from tacit.reports.feasibility import MapPanel, constraint_maps

SMALL = grid_world(("S.x", ".#G"))


def mesh_of(axes):
    return next(found for found in axes.collections if hasattr(found, "get_coordinates"))


def panels_of(figure, number):
    return figure.axes[:number]


def legend_words(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_cell_has_the_value_of_its_state_and_walls_have_none():
    figure = constraint_maps(SMALL, [MapPanel("learned", np.array([0.1, 0.2, 0.3, 0.4, 0.5]))])
    values = mesh_of(figure.axes[0]).get_array()
    assert values[0].tolist() == [0.1, 0.2, 0.3]
    assert values[1].tolist() == [0.4, None, 0.5]
    assert figure.axes[0].get_title(loc="left") == "learned"


def test_colours_run_from_0_forbidden_to_1_allowed_and_the_bar_says_so():
    figure = constraint_maps(SMALL, [MapPanel("learned", np.full(5, 0.5))])
    assert mesh_of(figure.axes[0]).get_clim() == (0, 1)
    bar = figure.axes[-1]
    assert bar.get_ylabel() == "feasibility"
    words = [label.get_text() for label in bar.get_yticklabels()]
    assert words[0] == "0 forbidden"
    assert words[-1] == "1 allowed"


def test_start_and_goal_are_marked_at_their_cells():
    axes = constraint_maps(SMALL, [MapPanel("learned", np.ones(5))]).axes[0]
    marks = {text.get_text(): text.get_position() for text in axes.texts}
    assert marks == {"S": (0, 0), "G": (2, 1)}


def test_truly_forbidden_cells_are_outlined_in_every_panel():
    figure = constraint_maps(SMALL, [MapPanel(str(n), np.ones(5)) for n in range(3)])
    for axes in panels_of(figure, 3):
        hatch, outline = axes.collections[-2:]
        assert len(hatch.get_segments()) == 1
        corners = np.unique(np.concatenate(outline.get_segments()), axis=0)
        assert corners.tolist() == [[1.5, -0.5], [1.5, 0.5], [2.5, -0.5], [2.5, 0.5]]


def test_the_outline_goes_around_a_region_not_through_it():
    task = grid_world(("Sxx", "..G"))
    axes = constraint_maps(task, [MapPanel("learned", np.ones(6))]).axes[0]
    assert len(axes.collections[-1].get_segments()) == 6


def test_the_legend_names_only_marks_that_occur():
    words = legend_words(constraint_maps(SMALL, [MapPanel("a", np.ones(5))]))
    assert words == ["truly forbidden", "wall", "start", "goal"]
    words = legend_words(constraint_maps(chain(), [MapPanel("a", np.ones(41))]))
    assert words == ["truly forbidden", "start"]


def test_chains_are_stacked_strips_with_state_numbers_at_the_bottom():
    figure = constraint_maps(chain(), [MapPanel(str(n), np.linspace(0, 1, 41)) for n in range(3)])
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in panels_of(figure, 3)]
    assert boxes[0].y0 > boxes[1].y1
    assert boxes[1].y0 > boxes[2].y1
    assert boxes[0].x0 == pytest.approx(boxes[2].x0)
    assert panels_of(figure, 3)[2].get_xlabel() == "state number"


def test_grids_stand_in_a_row_and_wrap_after_four():
    figure = constraint_maps(SMALL, [MapPanel(str(n), np.ones(5)) for n in range(5)])
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in panels_of(figure, 5)]
    assert all(box.y0 == pytest.approx(boxes[0].y0) for box in boxes[:4])
    assert boxes[4].y1 < boxes[0].y0


def test_rules_on_pairs_show_the_mean_over_actions_and_say_so():
    task = replace(SMALL, rule_on="pair")
    feasibility = np.arange(25) / 25
    figure = constraint_maps(task, [MapPanel("pairs", feasibility)])
    values = mesh_of(figure.axes[0]).get_array()
    assert values[0].tolist() == pytest.approx(feasibility.reshape(5, 5).mean(axis=1)[:3])
    assert figure.axes[-1].get_ylabel() == "feasibility, mean over actions"
    assert legend_words(figure)[0] == "truly forbidden for some action"


def test_a_task_without_positions_is_a_strip():
    task = replace(SMALL, positions=None)
    figure = constraint_maps(task, [MapPanel("strip", np.linspace(0, 1, 5))])
    assert mesh_of(figure.axes[0]).get_array().shape == (1, 5)


def test_states_that_share_a_cell_are_averaged():
    still = np.eye(2)[:, None, :]
    task = TabularTask(still, np.array([0, 1]), np.zeros(2), np.array([1, 0]), 3)
    task = replace(task, positions=np.zeros((2, 2), int))
    figure = constraint_maps(task, [MapPanel("one cell", np.array([0.2, 0.6]))])
    assert mesh_of(figure.axes[0]).get_array().tolist() == [[0.4]]


@pytest.mark.parametrize(
    ("feasibility", "words"),
    [
        (np.ones(4), "needs 5 values"),
        (np.full(5, 1.2), r"in \[0, 1\]"),
        (np.full(5, np.nan), "lie"),
    ],
)
def test_wrong_feasibility_is_refused_with_the_panel_named(feasibility, words):
    with pytest.raises(ArgumentError, match=f"'wrong'.*{words}"):
        constraint_maps(SMALL, [MapPanel("wrong", feasibility)])


def test_no_panels_are_refused():
    with pytest.raises(ArgumentError, match="at least one panel"):
        constraint_maps(SMALL, [])
