"""Are demonstrations enough where nothing is exact: nested subsets, warm starts, honest answers."""

import numpy as np
import pytest

import tacit
from tacit.control.multiplier import Multiplier
from tacit.errors import ArgumentError
from tacit.evaluation.intervals import Estimate
from tacit.inference.loop import Inference
from tacit.inference.reach.method import Reach
from tacit.sufficiency import decision
from tacit.sufficiency.decision import SHARE, simulated_sizes
from tacit.sufficiency.learning_curve import LearningCurve

TASK = tacit.make("BiasedPendulum", horizon=12)
FORWARD = tacit.PPO(
    steps=4 * 16 * 16,
    worlds=4,
    rollout=16,
    minibatch=32,
    epochs=2,
    hidden=(8,),
    intent=0.5,
    multiplier=Multiplier(kind="share", budget_per="worst", largest=10.0),
)

pytestmark = pytest.mark.usefixtures("hasty_imitation")


@pytest.fixture(scope="module")
def demonstrations():
    random = np.random.default_rng(0)
    return tacit.Trajectories(
        observations=random.normal(0, 0.01, (9, 13, 4)).astype(np.float32),
        actions=random.uniform(-1, 1, (9, 12, 1)).astype(np.float32),
        rewards=np.ones((9, 12), np.float32),
        lengths=random.integers(2, 13, 9),
    )


@pytest.fixture(scope="module")
def asked(demonstrations):
    """An answer, and which experts were turned to with how many updates each."""
    turned, told = [], []
    continue_at = Inference.continue_at

    def remembered(run, confidence, experts, share):
        turned.append(experts)
        continue_at(run, confidence, experts, share)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Inference, "continue_at", remembered)
        patch.setattr(decision, "EPISODES", 6)
        answer = tacit.sufficient(
            TASK, demonstrations, 0.7, 1e6, forward=FORWARD, progress=told.append
        )
    return answer, turned, told


def test_subsets_of_one_order_are_nested_and_all_of_the_demonstrations_are_the_last(asked):
    answer, turned, _ = asked
    assert answer.curve.sizes.tolist() == [2, 4, 9]
    assert answer.curve.values.shape == (3, 3)
    assert len(set(answer.curve.values[-1])) == 1
    assert [len(experts) for experts in turned] == [2, 2, 2, 4, 4, 4]
    for small, large in zip(turned[:3], turned[3:], strict=True):
        np.testing.assert_array_equal(small.lengths, large.lengths[:2])


def test_all_subsets_together_take_less_than_another_run(asked):
    _, turned, told = asked
    assert len(told) == FORWARD.iterations * (1 + len(turned) * SHARE)
    assert len(told) < 2 * FORWARD.iterations


def test_the_answer_has_an_interval_for_other_data_and_for_the_episodes(asked):
    answer, _, _ = asked
    assert not answer.enough
    assert answer.reason.startswith("no: ")
    assert answer.curve.noise > 0
    assert answer.value.low < answer.value.value < answer.value.high
    width = answer.value.high - answer.value.value
    assert width == pytest.approx(4.303 * answer.curve.spread, rel=1e-3)
    assert answer.constraint.confidence == 0.7
    assert answer.number == 9


@pytest.mark.parametrize(
    ("wanted", "enough", "begins"),
    [(0.5, True, "yes: "), (1.5, False, "not clear, so no: "), (9.0, False, "no: ")],
)
def test_what_the_interval_holds_is_not_called_enough(
    demonstrations, monkeypatch, wanted, enough, begins
):
    curve = LearningCurve(
        np.array([2, 4, 9]), np.array([[1.0, 1.2, 1.1], [1.4, 1.6, 1.5], [1.6, 1.6, 1.6]]), 0.01
    )
    assert curve.value.low == pytest.approx(1.6 - 4.303 * np.hypot(0.1 * np.sqrt(0.8), 0.01), 1e-3)
    monkeypatch.setattr(decision, "simulated_curve", lambda *_, **__: (curve, None))
    answer = decision.decide_by_acting(
        TASK,
        demonstrations,
        ((4, 1.5),),
        method=Reach(),
        confidence=0.7,
        wanted=wanted,
        seed=0,
        folder=None,
    )
    assert answer.enough is enough
    assert answer.reason.startswith(begins)
    assert answer.history == ((4, 1.5), (9, pytest.approx(1.6)))
    assert isinstance(answer.value, Estimate)


def test_more_are_collected_until_there_are_enough(demonstrations, monkeypatch):
    given = []

    def curve(task, demonstrations, **rest):
        given.append((len(demonstrations), rest["folder"].name))
        value = float(len(demonstrations))
        return LearningCurve(np.array([2, 4, 9]), np.full((3, 3), value), 0.0), None

    monkeypatch.setattr(decision, "simulated_curve", curve)
    answer = tacit.sufficient(
        TASK,
        demonstrations,
        0.7,
        12.0,
        collect=lambda number: demonstrations.subset(min(number, 9), seed=0),
        folder="runs",
    )
    assert answer.enough
    assert given[0] == (9, "9")
    assert [str(number) for number, _ in given] == [name for _, name in given]
    assert answer.history[-1][0] >= 12


@pytest.mark.parametrize(
    ("number", "sizes"), [(1, [1]), (2, [1, 2]), (3, [1, 3]), (8, [2, 4, 8]), (300, [75, 150, 300])]
)
def test_a_quarter_a_half_and_all(number, sizes):
    assert simulated_sizes(number).tolist() == sizes


@pytest.mark.parametrize("method", ["counts", tacit.methods.Likelihood()])
def test_a_method_of_tables_is_refused(demonstrations, method):
    with pytest.raises(ArgumentError, match=r"table, which BiasedPendulum does not have; 'reach'"):
        tacit.sufficient(TASK, demonstrations, 0.7, 1.0, method=method)
