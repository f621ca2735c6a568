"""What made-up traffic is like: the numbers a user chooses, and those that are fixed."""

from dataclasses import dataclass

from tacit.argument_checks import check_count, check_seed
from tacit.errors import ArgumentError

FRAME_RATE = 25
ROAD_LENGTH, LANE_WIDTH = 420.0, 3.75
WARM_UP = 40.0
ENTRANCE, EXIT = -400.0, 520.0
"""Where vehicles enter and are forgotten, both out of sight; the road is seen from 0 on."""


@dataclass(frozen=True)
class Traffic:
    """What traffic to make up.

    Fields:
        seed: of every random draw.
        duration: seconds that are recorded, after the warm-up.
        lanes: on each side.
        flow: vehicles an hour and lane that want to enter.
        trucks: share of all vehicles, as far as the right lane has room for them.
    """

    seed: int = 1
    duration: float = 80.0
    lanes: int = 2
    flow: float = 800.0
    trucks: float = 0.25

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if check_count("lanes", self.lanes) > 6:
            raise ArgumentError(f"lanes must be at most 6 on each side, not {self.lanes}")
        if not 1 <= self.duration <= 7200:
            raise ArgumentError(f"duration must lie between 1 and 7200 s, not {self.duration}")
        if not 0 < self.flow <= 3000:
            raise ArgumentError(
                f"flow must lie between 0 and 3000 vehicles an hour and lane, not {self.flow}"
            )
        if not 0 <= self.trucks <= 1:
            raise ArgumentError(f"trucks must be a share between 0 and 1, not {self.trucks}")

    @property
    def frames(self) -> int:
        """How many are recorded."""
        return round(self.duration * FRAME_RATE)
