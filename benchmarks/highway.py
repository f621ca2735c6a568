"""Time the driving task: 2,048 cars at once, and what recordings cost in memory.

    python benchmarks/highway.py [--quick]

prints environment steps per second with all 74 features on the built-in recordings, as a ratio to
reading every vehicle's place once and moving the car, in the same run; and the memory that is kept
for 1, 2, 4 ... made-up recordings of highD's length. Exits with 1 if a target is missed.
"""

import argparse
import gc
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import equinox as eqx
import jax
import jax.numpy as jnp
from timing import Row, Target, describe_machine, in_turns, rate, ratio, show, timed, verdict

import tacit
from tacit.environments.jax_world import autoreset
from tacit.highway.driving import Selection, load_scenarios, read_scenarios
from tacit.highway.driving_step import HighwayTask, move
from tacit.highway.highd_writer import write_highd
from tacit.highway.synthetic_traffic import Traffic

CARS, STEPS = 2048, 50
ENOUGH = Target(500.0)


@eqx.filter_jit
def drive(task, states, actions, keys):
    """Whole steps, with the next episode where one ends; the observations' sum, lest they go."""
    step = jax.vmap(autoreset(task))

    def one(states, key):
        stepped, onwards, _ = step(states, actions, jax.random.split(key, CARS))
        return onwards, stepped.observation.sum(axis=1)

    return jax.lax.scan(one, states, keys)


@eqx.filter_jit
def read(task, states, actions, keys):
    """The least that a step has to do: look at everybody once, and move."""

    def one(states, _):
        moved = jax.vmap(lambda state, action: move(state, action, jnp.float32(0.04)))(
            states, actions
        )
        return moved, jax.vmap(lambda state: task.frame(state).sum())(moved)

    return jax.lax.scan(one, states, keys)


def speed(quick: bool) -> Row:
    """Steps per second."""
    task = tacit.make("HighwayDistance").jax_world
    assert isinstance(task, HighwayTask)
    numbers = jnp.arange(CARS, dtype=jnp.int32) % len(task.replay)
    states = eqx.filter_jit(lambda task: jax.vmap(task.start)(numbers)[0])(task)
    actions = 0.1 * jax.random.normal(jax.random.key(0), (CARS, 2), jnp.float32)
    keys = jax.random.split(jax.random.key(1), 2 if quick else STEPS)
    work = {"ours": drive, "least": read}
    blocks = {
        name: lambda run=run: timed(lambda: jax.block_until_ready(run(task, states, actions, keys)))
        for name, run in work.items()
    }
    in_turns(blocks, rounds=1)
    seconds = in_turns(blocks, rounds=2 if quick else 20, seconds=20.0)
    steps = CARS * len(keys)
    share = ratio(seconds["least"], seconds["ours"])
    thousands = steps / float(sorted(seconds["ours"])[len(seconds["ours"]) // 2]) / 1e3
    slots = task.replay.frames.shape[1]
    cells = (f"{slots} slots", rate(steps, seconds["least"]), str(share))
    return Row(cells, f"{thousands:.0f}k", thousands, ENOUGH)


def resident() -> int:
    """Bytes of this process in memory, where the system tells."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(quick: bool) -> list[Row]:
    """What stays in memory for ever more recordings."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder, written = Path(name), 0
        os.environ["TACIT_CACHE"] = str(folder / "cache")
        for number in (1, 2) if quick else (1, 2, 4, 8):
            while written < number:
                written += 1
                duration = 45.0 if quick else 1000.0
                write_highd(folder, written, Traffic(written, duration, lanes=3, flow=1000.0))
            read_scenarios.cache_clear()
            gc.collect()
            before = resident()
            play = load_scenarios(str(folder), Selection(split="all"))
            kept = sum(leaf.nbytes for leaf in jax.tree.leaves(play.replay)) / 2**20
            grown = (resident() - before) / 2**20
            cells = (str(number), str(len(play.scenarios)), f"{grown:.0f} MiB")
            rows.append(Row(cells, f"{kept / number:.1f} MiB", kept / number))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only see whether everything runs")
    quick = parser.parse_args().quick
    describe_machine()
    met = show(
        f"{CARS:,} cars, 74 features: steps per second (thousands)",
        ("traffic", "least work", "ratio to it", "steps/s"),
        [speed(quick)],
    )
    show(
        "Memory of recordings of 1,000 s, both directions",
        ("recordings", "scenarios", "process grew by", "tables per recording"),
        memory(quick),
    )
    return verdict(met, quick=quick)


if __name__ == "__main__":
    sys.exit(main())
