"""The MuJoCo tasks keep Gymnasium's contract, one by one and many at once."""

import sys
import types
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tacit.environments.mujoco_environment import MujocoEnvironment, MujocoVectorEnvironment
from tacit.environments.registry import make
from tacit.errors import ArgumentError, EpisodeError, TaskError

MUJOCO_TASKS = (
    "BlockedHalfCheetah",
    "BlockedAnt",
    "BiasedPendulum",
    "BlockedWalker",
    "BlockedSwimmer",
)
every_task = pytest.mark.parametrize("name", MUJOCO_TASKS)
# Gymnasium's own robots are warned about for the same two things.
BY_DESIGN = ("A Box observation space m", "For Box action spaces, we recommend")


def make_environment(name, **options):
    return gymnasium.make(f"tacit/{name}-v0", **options).unwrapped


def sample(environment, steps, seed=0):
    environment.action_space.seed(seed)
    return [environment.action_space.sample() for _ in range(steps)]


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name in MUJOCO_TASKS for options in ({}, {"variant": "benchmark"})]
    + [
        ("BlockedAnt", {"contact_forces": "real"}),
        ("BlockedAnt", {"contact_forces": "none"}),
        ("BlockedHalfCheetah", {"noise_on": "state", "noise_shared": True}),
        ("BlockedWalker", {"noise_std": 0.0}),
    ],
)
def test_gymnasium_finds_nothing_wrong(name, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(make_environment(name, **options), skip_render_check=True)
    texts = [str(warning.message) for warning in caught]
    assert [text for text in texts if not any(known in text for known in BY_DESIGN)] == []


@every_task
def test_an_environment_is_a_batch_of_one(name):
    environment = make_environment(name, horizon=20)
    worlds = make(name, horizon=20).worlds(1, threads=1)
    observation, info = environment.reset(seed=7)
    np.testing.assert_array_equal(observation, worlds.reset(7)[0])
    assert info == {"x_position": observation[0]}
    for action in sample(environment, 50):
        observation, reward, terminated, truncated, info = environment.step(action)
        step = worlds.step(action[None])
        np.testing.assert_array_equal(observation, step.arrived[0])
        assert (reward, terminated, truncated) == (
            step.rewards[0],
            step.terminated[0],
            step.truncated[0],
        )
        assert (info["cost"], info["x_position"]) == (step.costs[0, 0], observation[0])
        assert type(info["cost"]) is float
        assert ("reason" in info) == (terminated or truncated)
        if terminated or truncated:
            assert info["reason"] == ("fell" if terminated else "time limit")
            np.testing.assert_array_equal(environment.reset()[0], step.observations[0])


@every_task
def test_many_environments_equal_gymnasiums_own_vector_of_single_ones(name):
    options = {"horizon": 15}
    ours = gymnasium.make_vec(f"tacit/{name}-v0", num_envs=4, threads=2, **options)
    assert isinstance(ours.unwrapped, MujocoVectorEnvironment)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    theirs = SyncVectorEnv(
        [lambda: make_environment(name, **options)] * 4, autoreset_mode=AutoresetMode.SAME_STEP
    )
    for space in ("observation_space", "action_space", "single_action_space"):
        assert getattr(ours, space) == getattr(theirs, space)
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    ends = 0
    for action in sample(ours, 40):
        step, expected = ours.step(action), theirs.step(action)
        assert_same(step[:4], expected[:4])
        infos, expected_infos = step[4], expected[4]
        ended = step[2] | step[3]
        ends += ended.sum()
        # Ours also tells the cost of steps that ended an episode.
        costs, mask = infos.pop("cost"), infos.pop("_cost")
        np.testing.assert_array_equal(
            costs[~ended], expected_infos.pop("cost", np.zeros(4))[~ended]
        )
        expected_infos.pop("_cost", None)
        assert mask.all()
        if ended.any():
            final = expected_infos["final_info"]
            np.testing.assert_array_equal(costs[ended], final["cost"][ended])
        assert_same(infos, expected_infos)
    assert ends >= 8
    assert_same(ours.reset(), theirs.reset())


def assert_same(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), [other[key] for key in one]
    if isinstance(one, tuple | list) or (isinstance(one, np.ndarray) and one.dtype == object):
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def test_a_vector_takes_one_seed_many_or_none():
    vector = gymnasium.make_vec("tacit/BlockedSwimmer-v0", num_envs=3)
    first = vector.reset(seed=4)[0]
    np.testing.assert_array_equal(vector.reset(seed=[4, 5, 6])[0], first)
    assert not np.array_equal(vector.reset()[0], first)
    unseeded = [
        gymnasium.make_vec("tacit/BlockedSwimmer-v0", num_envs=3).reset()[0] for _ in range(2)
    ]
    assert not np.array_equal(*unseeded)
    for wrong in ([1, 2], [-1, 2, 3]):
        with pytest.raises(ArgumentError, match="seed"):
            vector.reset(seed=wrong)
    with pytest.raises(ArgumentError, match="reset_mask"):
        vector.reset(options={"reset_mask": np.ones(3, bool)})


def test_gymnasiums_own_vectors_work_too():
    vector = gymnasium.make_vec(
        "tacit/BiasedPendulum-v0", num_envs=2, vectorization_mode="sync", horizon=5
    )
    ours = gymnasium.make_vec("tacit/BiasedPendulum-v0", num_envs=2, horizon=5)
    np.testing.assert_array_equal(vector.reset(seed=0)[0], ours.reset(seed=0)[0])


def test_a_specification_survives_as_text():
    spec = gymnasium.make("tacit/BlockedAnt-v0", contact_forces="none", horizon=3).spec
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert again.observation_space.shape == (29,)
    assert again.unwrapped.worlds.rules.horizon == 3


def test_stepping_before_a_reset_or_after_the_end_is_an_error():
    environment = make_environment("BlockedSwimmer", horizon=1)
    action = np.zeros(2, np.float32)
    with pytest.raises(EpisodeError, match="call reset"):
        environment.step(action)
    environment.reset(seed=0)
    assert environment.step(action)[4]["reason"] == "time limit"
    with pytest.raises(EpisodeError, match=r"ended \(time limit\): call reset\(\)"):
        environment.step(action)
    environment.reset()
    environment.step(action)


@pytest.mark.parametrize(
    ("action", "match"),
    [([0.0, np.nan], "world 0 is not finite"), ([0.0], "shape"), (0.5, "shape"), (None, "shape")],
)
def test_an_action_that_cannot_work_is_refused(action, match):
    environment = make_environment("BlockedSwimmer")
    environment.reset(seed=0)
    with pytest.raises(ArgumentError, match=match):
        environment.step(action)
    vector = gymnasium.make_vec("tacit/BlockedSwimmer-v0", num_envs=2)
    vector.reset(seed=0)
    with pytest.raises(ArgumentError, match="world 1 is not finite"):
        vector.step(np.array([[0, 0], [np.inf, 0]]))


def test_actions_beyond_the_box_act_and_cost_like_its_edge():
    one, other = make_environment("BiasedPendulum"), make_environment("BiasedPendulum")
    cheetahs = make_environment("BlockedHalfCheetah"), make_environment("BlockedHalfCheetah")
    for pair, edge in (((one, other), 3.0), (cheetahs, 1.0)):
        for environment in pair:
            environment.reset(seed=0)
        size = pair[0].action_space.shape[0]
        assert_same(pair[0].step(np.full(size, 1e30)), pair[1].step(np.full(size, edge)))


def test_an_episode_that_diverges_says_so_with_finite_numbers():
    environment = make_environment("BlockedAnt", limit=1.0)
    environment.reset(seed=0)
    environment.worlds.velocities[:] = 1e9
    last = environment.worlds.observe()[0]
    observation, reward, terminated, truncated, info = environment.step(np.zeros(8))
    np.testing.assert_array_equal(observation, last)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info == {"cost": 1.0, "x_position": last[0], "reason": "diverged"}
    vector = gymnasium.make_vec("tacit/BlockedAnt-v0", num_envs=2)
    vector.reset(seed=0)
    vector.unwrapped.worlds.velocities[1] = 1e9
    infos = vector.step(np.zeros((2, 8)))[4]
    assert infos["final_info"]["reason"].tolist() == [None, "diverged"]


def test_pictures_are_drawn_of_the_worlds_and_their_limit(monkeypatch):
    """The picture itself has tests of its own; here, what it is asked to draw."""

    class Picture:
        def __init__(self, model, limit, forbidden):
            self.known = model.nq, limit, forbidden

        def draw(self, data):
            return np.array([data.qpos[0]])

    module = types.ModuleType("tacit.environments.mujoco_picture")
    module.Picture = Picture
    monkeypatch.setitem(sys.modules, module.__name__, module)
    environment = make("BlockedSwimmer").environment(render_mode="rgb_array")
    assert isinstance(environment, MujocoEnvironment)
    assert environment.metadata == {"render_modes": ["rgb_array"], "render_fps": 25}
    with pytest.raises(EpisodeError, match="nothing to draw yet"):
        environment.render()
    observation, _ = environment.reset(seed=0)
    assert environment.render() == observation[0]
    picture = environment.painter.picture
    assert picture.known == (5, 0.5, "above")
    environment.close()
    vector = gymnasium.make_vec("tacit/BlockedWalker-v0", num_envs=2, render_mode="rgb_array")
    observations, _ = vector.reset(seed=0)
    np.testing.assert_array_equal(vector.render(), observations[:, :1])
    assert vector.unwrapped.painter.picture.known == (9, -3.0, "below")
    vector.close()
    assert make_environment("BlockedAnt").render() is None
    assert make("BlockedAnt").make_vector(2).render() is None


def test_a_picture_comes_out():
    environment = gymnasium.make("tacit/BlockedAnt-v0", render_mode="rgb_array")
    environment.reset(seed=0)
    picture = environment.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert picture.std() > 0
    environment.close()


def test_mistakes_through_gymnasium_are_answered_in_words():
    with pytest.raises(TaskError, match=r"no option 'nosie_std'.*mean noise_std"):
        gymnasium.make("tacit/BlockedAnt-v0", nosie_std=1)
    with pytest.raises(TaskError, match="no option 'layout'"):
        gymnasium.make_vec("tacit/BlockedAnt-v0", num_envs=2, layout="rooms")
    with pytest.raises(ArgumentError, match="render_mode"):
        make("BlockedAnt").environment(render_mode="human")
