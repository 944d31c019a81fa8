"""The engine behind `api.EngineClient`: opens and closes sessions, routes commands, says what is taken.

One device, several cards, one event loop. `start` makes every card warm and priced; before that nothing is admitted.
Knows sessions by name only: who comes in is `admission/admission.py`, what happens to them is `session/session.py`.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..clock import Clock
from ..models import holding
from ..models.contract.loaded import LoadedCard
from ..models.holding import DoesNotFit
from . import api
from .admission.admission import Admission
from .admission.rules import Refusal
from .caches.adapter_shelf import AdapterShelf
from .caches.feature_cache import FeatureCache
from .caches.store import SnapshotFolder
from .cancel import CancelScope
from .card import CardRuntime, bytes_of, slowed
from .cost_store import CostStore
from .device.device import Device, ThreadDevice
from .device.dispatch import Dispatcher
from .device.history import StepHistory
from .device.observers import Observer
from .maintenance import Maintenance
from .output.encode import H264Encoder, encoder_threads
from .output.mosaic import Mosaic
from .output.renditions import rendition_threads
from .pools import shared_pools
from .scheduling.costs import Costs
from .scheduling.ticket import Rules
from .services import Services
from .session.resume_state import ResumeState
from .session.session import EngineSession
from .session.state import SessionState
from .spec import EngineSpec
from .stats import capacity, opened, session_info
from .warmup import warm_up
from .weights.away import WeightsAway
from .weights.residency import Residency
from .weights.shares import away_for, turns_of

FEATURES_MAX = 256
"""Prompt embeddings at most, whatever their size."""


class Engine:
    """Implements `api.EngineClient`. Make it and call everything on one event loop.

    Raises `DoesNotFit` when some card has not one session on the device.
    """

    def __init__(
        self,
        cards: tuple[LoadedCard, ...],
        clock: Clock,
        spec: EngineSpec,
        device: Device | None = None,
        encoder: type[H264Encoder] = H264Encoder,
        store: SnapshotFolder | None = None,
        checkpointed: Callable[[str, int, int], None] = lambda session, chunk, epoch: None,
        prices: CostStore | None = None,
        adapters: Path | None = None,
        observers: tuple[Observer, ...] = (),
        away: WeightsAway | None = None,
    ) -> None:
        self._spec, self._clock = spec, clock
        cards = tuple(slowed(loaded, spec.fps) for loaded in cards)
        self._device = device or ThreadDevice(clock)
        self._costs = Costs()
        counted = tuple(map(bytes_of, cards))
        self._memory = self._device.memory() if spec.memory is None else holding.empty(spec.memory, counted)
        memory = self._memory if adapters is None else self._memory.less(spec.adapter_bytes_max)
        away = away or away_for(spec)
        turns = turns_of(cards, memory, spec, away)
        self.runtimes = {loaded.card.name: CardRuntime.with_slots(loaded, 0) for loaded in cards}
        self._sessions: dict[str, EngineSession] = {}
        self._going: set[EngineSession] = set()
        self._commands: deque[api.Command] = deque()
        rules = Rules(spec.max_rows, spec.ageing, spec.seed, spec.policy)
        self._dispatcher = Dispatcher(self._device, self._costs, clock, rules, self._expected, observers, spec.patience)
        threads, scope = encoder_threads(spec.encoder_threads), CancelScope()
        self._weights = Residency(self.runtimes, turns, away, self._dispatcher, scope, threads, clock)
        self._admission = Admission(spec, clock, self._weights, self.runtimes, self._sessions, self._going)
        self.services = Services(
            clock,
            spec,
            self._costs,
            self._dispatcher,
            FeatureCache(FEATURES_MAX, spec.feature_bytes_max),
            encoder,
            threads,
            rendition_threads(),
            scope,
            store,
            checkpointed,
            prices,
            AdapterShelf(adapters, spec.adapter_bytes_max, threads),
            self._weights,
        )
        self._maintenance = Maintenance(
            self.runtimes, self.services, self._device, lambda: not self._sessions and not self._going
        )
        self._serving: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        return self._admission.ready

    @property
    def closing(self) -> int:
        """Sessions that are closed and have not given everything back yet."""
        return len(self._going)

    @property
    def busy(self) -> tuple[float, float]:
        """Seconds the device has worked on its batch, and beyond how many it hangs."""
        return self._dispatcher.busy

    async def start(self) -> None:
        """Bring every card to the device in turn, the first one last, warm it up and price it. Raises what a card's
        runtime raises.
        """
        self._serving = asyncio.get_running_loop().create_task(self._dispatcher.serve())
        for name, served in reversed(self.runtimes.items()):
            if not await self._weights.wake(name, stays=False):
                raise DoesNotFit(f"card '{name}' does not fit beside what is on the device")
            with self._weights.held(name):
                await warm_up(served, self.services, self._device)
                if not self._weights.turns.all_fit:
                    await self._weights.price(name)
        self._maintenance.start()
        self._admission.ready = True

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        self._obey()
        admitted = await self._admission.admit(command)
        if isinstance(admitted, Refusal):
            return self._admission.refused(command, admitted)
        return await self._enter(admitted, events)

    async def restore(
        self, resume_state: ResumeState, snapshot: bytes | None, events: Callable[[api.Event], None]
    ) -> api.Opened | api.Refused:
        """Take over a session that was admitted elsewhere: its world comes from a snapshot and its history."""
        opening = resume_state.opening
        if opening.card not in self.runtimes or opening.session in self._sessions:
            return api.Refused(opening.session, api.RefusalReason.CONFLICT, "it cannot be taken over here", 0, 0.0)
        return await self._enter(opening, events, resume_state, snapshot)

    async def fork(
        self, command: api.ForkSession, events: Callable[[api.Event], None], parted: Callable[[api.Forked], None]
    ) -> api.Refused | None:
        """Let other futures of a session in, all or none. `parted` hears when they are there, before they go on."""
        source, names = self._sessions.get(command.session), [branch.session for branch in command.branches]
        if source is None or source.suspended or not self._sessions.keys().isdisjoint(names):
            return api.Refused(command.session, api.RefusalReason.CONFLICT, "it cannot be forked now", 0, 0.0)
        if (no := self._admission.refuses_branches(source, len(names))) is not None:
            return self._admission.refused(source.opening, no)
        into, there, detail = {}, False, "closed while it was forked"
        for branch in command.branches:
            opening = msgspec.structs.replace(source.opening, session=branch.session, line="")
            state = ResumeState(opening, progress=api.Progress(epoch=branch.epoch, paused=True))
            made = self._session(opening, events, state)
            made.forks.unborn, into[made] = True, branch.noise
        try:
            await asyncio.gather(*(session.start() for session in into))
            forks = {session.forks: noise for session, noise in into.items()}
            there = await source.forks.into(forks, lambda at, mark: parted(api.Forked(source.session, at, mark)))
        except Exception as problem:
            detail = f"{type(problem).__name__}: {problem}"
        if there:
            return None
        for session in into:
            self._close(session)
        return api.Refused(command.session, api.RefusalReason.CONFLICT, detail, 0, 0.0)

    def _session(
        self,
        opening: api.Open,
        events: Callable[[api.Event], None],
        resume_state: ResumeState | None = None,
        snapshot: bytes | None = None,
    ) -> EngineSession:
        served, fits, too_much = self.runtimes[opening.card], self._admission.fits, self._admission.too_much
        more = self._released, fits, too_much, resume_state, snapshot
        session = EngineSession(opening, served, self.services, events, *more)
        self._sessions[session.session] = session
        return session

    async def _enter(
        self,
        opening: api.Open,
        events: Callable[[api.Event], None],
        resume_state: ResumeState | None = None,
        snapshot: bytes | None = None,
    ) -> api.Opened | api.Refused:
        session = self._session(opening, events, resume_state, snapshot)
        try:
            await session.start()
        except BaseException:
            self._close(session)
            raise
        if session.state is SessionState.CLOSED:
            return api.Refused(session.session, api.RefusalReason.CONFLICT, "closed while it was opening", 0, 0.0)
        return opened(session, self.services)

    def post(self, command: api.Command) -> None:
        if not self._commands:
            asyncio.get_running_loop().call_soon(self._obey)
        self._commands.append(command)

    def cards(self) -> tuple[api.CardInfo, ...]:
        return tuple(served.info(self.services.adapters.names) for served in self.runtimes.values())

    def capacity(self) -> tuple[api.Capacity, ...]:
        sessions, rounds = tuple(self._sessions.values()), self._maintenance.inspection.rounds
        at = self.services, self._admission, self._device, self._memory.total, rounds
        first, *others = self.runtimes.values()
        told = capacity(first, sessions, *at, shared_pools(self.services))
        return (told, *(capacity(served, sessions, *at) for served in others))

    def sessions(self) -> tuple[api.SessionInfo, ...]:
        return tuple(session_info(session, self._device) for session in self._sessions.values())

    def steps(self) -> tuple[api.BatchRan, ...]:
        return self._dispatcher.history.all()

    @property
    def history(self) -> StepHistory:
        """The ring behind `steps`, for who follows it."""
        return self._dispatcher.history

    async def close(self) -> None:
        """Close every session and stop every thread; returns when all of it is gone."""
        if self._closed:
            return
        self._closed, self._admission.ready = True, False
        self.services.scope.cancel()
        for session in [*self._sessions.values()]:
            self._close(session)
        while self._going:
            await next(iter(self._going)).gone.wait()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
        await self._maintenance.close()
        await self._device.close()
        await self.services.close()

    @property
    def unsound(self) -> str | None:
        """Why nothing here can be trusted: an error of the device that stays, or what contradicts itself in a pool, as
        the last inspection found it.
        """
        lost = self._dispatcher.lost
        return self._maintenance.inspection.problem if lost is None else f"the device is lost: {lost}"

    def check_integrity(self) -> None:
        """Raise `slab_pool.PoolCorrupt` when any pool contradicts itself."""
        self.services.check_integrity()
        for served in self.runtimes.values():
            served.pool.check_integrity()

    def _obey(self) -> None:
        """Carry out what was posted until now; answers to what that causes come after everything else had a turn."""
        for _ in range(len(self._commands)):
            self.carry_out(self._commands.popleft())
        if self._commands:
            asyncio.get_running_loop().call_soon(self._obey)

    def carry_out(self, command: api.Command) -> None:
        """Carry a command out within this call; for callers that have waited a turn of the loop already."""
        session = self._sessions.get(command.session)
        if session is None:
            if isinstance(command, api.Close):
                self._admission.give_up(command.session)
        elif isinstance(command, api.Close):
            self._close(session)
        elif isinstance(command, api.ShowBeside):
            self._side_by_side(session, command)
        else:
            session.obey(command)

    def _side_by_side(self, leads: EngineSession, command: api.ShowBeside) -> None:
        """Those that are here; without others, that one alone."""
        others = [self._sessions[name] for name in command.others if name in self._sessions]
        if others:
            mosaic = Mosaic(leads.served.loaded.card.frame, 1 + len(others))
            for place, session in enumerate((leads, *others)):
                session.pacer.show_in(mosaic, place)
        else:
            leads.pacer.show_alone()

    def _close(self, session: EngineSession) -> None:
        if self._sessions.get(session.session) is session:
            del self._sessions[session.session]
            self._going.add(session)
            session.close()

    def _released(self, session: EngineSession) -> None:
        self._going.discard(session)
        self._maintenance.released()
        self._admission.stir()
        session.served.counters += session.counters

    def _expected(self) -> float:
        return min((session.expected for session in self._sessions.values()), default=math.inf)
