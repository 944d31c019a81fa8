"""The engine behind `api.Door`: opens and closes sessions, routes commands, says what is held.

One device, several cards, one event loop. `start` makes every card warm and priced; before that nothing is admitted.
Knows sessions by name only: who comes in is `admission/reception.py`, what they live is `life/live.py`.
"""

import asyncio
import math
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..clock import Clock
from ..models.contract.loaded import LoadedCard
from . import api
from .admission.admission import Admission
from .admission.rules import Refusal
from .caches.pools import FeatureCache
from .caches.store import SnapshotFolder
from .card import CardRuntime
from .cost_store import CostStore
from .device.device import Device, ThreadDevice
from .device.dispatch import Dispatcher
from .device.history import StepHistory
from .device.observers import Finite, Observer
from .drive import CancelScope
from .maintenance import Maintenance
from .output.encode import H264Encoder
from .scheduling.costs import Costs
from .scheduling.scheduler import Rules
from .services import Services
from .session.resume_state import ResumeState
from .session.session import EngineSession
from .session.state import SessionState
from .session.stats import SessionStats, info
from .spec import EngineSpec
from .warmup import warm_up


class Engine:
    """Implements `api.Door`. Make it and call everything on one event loop."""

    def __init__(
        self,
        cards: tuple[LoadedCard, ...],
        clock: Clock,
        spec: EngineSpec,
        device: Device | None = None,
        encoder: type[H264Encoder] = H264Encoder,
        store: SnapshotFolder | None = None,
        kept: Callable[[str, int, int], None] = lambda session, chunk, epoch: None,
        prices: CostStore | None = None,
        raw: Path | None = None,
        observers: tuple[Observer, ...] = (Finite(),),
    ) -> None:
        self._spec, self._clock = spec, clock
        self._device = device or ThreadDevice(clock)
        self._costs = Costs()
        self._served = {loaded.card.name: CardRuntime.with_slots(loaded, spec.slots) for loaded in cards}
        self._lives: dict[str, EngineSession] = {}
        self._watched: dict[str, SessionStats] = {}
        self._going: set[EngineSession] = set()
        self._reception = Admission(spec, clock, self._costs, self._served, self._lives, self._going)
        self._commands: deque[api.Command] = deque()
        rules = Rules(max_rows=spec.max_rows, ageing=spec.ageing, seed=spec.seed)
        self._dispatcher = Dispatcher(self._device, self._costs, clock, rules, self._expected, observers)
        self._encoders = ThreadPoolExecutor(spec.encoder_threads, thread_name_prefix="encode")
        self._features = FeatureCache(spec.features_max, spec.feature_bytes_max)
        self._services = Services(
            clock,
            spec,
            self._costs,
            self._dispatcher,
            self._features,
            encoder,
            self._encoders,
            CancelScope(),
            store,
            kept,
            prices,
            raw or Path(tempfile.gettempdir()),
        )
        self._upkeep = Maintenance(self._served, self._services, self._device.name)
        self._serving: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        return self._reception.ready

    @property
    def busy(self) -> tuple[float, float]:
        """Seconds the device has worked on its batch, and beyond how many it hangs."""
        return self._dispatcher.busy

    async def start(self) -> None:
        """Allocate the slabs, warm up and price every card. Raises what a card's runtime raises."""
        self._serving = asyncio.get_running_loop().create_task(self._dispatcher.run())
        for served in self._served.values():
            await self._device.allocate(served.loaded, served.pool.slots)
            await warm_up(served, self._services, self._device)
        self._upkeep.start()
        self._reception.ready = True

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        self._obey()
        admitted = await self._reception.admit(command)
        if isinstance(admitted, Refusal):
            return self._reception.refused(command, admitted)
        served, listener = self._served[admitted.card], self._watch(admitted, events)
        live = EngineSession(admitted, served, self._services, listener, self._gone, self._reception.fits)
        return await self._enter(live, EngineSession.start)

    async def revive(
        self, past: ResumeState, kept: bytes | None, events: Callable[[api.Event], None]
    ) -> api.Opened | api.Refused:
        """Take over a session that was admitted elsewhere: its world comes from a snapshot and its past."""
        command = past.opening
        served = self._served.get(command.card)
        if served is None or command.session in self._lives:
            return api.Refused(command.session, api.RefusalReason.CONFLICT, "it cannot be taken over here", 0, 0.0)
        live = EngineSession(
            command, served, self._services, self._watch(command, events), self._gone, self._reception.fits
        )
        return await self._enter(live, lambda live: live.revive(past, kept))

    async def _enter(
        self, live: EngineSession, start: Callable[[EngineSession], Awaitable[None]]
    ) -> api.Opened | api.Refused:
        self._lives[live.session] = live
        try:
            await start(live)
        except BaseException:
            self._close(live)
            raise
        if live.phase is SessionState.CLOSED:
            return api.Refused(live.session, api.RefusalReason.CONFLICT, "closed while it was opening", 0, 0.0)
        served, loaded = live.served, live.served.loaded
        choice = loaded.choice
        return api.Opened(live.session, served.info(), loaded.weights, live.steps, str(choice.precision), choice.mode)

    def post(self, command: api.Command) -> None:
        if not self._commands:
            asyncio.get_running_loop().call_soon(self._obey)
        self._commands.append(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        return tuple(served.info() for served in self._served.values())

    def capacity(self) -> tuple[api.Capacity, ...]:
        return tuple(self._capacity(served) for served in self._served.values())

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return tuple(info(live, self._watched[live.session]) for live in self._lives.values())

    def steps(self) -> tuple[api.BatchRan, ...]:
        return self._dispatcher.trail.all()

    @property
    def trail(self) -> StepHistory:
        """The ring behind `steps`, for who follows it."""
        return self._dispatcher.trail

    def _watch(self, opening: api.Open, events: Callable[[api.Event], None]) -> SessionStats:
        watched = self._watched[opening.session] = SessionStats(events, self._served[opening.card].absorbed_us)
        return watched

    async def close(self) -> None:
        """Close every session and stop every thread; returns when all of it is gone."""
        if self._closed:
            return
        self._closed, self._reception.ready = True, False
        self._services.scope.cancel()
        for live in [*self._lives.values()]:
            self._close(live)
        while self._going:
            await next(iter(self._going)).gone.wait()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
        await self._upkeep.close()
        await self._device.close()
        await asyncio.get_running_loop().run_in_executor(None, self._encoders.shutdown)

    @property
    def unsound(self) -> str | None:
        """What contradicts itself in a pool, as the last inspection found it: then nothing here can be trusted."""
        return self._upkeep.inspection.problem

    def check_integrity(self) -> None:
        """Raise `pools.PoolCorrupt` when any pool contradicts itself."""
        self._features.check_integrity()
        for served in self._served.values():
            served.pool.check_integrity()

    # ---- commands --------------------------------------------------------------------------------------------------

    def _obey(self) -> None:
        """Carry out what was posted until now; answers to what that causes come after everything else had a turn."""
        for _ in range(len(self._commands)):
            command = self._commands.popleft()
            live = self._lives.get(command.session)
            if live is None:
                if isinstance(command, api.Close):
                    self._reception.give_up(command.session)
                continue
            if isinstance(command, api.Close):
                self._close(live)
            else:
                live.obey(command)
        if self._commands:
            asyncio.get_running_loop().call_soon(self._obey)

    def _close(self, live: EngineSession) -> None:
        if self._lives.get(live.session) is live:
            del self._lives[live.session], self._watched[live.session]
            self._going.add(live)
            live.close()

    def _gone(self, live: EngineSession) -> None:
        self._going.discard(live)
        self._reception.stir()
        counters = live.served.counters
        counters.frames_dropped += live.screen.show.dropped
        counters.frames_superseded += live.screen.show.superseded

    def _expected(self) -> float:
        return min((live.expected for live in self._lives.values()), default=math.inf)

    def _capacity(self, served: CardRuntime) -> api.Capacity:
        mine = [live for live in self._lives.values() if live.served is served]
        counters = served.counters
        return api.Capacity(
            card=served.loaded.card.name,
            device=self._device.name,
            sessions=len(mine),
            sessions_max=self._reception.sessions_max(served),
            share_used=sum((self._reception.share(live) for live in mine if not live.asleep), 0.0),
            share_max=self._spec.share_cap,
            price_us=round(served.chunk_price(served.default_steps) * 1e6),
            bytes_per_session=served.pool.spec.bytes_per_session,
            pool_bytes=served.pool.bytes_budget,
            pool_bytes_used=served.pool.bytes_used,
            queue_depth=self._dispatcher.depth,
            chunks_done=counters.chunks_done,
            chunks_late=counters.chunks_late,
            chunks_cancelled=counters.chunks_cancelled,
            frames_dropped=counters.frames_dropped + sum(live.screen.show.dropped for live in mine),
            frames_superseded=counters.frames_superseded + sum(live.screen.show.superseded for live in mine),
            faults=counters.faults,
            waiting=self._reception.waiting,
            degraded=counters.degraded,
            inspections=self._upkeep.inspection.rounds,
            feature_bytes_used=self._features.bytes_used,
            features_evicted=self._features.evicted,
            asleep=sum(live.asleep for live in mine),
        )
