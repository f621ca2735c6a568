"""Random numbers that are looked up, not kept: by seed and step, or by seed and episode.

No generator has a state that would have to be saved: whoever knows the seed of a world and how
many steps and episodes it has lived finds the same numbers again.
"""

import numpy as np
from jaxtyping import Float, Int

from tacit.environments.mujoco_rules import MujocoRules

NOISE_STREAM, START_STREAM = 0, 1
STEPS_OF_A_BLOCK = 256


class NoiseBlocks:
    """std times standard normals, `width` of them for every world and step.

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
        """Draw the block again before it is used again."""
        self.loaded = -1


def draw_starts(
    rules: MujocoRules,
    positions: int,
    velocities: int,
    seeds: Int[np.ndarray, " m"],
    episodes: Int[np.ndarray, " m"],
) -> Float[np.ndarray, "m s"]:
    """How far from the model's own qpos and qvel some episodes start."""
    offsets = np.empty((len(seeds), positions + velocities))
    for row, seed, episode in zip(offsets, seeds.tolist(), episodes.tolist(), strict=True):
        generator = np.random.default_rng([seed, START_STREAM, episode])
        spread = rules.start_positions
        row[:positions] = generator.uniform(-spread, spread, positions)
        spread = rules.start_velocities
        if rules.gaussian_start:
            row[positions:] = spread * generator.standard_normal(velocities)
        else:
            row[positions:] = generator.uniform(-spread, spread, velocities)
    return offsets
