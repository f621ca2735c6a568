"""The loop that all methods share: one seed, one run; stopped or not; and no silent divergence."""

import dataclasses

import jax
import numpy as np
import pytest

import tacit
from tacit.control import trainer
from tacit.control.multiplier import Multiplier
from tacit.control.settings import PPO
from tacit.errors import ArgumentError, DivergenceError
from tacit.inference import loop
from tacit.inference.baselines.bc2l import BC2L
from tacit.inference.experts import ExpertSteps
from tacit.inference.loop import Inference
from tacit.inference.method import ExactMethod, Judged, find_method
from tacit.inference.reach import method as reach_method
from tacit.methods import METHODS
from tacit.runs.metrics_file import read_metrics
from tacit.runs.tree_file import read_stored, write_tree

TASK = tacit.make("BiasedPendulum", horizon=12)
SETTINGS = PPO(
    steps=4 * 16 * 6,
    worlds=4,
    rollout=16,
    minibatch=32,
    epochs=2,
    hidden=(8,),
    multiplier=Multiplier(largest=20.0),
)
BY_SHARE = dataclasses.replace(
    SETTINGS, intent=0.5, multiplier=Multiplier(kind="share", budget_per="worst", largest=10.0)
)
SMALL = {"minibatch": 16, "passes": 2, "rows": 32, "rounds": 3, "every": 2}
VOTING = {
    **SMALL,
    "width": 8,
    "heads": 2,
    "layers": 1,
    "tokens": 4,
    "voters": 6,
    "compared": 4,
    "temptations": 2,
}
# Every choice of CA-ICRL is in one of its rows.
CASES = {
    "icrl": ("icrl", {**SMALL, "hidden": (8,)}),
    "bc2l": ("bc2l", {**SMALL, "hidden": (8,)}),
    "vicrl": ("vicrl", {**SMALL, "hidden": (8,)}),
    "gacl": ("gacl", {**SMALL, "hidden": (8,), "every": 1}),
    "icl": ("icl", {**SMALL, "hidden": (8,)}),
    "reach": ("reach", {"every": 2}),
    "contrast": ("ca-icrl", {**VOTING, "objective": "contrast", "reading": "graded"}),
    "evidence": (
        "ca-icrl",
        {
            **VOTING,
            "objective": "evidence",
            "votes": "abstain",
            "encoder": "bidaf",
            "granularity": "trajectory",
            "window": 8,
            "reading": "hard",
        },
    ),
    "quantile": (
        "ca-icrl",
        {**VOTING, "objective": "quantile", "encoder": "attention", "reading": "hard"},
    ),
}


pytestmark = pytest.mark.usefixtures("hasty_imitation")


@pytest.fixture(scope="module")
def experts():
    random = np.random.default_rng(0)
    return ExpertSteps.of(
        TASK,
        tacit.Trajectories(
            observations=random.normal(0, 0.01, (10, 13, 4)).astype(np.float32),
            actions=random.uniform(-1, 1, (10, 12, 1)).astype(np.float32),
            rewards=np.ones((10, 12), np.float32),
            lengths=random.integers(2, 13, 10),
        ),
    )


def inference(experts, case="bc2l", *, seed=0, settings=None, **changes):
    name, chosen = CASES[case]
    settings = settings or (BY_SHARE if case == "reach" else SETTINGS)
    method = find_method(name).preset(TASK, **{**chosen, **changes})
    return Inference(TASK, experts, method, 0.8, settings, seed=seed)


def advance(run, number):
    return [without_seconds(run.advance()) for _ in range(number)]


def without_seconds(facts):
    return {name: value for name, value in facts.items() if name != "seconds"}


def assert_same_leaves(one, other):
    left, right = (jax.tree_util.tree_leaves_with_path(tree) for tree in (one, other))
    for (path, mine), (_, theirs) in zip(left, right, strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert mine.dtype == theirs.dtype
        assert mine.tobytes() == theirs.tobytes(), jax.tree_util.keystr(path)


def timeless(state):
    """A state without how long it took."""
    trainer = {**state["trainer"], "seconds": 0.0}
    return {**state, "trainer": trainer, "seconds": 0.0}


def watched(run):
    """The rollouts of the run from now on, as the worlds take their actions."""
    rollouts, roll_out = [], run.trainer.roll_out

    def seen():
        rollout = roll_out()
        rollouts.append(rollout.within(run.task.action_space))
        return rollout

    run.trainer.roll_out = seen
    return rollouts


def test_every_method_is_among_the_cases():
    ours = {name for name, kind in METHODS.items() if kind.__module__.startswith("tacit.")}
    exact = {name for name in ours if issubclass(METHODS[name], ExactMethod)}
    assert {name for name, _ in CASES.values()} == ours - exact


# The same model and the same memory as `contrast`, with another loss.
LONG = {case: pytest.param(case, marks=pytest.mark.slow) for case in ("evidence", "quantile")}


@pytest.fixture(scope="module", params=[LONG.get(case, case) for case in CASES])
def straight(request, experts, tmp_path_factory):
    """Six iterations without a pause, what was told, and a file with the state after three."""
    run = inference(experts, request.param)
    told = advance(run, 3)
    path = tmp_path_factory.mktemp(request.param) / "state.safetensors"
    write_tree(path, run.state(), {})
    told += advance(run, 3)
    end = run.state()
    run.close()
    assert run.finished
    return request.param, run, told, (path, end)


def test_a_run_taken_up_from_a_file_goes_on_bit_for_bit(straight, experts):
    case, _, told, (path, end) = straight
    other = inference(experts, case)
    state = read_stored(path).tree(other.state())
    other.restore(state)
    assert other.iteration == 3
    assert advance(other, 3) == told[3:]
    assert_same_leaves(timeless(end), timeless(other.state()))
    other.close()


def test_every_iteration_tells_of_the_constraint_with_finite_numbers(straight):
    case, run, told, _ = straight
    for facts in told:
        assert set(run.method.reported) <= set(facts)
        assert all(np.isfinite(value) for value in facts.values())
        assert ("multiplier" in facts) == (case != "gacl")
    if case == "reach":
        assert run.now.replay is None
        assert facts["expert_cost"] == 1 / 11
        return
    assert all(1 <= facts["constraint_passes"] <= 2 for facts in told)
    losses = [facts["constraint_loss"] for facts in told]
    # An update after iterations 1, 2, 4 and 6; between them the last one is repeated.
    if run.method.every == 2:
        assert losses[1] == losses[2]
        assert losses[3] == losses[4]
    assert len(set(losses)) == (4 if run.method.every == 2 else 6)
    assert run.now.replay.rounds == len(set(losses))


def test_learning_has_moved_the_model_but_not_how_steps_are_seen(straight, experts):
    _, run, _, _ = straight
    begin = run.beginning(run.now.learned.model.inputs).model
    assert_same_leaves(begin.inputs, run.now.learned.model.inputs)
    moved = [
        np.abs(np.asarray(one) - np.asarray(other)).max()
        for one, other in zip(
            jax.tree.leaves(begin), jax.tree.leaves(run.now.learned.model), strict=True
        )
    ]
    assert max(moved) > 1e-4


def test_another_seed_gives_another_run(experts):
    runs = [inference(experts, seed=seed) for seed in (0, 0, 1)]
    first, again, other = (advance(run, 2) for run in runs)
    for run in runs:
        run.close()
    assert first == again
    assert first != other
    weights = [np.asarray(run.now.learned.model.network.weights[0]) for run in runs]
    assert not np.allclose(weights[0], weights[2])


def test_the_first_rollout_decides_how_steps_are_seen(experts):
    run = inference(experts)
    assert run.now.learned is None
    rollouts = watched(run)
    run.advance()
    seen = np.asarray(rollouts[0].observations).reshape(-1, 4)
    inputs = run.now.learned.model.inputs
    np.testing.assert_allclose(inputs.centre, seen.mean(axis=0), rtol=1e-4, atol=1e-6)
    every = [experts.observations[n, :length] for n, length in enumerate(experts.lengths)]
    finer = np.minimum(np.concatenate(every).std(axis=0), seen.std(axis=0))
    np.testing.assert_allclose(inputs.scale, finer, rtol=0.1)
    run.advance()
    run.close()
    assert_same_leaves(run.now.learned.model.inputs, inputs)


def test_the_policy_pays_what_the_constraint_said_about_its_steps(experts):
    run = inference(experts)
    rollouts = watched(run)
    run.advance()
    constraint = run.now.learned.model
    facts = run.advance()
    costs = constraint.cost(rollouts[1].observations, rollouts[1].actions, 0.8)
    run.close()
    assert facts["cost"] == pytest.approx(float(np.asarray(costs).mean()), rel=1e-5)


def test_the_policy_may_spend_what_the_experts_spend_and_the_budget(experts):
    run = inference(experts, budget=0.25)
    facts = run.advance()
    steps = experts.draw(4000, np.random.default_rng(9))
    own = run.now.learned.model.cost(steps.observations, steps.actions, 0.8).mean()
    run.close()
    assert facts["expert_cost"] == pytest.approx(float(own), rel=0.02)
    allowed = np.asarray(run.trainer.now.learner.multiplier.allowance)
    np.testing.assert_allclose(allowed, [0.25 + facts["expert_cost"]], rtol=1e-6)


def test_the_price_falls_while_the_policy_spends_less_than_it_may(experts):
    def prices(budget):
        run = inference(experts, budget=budget)
        told = advance(run, 6)
        run.close()
        assert all(facts["cost"] > 0.1 for facts in told)
        return [facts["multiplier"] for facts in told]

    # The first rollout is paid for before the experts' cost is known.
    generous = prices(1.0)[1:]
    assert generous == sorted(generous, reverse=True)
    assert generous[-1] < generous[0]


def not_a_number(self, model, *_, **__):
    return jax.tree.leaves(model)[-1].sum() * np.nan


def far_off(self, learned, rollout, moment):
    costs = np.full((*rollout.rewards.shape, 1), 1e6, np.float32)
    return Judged(learned, costs, rollout.rewards)


def test_a_loss_that_is_no_number_stops_the_run_and_names_quantity_and_step(experts, monkeypatch):
    run = inference(experts, minibatch=8)
    monkeypatch.setattr(BC2L, "loss", not_a_number)
    words = "bc2l on BiasedPendulum diverged: constraint_loss is nan after 64 steps"
    with pytest.raises(DivergenceError, match=words):
        run.advance()
    run.close()


def test_a_price_without_bounds_stops_the_run_and_names_quantity_and_step(experts, monkeypatch):
    monkeypatch.setattr(BC2L, "judge", far_off)
    monkeypatch.setattr(BC2L, "experts_cost", lambda *_: 0.0)
    kind = Multiplier(kind="pid", proportional=1.0)
    run = inference(experts, settings=dataclasses.replace(SETTINGS, multiplier=kind))
    with pytest.raises(DivergenceError, match=r"multiplier is 2e\+06 after 64 steps"):
        run.advance()
    run.close()


def test_after_a_divergence_the_last_good_checkpoint_is_kept_and_goes_on(
    experts, tmp_path, monkeypatch
):
    monkeypatch.setattr(trainer, "CHECKPOINT_EVERY", 2)
    given = tacit.Trajectories(
        experts.observations, experts.actions, np.zeros((10, 12)), experts.lengths
    )
    chosen = {"method": BC2L(**CASES["bc2l"][1]), "forward": SETTINGS}

    def spoil(facts):
        if facts["iteration"] == 3:
            patch.setattr(loop, "EXPLODED", -1.0)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(DivergenceError) as stop:
        tacit.infer(TASK, given, **chosen, folder=tmp_path / "a", progress=spoil)
    assert "multiplier is" in str(stop.value)
    assert "after 256 steps" in str(stop.value)
    assert f"kept in {tmp_path / 'a'}" in str(stop.value)
    kept = read_stored(tmp_path / "a" / "checkpoint.safetensors")
    assert kept.header["facts"]["steps"] == 128
    notices = []
    result = tacit.infer(TASK, given, **chosen, folder=tmp_path / "a", notice=notices.append)
    assert ["goes on after 128 steps" in notice for notice in notices] == [True]
    assert result.metrics["steps"] == SETTINGS.steps
    tacit.infer(TASK, given, **chosen, folder=tmp_path / "b")
    one, other = (read_metrics(tmp_path / name / "metrics.jsonl") for name in "ab")
    assert [without_seconds(line) for line in one] == [without_seconds(line) for line in other]


def test_a_run_that_was_turned_keeps_what_it_knows_and_cannot_be_saved(experts):
    run = inference(experts, "reach")
    advance(run, 6)
    known = run.now.learned.model.tempted
    run.continue_at(0.5, experts, 0.5)
    assert run.iteration == 3
    advance(run, 3)
    assert run.finished
    assert (np.asarray(run.now.learned.model.tempted.lowest) <= np.asarray(known.lowest)).all()
    assert np.isfinite(np.asarray(known.lowest)).all()
    with pytest.raises(ArgumentError, match="rewound"):
        run.state()
    with pytest.raises(ArgumentError, match="share"):
        run.continue_at(0.5, experts, 1.5)
    run.close()


def test_a_policy_is_tempted_first_and_then_begins_as_the_experts_do(experts):
    run = inference(experts, "reach", temptation=0.5)
    advance(run, 3)
    assert run.trainer.now.imitation is None
    policy = run.trainer.now.learner.policy
    run.advance()
    # It rests while the critics get to know it.
    clone = run.trainer.now.learner.policy
    assert not np.allclose(clone.mean.weights[0], policy.mean.weights[0])
    np.testing.assert_array_equal(run.trainer.now.imitation.weights[0], clone.mean.weights[0])
    assert run.trainer.now.ledger.number <= 4 * 16 // 2
    run.advance()
    assert not np.array_equal(run.trainer.now.learner.policy.mean.weights[0], clone.mean.weights[0])
    run.close()


@pytest.mark.parametrize(
    ("votes", "costs"), [("visits", [0.5] * 6), ("visits-fallible", [0, 0, 0, 0.5, 0.5, 0.5])]
)
def test_where_experts_err_nothing_costs_as_long_as_the_policy_is_tempted(
    experts, monkeypatch, votes, costs
):
    def costs_of(model, observations, confidence):
        return np.full((*observations.shape[:-1], 4), 0.5, np.float32)

    monkeypatch.setattr(reach_method, "costs_of", costs_of)
    run = inference(experts, "reach", temptation=0.5, votes=votes)
    assert [facts["cost"] for facts in advance(run, 6)] == costs
    run.close()


def test_who_is_to_be_able_begins_twice_as_the_experts_do(experts):
    run = inference(experts, "reach", temptation=0.5, start="clone")
    advance(run, 1)
    first = run.trainer.now.imitation
    assert first is not None
    advance(run, 2)
    assert run.trainer.now.imitation is first
    advance(run, 1)
    assert run.trainer.now.imitation is not first
    run.close()


def test_other_experts_are_imitated_anew_and_the_same_are_not(experts):
    run = inference(experts, "reach")
    advance(run, 6)
    first = run.trainer.now.imitation
    run.continue_at(0.5, experts, 0.5)
    assert run.trainer.now.imitation is first
    others = dataclasses.replace(experts, observations=experts.observations + 0.1)
    run.continue_at(0.5, others, 0.5)
    assert not np.allclose(run.trainer.now.imitation.centre, first.centre)
    run.close()


def test_who_is_never_to_imitate_does_not(experts):
    run = inference(experts, "reach", temptation=1.0)
    advance(run, 6)
    assert run.trainer.now.imitation is None
    run.close()


def test_a_run_of_a_single_update_does_not_forget_when_it_is_turned(experts):
    run = inference(experts, "reach", settings=dataclasses.replace(BY_SHARE, steps=64))
    advance(run, 1)
    run.continue_at(0.5, experts, 0.5)
    assert run.iteration == 1
    run.close()


@pytest.fixture
def calls(monkeypatch):
    """How often the method of the loop's runs was asked to begin, and to judge a rollout."""
    counted = {"begin": 0, "judge": 0}

    def count(name):
        asked = getattr(BC2L, name)

        def counting(self, *arguments, **named):
            counted[name] += 1
            return asked(self, *arguments, **named)

        monkeypatch.setattr(BC2L, name, counting)

    for name in counted:
        count(name)
    return counted


def test_a_method_begins_once_in_a_process_and_judges_every_rollout_once(
    experts, calls, tmp_path, monkeypatch
):
    monkeypatch.setattr(trainer, "CHECKPOINT_EVERY", 2)
    run = inference(experts)
    assert calls == {"begin": 0, "judge": 0}
    run.finish(tmp_path / "whole")
    run.result()
    assert calls == {"begin": 1, "judge": 6}
    end = timeless(run.state())
    run.close()

    def stop(facts):
        if facts["iteration"] == 4:
            raise KeyboardInterrupt

    stopped = inference(experts)
    with pytest.raises(KeyboardInterrupt):
        stopped.finish(tmp_path / "stopped", progress=stop)
    stopped.close()
    assert calls == {"begin": 2, "judge": 10}
    # Taken up again: once for the pattern of what is restored, and never for the rollouts.
    resumed = inference(experts)
    resumed.finish(tmp_path / "stopped")
    assert resumed.iteration == 6
    assert calls == {"begin": 3, "judge": 12}
    assert_same_leaves(end, timeless(resumed.state()))
    resumed.close()
    again = inference(experts)
    again.finish(tmp_path / "stopped")
    again.close()
    assert calls == {"begin": 4, "judge": 12}


def test_a_warm_start_does_not_begin_the_method_again(experts, calls):
    run = inference(experts)
    advance(run, 6)
    run.continue_at(0.5, experts, 0.5)
    advance(run, 3)
    run.close()
    assert calls == {"begin": 1, "judge": 9}


def test_a_budget_that_is_measured_otherwise_than_the_method_does_is_refused(experts):
    with pytest.raises(ArgumentError, match="budget_per must be 'worst' here"):
        inference(experts, "reach", settings=SETTINGS)
    with pytest.raises(ArgumentError, match="budget_per must be 'step' here"):
        inference(experts, "bc2l", settings=BY_SHARE)


@pytest.mark.parametrize("news", [{}, {"rules": 1.0, "surprise": 2.0}])
def test_an_update_that_returns_other_numbers_than_announced_is_refused(experts, monkeypatch, news):
    monkeypatch.setattr(
        METHODS["reach"], "update", lambda self, learned, given, *, key: (learned, news)
    )
    run = inference(experts, "reach", settings=BY_SHARE)
    with pytest.raises(ArgumentError, match=r"update must return .*: (rules|surprise)"):
        advance(run, 2)
    run.close()
