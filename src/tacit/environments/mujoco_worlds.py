"""Many worlds of one MuJoCo task, simulated together on threads.

All random numbers are looked up, not kept: noise by seed and step, starts by seed and episode. No
generator has a state that would have to be saved.
"""

# MuJoCo's names are made in C++ and come without stubs.
# pyright: reportAttributeAccessIssue=false

import os
from threading import Lock

import gymnasium
import mujoco
import numpy as np
from jaxtyping import Bool, Float, Int
from mujoco.batch import Batch, SimulationError

from tacit.argument_checks import check_count, check_seed
from tacit.environments.mujoco_rules import (
    MujocoRules,
    load_model,
    quaternions_of,
    spaces_of,
    sum_of_squares,
)
from tacit.environments.worlds import Step, check_actions
from tacit.errors import ArgumentError, EpisodeError

LARGEST_VALUE = mujoco.mjMAXVAL
LARGEST_SEED = 2**62
NOISE_STREAM, START_STREAM = 0, 1
STEPS_OF_A_BLOCK = 256


class Silence:
    """`with SILENCE:` MuJoCo writes nothing, neither to the console nor to MUJOCO_LOG.TXT.

    It would do so many times for every simulation that diverges, which the worlds report
    themselves. MuJoCo has one setting for the whole process, hence the count: the last thread to
    leave puts back what the first one found.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.inside = 0
        self.found = mujoco.MjLogConfig.get()

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.found = mujoco.MjLogConfig.get()
                silent = mujoco.MjLogConfig.get()
                silent.logto_console = silent.logto_file = False
                mujoco.MjLogConfig.set(silent)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                mujoco.MjLogConfig.set(self.found)


SILENCE = Silence()


class MujocoWorlds:
    """n worlds that play by `rules`, on `threads` threads; implements `Worlds`.

    An observation is the whole qpos followed by the whole qvel, and the contact forces where the
    rules want them. One step is

        clip the actions -> frame_skip simulator steps -> reward -> noise -> true cost, end.

    A simulation that diverges (a number that is not finite or beyond 1e10) terminates its episode
    with reward 0; the last observation before is handed out in place of what came of it.

    All randomness is looked up by (seed, step since seeding) and (seed, episode), so that `state`
    is complete and n worlds give the numbers of n single ones, on any number of threads.
    """

    number_of_costs = 1
    resumable = True

    def __init__(self, rules: MujocoRules, number: int, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ArgumentError(f"threads must be at least one, not {threads}")
        self.rules, self.number = rules, check_count("the number of worlds", number)
        with_forces = rules.contact_forces == "real"
        self.model = load_model(rules.model_file, contact_forces=with_forces)
        self.observation_space, box = spaces_of(self.model, rules.contact_forces)
        self.action_space: gymnasium.spaces.Box | gymnasium.spaces.Discrete = box
        # Actions are simulated in the precision they come in, which may be double.
        low, high = box.low.astype(np.float64), box.high.astype(np.float64)
        self.control_box = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self.seconds = self.model.opt.timestep * rules.frame_skip
        self.batch = Batch(self.model, number, min(threads or usable_cores(), number))
        self.bind()
        # Only bound where needed: the batch copies what is bound after every step.
        self.contacts = self.batch.bind("cfrc_ext").reshape(number, -1) if with_forces else None
        self.forces = None if self.contacts is None else np.zeros(self.contacts.shape)
        noise = rules.noise
        width = noise.width(self.model.nq, self.model.nv)
        self.noise = NoiseBlocks(number, width, noise.std) if noise.std > 0 else None
        self.quaternions = quaternions_of(self.model) if noise.on == "state" else ()
        self.seeds = np.zeros(number, np.int64)
        self.episodes = np.zeros(number, np.int64)
        self.elapsed = np.zeros(number, np.int64)
        self.diverged = np.zeros(number, bool)
        self.clock = 0
        self.running = False

    def bind(self) -> None:
        """Views of the rows in which the batch keeps its worlds, and a row that is blank."""
        self.controls = self.batch.bind("ctrl")
        self.positions, self.velocities = self.batch.bind("qpos"), self.batch.bind("qvel")
        # The two lie side by side in a row, so that one view covers both.
        after_time = 1
        self.states = self.batch.state[:, after_time : after_time + self.model.nq + self.model.nv]
        self.before, self.sizes = np.empty(self.states.shape), np.empty(self.states.shape)
        self.batch.reset(stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        self.blank = self.batch.state[0].copy()

    def reset(self, seed: int) -> Float[np.ndarray, "n o"]:
        """Seed world i with `seed + i` and start its first episode."""
        first = check_seed(seed)
        return self.reset_each([first + world for world in range(self.number)])

    def stagger(self) -> Bool[np.ndarray, " n"]:
        """Begin world i as if i/n of its episode had passed; only the episode's end shows it."""
        self.elapsed[:] = np.arange(self.number) * self.rules.horizon // self.number
        return self.elapsed > 0

    def reset_each(self, seeds: list[int]) -> Float[np.ndarray, "n o"]:
        """Seed every world with a number of its own and start its first episode."""
        self.check_open()
        if len(seeds) != self.number:
            raise ArgumentError(f"{self.number} worlds need as many seeds, not {len(seeds)}")
        if max(map(check_seed, seeds)) >= LARGEST_SEED:
            raise ArgumentError(f"seeds must be below 2**62, not {max(seeds)}")
        self.seeds[:] = seeds
        self.episodes[:] = -1
        self.clock = 0
        if self.noise is not None:
            self.noise.forget()
        self.running = True
        return self.begin_episodes(np.arange(self.number))

    def begin_episodes(self, worlds: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m o"]:
        """Start the next episode of some worlds; returns their observations."""
        self.check_open()
        self.episodes[worlds] += 1
        self.elapsed[worlds] = 0
        self.batch.state[worlds] = self.blank
        self.states[worlds] += self.draw_starts(worlds)
        if self.forces is not None:
            self.forces[worlds] = 0.0
        return self.observe()[worlds]

    def draw_starts(self, worlds: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m s"]:
        """Draw how far from the model's own qpos and qvel the episodes of some worlds start."""
        spread, split, speeds = self.rules.start, self.model.nq, self.model.nv
        offsets = np.empty((len(worlds), split + speeds))
        streams = zip(self.seeds[worlds].tolist(), self.episodes[worlds].tolist(), strict=True)
        for row, (seed, episode) in zip(offsets, streams, strict=True):
            generator = np.random.default_rng([seed, START_STREAM, episode])
            row[:split] = generator.uniform(-spread, spread, split)
            if self.rules.gaussian_start:
                row[split:] = spread * generator.standard_normal(speeds)
            else:
                row[split:] = generator.uniform(-spread, spread, speeds)
        return offsets

    def step(self, actions: np.ndarray) -> Step:
        """Take one action in every world; worlds whose episode ends start the next one."""
        step = self.advance(actions)
        worlds = np.flatnonzero(step.terminated | step.truncated)
        if not len(worlds):
            return step
        observations = step.arrived.copy()
        observations[worlds] = self.begin_episodes(worlds)
        return step._replace(observations=observations)

    def advance(self, actions: np.ndarray) -> Step:
        """Take one action in every world and leave those whose episode ended where they are."""
        if not self.running:
            self.check_open()
            raise EpisodeError("no episode is running: call reset(seed) before step(actions)")
        controls = check_actions(actions, self.number, self.control_box)
        self.controls[:] = controls
        np.copyto(self.before, self.states)
        diverged, any_diverged = self.simulate()
        rewards = self.rules.reward(self.before[:, 0], self.states, controls, self.seconds)
        if self.forces is not None:
            rewards -= self.rules.contact_weight * sum_of_squares(self.forces)
        if self.noise is not None:
            self.add_noise(self.noise.at(self.clock, self.seeds))
        if any_diverged:
            self.states[diverged] = self.before[diverged]
            rewards[diverged] = 0.0
        self.clock += 1
        self.elapsed += 1
        fallen = self.rules.has_fallen
        terminated = diverged if fallen is None else diverged | fallen(self.states)
        truncated = (self.elapsed >= self.rules.horizon) & ~terminated
        self.diverged, arrived = diverged, self.observe()
        return Step(arrived, arrived, rewards, self.costs(), terminated, truncated)

    def reason(self, step: Step, world: int) -> str:
        """Why the episode of `world` ended in the step that was just taken."""
        if self.diverged[world]:
            return "diverged"
        return "fell" if step.terminated[world] else "time limit"

    def simulate(self) -> tuple[Bool[np.ndarray, " n"], bool]:
        """Run the simulator for one control step; returns which worlds diverged, and whether any.

        Those are put back to where they were before.
        """
        diverged = np.zeros(self.number, bool)
        stages = (
            mujoco.mjtStage.mjSTAGE_NONE if self.forces is None else mujoco.mjtStage.mjSTAGE_ACC
        )
        try:
            with SILENCE:
                self.batch.step(nstep=self.rules.frame_skip, stage=stages.value)
        except SimulationError as error:
            diverged[error.ids] = True
        np.abs(self.states, out=self.sizes)
        # Written so that NaN, which compares as false, counts as diverged.
        if not self.sizes.max() <= LARGEST_VALUE:
            diverged |= ~(self.sizes <= LARGEST_VALUE).all(axis=1)
        any_diverged = bool(diverged.any())
        if any_diverged:
            self.states[diverged] = self.before[diverged]
        if self.forces is not None and self.contacts is not None:
            np.clip(self.contacts, -1.0, 1.0, out=self.forces, where=~diverged[:, None])
        return diverged, any_diverged

    def add_noise(self, noise: Float[np.ndarray, "n width"]) -> None:
        """Write `noise` into the physics."""
        if self.rules.noise.on == "velocity":
            self.velocities += noise
            return
        if self.rules.noise.shared:
            self.positions += noise[:, :1]
            self.velocities += noise[:, 1:]
        else:
            self.states += noise
        for place in self.quaternions:
            self.positions[:, place] /= np.sqrt(sum_of_squares(self.positions[:, place]))[:, None]

    def observe(self) -> Float[np.ndarray, "n o"]:
        """Where all worlds stand, in an array of its own."""
        if self.rules.contact_forces == "none":
            return self.states.copy()
        observations = np.zeros((self.number, *self.observation_space.shape))
        width = self.states.shape[1]
        observations[:, :width] = self.states
        if self.forces is not None:
            observations[:, width:] = self.forces
        return observations

    def costs(self) -> Float[np.ndarray, "n 1"]:
        """1 where x is on the forbidden side, else 0."""
        x = self.states[:, :1]
        beyond = x < self.rules.limit if self.rules.forbidden == "below" else x > self.rules.limit
        return beyond.astype(np.float64)

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to go on from here, as arrays."""
        self.check_open()
        return {name: array.copy() for name, array in self.kept().items()}

    def kept(self) -> dict[str, np.ndarray]:
        """The arrays of which `state` returns copies."""
        kept = {
            "physics": self.batch.state,
            "seeds": self.seeds,
            "episodes": self.episodes,
            "elapsed": self.elapsed,
            "clock": np.array([self.clock]),
        }
        return kept if self.forces is None else kept | {"forces": self.forces}

    def restore(self, state: dict[str, np.ndarray]) -> Float[np.ndarray, "n o"]:
        """Go back to a `state` of worlds of the same task and number."""
        self.check_open()
        expected = {name: array.shape for name, array in self.kept().items()}
        given = {name: np.shape(array) for name, array in state.items()}
        if given != expected:
            raise ArgumentError(f"not a state of these worlds: {given} instead of {expected}")
        for name, array in self.kept().items():
            array[:] = state[name]
        self.clock = int(state["clock"][0])
        if self.noise is not None:
            self.noise.forget()
        self.running = True
        return self.observe()

    def close(self) -> None:
        """Free the simulations; the worlds cannot be used afterwards."""
        if hasattr(self, "batch"):
            del self.batch, self.controls, self.positions, self.velocities, self.states, self.noise
            del self.contacts
        self.running = False

    def check_open(self) -> None:
        """Raise an error if `close` has been called."""
        if not hasattr(self, "batch"):
            raise EpisodeError("these worlds have been closed: make new ones")


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class NoiseBlocks:
    """Gaussian noise: `width` numbers of deviation `std` for every world and step.

    Block k of a world holds its steps from 256 k on and is drawn from `(seed, stream, k)` when the
    first of them is asked for. The worlds' seeds may only change together with `forget`.
    """

    def __init__(self, number: int, width: int, std: float) -> None:
        self.std = std
        self.block = np.empty((STEPS_OF_A_BLOCK, number, width))
        self.loaded = -1

    def at(self, clock: int, seeds: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n width"]:
        """The noise of step number `clock` in every world; valid until the next call."""
        number, place = divmod(clock, STEPS_OF_A_BLOCK)
        if number != self.loaded:
            self.fill(number, seeds)
        return self.block[place]

    def fill(self, number: int, seeds: Int[np.ndarray, " n"]) -> None:
        """Draw block `number` of every world."""
        steps, _, width = self.block.shape
        for world, seed in enumerate(seeds.tolist()):
            generator = np.random.default_rng([seed, NOISE_STREAM, number])
            self.block[:, world] = generator.standard_normal((steps, width))
        self.block *= self.std
        self.loaded = number

    def forget(self) -> None:
        """Draw the block anew when it is next used."""
        self.loaded = -1
