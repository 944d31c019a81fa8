"""A world between two chunks as one value that any worker with the same weights continues bit for bit.

    snapshot = carry | committed cache entries, oldest first | prompt features | seed, branch, chunk number, epoch
    carry, entries, features and picture are parts (`parts.py`): named here by their content, kept beside it

Ring places are not in it: a runtime reads its entries by age, so they may lie anywhere after a restore. Knows no
device and no store.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...models.contract.cache_key import CacheKey, key_of
from ...models.contract.first_frames import FirstFrames
from ...models.contract.loaded import LoadedCard
from ...models.contract.loop import PromptAsk
from ...models.contract.version import SOFTWARE
from ...models.shared import serial
from .parts import WorldManifest, WorldPart, manifest_of, part_of, whole

Read = Callable[[WorldPart], bytes]


class SnapshotMismatch(ValueError):
    """A snapshot of another card, other weights, another precision or another version of this program, or one that
    does not meet its history.
    """


class Feature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt's embedding by its content key."""

    key: str
    value: WorldPart


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a part holds that is one array or tensor."""

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
    """See the module docstring. `made_by` must equal `maker(loaded)` of who continues it, `software` this program;
    `carry` None = not begun. `extra`: what a runtime keeps beside its entries. `picture`: the last frame made, for who
    joins a world that stands still. `opening`: what a world that has not begun starts from. `prompts`: of a card with a
    prompt loop.
    """

    made_by: CacheKey
    steps: int
    seed: int
    branch: int
    number: int
    epoch: int
    carry: WorldPart | None
    count: int
    entries: tuple[WorldPart, ...]
    features: tuple[Feature, ...]
    picture: WorldPart | None
    opening: FirstFrames | None = None
    prompts: PromptProgress | None = None
    extra: tuple[WorldPart, ...] = ()
    software: str = ""

    def dumps(self) -> bytes:
        return serial.dumps(self)

    def check(self, loaded: LoadedCard) -> None:
        """Raise `SnapshotMismatch` unless this program and that card go on with it."""
        if self.software != SOFTWARE:
            raise SnapshotMismatch(f"a snapshot of version {self.software} of this program, this is {SOFTWARE}")
        here = maker(loaded)
        if differences := self.made_by.differences(here):
            theirs, ours = (", ".join(str(getattr(key, name)) for name in differences) for key in (self.made_by, here))
            raise SnapshotMismatch(f"a snapshot of {', '.join(differences)} {theirs}: this worker runs {ours}")

    def carry_for(self, loaded: LoadedCard, read: Read) -> Any:
        """The carry, for the card that made it; raises `SnapshotMismatch`, `serial.SerialError` or what `read` does."""
        self.check(loaded)
        return None if self.carry is None else serial.loads(read(self.carry), _portable(loaded))


def loads(data: bytes) -> Snapshot:
    """Of a manifest's body. Raises `serial.SerialError`."""
    return serial.loads(data, Snapshot)


def of_manifest(data: bytes) -> tuple[Snapshot, WorldManifest]:
    """Raises `serial.SerialError` or `parts.PartLost`."""
    manifest = manifest_of(data)
    return loads(manifest.body), manifest


def value_in(data: bytes) -> object:
    """The array or tensor of a part; raises `serial.SerialError`."""
    return serial.loads(data, Value).value


@dataclass(slots=True)
class Captured:
    """A world that was read and is not sealed yet: `head` without its parts. `entries`: by stamp, oldest first, None =
    its content is known as a part already.
    """

    head: Snapshot
    carry: Any
    entries: Mapping[int, bytes | None]
    extra: tuple[bytes, ...]
    features: tuple[tuple[str, object], ...]
    picture: NDArray[np.uint8] | None
    sealed: dict[int, WorldPart] = field(default_factory=dict)
    """By stamp, once it is sealed."""

    def seal(
        self, loaded: LoadedCard, known: Mapping[int, WorldPart]
    ) -> tuple[Snapshot, dict[WorldPart, bytes | None]]:
        """The snapshot and all parts it names; None = kept already. Takes its time: reads every new byte."""
        parts: dict[WorldPart, bytes | None] = {}

        def part(data: bytes) -> WorldPart:
            made = part_of(data)
            parts[made] = data
            return made

        for stamp, data in self.entries.items():
            if data is None:
                self.sealed[stamp] = known[stamp]
                parts.setdefault(known[stamp], None)
            else:
                self.sealed[stamp] = part(data)
        carry = carry_bytes(loaded, self.carry)
        snapshot = msgspec.structs.replace(
            self.head,
            carry=None if carry is None else part(carry),
            entries=tuple(self.sealed.values()),
            extra=tuple(part(data) for data in self.extra),
            features=tuple(Feature(key, part(data)) for key, data in feature_bytes(self.features)),
            picture=None if self.picture is None else part(serial.dumps(Value(self.picture))),
        )
        return snapshot, parts

    def whole(self, loaded: LoadedCard) -> bytes:
        """A manifest that stands alone; every entry was read."""
        snapshot, parts = self.seal(loaded, {})
        return whole(snapshot.dumps(), {part: data for part, data in parts.items() if data is not None})


def maker(loaded: LoadedCard) -> CacheKey:
    """Everything that must be equal where a snapshot is continued. Seed, prompts and adapters are in it as values."""
    return key_of(loaded).part("world")


def carry_bytes(loaded: LoadedCard, carry: Any) -> bytes | None:
    return None if carry is None else serial.dumps(_checked(carry, _portable(loaded)))


def feature_bytes(features: tuple[tuple[str, object], ...]) -> list[tuple[str, bytes]]:
    """Those that can be written down; others are encoded again when they are asked for."""
    return [
        (key, serial.dumps(Value(value)))
        for key, value in features
        if isinstance(value, np.ndarray) or serial.is_tensor(value)
    ]


def _portable(loaded: LoadedCard) -> type[msgspec.Struct]:
    if loaded.carry is None:
        raise SnapshotMismatch(f"card '{loaded.card.name}' has no snapshots")
    return loaded.carry


def _checked(carry: Any, kind: type[msgspec.Struct]) -> msgspec.Struct:
    if not isinstance(carry, kind):
        raise TypeError(f"a carry is a {kind.__name__}, got {type(carry).__name__}")
    return carry
