"""A card made ready on a device: what `models/catalog.py` hands to the engine."""

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from .card import ModelCard
from .loop import Loop, Runtime
from .recipe import RuntimeChoice


class SlabIO(Protocol):
    """A runtime's cache as bytes, for snapshots. Called on the device's thread only, between steps."""

    def read_entry(self, slot: int, entry: int) -> bytes: ...

    def write_entry(self, slot: int, entry: int, data: bytes) -> None:
        """Raises ValueError on data of another length than `read_entry` gives."""
        ...


class SessionExtra(Protocol):
    """What a runtime keeps of a session beside its ring entries, as bytes; called like a `SlabIO`."""

    def read_beside(self, slot: int) -> bytes: ...

    def write_beside(self, slot: int, data: bytes) -> None:
        """Raises ValueError on data of another length than `read_beside` gives."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedCard:
    """The (recipe, runtime) pair: `choice` has passed `card.recipe.check`, `weights` is a digest of the weight files.

    Row, result, state and carry types are the family's own; the engine only passes them on.
    `carry` and `slab` (and `beside`, where a runtime keeps more) make its worlds portable: without them a session can
    only be remade from its beginning.
    """

    card: ModelCard
    choice: RuntimeChoice
    weights: str
    loop: Loop[Any, Any, Any, Any]
    runtime: Runtime[Any, Any]
    carry: type[msgspec.Struct] | None = None
    slab: SlabIO | None = None
    beside: SessionExtra | None = None
