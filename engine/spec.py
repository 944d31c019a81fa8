"""EngineSpec: everything a person may set about the engine, in one frozen value. Knows no card."""

from dataclasses import dataclass
from enum import StrEnum

from ..models.holding import ROWS


class Policy(StrEnum):
    """What the scheduler hands the device to.

    step     one step at a time: chunks interleave, a redirect is seen at the next step boundary
    request  whole chunks, first come first served: nothing runs between two steps of a chunk, no rows are batched, and
             a redirect is seen when the chunk is over
    """

    STEP = "step"
    REQUEST = "request"


SLOTS_AUTO = 16
"""Sessions per card where nobody says how many: a small world does not allocate thousands."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """`slots`: sessions per card at most; those that fit into its device's memory. `memory`: bytes of the device, where
    it is not to be asked. `share_cap`: part of the device that guaranteed classes may fill.

    `max_rows`: rows of one batch. `ageing`: seconds after which
    background work competes with everyone. `kbps`: video rate to start with; `kbps_max` is the ceiling of `SetBitrate`.
    `feature_bytes_max`: of prompt embeddings. `adapter_bytes_max`: of adapters that are attached. `suspend_after`:
    seconds after which a paused session gives its slot back. `checkpoint_*`: a world is written down after so many
    seconds or chunks; after a large one, no sooner than `checkpoint_rate` bytes a second allow. `worlds_memory`,
    `worlds_disk`: bytes of all worlds that are written down, in host memory and, where there is a folder, on disk.
    `weights_memory`: bytes of host memory for weights that are away from the device; None = half of what is free, none
    where the device is the host. `seed` draws between equals.
    `policy` is STEP; REQUEST is there to compare with. `patience`: seconds that a step may take, or ten times its
    price; beyond both its worker hangs and is ended. `fps`: pictures a second of every card that would show more: its
    world's clock goes slower, where a device cannot hold its pace.
    """

    slots: int = 4
    memory: int | None = None
    share_cap: float = 0.9
    max_rows: int = ROWS
    ageing: float = 2.0
    kbps: int = 2500
    kbps_max: int = 6000
    encoder_threads: int = 2
    feature_bytes_max: int = 64 << 20
    adapter_bytes_max: int = 1 << 30
    suspend_after: float = 20.0
    checkpoint_seconds: float = 0.5
    checkpoint_chunks: int = 24
    checkpoint_rate: int = 512 << 20
    worlds_memory: int = 2 << 30
    worlds_disk: int = 64 << 30
    weights_memory: int | None = None
    seed: int = 0
    policy: Policy = Policy.STEP
    patience: float = 2.0
    fps: int | None = None

    def __post_init__(self) -> None:
        if self.slots < 1 or self.max_rows < 1 or self.encoder_threads < 1:
            raise ValueError(f"slots, max_rows and encoder_threads are at least 1, got {self}")
        if not 0.0 < self.share_cap <= 1.0:
            raise ValueError(f"share_cap is in (0, 1], got {self.share_cap}")
        if not 0 < self.kbps <= self.kbps_max:
            raise ValueError(f"0 < kbps <= kbps_max is needed, got {self.kbps} and {self.kbps_max}")
        if self.fps is not None and self.fps < 1:
            raise ValueError(f"fps is at least 1, got {self.fps}")
