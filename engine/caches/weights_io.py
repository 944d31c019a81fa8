"""What the device does with a card's weights and slots between two batches, as steps: a slice of a component to or from
the host, a component dropped, the slots of its sessions taken or given back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...models.contract.components import HostBytes
from ...models.contract.loaded import LoadedCard, SlicedSlots


@dataclass(frozen=True, slots=True)
class ReadWeights:
    """A slice of a component into host memory."""

    component: str
    start: int
    into: HostBytes


@dataclass(frozen=True, slots=True)
class WriteWeights:
    """A slice of a component onto the device. The first one takes the memory for all of it."""

    component: str
    start: int
    data: HostBytes


@dataclass(frozen=True, slots=True)
class DropComponent:
    """Its memory is the device's again."""

    component: str


@dataclass(frozen=True, slots=True)
class AllocateSlots:
    """Memory for so many sessions; 0 gives it back. Nothing of a session outlives it."""

    slots: int


@dataclass(frozen=True, slots=True)
class ReserveSlots:
    """The same of a `SlicedSlots`: nobody may come before a `ClearEntry` for each of their entries."""

    slots: int


@dataclass(frozen=True, slots=True)
class ClearEntry:
    slot: int
    entry: int


WeightsRow = ReadWeights | WriteWeights | DropComponent | AllocateSlots | ReserveSlots | ClearEntry


def taking(loaded: LoadedCard, slots: int) -> Iterator[AllocateSlots | ReserveSlots | ClearEntry]:
    """The steps in which a card gets memory for so many sessions: in slices, where its runtime can."""
    cache = loaded.card.cache
    if not slots or cache is None or not isinstance(loaded.slab, SlicedSlots):
        yield AllocateSlots(slots)
        return
    yield ReserveSlots(slots)
    yield from (ClearEntry(slot, entry) for slot in range(slots) for entry in range(cache.ring))


class NoComponents(RuntimeError):
    """The card's weights cannot leave the device."""


def move(loaded: LoadedCard, row: WeightsRow) -> None:
    """Carry one of them out, on the device's thread."""
    match row:
        case AllocateSlots():
            loaded.runtime.allocate(row.slots)
        case ReserveSlots():
            _sliced(loaded).reserve(row.slots)
        case ClearEntry():
            _sliced(loaded).clear_entry(row.slot, row.entry)
        case _:
            _move_component(loaded, row)


def _sliced(loaded: LoadedCard) -> SlicedSlots:
    assert isinstance(loaded.slab, SlicedSlots), "else it is allocated as a whole"
    return loaded.slab


def _move_component(loaded: LoadedCard, row: ReadWeights | WriteWeights | DropComponent) -> None:
    if (components := loaded.components) is None:
        raise NoComponents(f"the weights of '{loaded.card.name}' cannot leave the device")
    match row:
        case ReadWeights():
            components.read(row.component, row.start, row.into)
        case WriteWeights():
            components.write(row.component, row.start, row.data)
        case DropComponent():
            components.drop(row.component)
