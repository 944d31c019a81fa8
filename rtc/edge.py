"""All viewers of a server: takes offers, keeps one stream per room, removes the dead, closes everything at the end.

Runs on one event loop. Knows no HTTP; `app.py` maps its errors to status codes.
"""

import asyncio
import logging
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ..clock import Clock
from ..engine.api import Refused, Rendition, SetBitrate
from ..sessions.audience import GOING_AWAY
from ..sessions.drivers import DriversRule
from ..sessions.messages import Grant, Problem, Role
from ..sessions.rate import Rate
from ..sessions.rooms.participant import Participant
from ..sessions.rooms.rights import Rights
from ..sessions.rooms.rooms import Rooms
from .access.rates import whose
from .delays import Delays
from .media.fanout import BitrateRange, Fanout
from .media.ice import HostPolicy, UdpPorts
from .media.ice_servers import IceServer, IceServersSpec
from .media.offer import BadOffer
from .media.offered import CLOSE_TIMEOUT
from .totals import EdgeTotals, plus
from .viewer import LINGER, PLAYER_SILENCE_TIMEOUT, EndedEarly, Viewer
from .wire import AnswerBody, OfferBody

log = logging.getLogger(__name__)

WATCH_INTERVAL = 0.5
BITRATE_INTERVAL = 1.0
VIEWERS_MAX = 256
BITRATE = BitrateRange(floor=400, ceiling=2500)


@dataclass(frozen=True, slots=True)
class EdgeSpec:
    """Options of the edge. `udp_ports`: closed range, None = any. `media_address`: told in place of this
    machine's own."""

    web_root: Path
    loopback_only: bool = False
    udp_ports: tuple[int, int] | None = None
    ice: IceServersSpec = field(default_factory=IceServersSpec)
    media_address: str | None = None
    bitrate: BitrateRange = BITRATE


@dataclass(frozen=True, slots=True)
class Player:
    """A viewer without channels, as HTTP needs it."""

    id: str
    answer: str
    etag: str


class TooManyViewers(ConnectionError):
    """The edge has no place for another connection; `code` says whether anybody's or this address's."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who offers: what they may do, and from where."""

    rights: Rights
    address: str

    @property
    def local(self) -> bool:
        return self.address in ("127.0.0.1", "::1")


class Edge:
    """See the module docstring."""

    def __init__(self, rooms: Rooms, spec: EdgeSpec, clock: Clock, viewers_per_address: int = VIEWERS_MAX) -> None:
        self._rooms = rooms
        self._spec = spec
        self._clock = clock
        self._per_address = viewers_per_address
        ports = UdpPorts(*spec.udp_ports) if spec.udp_ports is not None else None
        self.policy = HostPolicy(spec.loopback_only, ports, spec.media_address)
        self._viewers: dict[Viewer, str] = {}
        """Each with the address it came from."""
        self._players: dict[tuple[str, str], Viewer] = {}
        """By room and id: viewers that HTTP knows by an address of their own."""
        self._streams: dict[str, Fanout] = {}
        self._lent: set[str] = set()
        """Rooms whose stream somebody beside the viewers follows."""
        self._past = EdgeTotals()
        self.delays = Delays()
        self._closing: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._gate = asyncio.Semaphore(1)
        """One offer is worked on at a time, so that a storm of them leaves time for frames in between."""
        self._telling = Rate(per_s=1 / 60, burst=3)
        self._untold = 0

    async def take_offer(self, room: str, offer: OfferBody, newcomer: Newcomer) -> AnswerBody | Refused:
        """Seat a viewer. `BadOffer`, `BadDrivers`, `PortsExhausted`, `TooManyViewers` or `EndedEarly` leave nothing
        behind."""
        taken = await self._take(room, offer, newcomer)
        if isinstance(taken, Refused):
            return taken
        _, answer, joined = taken
        return AnswerBody(answer, joined.token, joined.participant)

    async def take_player(self, room: str, sdp: str, newcomer: Newcomer) -> Player | Refused:
        """Seat a viewer that has no channels and only watches; raises as `take_offer` does."""
        grant = Grant.RECORDER if newcomer.rights.grant is Grant.RECORDER else Grant.SPECTATOR
        watching = replace(newcomer, rights=replace(newcomer.rights, grant=grant, identity=None))
        taken = await self._take(room, OfferBody(sdp, role=Role.SPECTATOR), watching)
        if isinstance(taken, Refused):
            return taken
        viewer, answer, _ = taken
        viewer.silence_s = PLAYER_SILENCE_TIMEOUT
        id = secrets.token_urlsafe(16)
        self._players[room, id] = viewer
        return Player(id, answer, viewer.connection.etag)

    def player(self, room: str, id: str) -> Viewer | None:
        return self._players.get((room, id))

    def lend_stream(self, room: str) -> Fanout:
        """A room's stream, for whoever shows it elsewhere; it is kept until `return_stream`."""
        self._lent.add(room)
        return self._stream(room)

    def return_stream(self, room: str) -> None:
        self._lent.discard(room)
        self._drop_idle_streams()

    def server_ice(self) -> tuple[IceServer, ...]:
        """Those that this server itself uses."""
        return self._spec.ice.for_server(self._clock.wall())

    def open(self, room: str) -> bool:
        """Whether there is a world in that room to watch."""
        return self._rooms.has(room)

    def ice_servers(self, identity: str) -> tuple[IceServer, ...]:
        """Those that a client should use, with credentials of its own."""
        return self._spec.ice.for_client(identity, self._clock.wall())

    @property
    def ice_ttl_s(self) -> int:
        return self._spec.ice.turn_ttl_s

    async def _take(self, room: str, offer: OfferBody, newcomer: Newcomer) -> tuple[Viewer, str, Participant] | Refused:
        self._check_places(newcomer.address)
        may_say = offer.drivers is not None and newcomer.rights.grant is Grant.DRIVER
        drivers = DriversRule.read(offer.drivers) if may_say and offer.drivers else None
        if (full := self._rooms.refuses(room, offer.token, newcomer.rights)) is not None:
            return full
        fanout = self._stream(room)
        servers = self.server_ice()
        async with self._gate:
            viewer = Viewer(self._clock, fanout, self.policy, newcomer.local, servers, self._gone, self.delays)
        self._viewers[viewer] = whose(newcomer.address)
        try:
            async with self._gate:
                await viewer.connection.take_offer(offer.sdp)
            rights = replace(newcomer.rights, consent=offer.consent)
            world = offer.card, drivers
            joined = await self._rooms.join(room, viewer, offer.token, offer.role, offer.name, rights, *world)
            if isinstance(joined, Refused):
                viewer.leave("refused")
                return joined
            viewer.seated(joined)
            async with self._gate:
                if viewer.over:
                    raise EndedEarly(viewer.over)
                answer = await viewer.connection.answer()
            viewer.answer_made()
            return viewer, answer, joined
        except asyncio.CancelledError:
            viewer.leave("went away before the answer")
            raise
        except Exception as error:
            self._failed(error)
            ended = viewer.over
            viewer.leave("offer failed")
            if ended:
                raise EndedEarly(ended) from None
            raise

    def start(self) -> None:
        self._watch = asyncio.create_task(self._watch_viewers(), name="edge-watch")

    async def close(self) -> None:
        """Tell every viewer, then end its connection; takes at most a little more than `LINGER + CLOSE_TIMEOUT`."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if self._viewers:
            for viewer in list(self._viewers):
                viewer.send(Problem(code=GOING_AWAY, detail="the server stops"))
            await asyncio.sleep(LINGER)
        for viewer in list(self._viewers):
            viewer.leave("server stops")
        if self.closing:
            await asyncio.wait(self._closing, timeout=CLOSE_TIMEOUT + 0.5)

    # ---- figures ----------------------------------------------------------------------------------------------------

    @property
    def viewers(self) -> tuple[Viewer, ...]:
        return tuple(self._viewers)

    @property
    def closing(self) -> int:
        """Connections that have left and are still being closed."""
        return len(self._closing)

    def streams(self) -> dict[str, Fanout]:
        return self._streams

    def totals(self) -> EdgeTotals:
        sums = self._past
        for viewer in self._viewers:
            sums = plus(sums, viewer)
        return sums

    # ---- within -----------------------------------------------------------------------------------------------------

    def _stream(self, room: str) -> Fanout:
        fanout = self._streams.get(room)
        if fanout is None:
            fanout = self._streams[room] = Fanout(self._spec.bitrate, partial(self._set_bitrate, room))
        return fanout

    def _set_bitrate(self, room: str, session: str, rendition: Rendition, kbps: int) -> None:
        found = self._rooms.open_room(room)
        if found is not None:
            found.session.set_bitrate(SetBitrate(session=session, kbps=kbps, rendition=rendition))

    def _failed(self, error: Exception) -> None:
        """Said now and then: whoever makes offers fail can do so often."""
        if self._telling.allows(self._clock.now()):
            log.info("an offer failed: %s (%d more since the last such line)", type(error).__name__, self._untold)
            self._untold = 0
        else:
            self._untold += 1

    def _check_places(self, address: str) -> None:
        """Raises `TooManyViewers`."""
        if len(self._viewers) >= VIEWERS_MAX:
            detail = f"{len(self._viewers)} viewers are connected, at most {VIEWERS_MAX}"
            raise TooManyViewers("too_many_viewers", detail)
        here = whose(address)
        if sum(where == here for where in self._viewers.values()) >= self._per_address:
            detail = f"{self._per_address} viewers are connected from this address, no more may be"
            raise TooManyViewers("too_many_from_address", detail)

    def _gone(self, viewer: Viewer) -> None:
        self._viewers.pop(viewer, None)
        self._players = {key: player for key, player in self._players.items() if player is not viewer}
        self._past = plus(self._past, viewer)
        self._in_background(viewer.connection.end())
        self._drop_idle_streams()

    def _drop_idle_streams(self) -> None:
        used = {viewer.fanout for viewer in self._viewers}
        for room, fanout in list(self._streams.items()):
            if fanout not in used and room not in self._lent:
                del self._streams[room]

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _watch_viewers(self) -> None:
        rounds, due = 0, self._clock.now() + WATCH_INTERVAL
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            rounds += 1
            now = self._clock.now()
            for viewer in list(self._viewers):
                viewer.watch(now, deaf_s=max(0.0, now - due))
            due = now + WATCH_INTERVAL
            if rounds % int(BITRATE_INTERVAL / WATCH_INTERVAL) == 0:
                for fanout in self._streams.values():
                    fanout.settle_bitrate(now, BITRATE_INTERVAL)


__all__ = ["BadOffer", "Edge", "EdgeSpec", "EndedEarly", "Newcomer", "TooManyViewers"]
