"""`tacit expert`: train an expert and write its demonstrations."""

from pathlib import Path
from typing import Annotated

import tyro

from tacit.command_line.data import write
from tacit.command_line.tables import percent, progress_bar, show_facts
from tacit.command_line.tasks import find_task
from tacit.control.expert import check_request, collect, train_expert
from tacit.evaluation.intervals import Estimate


def expert(
    task: tyro.conf.Positional[str],
    out: Path,
    number: int = 100,
    seed: int = 1,
    settings: Annotated[tuple[str, ...], tyro.conf.arg(name="set")] = (),
) -> None:
    """Train an expert on the true rule and write feasible demonstrations.

    Args:
        task: name of a task (Chain, GridWorld) or an .npz file with your own arrays.
        out: where to write: a .hdf5 file, or a folder in Minari's layout.
        number: how many feasible episodes to write.
        seed: of the episodes.
        settings: options of the task, as in --set layout=rooms reward_scale=3.
    """
    check_request(number, seed)
    chosen = find_task(task, settings)
    trained = train_expert(chosen, seed=seed)
    with progress_bar() as bar:
        job = bar.add_task("collecting", total=number)
        demonstrations = collect(
            trained, number, seed=seed, progress=lambda have: bar.update(job, completed=have)
        )
    write(demonstrations, out)
    show_facts(
        f"Expert on {chosen.name}",
        {
            "reward per episode": f"{trained.reward:.2f}",
            "violation before filtering": percent(Estimate.exact(trained.violation)),
            "price of a violated step": f"{trained.multiplier:.1f}",
            "feasible episodes written": str(number),
            "episodes discarded": str(demonstrations.provenance["discarded"]),
            "file": str(out),
        },
    )
