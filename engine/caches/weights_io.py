"""What the device does with a card's weights and slots between two batches, as steps: a slice of a component to or from
the host, a component dropped, the slots of its sessions taken or given back.
"""

from dataclasses import dataclass

from ...models.contract.components import HostBytes
from ...models.contract.loaded import LoadedCard


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


WeightsRow = ReadWeights | WriteWeights | DropComponent | AllocateSlots


class NoComponents(RuntimeError):
    """The card's weights cannot leave the device."""


def move(loaded: LoadedCard, row: WeightsRow) -> None:
    """Carry one of them out, on the device's thread."""
    if isinstance(row, AllocateSlots):
        loaded.runtime.allocate(row.slots)
        return
    if (components := loaded.components) is None:
        raise NoComponents(f"the weights of '{loaded.card.name}' cannot leave the device")
    match row:
        case ReadWeights():
            components.read(row.component, row.start, row.into)
        case WriteWeights():
            components.write(row.component, row.start, row.data)
        case DropComponent():
            components.drop(row.component)
