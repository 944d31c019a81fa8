"""Checkpoints of one session: its world written down now and then, while it runs on. Off the hot path.

    boundary --due?--> carry and places noted --cache_io step in the slack--> still whole? --thread--> folder --> told

Only entries that are new since the last one are read and written. An entry that falls out of the window may be written
at once: when the read comes too late, the next boundary tries again.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...models.contract.loaded import Copied
from ...models.contract.version import SOFTWARE
from ..caches import snapshot
from ..caches.entry_io import CacheRow, ReadEntries, WriteEntries
from ..caches.parts import PartLost, WorldPart
from ..caches.snapshot import Captured, Snapshot
from ..caches.store import SnapshotFolder
from ..caches.tier import StoreFull
from ..cancel import Superseded
from .context import SessionContext
from .prompts import Prompts
from .world import SessionWorld

log = logging.getLogger(__name__)

GROUP = 256 << 20
"""Bytes of entries that are on their way to the device at once."""
PERSIST_SECONDS = 10.0
"""So much of a world may be lost with its whole machine's memory, not only its worker."""


async def cache_io(context: SessionContext, row: CacheRow, latest_start: float) -> tuple[bytes, ...]:
    """One cache_io step; raises `Superseded` when the session was closed before it ran."""
    world, services = context.world, context.services
    key = world.served.cache_step()
    price = services.costs.price(key, 1)
    ran = await services.dispatcher.run(
        world.served.loaded,
        key,
        row,
        context.scope,
        session=context.session,
        latest_start=latest_start,
        deadline=latest_start + price,
        remaining=price,
    )
    copied: tuple[Copied, ...] = ran.result
    if all(isinstance(one, bytes) for one in copied):
        return tuple(one for one in copied if isinstance(one, bytes))
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(services.encoders, lambda: tuple(map(_arrived, copied)))


def _arrived(one: Copied) -> bytes:
    return one if isinstance(one, bytes) else one.wait()


async def capture(context: SessionContext, prompts: Prompts, latest_start: float) -> Captured | None:
    """The world as it is at this boundary; None when it moved on before its cache was read. Call at a boundary.

    Entries of which `world.parts` knows the content are not read again.
    """
    world, loaded, slot = context.world, context.world.served.loaded, context.world.slot
    assert slot is not None, "a suspended world has been written down"
    entries, stamps, count = slot.committed, slot.stamps, slot.count
    generation, known = world.generation, frozenset(world.parts)
    head = Snapshot(
        made_by=snapshot.maker(loaded),
        steps=world.steps,
        seed=world.seed,
        branch=world.branch,
        number=world.number,
        epoch=world.epoch,
        carry=None,
        count=count,
        entries=(),
        features=(),
        picture=None,
        opening=world.first_frames,
        prompts=world.prompt_progress(),
        software=SOFTWARE,
    )
    carry, picture, features = world.carry, world.picture, prompts.features()
    fresh = tuple(entry for entry, stamp in zip(entries, stamps, strict=True) if stamp not in known)
    data: tuple[bytes, ...] = ()
    if fresh or (entries and loaded.extra is not None):
        data = await cache_io(context, ReadEntries(slot.number, fresh), latest_start)
    if world.generation != generation or not slot.untouched(stamps, count):
        return None
    read = iter(data)
    contents = {stamp: None if stamp in known else next(read) for stamp in stamps}
    return Captured(head, carry, contents, tuple(read), features, picture)


async def write_back(context: SessionContext, prompts: Prompts, data: bytes) -> None:
    """Make a fresh world what a manifest says; raises `SnapshotMismatch`, `PartLost` or `serial.SerialError`."""
    world, services, slot = context.world, context.services, context.world.slot
    assert slot is not None, "a world is restored in a slot"
    loop, store = asyncio.get_running_loop(), services.store
    saved, manifest = snapshot.of_manifest(data)
    stored = None if store is None else partial(store.read, world.session)

    def read(part: WorldPart) -> bytes:
        return manifest.read(part, stored)

    def read_all(parts: Sequence[WorldPart]) -> tuple[bytes, ...]:
        return tuple(map(read, parts))

    carry: Any = await loop.run_in_executor(services.encoders, saved.carry_for, world.served.loaded, read)
    if saved.steps != world.steps:
        raise snapshot.SnapshotMismatch(f"snapshot of {saved.steps} steps, the session asks for {world.steps}")
    extra = await loop.run_in_executor(services.encoders, read_all, saved.extra)
    slot.restore(saved.count)
    for first, group in _groups(saved.entries):
        contents = await loop.run_in_executor(services.encoders, read_all, group)
        places = slot.committed[first : first + len(group)]
        row = WriteEntries(slot.number, contents, extra=extra if first == 0 else (), entries=places)
        await cache_io(context, row, services.clock.now())
    if not manifest.inline and stored is not None:
        world.parts = dict(zip(slot.stamps, saved.entries, strict=True))
    world.seed, world.branch, world.number, world.epoch = saved.seed, saved.branch, saved.number, saved.epoch
    world.carry, world.first_frames, world.progress = carry, saved.opening, saved.prompts
    picture = None if saved.picture is None else snapshot.value_in(read(saved.picture))
    world.picture = picture if isinstance(picture, np.ndarray) else None
    for feature in saved.features:
        prompts.put(feature.key, snapshot.value_in(read(feature.value)))


def _groups(entries: Sequence[WorldPart]) -> Iterator[tuple[int, tuple[WorldPart, ...]]]:
    """Entries that are read and written together, each group with the place of its first."""
    group: list[WorldPart] = []
    for at, part in enumerate(entries):
        group.append(part)
        if at == len(entries) - 1 or sum(one.size for one in group) + entries[at + 1].size > GROUP:
            yield at + 1 - len(group), tuple(group)
            group = []


def put(world: SessionWorld, taken: Captured, store: SnapshotFolder, number: int | None) -> int:
    """Write down what was captured: new parts, then the manifest. Blocking; returns the bytes that were written."""
    try:
        sealed, parts = taken.seal(world.served.loaded, world.parts)
        written = store.put(world.session, sealed.dumps(), number, parts, taken.head.number)
    except PartLost:
        world.parts = {}  # the next one writes everything
        raise
    world.parts = dict(taken.sealed)
    return written


class Checkpoints:
    """Policy: after `checkpoint_seconds` or `checkpoint_chunks`, whichever comes first; one at a time."""

    def __init__(self, context: SessionContext, prompts: Prompts) -> None:
        self._context, self._world, self._services = context, context.world, context.services
        self._prompts = prompts
        self._task: asyncio.Task[None] | None = None
        self._last_at, self._last_number = self._services.clock.now(), 0
        self._persisted_at = self._services.clock.now()
        self.written = 0
        """Bytes of the last one."""

    def boundary(self, latest_start: float) -> None:
        """Between two chunks; `latest_start`: when the session needs the device again."""
        if self.due and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._take(latest_start))

    async def close(self) -> None:
        """The scope is cancelled; the folder forgets the session."""
        if self._task is not None:
            await asyncio.wait([self._task])
        store = self._services.store
        if store is not None:
            await asyncio.get_running_loop().run_in_executor(self._services.encoders, store.forget, self._world.session)

    @property
    def due(self) -> bool:
        """Whether the world should be written down at the next boundary."""
        if self._services.store is None or not self._world.served.portable:
            return False
        chunks = self._world.number - self._last_number
        spec, seconds = self._services.spec, self._services.clock.now() - self._last_at
        if seconds < self.written / spec.checkpoint_rate:
            return False
        return chunks > 0 and (chunks >= spec.checkpoint_chunks or seconds >= spec.checkpoint_seconds)

    async def _take(self, latest_start: float) -> None:
        services, store = self._services, self._services.store
        try:
            taken = await capture(self._context, self._prompts, latest_start)
            if taken is None or store is None:
                return
            number, now = taken.head.number, services.clock.now()
            self._last_at, self._last_number = now, number
            loop, persists = asyncio.get_running_loop(), now - self._persisted_at >= PERSIST_SECONDS
            self.written = await loop.run_in_executor(services.encoders, put, self._world, taken, store, number)
            if persists:
                self._persisted_at = now
                await loop.run_in_executor(services.encoders, store.persist, self._world.session)
        except StoreFull as full:
            log.warning("no checkpoint: %s", full)
            self._last_at = services.clock.now()
        except Superseded:
            return
        except Exception:
            log.exception("a checkpoint of session %s failed; it goes on from the last one", self._world.session)
            self._last_at = services.clock.now()
        else:
            services.checkpointed(self._world.session, number, taken.head.epoch)
