"""The slab's bookkeeping: which entries of which slot's ring hold committed chunks. Pure; owns no tensor memory.

    slot 3, ring 5:   free -> [stage] -> staged -> [commit] -> committed (oldest one falls out) | [rollback] -> free
                      free -> [rebuild] -> staged copies -> [commit] -> in the place of all but the sink

A pool has a byte budget and a `check_integrity()` that raises `PoolCorrupt` with the numbers.
"""

import itertools
from collections.abc import Iterator

from ...models.contract.cache import CacheSpec, CacheView


class PoolCorrupt(AssertionError):
    """The bookkeeping contradicts itself: nothing in the pool can be trusted."""


class PoolFull(RuntimeError):
    """No room, although the caller should have asked admission first."""


class CacheSlot:
    """One session's ring: which of its entries hold committed chunks, and what is staged. Implements `drive.Writes`.

    `count`: chunks committed since the last reset, whether or not the ring still holds them. `stamps`: one for each
    committed entry, never given twice by this slot: an equal stamp is an equal content.
    """

    __slots__ = ("_next", "_rebuilt", "_spec", "_staged", "committed", "count", "freed", "number", "stamps")

    def __init__(self, spec: CacheSpec, number: int) -> None:
        self._spec, self.number, self.freed = spec, number, False
        self.committed: tuple[int, ...] = ()
        self.stamps: tuple[int, ...] = ()
        self.count, self._staged, self._rebuilt, self._next = 0, False, 0, itertools.count(1)

    @property
    def staged(self) -> bool:
        return self._staged

    def view(self) -> CacheView:
        staged, *spare = self._free_entries()
        return CacheView(self.number, self.committed, staged, tuple(spare[: self._spec.rebuild]))

    def stage(self) -> None:
        if self._staged:
            raise PoolCorrupt(f"slot {self.number} stages a second write before the first is committed")
        self._staged = True

    def rebuild(self, entries: int) -> None:
        """The first spare entries are written to take the place of the committed ones beyond the sink."""
        if not 0 < entries <= self._spec.rebuild:
            raise PoolCorrupt(f"{entries} entries are rebuilt, the card allows {self._spec.rebuild}")
        self._rebuilt = entries

    def commit(self) -> None:
        """What was staged and rebuilt, if anything, is committed from now on."""
        staged, *spare = self._free_entries()
        self.count += self._staged
        old = dict(zip(self.committed, self.stamps, strict=True))
        self.committed = self._spec.kept(
            self.committed, tuple(spare[: self._rebuilt]), (staged,) if self._staged else ()
        )
        self.stamps = tuple(old[entry] if entry in old else next(self._next) for entry in self.committed)
        self._staged, self._rebuilt = False, 0
        self.check()

    def rollback(self) -> None:
        self._staged, self._rebuilt = False, 0

    def untouched(self, noted: tuple[int, ...], count: int) -> bool:
        """Whether the entries that had the stamps `noted` at `count` still hold the same, a chunk later at most."""
        return self.count - count in (0, 1) and set(noted) <= set(self.stamps)

    def restore(self, count: int) -> None:
        """Entries 0, 1, .. hold what a window keeps of `count` chunks, in the order of `view`; nothing is staged."""
        self.committed, self.count = tuple(range(min(count, self._spec.window))), count
        self.stamps = tuple(next(self._next) for _ in self.committed)
        self._staged, self._rebuilt = False, 0

    def check(self) -> None:
        """Raise `PoolCorrupt` when the entries contradict what was committed."""
        entries = self.committed
        if len(set(entries)) != len(entries) or any(not 0 <= e < self._spec.ring for e in entries):
            raise PoolCorrupt(f"slot {self.number} holds entries {entries} of a ring of {self._spec.ring}")
        if len(entries) != min(self.count, self._spec.window) or len(set(self.stamps)) != len(entries):
            raise PoolCorrupt(f"slot {self.number} holds {len(entries)} entries after {self.count} commits")

    def _free_entries(self) -> list[int]:
        if self.freed:
            raise PoolCorrupt(f"slot {self.number} is used after it was freed")
        return [entry for entry in range(self._spec.ring) if entry not in self.committed]


class SlabPool:
    """The slots of one card. They are handed out lowest first."""

    def __init__(self, spec: CacheSpec, slots: int) -> None:
        if spec.ring < 1:
            raise ValueError(f"ring of {spec.ring} entries: at least 1 is needed, one is always free for staging")
        self.spec = spec
        self.slots = slots
        self._taken: dict[int, CacheSlot] = {}

    @property
    def taken(self) -> int:
        return len(self._taken)

    @property
    def bytes_budget(self) -> int:
        return self.slots * self.spec.bytes_per_session

    @property
    def bytes_used(self) -> int:
        return self.taken * self.spec.bytes_per_session

    def acquire(self) -> CacheSlot:
        """An empty slot; raises `PoolFull`."""
        number = next((n for n in range(self.slots) if n not in self._taken), None)
        if number is None:
            raise PoolFull(f"all {self.slots} slots are taken")
        slot = self._taken[number] = CacheSlot(self.spec, number)
        return slot

    def free(self, slot: CacheSlot) -> None:
        if slot.staged:
            raise PoolCorrupt(f"slot {slot.number} is freed while a write is staged")
        if self._taken.get(slot.number) is not slot:
            raise PoolCorrupt(f"slot {slot.number} is not taken")
        del self._taken[slot.number]
        slot.freed = True

    def check_integrity(self) -> None:
        for _ in self.inspect():
            pass

    def inspect(self) -> Iterator[None]:
        """The same slot by slot; others may work on the pool between two."""
        for slot in [*self._taken.values()]:
            if not slot.freed:
                slot.check()
            yield
        if self.bytes_used > self.bytes_budget:
            raise PoolCorrupt(f"{self.bytes_used} bytes used of {self.bytes_budget}")
