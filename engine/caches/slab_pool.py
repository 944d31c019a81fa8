"""The slab's bookkeeping: which entries hold committed chunks of which slot. Pure; owns no tensor memory.

    slot 3, ring 5:   free -> [stage] -> staged -> [commit] -> committed (oldest one falls out) | [rollback] -> free
                      free -> [rebuild] -> staged copies -> [commit] -> in the place of all but the sink
    [share]           another slot has the same committed entries; each writes what comes next into entries of its own

Every slot has as many entries as a ring: those of its own ring, as long as no two slots share. An entry that falls out
of one window stays as it is while another slot has it; the first slot then takes one that nobody has. A pool has a
byte budget and a `check_integrity()` that raises `PoolCorrupt` with the numbers.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from ...models.contract.cache import CacheSpec, CacheView


class PoolCorrupt(AssertionError):
    """The bookkeeping contradicts itself: nothing in the pool can be trusted."""


class PoolFull(RuntimeError):
    """No room, although the caller should have asked admission first."""


class Owners:
    """How many slots have each entry, counted through all slots of a pool."""

    def __init__(self, slots: int, ring: int) -> None:
        self._entries, self._ring = slots * ring, ring
        self.counts: Counter[int] = Counter()

    def take(self, slot: int, count: int) -> tuple[int, ...]:
        """So many entries that nobody has, those of the slot's own ring first."""
        if not count:
            return ()
        every = sorted(range(self._entries), key=lambda entry: (entry // self._ring != slot, entry))
        found = tuple([entry for entry in every if entry not in self.counts][:count])
        if len(found) < count:
            raise PoolCorrupt(f"slot {slot} needs {count} entries, {len(found)} are nobody's")
        self.counts.update(found)
        return found

    def add(self, entries: Iterable[int]) -> None:
        """One slot more has them."""
        self.counts.update(entries)

    def drop(self, entries: Iterable[int]) -> None:
        for entry in entries:
            self.counts[entry] -= 1
            if not self.counts[entry]:
                del self.counts[entry]


class CacheSlot:
    """One session's entries: which hold committed chunks, and what is staged. Implements `drive.Writes`.

    Entries are counted from the first one of its own ring (`cache.place`). `count`: chunks committed since the last
    reset, whether or not the slot still has them. `stamps`: one for each committed entry, never given twice by this
    slot: an equal stamp is an equal content.
    """

    __slots__ = (
        "_first",
        "_free",
        "_next",
        "_owners",
        "_rebuilt",
        "_spec",
        "_staged",
        "committed",
        "count",
        "freed",
        "number",
        "stamps",
    )

    def __init__(self, spec: CacheSpec, number: int, owners: Owners) -> None:
        self._spec, self.number, self.freed, self._owners = spec, number, False, owners
        self._first = number * spec.ring
        self.committed: tuple[int, ...] = ()
        self._free = self._from(owners.take(number, spec.ring))
        """Entries that nobody else has and that hold nothing."""
        self.stamps: tuple[int, ...] = ()
        self.count, self._staged, self._rebuilt, self._next = 0, False, 0, itertools.count(1)

    @property
    def staged(self) -> bool:
        return self._staged

    def view(self) -> CacheView:
        if self.freed:
            raise PoolCorrupt(f"slot {self.number} is used after it was freed")
        staged, *spare = self._free
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
        if self.freed:
            raise PoolCorrupt(f"slot {self.number} is used after it was freed")
        staged, *spare = self._free
        self.count += self._staged
        old = dict(zip(self.committed, self.stamps, strict=True))
        self._keep(self._spec.kept(self.committed, tuple(spare[: self._rebuilt]), (staged,) if self._staged else ()))
        self.stamps = tuple(old[entry] if entry in old else next(self._next) for entry in self.committed)
        self._staged, self._rebuilt = False, 0
        self.check()

    def rollback(self) -> None:
        self._staged, self._rebuilt = False, 0

    def share(self, other: "CacheSlot") -> None:
        """This slot, which is fresh, has what the other one has committed; nothing is copied."""
        if self._staged or self.committed or other.staged:
            raise PoolCorrupt(f"slot {self.number} shares entries of slot {other.number} while one of them writes")
        own = len(self._free) - len(other.committed)
        self._owners.drop(self._first + entry for entry in self._free[own:])
        shared = [other._first + entry for entry in other.committed]
        self._owners.add(shared)
        self.committed, self._free, self.count = self._from(shared), self._free[:own], other.count
        self.stamps = tuple(next(self._next) for _ in shared)
        self.check()

    def untouched(self, noted: tuple[int, ...], count: int) -> bool:
        """Whether the entries that had the stamps `noted` at `count` still hold the same, a chunk later at most."""
        return self.count - count in (0, 1) and set(noted) <= set(self.stamps)

    def restore(self, count: int) -> None:
        """`committed` hold what a window keeps of `count` chunks, as soon as they are written; nothing is staged."""
        self._keep(())
        self._keep(self._free[: min(count, self._spec.window)])
        self.stamps = tuple(next(self._next) for _ in self.committed)
        self.count, self._staged, self._rebuilt = count, False, 0

    def give_back(self) -> None:
        """Nothing of it is this slot's any more."""
        self._owners.drop(self._first + entry for entry in (*self.committed, *self._free))
        self.freed = True

    def check(self) -> None:
        """Raise `PoolCorrupt` when the entries contradict what was committed."""
        entries, counts, first = self.committed, self._owners.counts, self._first
        mine = [counts[first + entry] for entry in self._free]
        had = [counts[first + entry] for entry in entries]
        if len({*entries, *self._free}) != self._spec.ring or 0 in had:
            raise PoolCorrupt(f"slot {self.number} holds entries {entries} of a ring of {self._spec.ring}")
        if len(entries) != min(self.count, self._spec.window) or len(set(self.stamps)) != len(entries):
            raise PoolCorrupt(f"slot {self.number} holds {len(entries)} entries after {self.count} commits")
        if mine.count(1) != len(mine):
            raise PoolCorrupt(f"slot {self.number}: entries {self._free} should be its alone, slots have them {mine}")

    def _keep(self, committed: tuple[int, ...]) -> None:
        """Have these committed. What nobody else has of the rest is free; what others have is left to them, for entries
        that nobody has."""
        rest, counts, first = [*self.committed, *self._free], self._owners.counts, self._first
        rest = [entry for entry in rest if entry not in committed]
        theirs = [entry for entry in rest if counts[first + entry] > 1]
        if theirs:
            self._owners.drop(first + entry for entry in theirs)
            rest = [entry for entry in rest if entry not in theirs]
            rest += self._from(self._owners.take(self.number, len(theirs)))
        self.committed, self._free = committed, tuple(sorted(rest))

    def _from(self, entries: Iterable[int]) -> tuple[int, ...]:
        return tuple(entry - self._first for entry in entries)


class SlabPool:
    """The slots of one card. They are handed out lowest first."""

    def __init__(self, spec: CacheSpec, slots: int) -> None:
        if spec.ring < 1:
            raise ValueError(f"ring of {spec.ring} entries: at least 1 is needed, one is always free for staging")
        self.spec = spec
        self.slots = slots
        self._owners = Owners(slots, spec.ring)
        self._taken: dict[int, CacheSlot] = {}

    @property
    def taken(self) -> int:
        return len(self._taken)

    @property
    def bytes_budget(self) -> int:
        return self.slots * self.spec.bytes_per_session

    @property
    def bytes_used(self) -> int:
        """Entries that several slots share count once."""
        return len(self._owners.counts) * self.spec.bytes_per_entry + self.taken * self.spec.carry_bytes

    def resize(self, slots: int) -> None:
        """Have so many slots from now on; nobody may be in one. Raises `PoolCorrupt`."""
        if self._taken:
            raise PoolCorrupt(f"{self.taken} slots are taken while the pool gets {slots}")
        self.slots, self._owners = slots, Owners(slots, self.spec.ring)

    def acquire(self) -> CacheSlot:
        """An empty slot; raises `PoolFull`."""
        number = next((n for n in range(self.slots) if n not in self._taken), None)
        if number is None:
            raise PoolFull(f"all {self.slots} slots are taken")
        slot = self._taken[number] = CacheSlot(self.spec, number, self._owners)
        return slot

    def free(self, slot: CacheSlot) -> None:
        if slot.staged:
            raise PoolCorrupt(f"slot {slot.number} is freed while a write is staged")
        if self._taken.get(slot.number) is not slot:
            raise PoolCorrupt(f"slot {slot.number} is not taken")
        del self._taken[slot.number]
        slot.give_back()

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
