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
from ..cancel import CancelScope, Superseded
from ..services import Services
from .prompts import Prompts
from .world import SessionWorld

log = logging.getLogger(__name__)


async def cache_io(
    world: SessionWorld, services: Services, scope: CancelScope, row: ReadEntries | WriteEntries, latest_start: float
) -> tuple[bytes, ...]:
    """One cache_io step; raises `Superseded` when the scope was cancelled before it ran."""
    key = world.served.cache_step()
    price = services.costs.price(key, 1)
    ran = await services.dispatcher.run(
        world.served.loaded,
        key,
        row,
        scope,
        session=world.session,
        latest_start=latest_start,
        deadline=latest_start + price,
        remaining=price,
    )
    data: tuple[bytes, ...] = ran.result
    return data


async def capture(
    world: SessionWorld, services: Services, scope: CancelScope, prompts: Prompts, latest_start: float
) -> Snapshot | None:
    """The world as it is at this boundary; None when it moved on before its cache was read. Call at a boundary."""
    pool, slot, loaded = world.served.pool, world.slot, world.served.loaded
    entries, count, generation = pool.view(slot).committed, pool.count(slot), world.generation
    seed, number, epoch, carry, picture = world.seed, world.number, world.epoch, world.carry, world.picture
    first_frames = world.first_frames
    features, written = snapshot.features_of(prompts.features()), world.prompt_progress()
    data = await cache_io(world, services, scope, ReadEntries(slot, entries), latest_start) if entries else ()
    if world.generation != generation or not pool.untouched(slot, entries, count):
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


async def write_back(
    world: SessionWorld, saved: Snapshot, services: Services, scope: CancelScope, prompts: Prompts
) -> None:
    """Make a fresh world what a snapshot says; raises `SnapshotMismatch` or `serial.SerialError`."""
    carry: Any = saved.carry_for(world.served.loaded)
    if saved.steps != world.steps:
        raise snapshot.SnapshotMismatch(f"snapshot of {saved.steps} steps, the session asks for {world.steps}")
    if saved.entries:
        await cache_io(world, services, scope, WriteEntries(world.slot, saved.entries), services.clock.now())
    world.served.pool.restore(world.slot, saved.count)
    world.seed, world.branch, world.number, world.epoch = saved.seed, saved.branch, saved.number, saved.epoch
    world.carry, world.picture, world.first_frames = carry, saved.picture, saved.opening
    world.progress = saved.prompts
    for feature in saved.features:
        prompts.put(feature.key, feature.value)


class Checkpoints:
    """Policy: after `checkpoint_seconds` or `checkpoint_chunks`, whichever comes first; one at a time."""

    def __init__(self, world: SessionWorld, services: Services, scope: CancelScope, prompts: Prompts) -> None:
        self._world, self._services, self._scope, self._prompts = world, services, scope, prompts
        self._task: asyncio.Task[None] | None = None
        self._last_at, self._last_number = services.clock.now(), 0

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
            taken = await capture(self._world, services, self._scope, self._prompts, latest_start)
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
