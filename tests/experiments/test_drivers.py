"""What recorded drivers hold to: learned on a little made-up traffic, read off and drawn."""

import re
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from tacit import Trajectories, load
from tacit.command_line import main
from tacit.environments.registry import make
from tacit.experiments import drivers as experiment
from tacit.experiments.drivers import TIME_GAP, Drivers, driving_settings, feasibility_at, held
from tacit.highway.observation import GAP_AHEAD, SPEED
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.inference.inputs import Inputs
from tacit.inference.reach.model import Extent, Extremes, ReachModel
from tacit.inference.reach.quantities import Quantities

pytestmark = pytest.mark.usefixtures("hasty_imitation")


@pytest.fixture(scope="module")
def task(recorded_traffic):
    return make("HighwayDistance", recordings=str(recorded_traffic), split="all", egos="all")


def test_more_worlds_make_no_larger_batch(task):
    settings = driving_settings(task, 1234)
    assert settings.worlds == experiment.WORLDS
    assert settings.steps == 1234
    assert settings.batch <= 8192


@pytest.mark.slow
def test_a_page_is_written_and_the_gap_is_all_that_is_asked_about(
    tmp_path, capsys, monkeypatch, recorded_traffic
):
    monkeypatch.setattr(experiment, "WORLDS", 16)
    out = tmp_path / "people"
    arguments = ["--recordings", str(recorded_traffic), "--out", str(out), "--steps", "8192"]
    main(["experiment", "run", "drivers", *arguments])
    text = capsys.readouterr().out
    assert re.search(r"gap that most hold to at confidence 0\.5: (not found|\d+\.\d\d m)", text)
    page = (out / "report.html").read_text()
    assert "What do these drivers hold to?" in page
    assert "Learned feasibility against the gap" in page
    result = load(out / "run")
    model = result.constraint.model
    assert model.voting == "visits-fallible"
    assert model.quantities.ratios == ((GAP_AHEAD, SPEED[0]),)
    assert {rule.quantity for rule in result.constraint.rules(0.9)} <= {GAP_AHEAD, TIME_GAP}
    people = Trajectories.load(out / "drivers.hdf5")
    # How far each driver went, and stayed, in the time gap.
    stayed = []
    for episode in people:
        seen = episode.observations[: len(episode.actions)]
        times = np.sort(seen[:, GAP_AHEAD] / np.maximum(seen[:, SPEED[0]], 1e-3))
        stayed.append(times[int(np.ceil(max(3, len(times) / 20))) - 1])
    np.testing.assert_allclose(model.experts.lowest[TIME_GAP], np.sort(stayed), rtol=1e-4)


def test_feasibility_is_that_of_the_gap_for_the_speed(task):
    """By hand: everybody stays at a second or more, and policies would go down to a tenth."""
    quantities, people = TIME_GAP + 1, 40
    inputs = Inputs.blank(TIME_GAP, task.action_space)
    everywhere = jnp.full((quantities, people), 1e6)
    experts = Extent((-everywhere).at[TIME_GAP].set(jnp.linspace(1.0, 1.5, people)), everywhere)
    tempted = Extent((-everywhere).at[TIME_GAP].set(0.1), everywhere)
    who = jnp.zeros((quantities, people), jnp.int32)
    asked = Quantities(((GAP_AHEAD, SPEED[0]),), (GAP_AHEAD, TIME_GAP))
    extremes = Extremes(who, who, who, who)
    model = ReachModel(inputs, experts, extremes, tempted, "graded", "visits-fallible", asked)
    spaces = Spaces(task.observation_space, task.action_space)
    constraint = Constraint(model, 0.9, spaces, any_confidence=True, names=task.observation_names)
    moments = Trajectories(
        observations=np.zeros((2, 4, TIME_GAP), np.float32),
        actions=np.zeros((2, 3, 2), np.float32),
        rewards=np.zeros((2, 3)),
        lengths=np.array([3, 3]),
    )
    recovered = SimpleNamespace(trajectories=moments)
    drivers = Drivers(task, recovered, SimpleNamespace(constraint=constraint), (0.5, 0.9))
    gaps, speeds = np.array([20.0, 20.0, 5.0, 5.0]), np.array([10.0, 30.0, 3.0, 10.0])
    np.testing.assert_array_equal(feasibility_at(drivers, gaps, speeds, 0.9) >= 1, [1, 0, 1, 0])
    assert held(drivers, 0.9, GAP_AHEAD) == "not found"
    assert 1.2 < float(held(drivers, 0.9, TIME_GAP).removesuffix(" s")) < 1.4
