"""Any Gymnasium environment is a task once somebody says what a step costs."""

import threading

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tacit.environments.gymnasium_task import gymnasium_task
from tacit.errors import ArgumentError, EpisodeError, TaskError


def never(observation, action, next_observation):
    return 0.0


def is_left(observation, action, next_observation):
    return next_observation[0] < 0


class Toy(gymnasium.Env):
    """A point on a line. Works in place on one array, as real environments do."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, report=None, length=5, action_space=None, render_mode=None):
        self.observation_space = spaces.Dict(
            {
                "place": spaces.Box(-np.inf, np.inf, (2,), np.float32),
                "steps": spaces.Discrete(8),
                "lamps": spaces.MultiBinary(2),
            }
        )
        self.action_space = action_space or spaces.Box(-1, 1, (1,), np.float64)
        self.report, self.length, self.render_mode = report, length, render_mode
        self.place = np.zeros(2, np.float32)
        self.actions = []
        self.closed = False

    def observe(self):
        return {"place": self.place, "steps": self.steps, "lamps": np.array([1, 0], np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.place[:] = self.np_random.normal(size=2)
        return self.observe(), {}

    def step(self, action):
        self.actions.append(np.copy(action))
        self.steps += 1
        self.place += np.float32(np.sum(action))
        info = {} if self.report is None else {"cost": self.report(self)}
        return self.observe(), float(self.place[0]), self.steps == self.length, False, info

    def render(self):
        return np.zeros((4, 4, 3), np.uint8)

    def close(self):
        self.closed = True


class Broken(Toy):
    """Returns something wrong from its third step on."""

    def __init__(self, observation=None, reward=0.0, info=None, **options):
        super().__init__(report=lambda self: 0.0, **options)
        self.observation_space = spaces.Box(-1, 1, (2,), np.float32)
        self.wrong = observation, reward, info

    def observe(self):
        return np.zeros(2, np.float32)

    def step(self, action):
        usual = super().step(action)
        if self.steps < 3:
            return usual
        observation, reward, info = self.wrong
        return (
            observation if observation is not None else usual[0],
            reward,
            False,
            False,
            info or (usual[4]),
        )


class Uncopyable(Toy):
    def __init__(self):
        super().__init__(report=lambda self: 0.0)
        self.lock = threading.Lock()


def run(worlds, steps, seed=0):
    """Everything that happens in some random steps."""
    random = np.random.default_rng(7)
    observations = worlds.reset(seed)
    events = []
    for _ in range(steps):
        if isinstance(worlds.action_space, spaces.Discrete):
            actions = random.integers(worlds.action_space.n, size=worlds.number)
        else:
            actions = random.normal(size=(worlds.number, *worlds.action_space.shape))
        events.append((observations, actions, worlds.step(actions)))
        observations = events[-1][2].observations
    return events


def broken(**wrong):
    worlds = gymnasium_task(Broken, **wrong).worlds(2)
    worlds.reset(0)
    for _ in range(2):
        worlds.step(np.zeros((2, 1)))
    return worlds


def test_worlds_are_the_environments_of_gymnasium_seeded_one_by_one():
    """CartPole, discrete actions: same observations, rewards, ends and restarts."""
    task = gymnasium_task("CartPole-v1", cost=is_left)
    assert (task.name, task.horizon, task.constraints) == ("CartPole-v1", 500, ("cost",))
    events = run(task.worlds(3), 200, seed=5)
    assert sum(step.terminated.sum() for _, _, step in events) > 10
    for world in range(3):
        peer = gymnasium.make("CartPole-v1")
        before = peer.reset(seed=5 + world)[0]
        for observations, actions, step in events:
            np.testing.assert_array_equal(observations[world], before)
            arrived, reward, terminated, truncated, _ = peer.step(actions[world])
            np.testing.assert_array_equal(step.arrived[world], arrived)
            assert step.rewards[world] == reward
            assert step.costs[world] == float(arrived[0] < 0)
            ended = terminated, truncated
            assert (step.terminated[world], step.truncated[world]) == ended
            before = peer.reset()[0] if any(ended) else arrived
            np.testing.assert_array_equal(step.observations[world], before)


def test_continuous_actions_are_clipped_to_the_box():
    task = gymnasium_task("Pendulum-v1", cost=never)
    assert task.horizon == 200
    assert task.action_space == spaces.Box(-2, 2, (1,), np.float32)
    clipped, beyond = task.worlds(2), task.worlds(2)
    np.testing.assert_array_equal(clipped.reset(0), beyond.reset(0))
    first, second = clipped.step(np.array([[-2.0], [2.0]])), beyond.step(np.array([[-9], [9]]))
    np.testing.assert_array_equal(first.arrived, second.arrived)
    assert first.arrived.dtype == np.float32


def test_the_single_environment_equals_one_world():
    task = gymnasium_task(Toy, cost=is_place_left, horizon=3)
    environment = task.environment()
    assert environment.observation_space == task.observation_space
    assert environment.action_space == task.action_space
    before = environment.reset(seed=4)[0]
    for observations, actions, step in run(task.worlds(1), 9, seed=4):
        np.testing.assert_array_equal(observations[0], before)
        arrived, reward, terminated, truncated, info = environment.step(actions[0])
        np.testing.assert_array_equal(step.arrived[0], arrived)
        assert (step.rewards[0], step.costs[0, 0]) == (reward, info["cost"])
        before = environment.reset()[0] if terminated or truncated else arrived


def is_place_left(observation, action, next_observation):
    return next_observation["place"][0] < 0


def test_dict_observations_are_flattened_and_the_cost_sees_them_as_they_are():
    seen = []

    def cost(observation, action, next_observation):
        seen.append((observation["place"].copy(), action, next_observation["place"].copy()))
        return next_observation["place"][0] < 0

    task = gymnasium_task(Toy, cost=cost)
    assert task.observation_space.shape == (2 + 8 + 2,)
    worlds = task.worlds(1)
    seen.clear()
    observations = worlds.reset(1)
    # Dict spaces are sorted by name: lamps, place, steps.
    np.testing.assert_array_equal(observations[0, :2], [1, 0])
    np.testing.assert_array_equal(observations[0, 4:], np.eye(8)[0])
    step = worlds.step(np.array([[0.5]]))
    before, action, after = seen[0]
    np.testing.assert_array_equal(before, observations[0, 2:4].astype(np.float32))
    np.testing.assert_array_equal(after, step.arrived[0, 2:4].astype(np.float32))
    np.testing.assert_allclose(after - before, 0.5, rtol=1e-6)
    assert action.dtype == np.float64
    assert action.shape == (1,)


@pytest.mark.parametrize(
    ("space", "value", "flat"),
    [
        (spaces.Discrete(3, start=-1), 0, [0, 1, 0]),
        (spaces.MultiBinary(3), np.array([1, 0, 1], np.int8), [1, 0, 1]),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 9, ()))), (1, 4.0), [0, 1, 4]),
        (spaces.Box(0, 255, (1, 2), np.uint8), np.array([[3, 4]], np.uint8), [3, 4]),
    ],
)
def test_observations_of_every_kind_become_flat_floats(space, value, flat):
    class Other(Toy):
        def observe(self):
            return value

    environment = Other()
    environment.observation_space = space
    worlds = gymnasium_task(environment, cost=never).worlds(1)
    observations = worlds.reset(0)
    np.testing.assert_array_equal(observations, [flat])
    assert observations.dtype.kind == "f"
    assert worlds.observation_space.contains(observations[0])


def test_several_costs_give_several_constraints():
    reported = gymnasium_task(Toy, report=lambda self: np.array([0.0, self.steps]))
    computed = gymnasium_task(Toy, cost=lambda s, a, n: [0, n["steps"]])
    for task in (reported, computed):
        assert task.constraints == ("cost 0", "cost 1")
        worlds = task.worlds(2)
        assert worlds.number_of_costs == 2
        worlds.reset(0)
        worlds.step(np.zeros((2, 1)))
        np.testing.assert_array_equal(worlds.step(np.zeros((2, 1))).costs, [[0, 2], [0, 2]])
    np.testing.assert_array_equal(step_of(computed.environment())["cost"], [0, 1])


def step_of(environment):
    environment.reset(seed=0)
    return environment.step(environment.action_space.sample())[4]


def test_a_reported_cost_needs_no_function_and_a_function_overrules_it():
    assert step_of(gymnasium_task(Toy, report=lambda self: True).environment())["cost"] == 1
    both = gymnasium_task(Toy, report=lambda self: True, cost=lambda s, a, n: 0.25)
    assert step_of(both.environment())["cost"] == 0.25


def test_horizon_cuts_short_on_top_of_the_limit_of_the_environment():
    worlds = gymnasium_task(Toy, cost=never, horizon=2).worlds(1)
    flags = [(bool(step.terminated[0]), bool(step.truncated[0])) for _, _, step in run(worlds, 4)]
    assert flags == [(False, False), (False, True)] * 2
    assert gymnasium_task("Pendulum-v1", cost=never, horizon=50).horizon == 50
    assert gymnasium_task("Pendulum-v1", cost=never, horizon=500).horizon == 200
    assert gymnasium_task("Pendulum-v1", cost=never, max_episode_steps=9).horizon == 9
    assert gymnasium_task(Toy, cost=never).horizon is None


@pytest.mark.parametrize(
    ("space", "given", "taken"),
    [
        (spaces.Discrete(3, start=5), 2, np.int64(7)),
        (spaces.Box(-np.inf, np.inf, (2,)), [1e6, -3], np.array([1e6, -3], np.float32)),
        (spaces.Box(-1, 1, (2, 1), np.float64), [3, 0.5], np.array([[1], [0.5]])),
        (spaces.Box(0, 9, (1,), np.int32), [6.7], np.array([7], np.int32)),
        (spaces.Box(0.1, 0.3, (), np.float64), [9.0], np.array(0.3)),
    ],
)
def test_actions_reach_the_environment_in_its_own_form(space, given, taken):
    environment = Toy(action_space=space)
    worlds = gymnasium_task(environment, cost=never).worlds(1)
    worlds.reset(0)
    worlds.step(np.array([given]))
    np.testing.assert_array_equal(environment.actions[-1], taken)
    assert environment.actions[-1].dtype == taken.dtype
    assert space.contains(environment.actions[-1])


def test_a_factory_is_called_once_for_each_world():
    made = []

    def factory(length):
        made.append(Toy(report=lambda self: 0, length=length))
        return made[-1]

    task = gymnasium_task(factory, length=3)
    assert (task.name, task.options["length"]) == ("Toy", 3)
    assert [environment.closed for environment in made] == [True]
    worlds = task.worlds(4, threads=2)
    assert len(made) == 1 + 4
    worlds.close()
    worlds.close()
    assert all(environment.closed for environment in made)


def test_the_first_world_of_an_instance_is_the_instance_and_stays_open():
    own = Toy(report=lambda self: self.steps)
    task = gymnasium_task(own)
    worlds = task.worlds(3)
    held = [environment.unwrapped for environment in worlds.environments]
    assert held[0] is own
    assert len({id(environment) for environment in held}) == 3
    # While these worlds hold it, nobody else may step it.
    assert task.worlds(1).environments[0].unwrapped is not own
    worlds.close()
    assert [environment.closed for environment in held] == [False, True, True]
    assert task.worlds(1).environments[0].unwrapped is own


def test_copies_of_an_instance_and_environments_from_its_spec_behave_like_it():
    random = gymnasium_task(Toy(), cost=never).worlds(2)
    first, second = random.reset(3)
    np.testing.assert_array_equal(random.reset(4)[0], second)
    assert (first != second).any()
    limited = gymnasium.make("Pendulum-v1", g=1.0, max_episode_steps=7, render_mode="rgb_array")
    task = gymnasium_task(limited, cost=never)
    assert (task.name, task.horizon) == ("Pendulum-v1", 7)
    worlds = task.worlds(2)
    other = worlds.environments[1].unwrapped
    assert (other.g, other.render_mode) == (1.0, None)
    np.testing.assert_array_equal(run(worlds, 7)[-1][2].truncated, [True, True])


def test_an_instance_whose_wrapper_keeps_no_record_is_copied():
    class Unrecorded(gymnasium.Wrapper):
        pass

    task = gymnasium_task(Unrecorded(gymnasium.make("CartPole-v1")), cost=never)
    assert isinstance(task.worlds(2).environments[1].env.env, Unrecorded)


def test_an_instance_that_cannot_be_copied_gives_one_world():
    task = gymnasium_task(Uncopyable())
    worlds = task.worlds(1)
    assert len(run(worlds, 6)) == 6
    with pytest.raises(TaskError, match=r"one Uncopyable and more.*no spec.*copied.*function"):
        task.worlds(2)
    worlds.close()
    del worlds
    assert task.worlds(1).number == 1


def test_pictures():
    assert gymnasium_task(Toy, cost=never).environment(render_mode="rgb_array").render_mode
    named = gymnasium_task("CartPole-v1", cost=never).environment(render_mode="rgb_array")
    assert named.render_mode == "rgb_array"
    with pytest.raises(TaskError, match="plain takes no render_mode"):
        gymnasium_task(plain).environment(render_mode="rgb_array")
    with pytest.raises(TaskError, match="copy would not have the render_mode 'rgb_array'"):
        gymnasium_task(Toy(), cost=never).environment(render_mode="rgb_array")


def plain():
    return Toy(report=lambda self: 0)


@pytest.mark.parametrize(
    ("environment", "options", "message"),
    [
        ("CartPole-v1", {}, r'CartPole-v1 reported no info\["cost"\].*cost\(observation, action'),
        ("NoSuchThing-v1", {}, "NoSuchThing-v1 cannot be made.*exist"),
        ("Pendulum-v1", {"colour": 1}, "Pendulum-v1 cannot be made.*colour"),
        ("no_such_module:Thing-v0", {}, "cannot be made"),
        (7, {}, "must be a Gymnasium id.*not 7"),
        (gymnasium.vector.SyncVectorEnv([plain]), {}, "VectorEnv"),
        (Toy(), {"length": 3}, "exists already.*length"),
        (dict, {}, "dict must return a Gymnasium environment, not dict"),
        (Toy, {"cost": 3}, "cost must be a function"),
        (Toy, {"cost": lambda s, a, n: None}, "must be a number or a row, not None"),
        (Toy, {"cost": lambda s, a, n: "much"}, "not 'much'"),
        (Toy, {"cost": lambda s, a, n: np.zeros((2, 2))}, "must be a number or a row"),
        (Toy, {"cost": lambda s, a, n: []}, "must be a number or a row"),
        (Toy, {"cost": lambda s, a, n: np.nan}, "world 0 of Toy returned the cost .nan"),
        (Toy, {"cost": never, "horizon": 0}, "horizon must be None or.*not 0"),
        (Toy, {"cost": never, "horizon": 2.5}, "horizon must be None or.*not 2.5"),
        (Toy, {"cost": never, "action_space": spaces.MultiDiscrete([2, 3])}, "Box or Discrete"),
        (Toy, {"cost": never, "action_space": spaces.MultiBinary(2)}, "Box or Discrete"),
    ],
)
def test_what_cannot_be_a_task_is_explained(environment, options, message):
    with pytest.raises(TaskError, match=message):
        gymnasium_task(environment, **options)


def test_observations_that_cannot_be_flattened_are_explained():
    environment = Toy()
    environment.observation_space = spaces.Sequence(spaces.Discrete(3))
    with pytest.raises(TaskError, match="cannot be flattened"):
        gymnasium_task(environment, cost=never)


def test_old_environments_are_explained():
    class Old(Toy):
        def step(self, action):
            return super().step(action)[:4]

    with pytest.raises(TaskError, match=r"step\(\) of Old must return"):
        gymnasium_task(Old, cost=never)


def test_a_factory_that_returns_the_same_environment_twice_is_an_error():
    environment = Toy()
    with pytest.raises(TaskError, match="same environment twice"):
        gymnasium_task(lambda: environment, cost=never).worlds(2)


def test_worlds_with_different_spaces_are_an_error():
    sizes = iter([2, 2, 3])
    with pytest.raises(TaskError, match="world 1 of Toy has the spaces"):
        gymnasium_task(lambda: Toy(action_space=spaces.Discrete(next(sizes))), cost=never).worlds(2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"observation": np.array([np.nan, 0])}, r"world 0 of Broken .* observation \[nan"),
        ({"observation": np.array([0, np.inf])}, r"observation \[ ?0. inf\]"),
        ({"observation": np.zeros(3)}, "world 0: Broken.*does not fit.*3 numbers instead of 2"),
        ({"observation": "word"}, "world 0: Broken.*'word', which does not fit"),
        ({"reward": np.nan}, "world 0 of Broken returned the reward nan"),
        ({"reward": "high"}, "world 0: Broken returned the reward 'high'"),
        ({"reward": np.zeros(2)}, "world 0: Broken returned the reward array"),
        ({"info": {"cost": np.inf}}, r"world 0 of Broken returned the cost \[inf\]"),
        ({"info": {"cost": [1, 2]}}, r"world 0: Broken returned 2 costs.*first step returned 1"),
        ({"info": {"lost": 1}}, r'world 0: Broken reported no info\["cost"\] at a step'),
    ],
)
def test_an_environment_that_breaks_during_training_is_named(wrong, message):
    worlds = broken(**wrong)
    with pytest.raises(TaskError, match=message):
        worlds.step(np.zeros((2, 1)))
    with pytest.raises(EpisodeError, match="reset"):
        worlds.step(np.zeros((2, 1)))
    assert worlds.reset(0).shape == (2, 2)


def test_integers_hide_no_nan_and_states_do_not_count_from_the_end():
    class Odd(Toy):
        def observe(self):
            return self.odd

    for space, odd in (
        (spaces.Box(0, 9, (2,), np.int16), np.array([np.nan, 1])),
        (spaces.Discrete(4), -1),
    ):
        environment = Odd()
        environment.observation_space, environment.odd = space, odd
        with pytest.raises(TaskError, match="does not fit its space"):
            gymnasium_task(environment, cost=never)


def test_an_array_of_one_number_is_a_reward():
    worlds = broken(reward=np.array([2.5], np.float32))
    np.testing.assert_array_equal(worlds.step(np.zeros((2, 1))).rewards, [2.5, 2.5])


def test_errors_of_the_environment_itself_come_through_with_the_world_noted():
    class Failing(Toy):
        def step(self, action):
            if self.steps == 1 and self.np_random.integers(2) >= 0:
                raise ZeroDivisionError("my own bug")
            return super().step(action)

    worlds = gymnasium_task(Failing, cost=never).worlds(2)
    worlds.reset(0)
    worlds.step(np.zeros((2, 1)))
    with pytest.raises(ZeroDivisionError) as caught:
        worlds.step(np.zeros((2, 1)))
    assert caught.value.__notes__ == ["This happened in world 0 of Failing."]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([[0.0], [np.nan]]), "world 1 is not finite"),
        (np.array([[-np.inf], [0.0]]), "world 0 is not finite"),
        (np.array([[0.0], [1e300]]), "world 1 is not finite"),
        (np.zeros(2), r"shape \[2, 1\], not float64 of the shape \[2\]"),
        (np.zeros((3, 1)), r"not float64 of the shape \[3, 1\]"),
        ([["a"], ["b"]], "must be numbers"),
    ],
)
def test_continuous_actions_that_cannot_be_taken(actions, message):
    worlds = gymnasium_task(Toy, cost=never).worlds(2)
    worlds.reset(0)
    with pytest.raises(ArgumentError, match=message):
        worlds.step(actions)
    assert worlds.step(np.zeros((2, 1))).rewards.shape == (2,)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([0, 2]), "world 1 is 2; it must lie between 0 and 1"),
        (np.array([-1, 0]), "world 0 is -1"),
        (np.array([0.0, 1.0]), "whole numbers.*float64"),
        (np.array([[0], [1]]), r"shape \[2\]"),
    ],
)
def test_discrete_actions_that_cannot_be_taken(actions, message):
    worlds = gymnasium_task("CartPole-v1", cost=never).worlds(2)
    worlds.reset(0)
    with pytest.raises(ArgumentError, match=message):
        worlds.step(actions)


def test_the_order_of_calls_is_checked():
    task = gymnasium_task(Toy, cost=never)
    worlds = task.worlds(2)
    assert worlds.resumable is False
    with pytest.raises(EpisodeError, match="reset"):
        worlds.step(np.zeros((2, 1)))
    for seed in (-1, 1.5, None, True):
        with pytest.raises(ArgumentError, match="seed"):
            worlds.reset(seed)
    for call in (worlds.state, lambda: worlds.restore({})):
        with pytest.raises(TaskError, match="resumable is False"):
            call()
    worlds.close()
    with pytest.raises(EpisodeError, match="closed"):
        worlds.reset(0)
    for number in (0, 1.5, True):
        with pytest.raises(ArgumentError, match="number of worlds"):
            task.worlds(number)


class Named(Toy):
    """Has names for less than all that is observed once it is flat."""

    observation_names = ("x", "y")


def test_observed_numbers_are_named_by_the_user_or_the_environment():
    task = gymnasium_task("CartPole-v1", cost=never)
    assert task.observation_names[3] == "observation 3"
    words = ["place", "speed", "lean", "turn"]
    task = gymnasium_task("CartPole-v1", cost=never, observation_names=words)
    assert task.observation_names == tuple(words)
    assert task.options["observation_names"] == words
    with pytest.raises(TaskError, match="observation_names of CartPole-v1 must be 4 words"):
        gymnasium_task("CartPole-v1", cost=never, observation_names=words[:3])
    cart = gymnasium.make("CartPole-v1")
    cart.unwrapped.observation_names = words
    assert gymnasium_task(cart, cost=never).observation_names == tuple(words)
    # An attribute that does not fit is about something else.
    assert gymnasium_task(Named(), cost=never).observation_names[0] == "observation 0"
