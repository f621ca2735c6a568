"""A learned constraint from outside: questions of any shape, at any confidence, in one file."""

import dataclasses
import importlib.metadata
import itertools

import equinox as eqx
import gymnasium
import jax
import numpy as np
import pytest
from scipy import stats

from tacit.errors import ArgumentError, StorageError
from tacit.inference import constraint_model
from tacit.inference.baselines.networks import ClassifierModel, VariationalModel
from tacit.inference.constraint import Constraint, described
from tacit.inference.constraint_model import Spaces
from tacit.inference.encoder.belief_model import BeliefModel, BeliefShape, new_model
from tacit.inference.inputs import Inputs, Steps
from tacit.runs.tree_file import read_stored, write_tree

BOX = gymnasium.spaces.Box(np.array([-1.0, -3.0], np.float32), np.array([1.0, np.inf], np.float32))
FOUR = gymnasium.spaces.Discrete(4, start=0)
THREE_NUMBERS = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
RANDOM = np.random.default_rng(0)
SEEN = RANDOM.normal(size=(6, 5, 3)).astype(np.float32)
DONE = RANDOM.uniform(-1, 1, (6, 5, 2)).astype(np.float32)
CHOSEN = RANDOM.integers(4, size=(6, 5))
BY_STEP = ("classifier", "variational", "belief", "visits")
KINDS = (*BY_STEP, "over time")
LEVELS = (0.05, 0.3, 0.5, 0.8, 0.95)


def noisy(model):
    """The model with other weights, so that its answers differ from step to step."""
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    random = np.random.default_rng(1)
    moved = [leaf + 0.5 * random.normal(size=leaf.shape).astype(np.float32) for leaf in leaves]
    return eqx.combine(jax.tree.unflatten(tree, moved), rest)


def belief_model(inputs, votes="independent", granularity="step"):
    visits = votes == "visits"
    made = BeliefShape(votes, granularity, "bidaf", 8, 2, 1, 4, 3, 2 * visits, 2 * visits)
    model = noisy(new_model(inputs, made, 9, key=jax.random.key(0)))
    actions = DONE if inputs.number_of_actions is None else CHOSEN
    steps = Steps(SEEN[:4, :3], actions[:4, :3], np.ones((4, 3), bool))
    memory = model.remember(steps, np.array([0, 2, 5, 8]), np.arange(12).reshape(4, 3), 9)
    policies = None
    if visits:
        windows = Steps(
            SEEN[:4, :3].reshape(2, 2, 3, 3), actions[1:5, :3].reshape(2, 2, 3, 2), None
        )
        windows = windows._replace(present=np.ones((2, 2, 3), bool))
        policies = model.remember_policies(windows, np.array([True, False]))
    return BeliefModel(model, memory, policies, "soft", 0.02, made)


def constraint_of(kind, space=BOX):
    inputs = Inputs.fit(space, SEEN.reshape(-1, 3), 2 * SEEN.reshape(-1, 3))
    if kind == "classifier":
        model = noisy(ClassifierModel.start(inputs, (8, 4), key=jax.random.key(0)))
    elif kind == "variational":
        model = noisy(VariationalModel.start(inputs, (8,), key=jax.random.key(0)))
    elif kind == "belief":
        model = belief_model(inputs)
    elif kind == "over time":
        model = belief_model(inputs, granularity="trajectory")
    else:
        model = belief_model(inputs, votes="visits")
    spaces = Spaces(THREE_NUMBERS, space)
    return Constraint(model, 0.8, spaces, True, {"method": kind, "demonstrations": 9})


@pytest.fixture(scope="module")
def constraints():
    return {kind: constraint_of(kind) for kind in KINDS}


@pytest.fixture(scope="module", params=KINDS)
def constraint(request, constraints):
    return constraints[request.param]


@pytest.fixture(scope="module", params=BY_STEP)
def by_step(request, constraints):
    """Those that judge a step by itself."""
    return constraints[request.param]


@pytest.fixture(scope="module")
def belief(constraints):
    return constraints["belief"]


@pytest.fixture(scope="module")
def classifier(constraints):
    return constraints["classifier"]


def test_costs_and_feasibilities_lie_between_zero_and_one_and_differ(by_step):
    feasibility, cost = by_step.feasibility(SEEN, DONE), by_step.cost(SEEN, DONE)
    for answers in (feasibility, cost):
        assert answers.shape == (6, 5)
        assert ((answers >= 0) & (answers <= 1)).all()
    assert feasibility.std() > 1e-3
    np.testing.assert_allclose(cost, 1 - feasibility, atol=1e-6)


def test_any_arrangement_of_the_same_steps_has_the_same_answers(by_step):
    wanted = by_step.cost(SEEN, DONE)
    np.testing.assert_array_equal(by_step.cost(SEEN[:, None], DONE[:, None])[:, 0], wanted)
    flat = by_step.cost(SEEN.reshape(-1, 3), DONE.reshape(-1, 2))
    np.testing.assert_array_equal(flat.reshape(6, 5), wanted)
    order = RANDOM.permutation(6)
    np.testing.assert_array_equal(by_step.cost(SEEN[order], DONE[order]), wanted[order])
    np.testing.assert_array_equal(by_step.cost(SEEN.tolist(), DONE.tolist()), wanted)


def test_a_single_step_is_answered_with_a_single_number(by_step):
    alone = by_step.cost(SEEN[2, 3], DONE[2, 3])
    assert alone.shape == ()
    assert float(alone) == pytest.approx(float(by_step.cost(SEEN, DONE)[2, 3]), abs=1e-6)
    assert by_step.cost(SEEN[:0, 0], DONE[:0, 0]).shape == (0,)


def test_costs_of_a_trajectory_add_up_to_what_its_feasibility_lacks(constraints):
    over_time = constraints["over time"]
    feasibility, cost = (ask(SEEN, DONE) for ask in (over_time.feasibility, over_time.cost))
    assert ((feasibility >= 0) & (feasibility <= 1)).all()
    np.testing.assert_allclose(np.cumsum(cost, axis=1), 1 - feasibility, atol=1e-5)


def test_a_step_of_a_trajectory_is_judged_by_what_came_before_and_by_nothing_else(constraints):
    over_time = constraints["over time"]
    wanted = over_time.cost(SEEN, DONE)
    early = over_time.cost(SEEN[:, :3], DONE[:, :3])
    np.testing.assert_allclose(early, wanted[:, :3], atol=1e-6)
    late = over_time.cost(SEEN[:, 2:], DONE[:, 2:])
    assert np.abs(late - wanted[:, 2:]).max() > 0.1
    assert over_time.cost(SEEN[0, 0], DONE[0, 0]) == pytest.approx(wanted[0, 0], abs=1e-6)


def test_many_steps_are_answered_in_parts_without_a_seam(classifier, monkeypatch):
    wanted = classifier.cost(SEEN, DONE)
    monkeypatch.setattr(constraint_model, "ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(classifier.cost(SEEN, DONE), wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("seen", "done", "words"),
    [
        (SEEN[..., :2], DONE, r"3 numbers in their last axis, not the shape \[6, 5, 2\]"),
        (np.float32(1), DONE[0, 0], "3 numbers in their last axis"),
        (SEEN, DONE[..., :1], r"actions: must have the shape \[6, 5, 2\]"),
        (SEEN, DONE[:3], r"not \[3, 5, 2\]"),
        (np.full_like(SEEN, np.nan), DONE, "must be finite"),
        (SEEN, np.full_like(DONE, np.inf), "must be finite"),
    ],
)
def test_what_are_no_steps_of_the_task_is_an_error(classifier, seen, done, words):
    for question in (classifier.cost, classifier.feasibility):
        with pytest.raises(ArgumentError, match=words):
            question(seen, done)


def test_discrete_actions_are_whole_numbers_with_or_without_an_axis_of_their_own():
    constraint = constraint_of("classifier", FOUR)
    plain = constraint.cost(SEEN, CHOSEN)
    np.testing.assert_array_equal(constraint.cost(SEEN, CHOSEN[..., None]), plain)
    other = constraint.cost(SEEN, (CHOSEN + 1) % 4)
    assert (np.abs(other - plain) > 1e-4).any()
    with pytest.raises(ArgumentError, match="whole numbers"):
        constraint.cost(SEEN, CHOSEN.astype(float))
    with pytest.raises(ArgumentError, match=r"must have the shape \[6, 5\]"):
        constraint.cost(SEEN, np.stack([CHOSEN, CHOSEN], axis=-1))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, 2, float("nan"), "high"])
def test_a_confidence_out_of_bounds_is_an_error(belief, confidence):
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        belief.cost(SEEN, DONE, confidence)


def test_the_more_confidence_is_asked_for_the_less_is_feasible(belief):
    answers = [belief.feasibility(SEEN, DONE, level) for level in LEVELS]
    for looser, tighter in itertools.pairwise(answers):
        assert (tighter < looser).all()
    np.testing.assert_array_equal(belief.feasibility(SEEN, DONE), answers[LEVELS.index(0.8)])


def test_the_others_know_no_confidence(constraints):
    for kind in ("classifier", "variational"):
        low, high = (constraints[kind].cost(SEEN, DONE, level) for level in (0.1, 0.9))
        np.testing.assert_array_equal(low, high)


def test_what_was_trained_for_one_confidence_does_not_answer_at_another(belief):
    bound = dataclasses.replace(belief, any_confidence=False)
    np.testing.assert_array_equal(bound.cost(SEEN, DONE, 0.8), belief.cost(SEEN, DONE))
    with pytest.raises(ArgumentError, match=r"one confidence.*0\.8"):
        bound.cost(SEEN, DONE, 0.9)


def test_votes_of_single_experts_are_the_evidence_behind_a_belief(belief):
    evidence = belief.evidence(SEEN, DONE, most=3)
    alpha, beta = belief.model.belief(SEEN.reshape(-1, 3), DONE.reshape(-1, 2))
    np.testing.assert_allclose(np.ravel(evidence.votes_for), alpha - 1, atol=1e-4)
    np.testing.assert_allclose(np.ravel(evidence.votes_against), beta - 1, atol=1e-4)
    assert evidence.expert.shape[-1] == 3
    assert set(np.unique(evidence.expert)) <= {0, 2, 5, 8}
    # Expert i's steps were numbered 3 i to 3 i + 2 in the memory.
    rows = np.searchsorted([0, 2, 5, 8], evidence.expert)
    np.testing.assert_array_equal(evidence.step // 3, rows)
    assert (np.diff(evidence.weight, axis=-1) <= 1e-6).all()


def test_only_votes_can_be_asked_for_evidence(constraints):
    for kind in ("classifier", "variational"):
        with pytest.raises(ArgumentError, match="'reach', 'counts' and 'ca-icrl' keep the votes"):
            constraints[kind].evidence(SEEN, DONE)


def test_a_saved_constraint_answers_bit_for_bit(constraint, tmp_path):
    path = constraint.save(tmp_path / "constraint.safetensors")
    assert list(tmp_path.iterdir()) == [path]
    back = Constraint.load(path)
    assert type(back.model) is type(constraint.model)
    assert (back.confidence, back.any_confidence) == (0.8, True)
    assert back.facts == constraint.facts
    assert back.spaces == constraint.spaces
    assert back.spaces == constraint.spaces
    for level in (None, 0.3):
        assert back.cost(SEEN, DONE, level).tobytes() == (
            constraint.cost(SEEN, DONE, level).tobytes()
        )


def test_a_constraint_on_discrete_actions_comes_back_too(tmp_path):
    for kind in ("classifier", "belief"):
        constraint = constraint_of(kind, FOUR)
        back = Constraint.load(constraint.save(tmp_path / kind))
        assert back.spaces.action == FOUR
        assert back.cost(SEEN, CHOSEN).tobytes() == constraint.cost(SEEN, CHOSEN).tobytes()


def test_a_damaged_file_is_an_error_wherever_the_damage_is(classifier, tmp_path):
    path = classifier.save(tmp_path / "constraint")
    whole = path.read_bytes()
    for place in (40, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StorageError, match="constraint"):
            Constraint.load(path)
    for length in (0, 30, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(StorageError):
            Constraint.load(path)
    with pytest.raises(StorageError, match="no such file"):
        Constraint.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "oracle"},
        {"shape": {}},
        {"shape": {"hidden": [3]}},
        {"observation_space": described(gymnasium.spaces.Box(-1, 1, (4,)))},
        {"observation_space": {"kind": "discrete", "n": 0}},
        {"observation_space": None},
        {"names": 3},
        {"confidence": "high"},
        {"confidence": 7.0},
        {"action_space": {"kind": "box"}},
        {"facts": None, "kind": "recipe"},
    ],
)
def test_a_foreign_file_is_an_error_that_names_it(classifier, tmp_path, changes):
    header = {
        "kind": "constraint",
        "model": "classifier",
        "shape": classifier.model.shape(),
        "confidence": 0.8,
        "any_confidence": True,
        "observation_space": described(THREE_NUMBERS),
        "action_space": described(BOX),
        "facts": {},
    }
    path = write_tree(tmp_path / "strange", classifier.model, header)
    assert Constraint.load(path).confidence == 0.8
    write_tree(path, classifier.model, {**header, **changes})
    with pytest.raises(StorageError, match="strange"):
        Constraint.load(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_of_version_0_1_0_is_read_bit_for_bit(constraints, tmp_path, kind):
    mine = constraints[kind]
    # What `LearnedConstraint.save` wrote then: no names, no version, and of the observations only
    # how many numbers they have.
    header = {
        "kind": "constraint",
        "model": {"visits": "belief", "over time": "belief"}.get(kind, kind),
        "shape": mine.model.shape(),
        "confidence": 0.8,
        "threshold": 1.0,
        "any_confidence": True,
        "observation_size": 3,
        "action_space": described(BOX),
        "facts": {"method": "ca-icrl"},
    }
    back = Constraint.load(write_tree(tmp_path / "old", mine.model, header))
    assert (back.names, back.spaces.observation_size) == ((), 3)
    assert back.facts == {"method": "ca-icrl"}
    assert back.cost(SEEN, DONE, 0.3).tobytes() == mine.cost(SEEN, DONE, 0.3).tobytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"observation_size": 4},
        {"observation_size": 0},
        {"observation_size": 10**14},
        {"observation_size": "many"},
        {"action_space": {"kind": "discrete", "n": 10**14}},
        {"model": "oracle"},
    ],
)
def test_a_damaged_file_of_version_0_1_0_is_an_error_that_says_who_wrote_it(
    classifier, tmp_path, changes
):
    header = {
        "kind": "constraint",
        "model": "classifier",
        "shape": classifier.model.shape(),
        "confidence": 0.8,
        "any_confidence": True,
        "observation_size": 3,
        "action_space": described(BOX),
        "facts": {},
    }
    path = write_tree(tmp_path / "old", classifier.model, {**header, **changes})
    with pytest.raises(StorageError, match=r"old: .*written by tacit 0\.1\.0 or earlier"):
        Constraint.load(path)


def test_a_file_says_who_wrote_it_and_so_does_the_error(classifier, tmp_path):
    path = classifier.save(tmp_path / "new")
    header = read_stored(path).header
    assert header["tacit"] == importlib.metadata.version("tacit")
    write_tree(path, classifier.model, {**header, "tacit": "7.8.9", "model": "oracle"})
    with pytest.raises(StorageError, match=r"tacit 7\.8\.9.*'oracle'.*import the module that"):
        Constraint.load(path)


def test_at_reads_the_same_rule_at_another_confidence(belief, constraints):
    for kind in KINDS:
        other = constraints[kind].at(0.3)
        assert (other.confidence, constraints[kind].confidence) == (0.3, 0.8)
        assert other.model is constraints[kind].model
        np.testing.assert_array_equal(
            other.cost(SEEN, DONE), constraints[kind].cost(SEEN, DONE, 0.3)
        )
    assert not np.array_equal(belief.at(0.3).cost(SEEN, DONE), belief.cost(SEEN, DONE))
    bound = dataclasses.replace(belief, any_confidence=False)
    with pytest.raises(ArgumentError, match=r"one confidence.*0\.8"):
        bound.at(0.3)


def test_support_is_how_sure_the_votes_make_one(constraints):
    for kind in ("belief", "visits"):
        found = constraints[kind].evidence(SEEN, DONE)
        wanted = stats.beta.sf(0.5, 1 + found.votes_for, 1 + found.votes_against)
        assert found.support.shape == (6, 5)
        np.testing.assert_allclose(found.support, wanted, atol=1e-5)


def test_names_of_observed_numbers_are_kept_in_the_file(classifier, tmp_path):
    named = dataclasses.replace(classifier, names=("x", "y", "z velocity"))
    assert Constraint.load(named.save(tmp_path / "named")).names == ("x", "y", "z velocity")


def test_networks_and_encoders_have_no_rules_to_read(constraint):
    with pytest.raises(ArgumentError, match="nobody can read: 'reach' and 'counts'"):
        constraint.rules()
