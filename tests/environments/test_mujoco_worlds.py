"""The MuJoCo worlds obey the physics, the published rules and their own promises on randomness."""

import mujoco
import numpy as np
import pytest

from tacit.environments.mujoco_rules import FOLDER, load_model
from tacit.environments.mujoco_worlds import SILENCE, STEPS_OF_A_BLOCK
from tacit.environments.registry import make
from tacit.errors import ArgumentError, EpisodeError

MUJOCO_TASKS = (
    "BlockedHalfCheetah",
    "BlockedAnt",
    "BiasedPendulum",
    "BlockedWalker",
    "BlockedSwimmer",
)
every_task = pytest.mark.parametrize("name", MUJOCO_TASKS)
# Rewards of the paper's own code and of the benchmark: effort, and what being healthy pays.
NUMBERS = {
    "BlockedHalfCheetah": {"paper": (0.05, 0.0), "benchmark": (0.1, 0.0)},
    "BlockedAnt": {"paper": (0.5, 2.0), "benchmark": (0.5, 1.0)},
    "BlockedWalker": {"paper": (0.0005, 1.0), "benchmark": (0.001, 1.0)},
    "BlockedSwimmer": {"paper": (0.00005, 0.0), "benchmark": (0.0001, 0.0)},
    "BiasedPendulum": {"paper": (0.0, 0.0), "benchmark": (0.0, 0.0)},
}
SECONDS = {
    "BlockedHalfCheetah": 0.05,
    "BlockedAnt": 0.05,
    "BiasedPendulum": 0.04,
    "BlockedWalker": 0.008,
    "BlockedSwimmer": 0.04,
}


@pytest.fixture
def stock_model():
    def load(file):
        with SILENCE:  # about a deprecated attribute
            return mujoco.MjModel.from_xml_path(str(FOLDER / file))

    return load


def make_worlds(name, number=3, threads=1, **options):
    return make(name, **options).worlds(number, threads=threads)


def some_actions(worlds, steps, seed=0, scale=1.5):
    """Actions of which many leave the box."""
    high = scale * worlds.action_space.high
    shape = (steps, worlds.number, *worlds.action_space.shape)
    return np.random.default_rng(seed).uniform(-high, high, shape)


def play(worlds, actions):
    return [worlds.step(action) for action in actions]


def assert_same_steps(ones, others):
    for one, other in zip(ones, others, strict=True):
        for field, expected in one._asdict().items():
            np.testing.assert_array_equal(getattr(other, field), expected, err_msg=field)


def expected_reward(name, variant, x_before, qpos, action):
    """The table of the reference, once more and for one world."""
    effort, healthy = NUMBERS[name][variant]
    spent = effort * sum(float(a) ** 2 for a in action)
    x = qpos[0]
    if name == "BiasedPendulum":
        return 1.0 if x <= -0.01 else 0.1 if x >= 0 else 0.1 + 0.9 * (-x / 0.01)
    if name == "BlockedAnt":
        return np.hypot(x, qpos[1]) + (healthy if 0.2 <= qpos[2] <= 1.0 else 0.0) - spent
    return abs(x - x_before) / SECONDS[name] + healthy - spent


def has_fallen(name, qpos):
    if name == "BiasedPendulum":
        return abs(qpos[1]) > 0.2
    return name == "BlockedWalker" and not (0.8 < qpos[1] < 2.0 and abs(qpos[2]) < 1.0)


@pytest.mark.parametrize("variant", ["paper", "benchmark"])
@every_task
def test_rewards_costs_and_ends_are_those_of_the_reference(name, variant, stock_model):
    worlds = make_worlds(name, noise_std=0.0, variant=variant, limit=0.01, horizon=40)
    model = stock_model(worlds.rules.model_file)
    actions = some_actions(worlds, 60)
    observations = worlds.reset(3)
    for steps, action in enumerate(actions, start=1):
        step = worlds.step(action)
        for world in range(worlds.number):
            data = mujoco.MjData(model)
            data.qpos[:] = observations[world, : model.nq]
            data.qvel[:] = observations[world, model.nq : model.nq + model.nv]
            high = worlds.action_space.high
            clipped = np.clip(action[world], -high, high)
            data.ctrl[:] = clipped
            mujoco.mj_step(model, data, worlds.rules.frame_skip)
            # Without the solver's warm start, which an observation does not hold, this is close.
            arrived = step.arrived[world, : model.nq + model.nv]
            np.testing.assert_allclose(
                arrived, np.concatenate([data.qpos, data.qvel]), rtol=1e-6, atol=1e-6
            )
            wanted = expected_reward(
                name, variant, observations[world, 0], arrived[: model.nq], clipped
            )
            np.testing.assert_allclose(step.rewards[world], wanted, rtol=1e-9)
            x = arrived[0]
            beyond = x > 0.01 if name == "BlockedSwimmer" else x < 0.01
            assert step.costs[world, 0] == float(beyond)
            assert step.terminated[world] == has_fallen(name, arrived)
        if worlds.rules.has_fallen is None:
            assert (step.truncated == (steps == 40)).all()
        observations = step.observations
    assert worlds.episodes.min() >= 1


@every_task
def test_without_noise_the_physics_is_gymnasiums_bit_for_bit(name, stock_model):
    worlds = make_worlds(name, 2, noise_std=0.0)
    model = stock_model(worlds.rules.model_file)
    observations = worlds.reset(11)
    # What gymnasium.envs.mujoco.MujocoEnv does in reset, set_state and do_simulation.
    data = mujoco.MjData(model)
    mujoco.mj_resetData(model, data)
    data.qpos[:] = observations[1, : model.nq]
    data.qvel[:] = observations[1, model.nq : model.nq + model.nv]
    mujoco.mj_forward(model, data)
    for action in some_actions(worlds, 150, scale=1.0):
        step = worlds.advance(action)
        data.ctrl[:] = action[1]
        mujoco.mj_step(model, data, nstep=worlds.rules.frame_skip)
        mujoco.mj_rnePostConstraint(model, data)
        arrived = step.observations[1, : model.nq + model.nv]
        np.testing.assert_array_equal(arrived, np.concatenate([data.qpos, data.qvel]))
    np.testing.assert_allclose(data.time, 150 * SECONDS[name])


@every_task
def test_the_model_is_gymnasiums_number_for_number(name, stock_model):
    file = make(name).worlds(1).rules.model_file
    ours, stock = load_model(file), stock_model(file)
    for field in dir(stock):
        values = getattr(stock, field)
        if not field.startswith("_") and isinstance(values, np.ndarray):
            np.testing.assert_array_equal(getattr(ours, field), values, err_msg=field)
    for field in ("timestep", "integrator", "gravity", "density", "viscosity", "iterations"):
        np.testing.assert_array_equal(getattr(ours.opt, field), getattr(stock.opt, field))


@pytest.mark.parametrize("threads", [1, 2])
@every_task
def test_many_worlds_equal_single_ones_bit_for_bit(name, threads):
    together = make_worlds(name, 5, threads, horizon=25)
    actions = some_actions(together, 60)
    start = together.reset(100)
    steps = play(together, actions)
    for world in range(5):
        alone = make_worlds(name, 1, horizon=25)
        np.testing.assert_array_equal(alone.reset(100 + world)[0], start[world])
        for step, single in zip(steps, play(alone, actions[:, world : world + 1]), strict=True):
            for field, values in single._asdict().items():
                np.testing.assert_array_equal(getattr(step, field)[world], values[0])
    assert together.episodes.min() >= 2


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in MUJOCO_TASKS]
    + [
        ("BlockedAnt", {"contact_forces": "real"}),
        ("BlockedAnt", {"noise_on": "state", "noise_std": 0.02}),
        ("BlockedSwimmer", {"noise_on": "state", "noise_shared": True}),
        ("BlockedSwimmer", {"noise_std": 0.0}),
    ],
)
def test_worlds_continue_bit_for_bit_from_a_state(name, options):
    worlds = make_worlds(name, 3, horizon=30, **options)
    worlds.reset(8)
    worlds.step(some_actions(worlds, 1)[0])
    # Short of the end of a block of noise, which the continuation has to cross.
    worlds.clock = STEPS_OF_A_BLOCK - 20
    before = some_actions(worlds, 3, seed=1)
    after = some_actions(worlds, 50, seed=2)
    last = play(worlds, before)[-1]
    state = worlds.state()
    kept = {name: array.copy() for name, array in state.items()}
    first = play(worlds, after)
    assert worlds.clock > STEPS_OF_A_BLOCK
    assert worlds.episodes.max() >= 1
    for again in (worlds, make_worlds(name, 3, threads=2, horizon=30, **options)):
        np.testing.assert_array_equal(again.restore(state), last.observations)
        assert_same_steps(first, play(again, after))
    for name, array in kept.items():
        np.testing.assert_array_equal(state[name], array)


def test_a_state_of_other_worlds_is_refused():
    worlds = make_worlds("BlockedSwimmer", 2)
    worlds.reset(0)
    with pytest.raises(ArgumentError, match="not a state of these worlds"):
        make_worlds("BlockedSwimmer", 3).restore(worlds.state())
    with pytest.raises(ArgumentError, match="not a state of these worlds"):
        worlds.restore({})


def test_seeds_decide_everything_and_differ_from_one_another():
    worlds = make_worlds("BlockedWalker", 4)
    actions = some_actions(worlds, 40)
    actions[:] = actions[:, :1]
    start = worlds.reset(1)
    once = play(worlds, actions)
    np.testing.assert_array_equal(worlds.reset(1), start)
    assert_same_steps(once, play(worlds, actions))
    assert len(np.unique(start, axis=0)) == 4
    np.testing.assert_array_equal(worlds.reset(2)[:3], start[1:])
    assert not (worlds.begin_episodes(np.arange(4))[:, 0] == start[:, 0]).any()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("on", ["velocity", "state"])
@pytest.mark.parametrize("name", ["BlockedSwimmer", "BlockedAnt"])
def test_noise_is_added_where_it_should_be_and_to_the_physics(name, on, shared):
    options = {"noise_on": on, "noise_shared": shared, "noise_std": 0.1}
    noisy, quiet = make_worlds(name, 400, **options), make_worlds(name, 400, noise_std=0.0)
    noisy.reset(0)
    quiet.reset(0)
    action = np.zeros((400, *quiet.action_space.shape))
    nq, nv = quiet.model.nq, quiet.model.nv
    noise = noisy.step(action).arrived[:, : nq + nv] - quiet.step(action).arrived[:, : nq + nv]
    moved = [*range(nq if on == "velocity" else 0, nq + nv)]
    still = [*range(0, nq if on == "velocity" else 0)]
    assert (noise[:, still] == 0).all()
    if name == "BlockedAnt" and on == "state":
        np.testing.assert_allclose(np.linalg.norm(noisy.positions[:, 3:7], axis=1), 1, rtol=1e-12)
        moved = [index for index in moved if not 3 <= index < 7]
    values = noise[:, moved]
    np.testing.assert_allclose(values.std(axis=0), 0.1, rtol=0.15)
    assert (np.abs(values.mean(axis=0)) < 0.025).all()
    correlation = np.corrcoef(values.T)
    groups = np.array([index >= nq for index in moved])
    together = shared & (groups[:, None] == groups[None, :])
    np.fill_diagonal(together, True)
    np.testing.assert_allclose(correlation, together, atol=0.25)
    np.testing.assert_array_equal(noisy.states, noisy.observe()[:, : nq + nv])


def test_reward_ignores_the_noise_and_cost_sees_it():
    options = {"noise_on": "state", "noise_std": 0.3}
    noisy, quiet = make_worlds("BlockedSwimmer", 50, **options), make_worlds("BlockedSwimmer", 50)
    action = some_actions(noisy, 1)[0]
    for worlds in (noisy, quiet):
        worlds.reset(4)
    one, other = noisy.step(action), quiet.step(action)
    np.testing.assert_array_equal(one.rewards, other.rewards)
    np.testing.assert_array_equal(one.costs[:, 0], one.arrived[:, 0] > 0.5)
    assert 0 < one.costs.sum() < 50
    assert other.costs.sum() == 0


def test_the_limit_itself_is_allowed():
    for name, side in (("BlockedSwimmer", 1), ("BlockedWalker", -1), ("BiasedPendulum", -1)):
        worlds = make_worlds(name, 3)
        worlds.reset(0)
        limit = worlds.rules.limit
        worlds.positions[:, 0] = limit + np.array([-1e-9, 0.0, 1e-9])
        expected = (worlds.positions[:, 0] - limit) * side > 0
        np.testing.assert_array_equal(worlds.costs()[:, 0], expected)


def test_starts_have_the_published_spread():
    kinds = {
        "BlockedHalfCheetah": (0.1, 0.1, True),
        "BlockedAnt": (0.1, 0.1, True),
        "BiasedPendulum": (0.01, 0.01, False),
        "BlockedWalker": (0.005, 0.005, False),
        "BlockedSwimmer": (0.1, 0.1, False),
    }
    for name, (positions, velocities, gaussian) in kinds.items():
        worlds = make_worlds(name, 800)
        worlds.reset(0)
        offsets = (worlds.positions - worlds.model.qpos0) / positions
        assert np.abs(offsets).max() <= 1
        np.testing.assert_allclose(offsets.std(axis=0), 1 / np.sqrt(3), rtol=0.1)
        speeds = worlds.velocities / velocities
        np.testing.assert_allclose(speeds.std(axis=0), 1 if gaussian else 1 / np.sqrt(3), rtol=0.12)
        assert (np.abs(speeds).max() > 1) == gaussian


def test_real_contact_forces_are_those_of_the_state_arrived_in():
    worlds = make_worlds("BlockedAnt", 2, noise_std=0.0, contact_forces="real")
    plain = make_worlds("BlockedAnt", 2, noise_std=0.0)
    assert (worlds.reset(0)[:, 29:] == 0).all()
    plain.reset(0)
    pushed = []
    for action in some_actions(worlds, 60):
        step, free = worlds.step(action), plain.step(action)
        np.testing.assert_array_equal(step.arrived[:, :29], free.arrived[:, :29])
        assert (free.arrived[:, 29:] == 0).all()
        for world in range(2):
            data = plain.batch.get_data(world)
            mujoco.mj_forward(plain.model, data)
            mujoco.mj_rnePostConstraint(plain.model, data)
            forces = np.clip(data.cfrc_ext.ravel(), -1, 1)
            np.testing.assert_allclose(step.arrived[world, 29:], forces, rtol=1e-9, atol=1e-9)
            paid = 5e-4 * float((forces**2).sum())
            np.testing.assert_allclose(step.rewards[world], free.rewards[world] - paid, rtol=1e-9)
            pushed.append(paid)
    assert max(pushed) > 0


@pytest.mark.parametrize("bad", [1e9, np.nan, np.inf])
def test_a_simulation_that_diverges_ends_its_episode_with_finite_numbers(
    bad, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    worlds = make_worlds("BlockedHalfCheetah", 3)
    worlds.reset(0)
    before = worlds.observe()
    worlds.velocities[1] = bad
    last = worlds.observe()
    step = worlds.step(np.zeros((3, 6)))
    np.testing.assert_array_equal(step.terminated, [False, True, False])
    assert step.rewards[1] == 0
    if np.isfinite(bad):
        np.testing.assert_array_equal(step.arrived[1], last[1])
        assert all(np.isfinite(values).all() for values in step)
    assert np.isfinite(step.observations).all()
    assert np.isfinite(worlds.batch.state).all()
    assert not np.array_equal(step.observations[1], before[1])
    assert not step.truncated.any()
    np.testing.assert_array_equal(worlds.elapsed, [1, 0, 1])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("actions", "match"),
    [
        (np.zeros((2, 2)), "shape"),
        (np.zeros(2), "shape"),
        ([["a", "b"]] * 3, "numbers"),
        (np.array([[0, 0], [0, np.nan], [0, 0]]), "world 1 is not finite"),
        (np.array([[0, 0], [0, 0], [np.inf, 0]]), "world 2 is not finite"),
    ],
)
def test_actions_that_cannot_work_are_refused_and_change_nothing(actions, match):
    worlds = make_worlds("BlockedSwimmer", 3)
    start = worlds.reset(0)
    with pytest.raises(ArgumentError, match=match):
        worlds.step(actions)
    np.testing.assert_array_equal(worlds.observe(), start)
    assert worlds.clock == 0


def test_worlds_must_be_reset_before_and_not_be_closed():
    worlds = make_worlds("BlockedSwimmer", 2)
    with pytest.raises(EpisodeError, match=r"call reset\(seed\) before"):
        worlds.step(np.zeros((2, 2)))
    worlds.reset(0)
    worlds.close()
    worlds.close()
    for use in (lambda: worlds.step(np.zeros((2, 2))), lambda: worlds.reset(0), worlds.state):
        with pytest.raises(EpisodeError, match="closed"):
            use()


@pytest.mark.parametrize("seed", [-1, 2**62, 1.5, True])
def test_seeds_that_cannot_work_are_refused(seed):
    with pytest.raises(ArgumentError, match="seed"):
        make_worlds("BlockedSwimmer", 2).reset(seed)


def test_numbers_of_worlds_and_threads_start_at_one():
    for number, threads in ((0, 1), (1, 0), (2.5, 1)):
        with pytest.raises(ArgumentError, match=r"worlds|threads"):
            make_worlds("BlockedSwimmer", number, threads)
    worlds = make_worlds("BlockedSwimmer", 2, None)
    assert 1 <= worlds.batch.nthread <= 2


def test_what_is_handed_out_belongs_to_the_receiver():
    worlds, untouched = make_worlds("BlockedAnt", 2), make_worlds("BlockedAnt", 2)
    for each in (worlds, untouched):
        each.reset(0)
    for action in some_actions(worlds, 5):
        step, expected = worlds.step(action), untouched.step(action)
        assert_same_steps([expected], [step])
        for array in step:
            array[:] = 1
