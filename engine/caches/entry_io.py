"""Cache entries to and from bytes, as steps on the device: between two batches nothing else touches the slab."""

from dataclasses import dataclass

from ...models.contract.loaded import LoadedCard


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Gives the entries' bytes in this order, then what the card keeps beside them, if anything."""

    slot: int
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteEntries:
    """Fills entries 0, 1, .. of the slot, then what is beside them; the inverse of `ReadEntries`."""

    slot: int
    data: tuple[bytes, ...]


class NoSlab(RuntimeError):
    """The card's runtime cannot give its cache away."""


def transfer(loaded: LoadedCard, row: ReadEntries | WriteEntries) -> tuple[bytes, ...]:
    slab, extra = loaded.slab, loaded.extra
    if slab is None:
        raise NoSlab("this card's cache cannot be read or written")
    match row:
        case ReadEntries():
            entries = tuple(slab.read_entry(row.slot, entry) for entry in row.entries)
            return entries if extra is None else (*entries, extra.read_extra(row.slot))
        case WriteEntries():
            entries = row.data
            if extra is not None:
                entries, kept = row.data[:-1], row.data[-1]
                extra.write_extra(row.slot, kept)
            for entry, data in enumerate(entries):
                slab.write_entry(row.slot, entry, data)
            return ()
