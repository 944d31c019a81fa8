"""A chunk of many steps, written down after each: it outlives its worker, and goes on from its last step.

    step -> state -> [ newest, while one is being written ] -> thread -> folder        the next worker: folder -> state

What was written counts only for the chunk it was written of: of the same world, number, steps and steering. A chunk
that is asked for under other conditions begins at its beginning. Only for cards whose steps write no cache.
"""

import asyncio
import logging
from typing import Any

import msgspec

from ...models.contract.cache_key import CacheKey
from ...models.shared import serial
from .. import api
from ..caches import snapshot
from ..caches.parts import manifest_of
from .chunk import EngineChunk
from .context import SessionContext

log = logging.getLogger(__name__)


class ChunkProgress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`made_by` as in a snapshot; `state`: of the main loop, after `done` steps."""

    made_by: CacheKey
    seed: int
    branch: int
    number: int
    steps: int
    conditions: api.Conditions
    done: int
    state: bytes


class ChunkProgressLog:
    """Of one session. `Services.store` is there, and the card's chunks can be written down under way."""

    def __init__(self, context: SessionContext) -> None:
        self._world, self._services = context.world, context.services
        self._name = f"{context.session} chunk"
        self._newest: tuple[EngineChunk, int, Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self._looked = False

    async def state_of(self, chunk: EngineChunk) -> Any | None:
        """Where this chunk may go on; None = at its beginning. Only a session that is new here can have one."""
        store, looked, self._looked = self._services.store, self._looked, True
        if store is None or looked:
            return None
        try:
            data = await self._threaded(lambda: store.get(self._name))
            body = None if data is None else manifest_of(data).body
            return None if body is None else self._usable(serial.loads(body, ChunkProgress), chunk)
        except (serial.SerialError, ValueError, OSError):
            log.exception("chunk %d of session %s begins anew", chunk.number, self._world.session)
            return None

    def note(self, chunk: EngineChunk, state: Any) -> None:
        """A step is done. While an older state is being written, only the newest one waits."""
        self._newest = (chunk, len(chunk.steps), state)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write())

    async def close(self) -> None:
        """The chunk is nobody's any more."""
        self._newest = None
        if self._task is not None:
            await asyncio.wait([self._task])
        if (store := self._services.store) is not None:
            await self._threaded(lambda: store.forget(self._name))

    async def _write(self) -> None:
        store, world = self._services.store, self._world
        while store is not None and self._newest is not None:
            (chunk, done, state), self._newest = self._newest, None

            def put(chunk: EngineChunk = chunk, done: int = done, state: Any = state) -> None:
                written = ChunkProgress(
                    snapshot.maker(world.served.loaded),
                    world.seed,
                    world.branch,
                    chunk.number,
                    world.steps,
                    chunk.conditions,
                    done,
                    serial.dumps(state),
                )
                store.put(self._name, serial.dumps(written))

            try:
                await self._threaded(put)
            except Exception:
                log.exception("a state of session %s cannot be written; it goes on without", world.session)

    def _usable(self, written: ChunkProgress, chunk: EngineChunk) -> Any | None:
        world, loaded = self._world, self._world.served.loaded
        theirs = (written.made_by, written.seed, written.branch, written.number, written.steps)
        ours = (snapshot.maker(loaded), world.seed, world.branch, chunk.number, world.steps)
        if theirs != ours or not written.conditions.steers_like(chunk.conditions) or loaded.state is None:
            return None
        log.info("chunk %d of session %s goes on after %d steps", chunk.number, world.session, written.done)
        return serial.loads(written.state, loaded.state)

    async def _threaded(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._services.encoders, work)
