"""Cache entries to and from bytes, as steps on the device: between two batches nothing else touches the slab."""

from dataclasses import dataclass

from ..models.contract.loaded import Slab


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Gives the entries' bytes in this order."""

    slot: int
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteEntries:
    """Fills entries 0, 1, .. of the slot."""

    slot: int
    data: tuple[bytes, ...]


class NoSlab(RuntimeError):
    """The card's runtime cannot give its cache away."""


def transfer(slab: Slab | None, row: ReadEntries | WriteEntries) -> tuple[bytes, ...]:
    if slab is None:
        raise NoSlab("this card's cache cannot be read or written")
    match row:
        case ReadEntries():
            return tuple(slab.read_entry(row.slot, entry) for entry in row.entries)
        case WriteEntries():
            for entry, data in enumerate(row.data):
                slab.write_entry(row.slot, entry, data)
            return ()
