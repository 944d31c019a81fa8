"""Drives the chunks of one world: every step becomes a ticket in the device's queue. Knows no states and no viewers.

Sessions, the warm-up and rollouts make all their chunks here.
"""

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ...models.contract.cache import CacheView
from ...models.contract.loop import Outcome, Preview, Previews, WorkPlan
from .. import api
from ..cancel import CancelScope, Superseded
from ..counters import Counters
from ..device.dispatch import Dispatcher
from ..drive import drive_chunk
from .adapters import SessionAdapters
from .chunk import EngineChunk
from .chunk_progress import ChunkProgressLog
from .prompt_writer import PromptWriter
from .world import SessionWorld

log = logging.getLogger(__name__)


class ChunkDriver:
    """`feature` looks a prompt's embedding up by its key. `progress` writes chunks down under way, `preview` shows
    parts of them.
    """

    def __init__(
        self,
        world: SessionWorld,
        dispatcher: Dispatcher,
        latency_class: api.LatencyClass,
        scope: CancelScope,
        feature: Callable[[str], object],
        progress: ChunkProgressLog | None = None,
        preview: Callable[[EngineChunk, Preview], None] = lambda chunk, preview: None,
        counters: Counters | None = None,
        adapters: SessionAdapters | None = None,
    ) -> None:
        self._world, self._dispatcher, self._latency_class = world, dispatcher, latency_class
        self._feature, self._progress, self._preview = feature, progress, preview
        self._counters, self._adapters = counters or Counters(), adapters
        loaded = world.served.loaded
        self._previews: Previews[Any] | None = loaded.loop if isinstance(loaded.loop, Previews) else None
        self._looked_at = progress is not None or self._previews is not None
        """Whether anybody wants to see a chunk's state between its steps."""
        self._writer: PromptWriter | None = None
        if loaded.prompt_loop is not None:
            self._writer = PromptWriter(world, dispatcher, latency_class, scope)
            world.prompt_progress = self._writer.progress

    async def drive(self, chunk: EngineChunk) -> Outcome[Any]:
        """Make the world's next chunk and move the world on. Raises what `drive.drive_chunk` raises; then the world
        stays where it is, unless the chunk was released. The caller ends `chunk.overlap`.
        """
        world, loaded = self._world, self._world.served.loaded
        start = None
        try:
            if self._writer is not None:
                world.written = await self._writer.before(chunk)
            if self._adapters is not None and (chunk.conditions.adapters or world.work != 1.0):
                await self._adapters.require(chunk.conditions.adapters)
            if self._progress is not None:
                start = await self._progress.state_of(chunk)
            outcome = await drive_chunk(
                loaded.loop,
                world.ask(chunk.conditions, self._feature),
                world.writes,
                partial(self._execute, chunk),
                chunk.scope,
                loaded.card.frame,
                chunk.overlap,
                start,
                partial(self._stepped, chunk) if self._looked_at else None,
            )
        finally:
            self._dispatcher.release(chunk.scope)
        if chunk.overlap.released:
            world.decoded(chunk.number, chunk.generation, outcome)
        else:
            world.advance(outcome)
        return outcome

    async def close(self) -> None:
        """Wait until what runs beside the chunks is over; the scope is cancelled, or nobody begins another chunk."""
        if self._writer is not None:
            await self._writer.close()
        if self._progress is not None:
            await self._progress.close()

    def _stepped(self, chunk: EngineChunk, state: Any) -> None:
        if self._progress is not None:
            self._progress.note(chunk, state)
        if self._previews is not None and (preview := self._previews.preview(state)) is not None:
            self._preview(chunk, preview)

    async def _execute(self, chunk: EngineChunk, plan: WorkPlan[Any], view: CacheView | None) -> Any:
        """The step's result. Raises what it raised, or `Superseded`."""
        try:
            return await self._run(chunk, plan, view)
        except Superseded:
            raise
        except Exception:
            # Its world has gone on, so the chunk can no longer be cancelled: a decode that fails is tried once more.
            if not chunk.overlap.released:
                raise
            log.exception("the pictures of chunk %d of session %s failed once", chunk.number, self._world.session)
            self._counters.faults += 1
            return await self._run(chunk, plan, view)

    async def _run(self, chunk: EngineChunk, plan: WorkPlan[Any], view: CacheView | None) -> Any:
        world, served, dispatcher = self._world, self._world.served, self._dispatcher
        costs = dispatcher.costs if chunk.made_by < math.inf else None  # a warm-up has no prices yet and needs none
        key, remaining, then = served.forecast(costs, world.steps, len(chunk.steps), plan)
        ran = await dispatcher.run(
            served.loaded,
            key,
            plan.row,
            chunk.scope,
            view,
            world.session,
            self._latency_class,
            chunk.latest_start,
            chunk.made_by,
            remaining,
            then,
        )
        chunk.stepped(key, ran)
        return ran.result
