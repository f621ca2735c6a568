"""The best policy of a training so far."""

from typing import NamedTuple

from tacit.control.actor import Actor


class Best(NamedTuple):
    """The actor with the highest score over 100 episodes so far; see `EpisodeLedger.score`."""

    actor: Actor
    score: float
    steps: int
