"""One viewer's RTP stream: an RTCRtpSender that sends what a session has encoded and packetized once.

Nothing is encoded or queued here. A viewer that missed anything gets nothing more until the next key frame. Built on
aiortc 1.16's internals (name-mangled attributes); `tests/unit/rtc/media/test_rtc_aiortc_hooks.py` asserts that they
exist.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from aioice.ice import StunProtocol
from aiortc import RTCRtpSender
from aiortc.rtcdtlstransport import RTCDtlsTransport, State
from aiortc.rtcrtpparameters import RTCRtpCodecParameters, RTCRtpSendParameters
from aiortc.rtcrtpsender import random_sequence_number
from aiortc.rtp import (
    RTCP_PSFB_APP,
    RTCP_RTPFB_NACK,
    AnyRtcpPacket,
    RtcpPsfbPacket,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    RtcpSrPacket,
    unpack_remb_fci,
)
from aiortc.utils import random32

from ...clock import Clock
from .packets import HeaderPlan, Sent, SentPackets, ntp_time, retransmission
from .path_rate import PathRate
from .transport_feedback import BadFeedback, read_feedback

SOCKET_BACKLOG_MAX = 256 * 1024


@dataclass(slots=True)
class SenderCounts:
    """Of one viewer, for /metrics."""

    frames: int = 0
    packets: int = 0
    octets: int = 0
    skipped: int = 0
    plis: int = 0
    nacks: int = 0
    retransmitted: int = 0
    overfull: int = 0
    """Times the path was found overfull by transport-wide feedback."""


class SenderFeedback(Protocol):
    """What a viewer's RTP stream tells the viewer it belongs to."""

    def streaming(self) -> None:
        """The stream has just begun to flow; it waits for a key frame."""
        ...

    def picture_lost(self) -> None:
        """The receiver cannot go on without a key frame."""
        ...

    def estimate(self, bps: int) -> None:
        """The receiver's estimate of what it can take (REMB)."""
        ...

    def overfull(self, kbps: int) -> None:
        """The path's queue grows; it takes so much (transport-wide feedback)."""
        ...


class FanoutSender(RTCRtpSender):
    """See the module docstring. `push` is synchronous: header, SRTP and sendto, about 10 us a packet."""

    # Private names of RTCRtpSender that this class reads or keeps up to date.
    _RTCRtpSender__rtp_started: asyncio.Event
    _RTCRtpSender__rtp_exited: asyncio.Event
    _RTCRtpSender__mid: str | None
    _RTCRtpSender__rtx_payload_type: int | None
    _RTCRtpSender__packet_count: int
    _RTCRtpSender__octet_count: int
    _RTCRtpSender__lsr: int | None

    def __init__(self, transport: RTCDtlsTransport, clock: Clock, feedback: SenderFeedback) -> None:
        super().__init__("video", transport)
        self._clock = clock
        self._feedback = feedback
        self.counts = SenderCounts()
        self.lost_share = 0.0
        self._plan: HeaderPlan | None = None
        self._rtx_plan: HeaderPlan | None = None
        self._ids: dict[str, int] = {}
        self._sequence = random_sequence_number()
        self._rtx_sequence = random_sequence_number()
        self._origin = random32()
        self._sent = SentPackets()
        self._path = PathRate()
        self._needs_key = True
        self._last: tuple[float, int] | None = None
        self._pts = -1

    async def send(self, parameters: RTCRtpSendParameters) -> None:
        self._ids = {extension.uri: extension.id for extension in parameters.headerExtensions}
        await super().send(parameters)

    @property
    def flowing(self) -> bool:
        """True while the transport is up and the receiver may be sent to."""
        return self._plan is not None and self.transport._state == State.CONNECTED

    def push(self, payloads: tuple[bytes, ...], pts: int, key: bool) -> int | None:
        """Send one frame now; its RTP timestamp, or None when this viewer had to be passed over.

        Timestamps only rise, even where the stream goes on with another rendition that is a little behind.
        """
        plan = self._plan
        if plan is None or not self.flowing:
            return None
        if self._needs_key and not key:
            self.counts.skipped += 1
            return None
        pair = self._host_pair()
        if pair is not None and pair.protocol.transport.get_write_buffer_size() > SOCKET_BACKLOG_MAX:
            self._needs_key = True
            self.counts.skipped += 1
            self._feedback.picture_lost()
            return None
        self._origin += max(0, self._pts + 1 - pts)
        self._pts = max(pts, self._pts + 1)
        timestamp, now = (self._origin + pts) & 0xFFFFFFFF, self._clock.now()
        extensions = plan.stamped(ntp_time(self._clock.wall()))
        final = len(payloads) - 1
        for index, payload in enumerate(payloads):
            sent = Sent(self._sequence, timestamp, index == final, payload)
            self._transmit(plan, sent, extensions, now, pair)
            self._sent.keep(sent)
            self._sequence = (self._sequence + 1) & 0xFFFF
        self._needs_key = False
        self._last = (now, timestamp)
        self._count(len(payloads), sum(map(len, payloads)))
        return timestamp

    def _count(self, packets: int, octets: int) -> None:
        counts = self.counts
        counts.frames += 1
        counts.packets += packets
        counts.octets += octets
        self._RTCRtpSender__packet_count = counts.packets
        self._RTCRtpSender__octet_count = counts.octets

    def _host_pair(self) -> Any:
        """The pair of addresses that media take, where they take a socket of ours; None on a relay."""
        pair = self.transport.transport._connection._nominated.get(1)
        return pair if pair is not None and isinstance(pair.protocol, StunProtocol) else None

    @property
    def path_kbps(self) -> int | None:
        """What the path takes, as far as transport-wide feedback says; None = nothing speaks against anything."""
        return None if self._path.kbps is None else int(self._path.kbps)

    def take_transport_feedback(self, body: bytes) -> None:
        """Of an RTCP message; nonsense says nothing."""
        try:
            arrivals = read_feedback(body)
        except BadFeedback:
            return
        if self._path.learn(arrivals, self._clock.now()) and (kbps := self.path_kbps) is not None:
            self.counts.overfull += 1
            self._feedback.overfull(kbps)

    def _transmit(self, plan: HeaderPlan, packet: Sent, extensions: bytes, now: float, pair: Any) -> None:
        """SRTP and sendto. On a relay that still binds a channel the coroutine would suspend; then this packet is given
        up (a NACK brings it back)."""
        if plan.number_at is not None:
            extensions = plan.numbered(extensions, self._path.depart(now, len(packet.payload)))
        protected = self.transport._tx_srtp.protect(plan.packet(packet, extensions))
        if pair is not None:
            pair.protocol.transport.sendto(protected, pair.remote_addr)
            return
        sending = self.transport.transport._send(protected)
        try:
            sending.send(None)
        except (StopIteration, ConnectionError):
            return
        sending.close()

    # ---- hooks of RTCRtpSender --------------------------------------------------------------------------------------

    async def _run_rtp(self, codec: RTCRtpCodecParameters) -> None:
        self._RTCRtpSender__rtp_started.set()
        mid = self._RTCRtpSender__mid or ""
        assert codec.payloadType is not None  # negotiated
        self._plan = HeaderPlan.negotiated(codec.payloadType, self._ssrc, self._ids, mid)
        rtx_type = self._RTCRtpSender__rtx_payload_type
        if rtx_type is not None:
            self._rtx_plan = HeaderPlan.negotiated(rtx_type, self._rtx_ssrc, self._ids, mid)
        try:
            self._feedback.streaming()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        finally:
            self._plan = None
            self._RTCRtpSender__rtp_exited.set()

    def _send_keyframe(self) -> None:
        self.counts.plis += 1
        self._feedback.picture_lost()

    async def _retransmit(self, sequence_number: int) -> None:
        self.counts.nacks += 1
        lost = self._sent.find(sequence_number)
        if lost is None or self._plan is None or not self.flowing:
            self._feedback.picture_lost()
            return
        self.counts.retransmitted += 1
        if self._rtx_plan is None:
            plan, packet = self._plan, lost
        else:
            plan, packet = self._rtx_plan, retransmission(self._rtx_sequence, lost)
            self._rtx_sequence = (self._rtx_sequence + 1) & 0xFFFF
        extensions = plan.stamped(ntp_time(self._clock.wall()))
        self._transmit(plan, packet, extensions, self._clock.now(), self._host_pair())

    async def _handle_rtcp_packet(self, packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpPsfbPacket) and packet.fmt == RTCP_PSFB_APP:
            self._read_remb(packet)
            return
        if isinstance(packet, RtcpRrPacket):
            for report in packet.reports:
                if report.ssrc == self._ssrc:
                    self.lost_share = report.fraction_lost / 256
        elif isinstance(packet, RtcpRtpfbPacket) and packet.fmt != RTCP_RTPFB_NACK:
            return
        await super()._handle_rtcp_packet(packet)

    def _read_remb(self, packet: RtcpPsfbPacket) -> None:
        try:
            bps, ssrcs = unpack_remb_fci(packet.fci)
        except ValueError:
            return
        if self._ssrc in ssrcs:
            self._feedback.estimate(bps)

    async def _send_rtcp(self, packets: list[AnyRtcpPacket]) -> None:
        """Sender reports map the present moment, not the last packet's, onto RTP time."""
        for packet in packets:
            if isinstance(packet, RtcpSrPacket):
                if self._last is None:
                    return
                sent_at, timestamp = self._last
                ntp = ntp_time(self._clock.wall())
                packet.sender_info.ntp_timestamp = ntp
                packet.sender_info.rtp_timestamp = (
                    timestamp + int((self._clock.now() - sent_at) * 90_000)
                ) & 0xFFFFFFFF
                self._RTCRtpSender__lsr = (ntp >> 16) & 0xFFFFFFFF
        await super()._send_rtcp(packets)
