"""CA-ICRL on tables by sampling: what is counted, what rounds do, and what comes out."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import tacit
from tacit.control import conduct, policy_splice
from tacit.control.planning import Dynamics
from tacit.control.policy_mixture import soft_returns, spent_by
from tacit.control.ppo import PPO
from tacit.control.soft_planning import occupancy
from tacit.environments.lab_tasks import chain
from tacit.environments.tabular_world import tabular_compiled
from tacit.errors import ArgumentError, DivergenceError, StorageError
from tacit.inference import sampled_ca_icrl
from tacit.inference.counts.counted import LEVELS
from tacit.inference.data_set import DataSet
from tacit.inference.round_settings import round_settings
from tacit.inference.sampled_ca_icrl import SampledRounds
from tacit.inference.sampled_ending import PRICES, endings, facts, splices
from tacit.inference.sampled_inference import in_rounds
from tacit.inference.sampling_plans import PLANS, SWEPT


@pytest.fixture(scope="module", autouse=True)
def few_episodes():
    """Policies are watched for less long; that they are watched well is tested by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conduct, "WATCHED", 2**13)
        patch.setattr(policy_splice, "TRIES", 2**11)
        yield


@pytest.fixture(scope="module")
def task():
    """Nine states, of which the two most rewarding are forbidden."""
    return chain(length=9, limit=-2, horizon=10, reward_scale=3)


@pytest.fixture(scope="module")
def walks(task):
    return tacit.collect(tacit.train_expert(task), 12, seed=3)


@pytest.fixture(scope="module")
def quick(task):
    """Rounds of four updates."""
    settings = round_settings(task)
    return dataclasses.replace(
        settings, worlds=8, minibatch=8 * 10 // 2, epochs=1, hidden=(8,), steps=4 * 8 * 10
    )


def test_a_data_set_counts_visitors(task, walks):
    visitors = np.zeros(task.number_of_states)
    for states, length in zip(walks.observations[:, :, 0], walks.lengths, strict=True):
        for state in set(states[:length].tolist()):
            visitors[state] += 1
    counted = DataSet.of(task, walks)
    assert counted.number == len(walks)
    np.testing.assert_array_equal(counted.visitors, visitors)


def test_plans_sweep_all_confidences_and_then_add_what_is_missing():
    first, *rest = PLANS
    assert first == (0, 0.0, 1.0)
    assert [plan.round for plan in PLANS] == sorted(plan.round for plan in PLANS)
    for start, end in itertools.pairwise((1, *SWEPT)):
        swept = PLANS[start:end]
        firm = [plan for plan in swept if plan.price is not None]
        assert {plan.level for plan in firm} == set(LEVELS)
        assert len(firm) == 2 * len(LEVELS)
        added = [plan.level for plan in swept if plan.price is None]
        assert added == list(LEVELS)
        assert {plan.round for plan in swept[: len(firm)]} == {firm[0].round}
    assert SWEPT[-1] == len(rest) + 1


@pytest.fixture(scope="module")
def followed(task, walks, quick):
    """A finished run with a large budget, the orders of its policies and who was tempted after."""
    generous = dataclasses.replace(task, budget=0.5)
    run = SampledRounds(generous, [DataSet.of(task, walks)], [0], quick)
    run.compiled = tabular_compiled(task)
    orders, tempted = [], []
    while not run.finished:
        orders.append(run.orders(PLANS[run.iteration]))
        run.advance()
        tempted.append(run.tempted.copy())
    return run, orders, tempted


def test_rounds_are_played_as_planned(followed):
    run, orders, tempted = followed
    assert run.iteration == len(orders) == len(PLANS)
    assert run.steps == len(PLANS) * 4 * 8 * 10
    assert not np.asarray(orders[0].costs).any()
    for plan, ordered, price in zip(PLANS, orders, run.prices[:, 0], strict=True):
        assert float(ordered.price[0]) == price
        if plan.price is None:
            # They are in some state at every step.
            np.testing.assert_allclose(ordered.others[0].sum(axis=(1, 2)), 1, atol=1e-3)
            assert price >= 1
        else:
            assert price == plan.price
            assert not np.asarray(ordered.others).any()
    for before, after in itertools.pairwise(tempted):
        assert (after >= before).all()
    # What the levels of a sweep find counts when all of them have been played.
    counts = [
        place + 1 for place in range(1, len(PLANS)) if (tempted[place] > tempted[place - 1]).any()
    ]
    assert counts
    assert set(counts) <= set(SWEPT)
    assert tempted[0].max() > 0


def test_a_run_ends_with_the_best_mixture_of_what_it_met(task, followed):
    run, *_ = followed
    dynamics = Dynamics.of(task)
    (ending,) = endings(run, [0], [0.9])
    policy, weights, spent, prices = ending
    assert len(weights) == len(PLANS) + len(PRICES)
    np.testing.assert_allclose(prices[len(PLANS) :], PRICES)
    costs = np.asarray(run.costs(0.9)[0])[:, None]
    for each, cost in zip(run.policies[:, 0], spent, strict=False):
        pairs = occupancy(dynamics.transitions, dynamics.initial, jnp.asarray(each))
        assert cost == pytest.approx(float((pairs * costs).sum()), rel=0.1, abs=0.01)
    assert weights @ spent <= max(0.1, 1.05 * spent.min()) + 1e-6
    pairs = occupancy(dynamics.transitions, dynamics.initial, jnp.asarray(policy))
    assert float((pairs * costs).sum()) == pytest.approx(weights @ spent, rel=0.1, abs=0.01)
    told = facts(run, ending)
    assert told["learned_cost"] == pytest.approx(weights @ spent)
    assert told["policies"] == len(weights)
    assert told["steps"] == run.steps


def test_splices_are_better_than_what_they_are_made_of(task, followed):
    run, *_ = followed
    dynamics, costs = Dynamics.of(task), run.costs(0.9)

    def judged(policies):
        pairs = np.stack(
            [
                occupancy(dynamics.transitions, dynamics.initial, jnp.asarray(each))
                for each in policies
            ]
        )
        spent = spent_by(pairs, np.asarray(costs[0], float))
        return soft_returns(pairs, task.rewards, task.temperature), spent

    earned, spent = judged(run.policies[:, 0])
    better, cheaper = judged(splices(run, run.policies, costs)[:, 0])
    for place, price in enumerate(PRICES):
        of_splice = better[place] - price * cheaper[place]
        assert of_splice > (earned - price * spent).max() + 1
    assert cheaper.min() < spent.min()


def test_a_sweep_counts_what_fits_the_budget(task, walks, quick):
    """By hand: one policy goes everywhere at a cost, one nowhere for nothing."""
    run = SampledRounds(task, [DataSet.of(task, walks)], [0], quick)
    run.iteration, free, seen = SWEPT[0], 4, task.number_of_states - 1
    run.tempted[:] = 0.9 * (np.arange(task.number_of_states) < free)
    beyond = int(np.flatnonzero(run.costs(0.9)[0] > 0)[0])
    run.policies[: SWEPT[0]] = 1 / 3
    run.presence[: SWEPT[0], 0, :, free] = 1
    run.visits[: SWEPT[0], 0, free] = 1
    run.presence[1, 0, :, free], run.presence[1, 0, :, beyond] = 0, 1
    run.visits[1, 0] = np.isin(np.arange(task.number_of_states), [beyond, seen])
    levels = [float(run.costs(level)[0, beyond]) * task.horizon for level in LEVELS]
    run.tempt()
    assert run.tempted[0, free] == pytest.approx(1, abs=task.budget / min(levels))
    assert run.tempted[0, beyond] == pytest.approx(0.9)
    assert (
        task.budget / max(levels) - 1e-4 <= run.tempted[0, seen] <= task.budget / min(levels) + 1e-4
    )
    assert run.tempted[0, seen] < 1


def test_one_belief_ends_at_any_confidence(task, followed):
    run, *_ = followed
    both = endings(run, [0, 0], [0.3, 0.9])
    (alone,) = endings(run, [0], [0.9])
    np.testing.assert_allclose(both[1].policy, alone.policy, atol=1e-5)
    assert np.abs(both[0].policy - both[1].policy).max() > 0.01


def test_runs_side_by_side_are_what_they_are_alone(task, walks, quick):
    sets = [DataSet.of(task, walks), DataSet.of(task, walks.take([0, 1, 2, 3]))]
    both = SampledRounds(task, sets, [4, 5], quick)
    alone = SampledRounds(task, sets[1:], [5], quick)
    for _ in range(2):
        both.advance()
        alone.advance()
    np.testing.assert_allclose(both.tempted[1], alone.tempted[0], atol=0.02)
    assert np.abs(both.tempted[0] - both.tempted[1]).max() > 0


def test_an_accelerator_trains_a_round_at_once(task, walks, quick, monkeypatch):
    run = SampledRounds(task, [DataSet.of(task, walks)], [0], quick)
    run.advance()
    assert run.next_plans() == [1]
    monkeypatch.setattr(sampled_ca_icrl, "backend", lambda: "gpu")
    assert run.next_plans() == list(range(1, 1 + 2 * len(LEVELS)))
    run.advance()
    assert run.next_plans() == list(range(1 + 2 * len(LEVELS), SWEPT[0]))
    one_by_one = SampledRounds(task, [DataSet.of(task, walks)], [0], quick)
    monkeypatch.setattr(sampled_ca_icrl, "backend", lambda: "cpu")
    while one_by_one.iteration < run.iteration:
        one_by_one.advance()
    np.testing.assert_allclose(run.policies, one_by_one.policies, atol=1e-4)


def test_a_result_is_like_that_of_the_exact_computation(task, walks, quick, tmp_path):
    told = []
    result = tacit.infer(
        task,
        walks,
        confidence=0.7,
        seed=2,
        sampled=True,
        forward=quick,
        folder=tmp_path / "run",
        progress=told.append,
    )
    assert isinstance(result, tacit.Result)
    assert len(told) == len(PLANS)
    assert result.settings["sampled"] is True
    np.testing.assert_allclose(result.policy.sum(axis=-1), 1)
    exact = tacit.infer(task, walks, confidence=0.7)
    # Visits are proof either way; what nobody visited is judged by what was tempting.
    np.testing.assert_allclose(result.constraint.alpha, exact.constraint.alpha)
    assert 0 <= float(tacit.evaluate(result).violation.value) <= 1
    again = tacit.load(tmp_path / "run")
    np.testing.assert_array_equal(again.policy, result.policy)
    np.testing.assert_array_equal(again.constraint.beta, result.constraint.beta)


def test_a_run_goes_on_bit_for_bit(task, walks, quick, tmp_path, monkeypatch):
    asked = {"confidence": 0.8, "seed": 1, "sampled": True, "forward": quick}
    whole = tacit.infer(task, walks, **asked)
    advance, rounds = SampledRounds.advance, iter(range(5))

    def stopped(run):
        if next(rounds, None) is None:
            raise KeyboardInterrupt
        return advance(run)

    monkeypatch.setattr(SampledRounds, "advance", stopped)
    with pytest.raises(KeyboardInterrupt):
        tacit.infer(task, walks, folder=tmp_path / "run", **asked)
    with pytest.raises(StorageError, match="not finished"):
        tacit.load(tmp_path / "run")
    monkeypatch.setattr(SampledRounds, "advance", advance)
    heard = []
    continued = tacit.infer(task, walks, folder=tmp_path / "run", notice=heard.append, **asked)
    assert "goes on" in heard[0]
    np.testing.assert_array_equal(continued.policy, whole.policy)
    np.testing.assert_array_equal(continued.constraint.beta, whole.constraint.beta)
    with pytest.raises(StorageError, match="other settings"):
        tacit.infer(task, walks, folder=tmp_path / "run", **{**asked, "confidence": 0.5})
    generous = dataclasses.replace(task, budget=0.5)
    with pytest.raises(StorageError, match="other settings"):
        tacit.infer(generous, walks, folder=tmp_path / "run", **asked)


@pytest.mark.slow
def test_pairs_may_be_what_a_rule_is_about(quick):
    task = dataclasses.replace(chain(length=9, limit=-2, horizon=10), rule_on="pair")
    walks = tacit.collect(tacit.train_expert(task), 5, seed=0)
    result = tacit.infer(task, walks, sampled=True, forward=quick)
    assert result.constraint.beta.shape == (task.number_of_states * task.number_of_actions,)
    assert (result.constraint.beta > 1).any()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"temptation": 0.5}, "no setting temptation"),
        ({"reading": "soft"}, "no setting reading='soft'"),
        ({"confidence": 1.5}, "confidence"),
        ({"objective": "reach"}, "no setting objective='reach'"),
        ({"forward": round_settings(chain())}, "rollout must be 10"),
        ({"forward": PPO(rollout=10)}, "discount must be 1.0"),
    ],
)
def test_what_makes_no_sense_is_refused(task, walks, wrong, words):
    with pytest.raises(ArgumentError, match=words):
        tacit.infer(task, walks, sampled=True, **wrong)


def test_a_price_that_moves_is_refused(task, walks, quick):
    price = dataclasses.replace(quick.multiplier, kind="pid")
    with pytest.raises(ArgumentError, match=r"multiplier\.kind must be 'share'"):
        tacit.infer(task, walks, sampled=True, forward=dataclasses.replace(quick, multiplier=price))


def test_rounds_charge_every_step(task, walks, quick):
    with pytest.raises(ArgumentError, match="charge_once must be False"):
        tacit.infer(task, walks, sampled=True, forward=dataclasses.replace(quick, charge_once=True))


def test_a_policy_that_is_no_number_stops_the_run(task, walks, quick, monkeypatch):
    run = SampledRounds(task, [DataSet.of(task, walks)], [0], quick)
    shape = (1, task.horizon, task.number_of_states, task.number_of_actions)
    monkeypatch.setattr(sampled_ca_icrl, "soft_policies", lambda *given: jnp.full(shape, jnp.nan))
    with pytest.raises(DivergenceError, match=f"policy is not finite after 0 of {len(PLANS)}"):
        run.advance()
    assert run.iteration == 0


def test_settings_of_an_encoder_are_not_for_rounds():
    assert in_rounds("ca-icrl", {})
    assert in_rounds("ca-icrl", {"objective": "counts", "votes": "visits"})
    assert in_rounds("ca-icrl", {"temptation": 0.5})
    assert not in_rounds("ca-icrl", {"objective": "counts", "width": 8})
    assert in_rounds("ca-icrl", {"votes": "visits-fallible"})
    assert not in_rounds("ca-icrl", {"objective": "counts", "votes": "visits-fallible"})
    assert not in_rounds("vicrl", {})


def test_violations_in_the_demonstrations_are_warned_of(task, walks, quick):
    costs = np.zeros_like(walks.costs)
    costs[0, 0] = 1
    with pytest.warns(UserWarning, match="1 demonstrations have steps with a cost"):
        tacit.infer(task, dataclasses.replace(walks, costs=costs), sampled=True, forward=quick)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_belief_is_nearly_that_of_the_exact_computation(task, walks):
    settings = dataclasses.replace(round_settings(task), steps=100 * 64 * 10)
    sampled = tacit.infer(task, walks, confidence=0.7, sampled=True, forward=settings)
    exact = tacit.infer(task, walks, confidence=0.7)
    share = (sampled.constraint.beta - exact.constraint.beta) / len(walks)
    np.testing.assert_allclose(share, 0, atol=0.15)
    assert (exact.constraint.beta > 5).any()
