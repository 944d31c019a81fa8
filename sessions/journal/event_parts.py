"""What several of the journal's events are made of."""

from enum import StrEnum

import msgspec


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A moment of another session: its world before `chunk`, as it was in that epoch."""

    session: str
    epoch: int
    chunk: int


class MixedPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another text of a mix: the number under which it was asked, and its weight against the others'."""

    number: int
    weight: float


class DriverInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a chunk took from one of several drivers, before it was put together: their last input and its state."""

    participant: str
    seq: int
    controls: tuple[float, ...]
    pointer: tuple[float, float]


class Verdict(StrEnum):
    CHOSEN = "chosen"
    TIE = "tie"
    SKIP = "skip"


class BranchRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One future of a fork: the chunks from `first` on that were made in it, by the digests of their latents. `noise`
    as in `WorldTurned`."""

    branch: int
    seed: int
    first: int
    digests: tuple[str, ...]
    prompt_version: int = 0
    controls: tuple[tuple[float, ...], ...] = ()
    noise: int = -1
