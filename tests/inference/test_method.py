"""Methods, models and encoders of one's own, in one's own file: this one."""

import dataclasses
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacit
from tacit.control.multiplier import Multiplier
from tacit.control.networks import Perceptron
from tacit.control.settings import PPO
from tacit.control.table_policy import TablePolicy
from tacit.errors import ArgumentError, StorageError
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.baselines.vicrl import VICRL
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import MODELS, Spaces
from tacit.inference.encoder.encoders import ENCODERS
from tacit.inference.encoder.method import CAICRL
from tacit.inference.inputs import Inputs
from tacit.inference.method import ExactMethod, Judged, Learned, Moment, find_method
from tacit.inference.result import Result
from tacit.inference.trained_method import StepCosts
from tacit.methods import METHODS
from tacit.runs.tree_file import read_stored, write_tree

FORWARD = PPO(steps=4 * 20 * 4, worlds=4, rollout=20, minibatch=40, epochs=2, hidden=(8,))
SEEN = np.random.default_rng(0).uniform(-2, 2, (9, 2)).astype(np.float32)
DONE = np.zeros((9, 2), np.float32)

pytestmark = pytest.mark.usefixtures("hasty_imitation")


class PlaneModel(tacit.ConstraintModel):
    """Feasible on one side of a plane through the features of a step."""

    inputs: Inputs
    slope: jax.Array
    place: jax.Array

    name: ClassVar[str] = "test-plane"

    @classmethod
    def start(cls, inputs, hidden, *, key):
        """Flat."""
        del hidden, key
        return cls(inputs, jnp.zeros(inputs.size), jnp.zeros(()))

    def logit(self, steps):
        """How far on the feasible side each step is."""
        return self.inputs(steps.observations, steps.actions) @ self.slope + self.place

    def feasibility(self, observations, actions, confidence):
        """A sigmoid across the plane; it knows no confidence."""
        del confidence
        return jax.nn.sigmoid(self.inputs(observations, actions) @ self.slope + self.place)

    def shape(self):
        """Nothing but the sizes of steps decides it."""
        return {}

    @classmethod
    def blank(cls, spaces, shape):
        """A flat one."""
        del shape
        return cls.start(Inputs.blank(spaces.observation_size, spaces.action), (), key=None)


@dataclass(frozen=True, kw_only=True)
class Plane(StepCosts):
    """The plane that tells experts from policies.

    Fields:
        decay: how much steepness costs.
    """

    decay: float = 0.1

    name: ClassVar[str] = "test-plane"
    kind: ClassVar[type[PlaneModel]] = PlaneModel

    def loss(self, model, batch):
        """The cross-entropy, and a price of steepness."""
        mine, theirs = model.logit(batch.experts), model.logit(batch.policy)
        told = jax.nn.log_sigmoid(mine).mean() + jax.nn.log_sigmoid(-theirs).mean()
        return self.decay * jnp.square(model.slope).sum() - told


class WallModel(tacit.ConstraintModel):
    """Feasible is what lies within the box of all that experts saw."""

    low: jax.Array
    high: jax.Array

    name: ClassVar[str] = "test-wall"

    def feasibility(self, observations, actions, confidence):
        """1 within the box, 0 outside."""
        del actions, confidence
        return ((observations >= self.low) & (observations <= self.high)).all(axis=-1) * 1.0

    def shape(self):
        """How many numbers there are."""
        return {"size": len(self.low)}

    @classmethod
    def blank(cls, spaces, shape):
        """A box without room."""
        del spaces
        return cls(jnp.zeros(shape["size"]), jnp.zeros(shape["size"]))

    def rules(self, confidence, names):
        """The lower sides, in words."""
        return [f"{name} is at least {low:.2f}" for name, low in zip(names, self.low, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Wall(tacit.Method):
    """Whatever is beyond all experts is forbidden: nothing is trained.

    Fields:
        margin: by how much the box is wider than the experts.
    """

    margin: float = 0.0

    name: ClassVar[str] = "test-wall"
    reported: ClassVar[tuple[str, ...]] = ("volume", "expert_cost")

    def begin(self, inputs, experts, forward, *, key):
        """The box of what experts saw; it counts the rollouts that it judged."""
        del inputs, forward, key
        seen = [
            rows[:length]
            for rows, length in zip(experts.observations, experts.lengths, strict=True)
        ]
        seen = np.concatenate(seen)
        low, high = seen.min(axis=0) - self.margin, seen.max(axis=0) + self.margin
        return Learned(WallModel(jnp.asarray(low), jnp.asarray(high)), (), jnp.zeros((), jnp.int32))

    def judge(self, learned, rollout, moment):
        """The cost of being outside."""
        assert isinstance(moment, Moment)
        costs = learned.model.cost(rollout.observations, rollout.actions, moment.confidence)
        learned = learned._replace(memory=learned.memory + 1)
        return Judged(learned, np.asarray(costs)[..., None], rollout.rewards)

    def update(self, learned, given, *, key):
        """Nothing to learn."""
        del given, key
        return learned, {"volume": float(jnp.prod(learned.model.high - learned.model.low))}

    def experts_cost(self, learned, given, width):
        """They are all inside."""
        del learned, given, width
        return 0.0

    def allowance(self, expert_cost, confidence):
        """A share of the steps."""
        return expert_cost + (1 - confidence) / 4


@dataclass(frozen=True, kw_only=True)
class Anything(ExactMethod):
    """All is allowed, and every action is as good as the others.

    Fields:
        certain: how many votes for there are.
    """

    certain: int = 3

    name: ClassVar[str] = "test-anything"

    def learn(self, task, demonstrations, confidence, seed):
        """No look at the data."""
        from tacit.inference.counts.model import TableModel

        votes = np.full(task.number_of_queries, 1.0 + self.certain)
        model = TableModel(votes, np.ones_like(votes), "hard", 0.0, task.number_of_actions, "state")
        shape = (task.horizon, task.number_of_states, task.number_of_actions)
        return Result(
            constraint=Constraint(model, confidence, model.spaces(), True),
            policy=TablePolicy(np.full(shape, 1 / task.number_of_actions)),
            metrics={"certain": float(self.certain)},
            settings={
                "task": task.name,
                "method": self.name,
                "settings": self.settings(),
                "confidence": confidence,
                "seed": seed,
                "demonstrations": len(demonstrations),
            },
            task=task,
        )


class MeanEncoder(tacit.Encoder):
    """The mean of an expert's steps, whatever the query is."""

    question: Perceptron
    answer: jax.Array

    name: ClassVar[str] = "test-mean"

    @classmethod
    def start(cls, features, width, *, heads, layers, key):
        """A network for queries, a matrix for steps."""
        del heads, layers
        one, other = jax.random.split(key)
        network = Perceptron([features, width], 1.0, key=one)
        return cls(network, jax.random.normal(other, (features, width)))

    def encode(self, features, present):
        """Each step by itself."""
        return features @ self.answer

    def compare(self, queries, tokens, present):
        """The same weight for every step that is there."""
        even = present / jnp.maximum(present.sum(axis=1, keepdims=True), 1)
        weights = jnp.broadcast_to(even[..., None], (*present.shape, len(queries)))
        found = jnp.einsum("smd,smb->sdb", tokens, weights)
        return found * queries.T, weights


# Known from their definition on; but to other tests in this process only these here show them.
OWN = tuple(
    (table, name, table.pop(name))
    for table in (METHODS, MODELS, ENCODERS)
    for name in list(table)
    if name.startswith("test-")
)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Method, model and encoder as they are known after their definition."""
    for table, name, kind in OWN:
        monkeypatch.setitem(table, name, kind)


def infer(point, method, **changes):
    price = Multiplier(budget_per=getattr(method, "budget_per", "step"), start=1.0, rate=0.1)
    forward = dataclasses.replace(FORWARD, multiplier=price)
    return tacit.infer(*point, method=method, forward=forward, **changes)


def test_what_is_defined_is_known_by_its_name():
    assert {(name, kind) for _, name, kind in OWN} == {
        ("test-plane", Plane),
        ("test-wall", Wall),
        ("test-anything", Anything),
        ("test-plane", PlaneModel),
        ("test-wall", WallModel),
        ("test-mean", MeanEncoder),
    }
    assert find_method("test-plane") is Plane
    with pytest.raises(ArgumentError, match=r"did you mean test-wall\?"):
        find_method("test-wal")


SMALL = {"hidden": (8,), "passes": 2, "minibatch": 16, "rows": 32, "rounds": 3, "every": 2}


@pytest.mark.parametrize(
    "method", [Plane(**SMALL), Wall(every=2, margin=0.1)], ids=["plane", "wall"]
)
def test_a_method_of_ones_own_runs_saves_and_loads(point, method, tmp_path):
    result = infer(point, method, folder=tmp_path, seed=5)
    assert result.method == method.name
    assert result.settings["settings"] == method.settings()
    assert set(method.reported) <= set(result.metrics)
    assert result.constraint.facts["method"] == method.name
    back = tacit.load(tmp_path)
    assert type(back.constraint.model) is type(result.constraint.model)
    assert back.constraint.names == ("x", "y") == tuple(point[0].observation_names)
    for ask in ("cost", "feasibility"):
        one, other = (getattr(each.constraint, ask)(SEEN, DONE) for each in (result, back))
        assert one.tobytes() == other.tobytes()
    assert tacit.evaluate(back, episodes=4) == tacit.evaluate(result, episodes=4)
    again = infer(point, method, seed=5)
    assert again.constraint.cost(SEEN, DONE).tobytes() == (
        result.constraint.cost(SEEN, DONE).tobytes()
    )


def test_a_method_of_ones_own_is_chosen_by_its_name_too(point, tmp_path):
    one, other = infer(point, "test-wall", folder=tmp_path), infer(point, Wall())
    assert one.settings["settings"] == other.settings["settings"] == Wall().settings()
    assert one.constraint.cost(SEEN, DONE).tobytes() == other.constraint.cost(SEEN, DONE).tobytes()
    # The same run, as it is finished already.
    assert infer(point, Wall(), folder=tmp_path).metrics == one.metrics


def test_a_method_of_ones_own_learns_what_it_should(point):
    _, data = point
    result = infer(point, Wall(margin=0.25))
    seen = data.observations[:, :-1].reshape(-1, 2)
    np.testing.assert_allclose(result.constraint.model.low, seen.min(axis=0) - 0.25, rtol=1e-6)
    assert not result.constraint.cost(seen, np.zeros_like(seen)).any()
    rules = result.constraint.rules()
    assert rules[0] == f"x is at least {seen[:, 0].min() - 0.25:.2f}"
    assert rules[1].startswith("y is at least")


def test_settings_of_ones_own_are_checked_like_all_others(point):
    for kind, typo, meant in ((Plane, "decya", "decay"), (Wall, "margn", "margin")):
        words = rf"method '{kind.name}' has no setting '{typo}'; .*did you mean {meant}\?"
        with pytest.raises(ArgumentError, match=words):
            kind(**{typo: 1})
        with pytest.raises(ArgumentError, match=words):
            kind.preset(point[0], **{typo: 1})
    with pytest.raises(ArgumentError, match="every"):
        Wall(every=0)


def test_an_exact_method_of_ones_own_runs_on_tables_only(point, tmp_path):
    task = tacit.make("Chain")
    data = tacit.collect(tacit.train_expert(task), 3, seed=0)
    result = tacit.infer(task, data, method=Anything(certain=5), folder=tmp_path)
    back = tacit.load(tmp_path)
    assert back.method == result.method == "test-anything"
    assert back.metrics == {"certain": 5.0}
    assert not back.constraint.cost(np.arange(task.number_of_states), 0).any()
    assert tacit.evaluate(back) == tacit.evaluate(result)
    with pytest.raises(ArgumentError, match=r"'test-anything' .*BlockedPoint"):
        tacit.infer(*point, method="test-anything")
    with pytest.raises(ArgumentError, match="takes a method that learns by acting"):
        tacit.sufficient(task, data, 0.8, 1.0, method=Anything())
    levels = tacit.tradeoff(task, data, confidences=(0.5, 0.9), method=Anything())
    assert levels[0].reward == levels[1].reward == tacit.evaluate(result).feasible_reward
    with pytest.raises(ArgumentError, match="no meaning for 'test-anything'"):
        tacit.infer(task, data, method=Anything(), threads=2)


def test_two_classes_of_one_name_are_refused():
    with pytest.raises(ArgumentError, match=r"method 'vicrl' exists already \(tacit\..*VICRL\)"):

        class Mine(VICRL):
            name = "vicrl"

    with pytest.raises(ArgumentError, match=r"constraint model 'reach' exists already \(tacit"):

        class MyModel(tacit.ConstraintModel):
            name = "reach"

    with pytest.raises(ArgumentError, match=r"encoder 'test-mean' exists already .*MeanEncoder"):

        class MyEncoder(tacit.Encoder):
            name = "test-mean"

    assert (METHODS["vicrl"], ENCODERS["test-mean"]) == (VICRL, MeanEncoder)


def test_a_class_that_is_defined_again_takes_its_own_place(monkeypatch):
    """As when the cell of a notebook is run twice."""

    def cell(value):
        @dataclass(frozen=True, kw_only=True)
        class Again(VICRL):
            """Once more."""

            regulariser: float = value

            name: ClassVar[str] = "test-again"

        return Again

    monkeypatch.setitem(METHODS, "test-again", None)
    del METHODS["test-again"]
    one, other = cell(0.1), cell(0.2)
    assert one is not other
    assert find_method("test-again") is other
    assert find_method("test-again")().regulariser == 0.2


def test_a_name_that_is_only_inherited_is_none(point, tmp_path):
    class Heir(BC2L):
        """Would say that `bc2l` ran."""

    with pytest.raises(ArgumentError, match="method Heir has no `name` of its own"):
        Heir()

    class HeirModel(WallModel):
        """Would be read as a wall."""

    spaces = Spaces(point[0].observation_space, point[0].action_space)
    rule = Constraint(HeirModel(jnp.zeros(2), jnp.ones(2)), 0.8, spaces, False)
    with pytest.raises(ArgumentError, match="constraint model HeirModel has no `name` of its own"):
        rule.save(tmp_path / "rule")
    assert not (tmp_path / "rule").exists()

    class HeirEncoder(MeanEncoder):
        """Would be the mean."""

    with pytest.raises(ArgumentError, match="encoder HeirEncoder has no `name` of its own"):
        CAICRL(encoder=HeirEncoder)


def test_a_model_that_cannot_be_saved_is_named_before_the_training(point, tmp_path):
    class Careless(Wall):
        """Forgets what a constraint is made of."""

        name: ClassVar[str] = "test-careless"

        def constraint(self, learned):
            """No model."""
            return np.zeros(2)

    METHODS.pop("test-careless")
    with pytest.raises(ArgumentError, match=r"made of a tacit\.ConstraintModel, not ndarray"):
        infer(point, Careless(), progress=lambda facts: pytest.fail("it went on"))


def test_a_constraint_is_not_read_where_its_model_is_not_known(point, tmp_path):
    rule = infer(point, Wall()).constraint
    path = rule.save(tmp_path / "rule.safetensors")
    assert Constraint.load(path).cost(SEEN, DONE).tobytes() == rule.cost(SEEN, DONE).tobytes()
    program = (
        "import sys, tacit\n"
        "try:\n"
        "    tacit.Constraint.load(sys.argv[1])\n"
        "except tacit.errors.StorageError as error:\n"
        "    print(error)\n"
        "print('test_method' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, imported = done.stdout.splitlines()
    assert "rule.safetensors" in said
    assert "'test-wall', which is not known here" in said
    assert "import the module that defines it first" in said
    assert imported == "False"


def test_a_file_cannot_make_anything_be_imported(point, tmp_path):
    path = infer(point, Wall()).constraint.save(tmp_path / "rule")
    stored = read_stored(path)
    model = stored.tree(WallModel.blank(None, {"size": 2}))
    for name in ("os", "os:system", "tacit.inference.constraint", "", 3, None, ["test-wall"]):
        write_tree(path, model, {**stored.header, "model": name})
        with pytest.raises(StorageError, match="rule"):
            Constraint.load(path)


VOTES = {
    **{name: SMALL[name] for name in SMALL if name != "hidden"},
    "objective": "evidence",
    "width": 4,
    "tokens": 3,
    "voters": 4,
    "compared": 4,
}


def test_an_encoder_of_ones_own_by_class_and_by_name(point, tmp_path):
    by_class, by_name = CAICRL(encoder=MeanEncoder, **VOTES), CAICRL(encoder="test-mean", **VOTES)
    assert by_class == by_name
    assert by_class.settings()["encoder"] == "test-mean"
    result = infer(point, by_class, folder=tmp_path)
    assert result.settings["settings"]["encoder"] == "test-mean"
    back = tacit.load(tmp_path).constraint
    assert isinstance(back.model.model.encoder, MeanEncoder)
    for level in (0.5, 0.9):
        one, other = (rule.cost(SEEN, DONE, level) for rule in (back, result.constraint))
        assert one.tobytes() == other.tobytes()
    assert eqx.tree_equal(back.model, result.constraint.model)
    votes = back.evidence(SEEN, DONE, most=2)
    assert votes.expert.shape == (9, 2)
    ENCODERS.pop("test-mean")
    with pytest.raises(StorageError, match=r"encoder must be .*'test-mean'"):
        Constraint.load(tmp_path / "constraint.safetensors")
