"""A world between two chunks as one value that any worker with the same weights continues bit for bit.

    snapshot = carry | committed cache entries, oldest first | prompt features | seed, branch, chunk number, epoch

Ring places are not in it: a runtime reads its entries by age, so they may lie anywhere after a restore. Knows no
device.
"""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...models.contract.cache_key import CacheKey, key_of
from ...models.contract.first_frames import FirstFrames
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import PromptAsk
from ...models.shared import serial


class SnapshotMismatch(ValueError):
    """A snapshot of another card, other weights or another precision."""


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt's embedding by its content key."""

    key: str
    value: serial.Portable


class PromptProgress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a world's prompt loop is: the text that steers now ('' = none yet), and what the newest run was asked."""

    text: str
    run: int
    carry: bytes | None
    seen: bytes | None

    @classmethod
    def of(cls, loaded: LoadedCard, text: str, ask: PromptAsk[Any]) -> "PromptProgress":
        carry = None if ask.carry is None else serial.dumps(ask.carry)
        return cls(text, ask.run, carry, carry_bytes(loaded, ask.seen))

    def ask(self, loaded: LoadedCard, seed: int, branch: int) -> PromptAsk[Any]:
        """Raises `SnapshotMismatch` or `serial.SerialError`."""
        if loaded.prompt_carry is None:
            raise SnapshotMismatch(f"the prompt loop of card '{loaded.card.name}' has no snapshots")
        carry = None if self.carry is None else serial.loads(self.carry, loaded.prompt_carry)
        seen = None if self.seen is None else serial.loads(self.seen, _portable(loaded))
        return PromptAsk(seed, branch, self.run, carry, seen)


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See the module docstring. `made_by` must equal `maker(loaded)` of who continues it; `carry` None = not begun.
    `picture`: the last frame made, for who joins a world that stands still. `opening`: what a world that has not begun
    starts from. `prompts`: of a card with a prompt loop.
    """

    made_by: CacheKey
    steps: int
    seed: int
    branch: int
    number: int
    epoch: int
    carry: bytes | None
    count: int
    entries: tuple[bytes, ...]
    features: tuple[Feature, ...]
    picture: NDArray[np.uint8] | None
    opening: FirstFrames | None = None
    prompts: PromptProgress | None = None

    def dumps(self) -> bytes:
        return serial.dumps(self)

    def carry_for(self, loaded: LoadedCard) -> Any:
        """The carry, for the card that made it; raises `SnapshotMismatch` or `serial.SerialError`."""
        here = maker(loaded)
        if differences := self.made_by.differences(here):
            theirs, ours = (", ".join(str(getattr(key, name)) for name in differences) for key in (self.made_by, here))
            raise SnapshotMismatch(f"a snapshot of {', '.join(differences)} {theirs}: this worker runs {ours}")
        return None if self.carry is None else serial.loads(self.carry, _portable(loaded))


def loads(data: bytes) -> Snapshot:
    """Raises `serial.SerialError`."""
    return serial.loads(data, Snapshot)


def maker(loaded: LoadedCard) -> CacheKey:
    """Everything that must be equal where a snapshot is continued. Seed, prompts and adapters are in it as values."""
    return key_of(loaded).part("world")


def carry_bytes(loaded: LoadedCard, carry: Any) -> bytes | None:
    return None if carry is None else serial.dumps(_checked(carry, _portable(loaded)))


def features_of(features: tuple[tuple[str, object], ...]) -> tuple[Feature, ...]:
    """Those that can be written down; others are encoded again when they are asked for."""
    return tuple(
        Feature(key, value) for key, value in features if isinstance(value, np.ndarray) or serial.is_tensor(value)
    )


def _portable(loaded: LoadedCard) -> type[msgspec.Struct]:
    if loaded.carry is None:
        raise SnapshotMismatch(f"card '{loaded.card.name}' has no snapshots")
    return loaded.carry


def _checked(carry: Any, kind: type[msgspec.Struct]) -> msgspec.Struct:
    if not isinstance(carry, kind):
        raise TypeError(f"a carry is a {kind.__name__}, got {type(carry).__name__}")
    return carry
