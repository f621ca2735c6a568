"""The learned cost in `info`, in one environment and in many."""

import copy
import dataclasses
from types import SimpleNamespace

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import Autoreset

import tacit
from tacit.environments.tabular_environment import TabularEnvironment
from tacit.errors import ArgumentError, EpisodeError, TaskError
from tacit.inference.baselines.networks import ClassifierModel
from tacit.inference.constraint import Constraint
from tacit.inference.constraint_model import Spaces
from tacit.inference.counts.model import TableModel
from tacit.inference.inputs import Inputs
from tacit.use.cost_wrapper import CostWrapper, VectorCostWrapper

LENGTH = 3


class Line(gymnasium.Env):
    """Walks by its action and works in place on all it is given; ends beyond 2 or at LENGTH."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, true_cost=True, space=None, start=0.0):
        self.observation_space = Box(-100, 100, (2,), np.float64)
        self.action_space = space or Box(-1, 1, (1,), np.float32)
        self.true_cost = true_cost
        self.start = start
        self.place = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place[:] = self.start, 0
        return self.place, {"cost": 9.0} if self.true_cost else {}

    def step(self, action):
        self.place += [float(np.clip(action, -1, 1)[0]), 1]
        action *= 0
        info = {"cost": 7.0} if self.true_cost else {}
        ended = bool(self.place[0] > 2), bool(self.place[1] >= LENGTH)
        return self.place, 1.0, *ended, info


class Named(gymnasium.Env):
    """Observations in a dictionary, actions counted from 1."""

    observation_space = Dict({"a": Box(0, 9, (1,)), "b": Discrete(3, start=1)})
    action_space = Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"a": np.full(1, 4.0, np.float32), "b": np.int64(2)}, {}

    def step(self, action):
        return {"a": np.full(1, 5.0, np.float32), "b": np.int64(3)}, 0.0, False, False, {}


class Sum:
    """Costs 100 times the observation, plus the action, plus the confidence."""

    confidence = 0.5

    def __init__(self, **attributes):
        self.__dict__.update(attributes)
        self.asked = []

    def cost(self, observations, actions, confidence=None):
        self.asked.append((observations, actions))
        level = self.confidence if confidence is None else confidence
        if not 0 < level < 1:
            raise ArgumentError("no such confidence")
        seen = observations.reshape(len(observations), -1).sum(axis=1)
        return 100 * seen + actions.reshape(len(actions), -1).sum(axis=1) + level

    def feasibility(self, observations, actions, confidence=None):
        return -self.cost(observations, actions, confidence)


def tabular_constraint(states=49, actions=5, rule_on="state"):
    size = states * (actions if rule_on == "pair" else 1)
    rng = np.random.default_rng(1)
    alpha, beta = 1 + 5 * rng.random((2, size))
    model = TableModel(alpha, beta, "graded", 0.02, actions, rule_on)
    return Constraint(model, 0.8, model.spaces(), True)


def network_constraint(size=2, actions=None):
    """Of ours, learned from rows."""
    actions = actions or Box(-1, 1, (1,), np.float32)
    seen = Box(-np.inf, np.inf, (size,), np.float32)
    inputs = Inputs.blank(size, actions)
    model = ClassifierModel.start(inputs, (8,), key=jax.random.key(0))
    return Constraint(model, 0.5, Spaces(seen, actions), False)


def many(number=2, mode=AutoresetMode.NEXT_STEP, copy=True, **options):
    makers = [lambda start=start: Line(start=start, **options) for start in range(number)]
    return SyncVectorEnv(makers, autoreset_mode=mode, copy=copy)


def move(*values):
    return np.array(values, np.float32)


def test_the_cost_is_of_the_observation_before_and_the_action_within_its_box():
    env = CostWrapper(Line(), Sum())
    env.reset(seed=0)
    costs = []
    for value in (0.5, 5.0, -0.25):
        *_, info = env.step(move(value))
        assert info["feasibility"] == -info["cost"]
        assert isinstance(info["cost"], float)
        costs.append(info["cost"])
    assert costs == [0 + 0.5 + 0.5, 50 + 1 + 0.5 + 100, 150 - 0.25 + 0.5 + 200]


def test_the_environment_receives_the_action_as_it_was():
    inside = Line(space=Box(-0.5, 0.5, (1,), np.float32))
    env = CostWrapper(inside, Sum())
    env.reset(seed=0)
    *_, info = env.step(move(0.75))
    assert inside.place[0] == 0.75
    assert info["cost"] == 0.5 + 0.5


def test_the_cost_of_the_environment_itself_moves():
    env = CostWrapper(Line(), Sum())
    _, info = env.reset(seed=0)
    assert info == {"true_cost": 9.0}
    *_, info = env.step(move(0))
    assert info == {"true_cost": 7.0, "cost": 0.5, "feasibility": -0.5}
    env = CostWrapper(Line(true_cost=False), Sum())
    assert env.reset(seed=0)[1] == {}
    assert env.step(move(0))[-1] == {"cost": 0.5, "feasibility": -0.5}


def test_rewards_change_only_with_a_penalty():
    for penalty, expected in ((0.0, 1.0), (0.5, 1 - 0.5 * (0.25 + 0.75))):
        env = CostWrapper(Line(), Sum(), confidence=0.75, penalty=penalty)
        env.reset(seed=0)
        assert env.step(move(0.25))[1] == expected


@pytest.mark.parametrize("penalty", [-1, np.inf, np.nan, True, "1", None])
def test_a_penalty_is_a_number_of_at_least_zero(penalty):
    with pytest.raises(ArgumentError, match="penalty"):
        CostWrapper(Line(), Sum(), penalty=penalty)


@pytest.mark.parametrize("env", [Line(), many()], ids=["one", "many"])
def test_a_step_before_reset_is_an_error(env):
    wrapped = CostWrapper(env, Sum())
    with pytest.raises(EpisodeError, match="call reset"):
        wrapped.step(wrapped.action_space.sample())


def test_the_constraint_judges_the_confidence_at_once():
    with pytest.raises(ArgumentError, match="no such confidence"):
        CostWrapper(Line(), Sum(), confidence=1.5)
    grid = TabularEnvironment(tacit.make("GridWorld"))
    with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
        CostWrapper(grid, tabular_constraint(), confidence=1.5)


def test_sizes_are_compared_where_the_constraint_can_say():
    fitting = network_constraint()
    CostWrapper(Line(), fitting)
    CostWrapper(many(), fitting)
    for wrong in (
        network_constraint(3),
        network_constraint(2, Box(-1, 1, (2,), np.float32)),
        network_constraint(2, Discrete(1)),
    ):
        for env in (Line(), many()):
            with pytest.raises(ArgumentError, match="the same task"):
                CostWrapper(env, wrong)


def test_a_tabular_constraint_wants_its_own_states_and_actions():
    grid = TabularEnvironment(tacit.make("GridWorld"))
    for rule_on in ("state", "pair"):
        CostWrapper(grid, tabular_constraint(rule_on=rule_on))
        for sizes in ((48, 5), (50, 5), (49, 4)):
            with pytest.raises(ArgumentError, match="the same task"):
                CostWrapper(grid, tabular_constraint(*sizes, rule_on=rule_on))
    with pytest.raises(ArgumentError, match="49 numbered states"):
        CostWrapper(Line(), tabular_constraint())


def test_what_cannot_be_wrapped():
    with pytest.raises(ArgumentError, match=r"result\.constraint"):
        CostWrapper(Line(), object())
    with pytest.raises(ArgumentError, match=r"not str; .* wrap each"):
        CostWrapper("CartPole-v1", Sum())
    with pytest.raises(ArgumentError, match="already"):
        CostWrapper(CostWrapper(Line(), Sum()), Sum())
    with pytest.raises(ArgumentError, match="already"):
        CostWrapper(CostWrapper(many(), Sum()), Sum())
    with pytest.raises(ArgumentError, match="turn it round"):
        CostWrapper(Autoreset(Line()), Sum())
    with pytest.raises(TaskError, match="must be a Box or Discrete"):
        CostWrapper(Line(space=Dict({"a": Discrete(2)})), Sum())


def test_costs_of_another_shape_are_an_error():
    class Wide(Sum):
        def cost(self, observations, actions, confidence=None):
            return np.zeros((len(observations), 2))

    with pytest.raises(ArgumentError, match="shapes"):
        CostWrapper(Line(), Wide())


@pytest.mark.parametrize("rule_on", ["state", "pair"])
def test_a_tabular_constraint_is_asked_about_states(rule_on):
    task = tacit.make("GridWorld", layout="open")
    constraint = tabular_constraint(rule_on=rule_on)
    plain, env = (TabularEnvironment(task) for _ in range(2))
    env = CostWrapper(env, constraint, confidence=0.6)
    state, _ = plain.reset(seed=3)
    assert env.reset(seed=3)[0] == state
    rng = np.random.default_rng(0)
    for _ in range(task.horizon):
        action = rng.integers(5)
        before, (state, reward, *ends, info) = state, plain.step(action)
        *others, learned = env.step(action)
        assert others == [state, reward, *ends]
        step = np.array([before]), np.array([action])
        assert learned == {
            "true_cost": info["cost"],
            "cost": constraint.cost(*step, 0.6)[0],
            "feasibility": constraint.feasibility(*step, 0.6)[0],
        }


def test_other_spaces_are_flattened_as_in_demonstrations():
    flat = [4, 0, 1, 0]
    for env in (CostWrapper(Named(), Sum()), CostWrapper(SyncVectorEnv([Named]), Sum())):
        constraint = env.judge.constraint
        env.reset(seed=0)
        env.step(np.ones(1, np.int64) if env.metadata.get("autoreset_mode") else np.int64(2))
        observations, actions = constraint.asked[-1]
        assert observations.tolist() == [flat]
        assert actions.tolist() == ([0] if env.metadata.get("autoreset_mode") else [1])


def test_numbered_observations_become_rows_for_a_constraint_that_was_learned_from_rows():
    grid = TabularEnvironment(tacit.make("GridWorld"))
    constraint = network_constraint(49, Discrete(5))
    env = CostWrapper(grid, constraint)
    state, _ = env.reset(seed=0)
    costs = constraint.cost(np.eye(49, dtype=np.float32)[[state]], np.array([1]))
    assert env.step(1)[-1]["cost"] == pytest.approx(float(costs[0]), abs=1e-6)
    # Others, which cannot say what they were learned from, are asked about states.
    other = Sum()
    CostWrapper(grid, other)
    states, actions = np.divmod(np.arange(49 * 5), 5)
    assert [part.tolist() for part in other.asked[-1]] == [states.tolist(), actions.tolist()]


def test_a_constraint_that_judges_whole_trajectories_cannot_judge_single_steps():
    known = network_constraint()
    over_time = dataclasses.replace(known, model=SimpleNamespace(over_time=True))
    for env in (Line(), many()):
        with pytest.raises(ArgumentError, match="granularity 'trajectory'"):
            CostWrapper(env, over_time)


def test_a_loaded_constraint_works_as_the_one_that_was_saved(tmp_path):
    for constraint, make in (
        (network_constraint(), Line),
        (tabular_constraint(), lambda: TabularEnvironment(tacit.make("GridWorld"))),
    ):
        path = constraint.save(tmp_path / "rule.safetensors")
        costs = []
        for rule in (constraint, Constraint.load(path)):
            env = CostWrapper(make(), rule)
            env.reset(seed=0)
            action = env.action_space.sample() if not costs else action
            # A copy, as this environment works in place on it.
            costs.append(env.step(np.array(action))[-1]["cost"])
        assert costs[0] == costs[1]


def test_an_environment_that_leaves_its_spaces_is_told_so():
    grid = TabularEnvironment(tacit.make("GridWorld"))
    env = CostWrapper(grid, tabular_constraint())
    env.reset(seed=0)
    grid.state, env.previous = 0, -1
    with pytest.raises(ArgumentError, match="states must lie in 0 to 48"):
        env.step(0)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*Box (action|observation) space")
@pytest.mark.parametrize(
    ("name", "constraint"),
    [("tacit/GridWorld-v0", tabular_constraint()), ("tacit/BlockedSwimmer-v0", Sum())],
)
def test_gymnasium_accepts_the_environment(name, constraint):
    env = CostWrapper(gymnasium.make(name), constraint, penalty=0.1)
    check_env(env)
    again = gymnasium.make(env.spec)
    assert isinstance(again, CostWrapper)
    assert again.penalty == 0.1


def test_copies_go_their_own_way():
    env = CostWrapper(Line(), Sum())
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    env.step(move(1))
    assert twin.step(move(0))[-1]["cost"] == 0.5


def test_many_environments_with_a_reset_in_the_next_step():
    env = CostWrapper(many(copy=False), Sum(), penalty=0.5)
    assert isinstance(env, VectorCostWrapper)
    _, infos = env.reset(seed=0)
    assert infos["true_cost"].tolist() == [9, 9]
    assert "cost" not in infos
    actions = move(0, 9)[:, None]
    costs, masks, rewards = [], [], []
    for _ in range(5):
        _, reward, *_, infos = env.step(actions.copy())
        assert infos["feasibility"].tolist() == (-infos["cost"]).tolist()
        assert infos["_feasibility"].tolist() == infos["_cost"].tolist()
        costs.append(infos["cost"].tolist())
        masks.append(infos["_cost"].tolist())
        rewards.append(reward.tolist())
    # The second world begins at 1, so it ends after two steps and begins again in the third.
    assert costs == [[0.5, 101.5], [100.5, 301.5], [200.5, 0], [0, 101.5], [0.5, 301.5]]
    assert masks == [[True, True], [True, True], [True, False], [False, True], [True, True]]
    assert rewards[2] == [1 - 100.25, 0]


def test_nobody_asks_about_a_step_that_is_a_reset():
    constraint = Sum()
    env = CostWrapper(many(number=1), constraint)
    env.reset(seed=0)
    for _ in range(LENGTH):
        env.step(move(0)[:, None])
    number = len(constraint.asked)
    infos = env.step(move(np.nan)[:, None])[-1]
    assert infos["cost"].tolist() == [0]
    assert len(constraint.asked) == number


def test_a_reset_forgets_that_the_next_step_would_have_been_one():
    env = CostWrapper(many(), Sum())
    env.reset(seed=0)
    for _ in range(2):
        env.step(move(0, 1)[:, None])
    env.reset(seed=0)
    assert env.step(move(0, 1)[:, None])[-1]["cost"].tolist() == [0.5, 101.5]
    env.step(move(0, 1)[:, None])
    env.reset(options={"reset_mask": np.array([False, True])})
    infos = env.step(move(0, 1)[:, None])[-1]
    assert infos["cost"].tolist() == [200.5, 101.5]
    assert infos["_cost"].all()


def test_many_environments_with_a_reset_in_the_same_step():
    env = CostWrapper(many(mode=AutoresetMode.SAME_STEP), Sum())
    env.reset(seed=0)
    costs = []
    for step in range(4):
        *_, infos = env.step(move(0, 1)[:, None])
        costs.append(infos["cost"].tolist())
        assert infos["_cost"].all()
        if step == 1:
            final = infos["final_info"]
            assert final["true_cost"].tolist() == [0, 7]
            assert final["cost"].tolist() == [0, 301.5]
            assert final["_cost"].tolist() == [False, True]
            assert infos["true_cost"].tolist() == [7, 9]
    assert costs == [[0.5, 101.5], [100.5, 301.5], [200.5, 101.5], [0.5, 301.5]]


def test_many_environments_that_are_reset_by_hand():
    env = CostWrapper(many(mode=AutoresetMode.DISABLED), Sum())
    env.reset(seed=0)
    for _ in range(2):
        *_, infos = env.step(move(0, 1)[:, None])
    assert infos["cost"].tolist() == [100.5, 301.5]
    env.reset(options={"reset_mask": np.array([False, True])})
    assert env.step(move(0, 1)[:, None])[-1]["cost"].tolist() == [200.5, 101.5]


def test_many_robots_have_the_costs_of_single_ones():
    name, options = "tacit/BiasedPendulum-v0", {"horizon": 4}
    vector = CostWrapper(gymnasium.make_vec(name, num_envs=2, threads=1, **options), Sum())
    singles = [CostWrapper(gymnasium.make(name, **options), Sum()) for _ in range(2)]
    vector.reset(seed=5)
    for index, single in enumerate(singles):
        single.reset(seed=5 + index)
    rng = np.random.default_rng(0)
    for _ in range(9):
        actions = rng.uniform(-4, 4, (2, 1)).astype(np.float32)
        *_, infos = vector.step(actions)
        for index, single in enumerate(singles):
            *_, terminated, truncated, info = single.step(actions[index])
            assert infos["cost"][index] == info["cost"]
            assert infos["true_cost"][index] == info["true_cost"]
            if terminated or truncated:
                assert infos["final_info"]["cost"][index] == info["cost"]
                single.reset()
    vector.close()


def test_many_grids():
    task, constraint = tacit.make("GridWorld"), tabular_constraint()
    env = CostWrapper(SyncVectorEnv([lambda: TabularEnvironment(task)] * 3), constraint)
    states, _ = env.reset(seed=0)
    actions = np.array([1, 2, 3])
    *_, infos = env.step(actions)
    assert infos["cost"].tolist() == constraint.cost(states, actions).tolist()
    assert infos["_true_cost"].all()
