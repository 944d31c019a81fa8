"""Cache bookkeeping: chunk-KV ring entries per slot, and prompt features by content. Pure; owns no tensor memory.

    slot 3, ring 5:   free -> [stage] -> staged -> [commit] -> committed (oldest one falls out) | [rollback] -> free
                      free -> [rebuild] -> staged copies -> [commit] -> in the place of all but the sink

Every pool has a byte budget and a `check_integrity()` that raises `PoolCorrupt` with the numbers.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from ...models.contract.cache import CacheSpec, CacheView
from ...models.contract.fingerprint import CacheKey


class PoolCorrupt(AssertionError):
    """The bookkeeping contradicts itself: nothing in the pool can be trusted."""


class PoolFull(RuntimeError):
    """No room, although the caller should have asked admission first."""


class UnknownFeature(LookupError):
    """A feature that was never computed here, or is gone."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


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
        held = self._slot(slot)
        staged, *spare = self._free_entries(held)
        return CacheView(slot, held.committed, staged, tuple(spare[: self.spec.rebuild]))

    def count(self, slot: int) -> int:
        """Chunks committed since the last reset, whether or not the ring still holds them."""
        return self._slot(slot).count

    def stage(self, slot: int) -> None:
        held = self._slot(slot)
        if held.staged:
            raise PoolCorrupt(f"slot {slot} stages a second write before the first is committed")
        held.staged = True

    def rebuild(self, slot: int, entries: int) -> None:
        """The first spare entries are written to take the place of the committed ones beyond the sink."""
        if not 0 < entries <= self.spec.rebuild:
            raise PoolCorrupt(f"{entries} entries are rebuilt, the card allows {self.spec.rebuild}")
        self._slot(slot).rebuilt = entries

    def commit(self, slot: int) -> None:
        """What was staged and rebuilt, if anything, is committed from now on."""
        held = self._slot(slot)
        staged, *spare = self._free_entries(held)
        held.count += held.staged
        kept = self.spec.kept(held.committed, tuple(spare[: held.rebuilt]), (staged,) if held.staged else ())
        if len(kept) != min(held.count, self.spec.window):
            raise PoolCorrupt(f"slot {slot} would hold {len(kept)} entries after {held.count} commits")
        held.committed = kept
        held.staged, held.rebuilt = False, 0

    def rollback(self, slot: int) -> None:
        held = self._slot(slot)
        held.staged, held.rebuilt = False, 0

    def untouched(self, slot: int, noted: tuple[int, ...], count: int) -> bool:
        """Whether the entries that were committed when `count` was read still hold the same chunks."""
        held = self._slot(slot)
        return held.count - count in (0, 1) and set(noted) <= set(held.committed)

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
        held = self._taken.get(slot)
        if held is None:
            return
        entries = held.committed
        if not 0 <= slot < self.slots:
            raise PoolCorrupt(f"slot {slot} of {self.slots}")
        if len(set(entries)) != len(entries) or any(not 0 <= e < self.spec.ring for e in entries):
            raise PoolCorrupt(f"slot {slot} holds entries {entries} of a ring of {self.spec.ring}")
        if len(entries) != min(held.count, self.spec.window):
            raise PoolCorrupt(f"slot {slot} holds {len(entries)} entries after {held.count} commits")

    def _slot(self, slot: int) -> _Slot:
        if slot not in self._taken:
            raise PoolCorrupt(f"slot {slot} is not taken")
        return self._taken[slot]

    def _free_entries(self, held: _Slot) -> list[int]:
        return [entry for entry in range(self.spec.ring) if entry not in held.committed]


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


def digest_of(key: CacheKey) -> str:
    """The key as text: equal exactly when every field of it and of its maker is equal."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:32]


def content_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class _Feature:
    value: object
    size: int
    users: int


class FeatureCache:
    """Features by content hash, counted by user. Unused ones stay until room is needed, least recently used first."""

    def __init__(self, entries_max: int, bytes_max: int) -> None:
        self.entries_max, self.bytes_max = entries_max, bytes_max
        self.bytes_used = 0
        self.evicted = 0
        self._held: OrderedDict[str, _Feature] = OrderedDict()

    @property
    def entries(self) -> int:
        return len(self._held)

    @property
    def in_use(self) -> int:
        """Features that somebody may still ask for."""
        return sum(1 for feature in self._held.values() if feature.users)

    def retain(self, key: str) -> bool:
        """Count one more user of a feature that is here; False when it has to be computed."""
        feature = self._held.get(key)
        if feature is None:
            return False
        feature.users += 1
        self._held.move_to_end(key)
        return True

    def put(self, key: str, value: object, size: int) -> None:
        """Keep a computed feature for one user; raises `PoolFull` when everything here is in use."""
        if self.retain(key):
            return
        while self._held and (self.entries >= self.entries_max or self.bytes_used + size > self.bytes_max):
            idle = next((k for k, feature in self._held.items() if feature.users == 0), None)
            if idle is None:
                break
            self.bytes_used -= self._held.pop(idle).size
            self.evicted += 1
        if self.entries >= self.entries_max or self.bytes_used + size > self.bytes_max:
            raise PoolFull(
                f"{self.entries} of {self.entries_max} features and {self.bytes_used} of {self.bytes_max} bytes are in "
                f"use, {size} more do not fit"
            )
        self._held[key] = _Feature(value, size, 1)
        self.bytes_used += size

    def get(self, key: str) -> object:
        """The feature; raises `UnknownFeature`."""
        if key not in self._held:
            raise UnknownFeature(key)
        return self._held[key].value

    def release(self, key: str) -> None:
        feature = self._held[key]
        if feature.users == 0:
            raise PoolCorrupt(f"feature {key} is released more often than retained")
        feature.users -= 1

    def check_integrity(self) -> None:
        held = sum(feature.size for feature in self._held.values())
        if held != self.bytes_used or held > self.bytes_max or self.entries > self.entries_max:
            raise PoolCorrupt(
                f"{self.entries} features hold {held} bytes, booked {self.bytes_used}, bounds {self.entries_max} and "
                f"{self.bytes_max}"
            )

    def inspect(self) -> Iterator[None]:
        """As `SlabPool.inspect`; all in one."""
        self.check_integrity()
        yield
