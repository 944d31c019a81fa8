"""Cache entries to and from bytes, as steps on the device: between two batches nothing else touches the slab.

What is read may still be on its way (`PendingBytes`): a copy runs beside the compute, and who wants it waits off the
device's thread.
"""

from dataclasses import dataclass

from ...models.contract.adapters import Adapter
from ...models.contract.cache import place
from ...models.contract.loaded import Copied, LoadedCard


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Gives the entries' bytes in this order, then the parts of what the card keeps beside them, if anything."""

    slot: int
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteEntries:
    """Fills entries `first`, `first` + 1, .. of the slot, or `entries`, then what is beside them, if that is given."""

    slot: int
    data: tuple[bytes, ...]
    first: int = 0
    extra: tuple[bytes, ...] = ()
    entries: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class MoveAdapter:
    """Puts an adapter beside the card's weights under its key; None takes it away."""

    key: str
    adapter: Adapter | None


CacheRow = ReadEntries | WriteEntries | MoveAdapter


def transfer(loaded: LoadedCard, row: CacheRow) -> tuple[Copied, ...]:
    """Raises RuntimeError for a card whose runtime has no such thing, and what its runtime raises."""
    if isinstance(row, MoveAdapter):
        return _moved(loaded, row)
    slab, extra, cache = loaded.slab, loaded.extra, loaded.card.cache
    if slab is None or cache is None:
        raise RuntimeError("this card's cache cannot be read or written")
    match row:
        case ReadEntries():
            entries = tuple(slab.read_entry(*place(row.slot, entry, cache.ring)) for entry in row.entries)
            return entries if extra is None else (*entries, *extra.read_extra(row.slot))
        case WriteEntries():
            if extra is not None and row.extra:
                extra.write_extra(row.slot, row.extra)
            places = range(row.first, row.first + len(row.data)) if row.entries is None else row.entries
            for entry, data in zip(places, row.data, strict=True):
                slab.write_entry(*place(row.slot, entry, cache.ring), data)
            return ()


def _moved(loaded: LoadedCard, row: MoveAdapter) -> tuple[Copied, ...]:
    if loaded.adapters is None:
        raise RuntimeError("this card takes no adapters")
    if row.adapter is None:
        loaded.adapters.detach(row.key)
    else:
        loaded.adapters.attach(row.key, row.adapter)
    return ()
