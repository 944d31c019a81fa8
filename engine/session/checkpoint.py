"""Checkpoints of one session: its world written down now and then, while it runs on. Off the hot path.

    boundary --due?--> carry and places noted --cache_io step in the slack--> still whole? --thread--> folder --> kept

An entry that falls out of the window may be written at once: when the read comes too late, the next boundary tries
again.
"""

import asyncio
import logging
from typing import Any

from ..caches import snapshot
from ..caches.entry_io import ReadEntries, WriteEntries
from ..caches.snapshot import Snapshot
from ..cancel import Superseded
from .context import SessionContext
from .prompts import Prompts

log = logging.getLogger(__name__)


async def cache_io(context: SessionContext, row: ReadEntries | WriteEntries, latest_start: float) -> tuple[bytes, ...]:
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
    data: tuple[bytes, ...] = ran.result
    return data


async def capture(context: SessionContext, prompts: Prompts, latest_start: float) -> Snapshot | None:
    """The world as it is at this boundary; None when it moved on before its cache was read. Call at a boundary."""
    world, loaded, slot = context.world, context.world.served.loaded, context.world.slot
    assert slot is not None, "a suspended world has been written down"
    entries, count, generation = slot.committed, slot.count, world.generation
    seed, number, epoch, carry, picture = world.seed, world.number, world.epoch, world.carry, world.picture
    first_frames = world.first_frames
    features, written = snapshot.features_of(prompts.features()), world.prompt_progress()
    data = await cache_io(context, ReadEntries(slot.number, entries), latest_start) if entries else ()
    if world.generation != generation or not slot.untouched(entries, count):
        return None
    return Snapshot(
        made_by=snapshot.maker(loaded),
        steps=world.steps,
        seed=seed,
        branch=world.branch,
        number=number,
        epoch=epoch,
        carry=snapshot.carry_bytes(loaded, carry),
        count=count,
        entries=data,
        features=features,
        picture=picture,
        opening=first_frames,
        prompts=written,
    )


async def write_back(context: SessionContext, prompts: Prompts, saved: Snapshot) -> None:
    """Make a fresh world what a snapshot says; raises `SnapshotMismatch` or `serial.SerialError`."""
    world, slot = context.world, context.world.slot
    assert slot is not None, "a world is restored in a slot"
    carry: Any = saved.carry_for(world.served.loaded)
    if saved.steps != world.steps:
        raise snapshot.SnapshotMismatch(f"snapshot of {saved.steps} steps, the session asks for {world.steps}")
    if saved.entries:
        await cache_io(context, WriteEntries(slot.number, saved.entries), context.services.clock.now())
    slot.restore(saved.count)
    world.seed, world.branch, world.number, world.epoch = saved.seed, saved.branch, saved.number, saved.epoch
    world.carry, world.picture, world.first_frames = carry, saved.picture, saved.opening
    world.progress = saved.prompts
    for feature in saved.features:
        prompts.put(feature.key, feature.value)


class Checkpoints:
    """Policy: after `checkpoint_seconds` or `checkpoint_chunks`, whichever comes first; one at a time."""

    def __init__(self, context: SessionContext, prompts: Prompts) -> None:
        self._context, self._world, self._services = context, context.world, context.services
        self._prompts = prompts
        self._task: asyncio.Task[None] | None = None
        self._last_at, self._last_number = self._services.clock.now(), 0

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
        if self._services.store is None or not self._world.served.portable(self._services.spec.snapshot_bytes_max):
            return False
        chunks = self._world.number - self._last_number
        spec, seconds = self._services.spec, self._services.clock.now() - self._last_at
        return chunks > 0 and (chunks >= spec.checkpoint_chunks or seconds >= spec.checkpoint_seconds)

    async def _take(self, latest_start: float) -> None:
        services, store = self._services, self._services.store
        try:
            taken = await capture(self._context, self._prompts, latest_start)
            if taken is None or store is None:
                return
            self._last_at, self._last_number = services.clock.now(), taken.number
            session, loop = self._world.session, asyncio.get_running_loop()
            await loop.run_in_executor(services.encoders, lambda: store.put(session, taken.dumps(), taken.number))
        except Superseded:
            return
        except Exception:
            log.exception("a checkpoint of session %s failed; it goes on from the last one", self._world.session)
            self._last_at = services.clock.now()
        else:
            services.kept(session, taken.number, taken.epoch)
