"""One viewer: its connection on one side, its participant in a room on the other.

Turns channel bytes into messages for the participant, and the room's messages, frames and receipts into bytes and
packets. Never blocks and never raises into the room; what does not fit a bound is dropped and counted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from aiortc import RTCDataChannel

from ..clock import Clock
from ..engine.api import Frame, Rendered, Rendition
from ..sessions.audience import ENDS, FrameInput
from ..sessions.messages import Leave, Participants, Problem, Receipt, Role, ServerMessage
from ..sessions.rooms.participant import Participant
from .delays import Delays
from .inbound import take_in
from .media.bitrate import ViewerReport
from .media.connection import ViewerConnection
from .media.fanout import Fanout, Packed, Subscription
from .media.ice import HostPolicy
from .media.ice_servers import IceServer
from .media.sctp import MESSAGE_BYTES_MAX, MESSAGE_SECONDS_MAX
from .newest import Newest
from .receipts import AT_ONCE, bundled, receipt_of
from .wire import Channel, channel_of, encode

log = logging.getLogger(__name__)

WAITING_MAX = 64
CONTROL_BACKLOG_MAX = 256 * 1024
RECEIPT_BACKLOG_MAX = 16 * 1024
CONNECT_TIMEOUT = 10.0
SILENCE_TIMEOUT = 4.5
PLAYER_SILENCE_TIMEOUT = 15.0
"""Of a viewer without channels: browsers say that a path is gone after five seconds, and then it may restart ICE."""
ESTIMATE_S = 5.0
"""A receiver's estimate that is older says nothing."""
LINGER = 0.3
TOO_MUCH = f"a message may have {MESSAGE_BYTES_MAX} bytes and take {MESSAGE_SECONDS_MAX:.0f} s"


@dataclass(slots=True)
class ViewerCounts:
    """Of one viewer, for /metrics."""

    malformed: int = 0
    messages_dropped: int = 0
    receipts_dropped: int = 0
    keys_requested: int = 0


class EndedEarly(ConnectionError):
    """A viewer was at its end before it had an answer; `code` is the problem that it would have been told."""

    def __init__(self, code: str) -> None:
        super().__init__(f"the connection ended before its answer: {code}")
        self.code = code


class Viewer:
    """A sink of its room and the feedback of its stream. `gone` is called once, when it has left."""

    def __init__(
        self,
        clock: Clock,
        fanout: Fanout,
        policy: HostPolicy,
        viewer_is_local: bool,
        ice_servers: tuple[IceServer, ...],
        gone: Callable[["Viewer"], None],
        delays: Delays,
    ) -> None:
        self.fanout = fanout
        self.counts = ViewerCounts()
        self.answered = False
        self.over = ""
        """Why it ends, or has ended."""
        self.silence_s = SILENCE_TIMEOUT
        self.connection = ViewerConnection(clock, self, policy, viewer_is_local, ice_servers, self._too_much)
        self.connection.on("datachannel", self._opened)
        self.connection.on("connectionstatechange", self._connection_changed)
        self._clock = clock
        self._gone = gone
        self._delays = delays
        self._input_seq = 0
        self._participant: Participant | None = None
        self._left = False
        self._awaits_key = False
        self._newest: Newest | None = None
        self._channels: dict[Channel, RTCDataChannel] = {}
        self._waiting: deque[str] = deque()
        self._receipts: list[Receipt] = []
        self._subscription: Subscription | None = None
        self._estimate: tuple[int, float] | None = None
        self._reported = 0, clock.now()
        self._heard_count = 0
        self._heard_at = clock.now()
        self._deadline = float("inf")

    def seated(self, participant: Participant) -> None:
        """The room has taken this viewer in."""
        if self._left:
            participant.leave()
            return
        self._participant = participant

    def answer_made(self) -> None:
        """From now on it has ten seconds to connect; how long it stood in line for an answer is not its fault."""
        self.answered = True
        self._deadline = self._clock.now() + CONNECT_TIMEOUT

    @property
    def connected(self) -> bool:
        return self.connection.connectionState == "connected"

    # ---- sink of the room -------------------------------------------------------------------------------------------

    def send(self, message: ServerMessage) -> None:
        if self.connection.sctp is not None:
            self._send(message)
        if isinstance(message, Problem) and message.code in ENDS:
            self.over = self.over or message.code
            asyncio.get_running_loop().call_later(LINGER, self.leave, message.code)

    def _send(self, message: ServerMessage) -> None:
        if self._newest is not None and isinstance(message, Participants):
            self._newest.put(message)
            return
        channel = self._channels.get(channel_of(message))
        text = encode(message)
        if channel is None or channel.readyState != "open":
            self._queue(text, message)
        elif channel.bufferedAmount > CONTROL_BACKLOG_MAX:
            self.counts.messages_dropped += 1
            self.leave("does not read its control channel")
        else:
            channel.send(text)

    def frame(self, frame: Frame, given: FrameInput) -> None:
        if not self._left and self.connection.sender.flowing:
            self._push(Rendition.H264, self.fanout.frame(frame), given)

    def rendered(self, rendered: Rendered, given: FrameInput) -> None:
        if not self._left and self.connection.sender.flowing:
            self._push(rendered.rendition, self.fanout.rendered(rendered), given)

    def _push(self, rendition: Rendition, packed: Packed, given: FrameInput) -> None:
        frame = packed.frame
        if self._subscription is None or not self._subscription.takes(rendition, frame.key):
            return
        rtp = self.connection.sender.push(packed.payloads, frame.pts, frame.key)
        if rtp is not None:
            self._awaits_key = self._awaits_key and not frame.key
            self._receipts.append(receipt_of(frame, given, rtp, self._clock.now()))
            drives = self._drives()
            if drives and given.seq > self._input_seq:
                self._input_seq = given.seq
                self._delays.observe(given.hold_us / 1e6 + self._clock.now() - frame.begun)
            if drives or len(self._receipts) >= AT_ONCE:
                self._send_receipts()

    def _drives(self) -> bool:
        return self._participant is not None and self._participant.role is Role.DRIVER

    def _send_receipts(self) -> None:
        """The driver's leave with every frame; a spectator's in bundles."""
        channel = self._channels.get(Channel.RECEIPTS)
        receipts, self._receipts = self._receipts, []
        if not receipts or channel is None or channel.readyState != "open":
            return
        if channel.bufferedAmount > RECEIPT_BACKLOG_MAX:
            self.counts.receipts_dropped += len(receipts)
        else:
            channel.send(encode(bundled(receipts)))

    def _queue(self, text: str, message: ServerMessage) -> None:
        """Messages for a channel that is not open yet wait in order; only control has messages worth waiting for."""
        if channel_of(message) is not Channel.CONTROL or len(self._waiting) >= WAITING_MAX:
            self.counts.messages_dropped += 1
            return
        self._waiting.append(text)

    # ---- feedback of the stream -------------------------------------------------------------------------------------

    def streaming(self) -> None:
        if self._left:
            return
        full = Rendition.H264 if self.connection.sends_h264 else Rendition.VP8
        ceiling = self.fanout.bitrate.ceiling
        self._subscription = Subscription(full, ceiling, self._report, self._drives, self._want_key)
        self.fanout.join(self._subscription)
        self._request_key(joined=True)

    def picture_lost(self) -> None:
        if not self._awaits_key:  # losses in a row are one question; the encoder answers all viewers at once
            self._request_key(joined=False)

    def estimate(self, bps: int) -> None:
        self._estimate = bps // 1000, self._clock.now()

    def overfull(self, kbps: int) -> None:
        if self._subscription is not None and not self._left:
            self.fanout.overfull(self._subscription, kbps)

    def _report(self) -> ViewerReport:
        """Since the last one."""
        now, octets, sender = self._clock.now(), self.connection.sender.counts.octets, self.connection.sender
        (before, since), self._reported = self._reported, (octets, now)
        fresh = self._estimate is not None and now - self._estimate[1] < ESTIMATE_S
        kbps = int((octets - before) * 8 / 1000 / max(0.1, now - since))
        estimate = self._estimate[0] if self._estimate and fresh else None
        return ViewerReport(kbps, estimate, sender.lost_share, sender.path_kbps)

    def _want_key(self) -> None:
        """Of a rendition that this viewer is to get instead; what it gets goes on until then."""
        if self._participant is not None and self._subscription is not None:
            self._participant.request_key(rendition=self._subscription.wanted)

    def _request_key(self, joined: bool) -> None:
        if self._participant is not None and self._subscription is not None and not self._left:
            self._awaits_key = True
            self.counts.keys_requested += 1
            self._participant.request_key(joined, self._subscription.current)

    # ---- channels ---------------------------------------------------------------------------------------------------

    def _opened(self, channel: RTCDataChannel) -> None:
        if channel.label not in tuple(Channel):
            channel.close()
            return
        kind = Channel(channel.label)
        self._channels[kind] = channel
        channel.on("message", lambda data: self._received(kind, data))
        if kind is Channel.CONTROL:
            self._newest = Newest(channel)
            while self._waiting:
                channel.send(self._waiting.popleft())

    def _received(self, channel: Channel, data: str | bytes) -> None:
        if self._left or self._participant is None:
            return
        take_in(channel, data, self._participant, self.send, self.counts)

    # ---- life -------------------------------------------------------------------------------------------------------

    def watch(self, now: float, deaf_s: float = 0.0) -> None:
        """Twice a second: leave when the peer has never connected or has fallen silent.

        `deaf_s`: of the time since the last look, so much in which the server itself could hear nobody.
        """
        if self._left:
            return
        self._deadline += deaf_s
        self._heard_at = min(now, self._heard_at + deaf_s)
        heard = self.connection.heard()
        if heard != self._heard_count:
            self._heard_count, self._heard_at = heard, now
        self._send_receipts()
        self.connection.partial.watch(now)
        if not self.connected:
            if now > self._deadline:
                self.leave("never connected")
        elif now - self._heard_at > self.silence_s:
            self.leave("fell silent")

    def _too_much(self) -> None:
        """A message is larger than the answer said, or does not come to its end."""
        self.counts.malformed += 1
        self.send(Problem(code="message_too_large", detail=TOO_MUCH))
        self.leave("sent a message without end")

    def _connection_changed(self) -> None:
        if self.connection.connectionState in ("failed", "closed"):
            self.leave("connection " + self.connection.connectionState)
        elif self.connected:
            self._heard_at = self._clock.now()

    def leave_for_good(self) -> None:
        """The viewer has said that it goes: its seat is free at once."""
        if self._participant is not None:
            self._participant.receive(Leave(id=0))
        self.leave("has gone")

    def leave(self, why: str) -> None:
        """Give up the seat and close the connection; once."""
        if self._left:
            return
        self._left = True
        self.over = self.over or why
        # Without an answer it was never in: the rooms say who waits in line, the edge whose offer failed.
        log.log(logging.INFO if self.answered else logging.DEBUG, "viewer left: %s", why)
        if self._subscription is not None:
            self.fanout.leave(self._subscription)
        if self._participant is not None:
            self._participant.leave()
        self._gone(self)
