"""One session's chunks on their way to the device: each step becomes a ticket and a job. Knows no phases or viewers."""

import logging
from collections.abc import Callable
from typing import Any

from ...models.contract.cache import CacheView
from ...models.contract.loop import Outcome, WorkPlan
from .. import api
from ..device.dispatch import QueuedStep
from ..drive import DecodeOverlap, Superseded, drive_chunk
from ..scheduling.scheduler import Ticket
from ..services import Services
from .chunk import EngineChunk
from .world import SessionWorld

log = logging.getLogger(__name__)


class StepSubmitter:
    """`lead`: seconds between the last step of a chunk and its deadline that belong to the encoder."""

    def __init__(
        self, world: SessionWorld, services: Services, latency_class: api.LatencyClass, lead: Callable[[], float]
    ) -> None:
        self._world, self._services, self._latency_class, self._lead = world, services, latency_class, lead

    async def drive(self, chunk: EngineChunk, ahead: DecodeOverlap | None = None) -> Outcome[Any]:
        """Make one chunk of the world; `drive.drive_chunk` says what it raises."""
        world, loaded = self._world, self._world.served.loaded
        return await drive_chunk(
            loaded.loop,
            world.ask(chunk.conditions, self._services.features),
            world.writes,
            lambda plan, view: self._execute(chunk, plan, view),
            chunk.scope,
            loaded.card.frame,
            ahead,
        )

    async def _execute(self, chunk: EngineChunk, plan: WorkPlan[Any], view: CacheView | None) -> Any:
        """The step's result. Raises what it raised, or `Superseded`.

        A world that has gone on cannot end its chunk any more: pictures that fail are made once again.
        """
        try:
            return await self._once(chunk, plan, view)
        except Superseded:
            raise
        except Exception:
            if not chunk.gone:
                raise
            log.exception("the pictures of chunk %d of session %s failed once", chunk.number, self._world.session)
            self._world.served.counters.faults += 1
            return await self._once(chunk, plan, view)

    async def _once(self, chunk: EngineChunk, plan: WorkPlan[Any], view: CacheView | None) -> Any:
        services, served = self._services, self._world.served
        key = served.step_key(plan)
        ticket = Ticket(
            number=services.dispatcher.number(),
            session=self._world.session,
            key=key,
            latency_class=self._latency_class,
            queued=services.clock.now(),
            latest_start=chunk.latest_start,
            deadline=chunk.deadline - self._lead(),
            remaining=served.remaining(services.costs, self._world.steps, len(chunk.steps), key),
            then=served.then(self._world.steps, len(chunk.steps), key),
        )
        ran = await services.dispatcher.submit(ticket, QueuedStep(served.loaded, plan.row, view, chunk.scope))
        chunk.stepped(key, ran)
        return ran.result
