"""The slab's bookkeeping: which entries of which slot's ring hold committed chunks. Pure; owns no tensor memory.

    slot 3, ring 5:   free -> [stage] -> staged -> [commit] -> committed (oldest one falls out) | [rollback] -> free
                      free -> [rebuild] -> staged copies -> [commit] -> in the place of all but the sink

A pool has a byte budget and a `check_integrity()` that raises `PoolCorrupt` with the numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ...models.contract.cache import CacheSpec, CacheView


class PoolCorrupt(AssertionError):
    """The bookkeeping contradicts itself: nothing in the pool can be trusted."""


class PoolFull(RuntimeError):
    """No room, although the caller should have asked admission first."""


@dataclass(slots=True)
class _Slot:
    committed: tuple[int, ...] = ()
    staged: bool = False
    rebuilt: int = 0
    count: int = 0


class SlabPool:
    """Which ring entries of which slot hold committed chunks. Slots are handed out lowest first."""

    def __init__(self, spec: CacheSpec, slots: int) -> None:
        if spec.ring < 1:
            raise ValueError(f"ring of {spec.ring} entries: at least 1 is needed, one is always free for staging")
        self.spec = spec
        self.slots = slots
        self._taken: dict[int, _Slot] = {}

    @property
    def taken(self) -> int:
        return len(self._taken)

    @property
    def bytes_budget(self) -> int:
        return self.slots * self.spec.bytes_per_session

    @property
    def bytes_used(self) -> int:
        return self.taken * self.spec.bytes_per_session

    def acquire(self) -> int:
        slot = next((s for s in range(self.slots) if s not in self._taken), None)
        if slot is None:
            raise PoolFull(f"all {self.slots} slots are taken")
        self._taken[slot] = _Slot()
        return slot

    def free(self, slot: int) -> None:
        if self._slot(slot).staged:
            raise PoolCorrupt(f"slot {slot} is freed while a write is staged")
        del self._taken[slot]

    def view(self, slot: int) -> CacheView:
        ring = self._slot(slot)
        staged, *spare = self._free_entries(ring)
        return CacheView(slot, ring.committed, staged, tuple(spare[: self.spec.rebuild]))

    def count(self, slot: int) -> int:
        """Chunks committed since the last reset, whether or not the ring still holds them."""
        return self._slot(slot).count

    def stage(self, slot: int) -> None:
        ring = self._slot(slot)
        if ring.staged:
            raise PoolCorrupt(f"slot {slot} stages a second write before the first is committed")
        ring.staged = True

    def rebuild(self, slot: int, entries: int) -> None:
        """The first spare entries are written to take the place of the committed ones beyond the sink."""
        if not 0 < entries <= self.spec.rebuild:
            raise PoolCorrupt(f"{entries} entries are rebuilt, the card allows {self.spec.rebuild}")
        self._slot(slot).rebuilt = entries

    def commit(self, slot: int) -> None:
        """What was staged and rebuilt, if anything, is committed from now on."""
        ring = self._slot(slot)
        staged, *spare = self._free_entries(ring)
        ring.count += ring.staged
        committed = self.spec.kept(ring.committed, tuple(spare[: ring.rebuilt]), (staged,) if ring.staged else ())
        if len(committed) != min(ring.count, self.spec.window):
            raise PoolCorrupt(f"slot {slot} would hold {len(committed)} entries after {ring.count} commits")
        ring.committed = committed
        ring.staged, ring.rebuilt = False, 0

    def rollback(self, slot: int) -> None:
        ring = self._slot(slot)
        ring.staged, ring.rebuilt = False, 0

    def untouched(self, slot: int, noted: tuple[int, ...], count: int) -> bool:
        """Whether the entries that were committed when `count` was read still hold the same chunks."""
        ring = self._slot(slot)
        return ring.count - count in (0, 1) and set(noted) <= set(ring.committed)

    def restore(self, slot: int, count: int) -> None:
        """Entries 0, 1, .. hold what a window keeps of `count` chunks, in the order of `view`."""
        self._taken[slot] = _Slot(committed=tuple(range(min(count, self.spec.window))), count=count)

    def reset(self, slot: int) -> None:
        self.rollback(slot)
        self._taken[slot] = _Slot()

    def check_integrity(self) -> None:
        for _ in self.inspect():
            pass

    def inspect(self) -> Iterator[None]:
        """The same slot by slot; others may work on the pool between two."""
        for slot in [*self._taken]:
            self._check(slot)
            yield
        if self.bytes_used > self.bytes_budget:
            raise PoolCorrupt(f"{self.bytes_used} bytes used of {self.bytes_budget}")

    def _check(self, slot: int) -> None:
        ring = self._taken.get(slot)
        if ring is None:
            return
        entries = ring.committed
        if not 0 <= slot < self.slots:
            raise PoolCorrupt(f"slot {slot} of {self.slots}")
        if len(set(entries)) != len(entries) or any(not 0 <= e < self.spec.ring for e in entries):
            raise PoolCorrupt(f"slot {slot} holds entries {entries} of a ring of {self.spec.ring}")
        if len(entries) != min(ring.count, self.spec.window):
            raise PoolCorrupt(f"slot {slot} holds {len(entries)} entries after {ring.count} commits")

    def _slot(self, slot: int) -> _Slot:
        if slot not in self._taken:
            raise PoolCorrupt(f"slot {slot} is not taken")
        return self._taken[slot]

    def _free_entries(self, ring: _Slot) -> list[int]:
        return [entry for entry in range(self.spec.ring) if entry not in ring.committed]


class SlotWrites:
    """One slot's writes as `drive.drive_chunk` sees them."""

    __slots__ = ("_pool", "_slot")

    def __init__(self, pool: SlabPool, slot: int) -> None:
        self._pool, self._slot = pool, slot

    def view(self) -> CacheView:
        return self._pool.view(self._slot)

    def stage(self) -> None:
        self._pool.stage(self._slot)

    def rebuild(self, entries: int) -> None:
        self._pool.rebuild(self._slot, entries)

    def commit(self) -> None:
        self._pool.commit(self._slot)

    def rollback(self) -> None:
        self._pool.rollback(self._slot)
