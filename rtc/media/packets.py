"""H.264 and VP8 to RTP: one encoded frame becomes payloads once per session; each viewer adds only its own header.

Pure bytes: no sockets, no clocks. Formats: RFC 3550 (RTP), RFC 6184 (H.264 payloads), RFC 7741 (VP8 payloads),
RFC 8285 (header extensions), RFC 4588 (retransmission), the playout-delay extension of libwebrtc.
"""

import struct
from dataclasses import dataclass

from aiortc.codecs.h264 import H264Encoder
from aiortc.rtp import pack_header_extensions

from .transport_feedback import TRANSPORT_CC_URI

PLAYOUT_DELAY_URI = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
ABS_SEND_TIME_URI = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
MID_URI = "urn:ietf:params:rtp-hdrext:sdes:mid"
PAYLOAD_MAX = 1300
ONE_BYTE_HEADERS = 0xBEDE
NTP_EPOCH = 2_208_988_800  # seconds from 1900 to 1970


def payloads_of(annex_b: bytes) -> tuple[bytes, ...]:
    """RTP payloads (single NAL, STAP-A, FU-A) of one frame in Annex-B form, each at most 1300 bytes."""
    payloads = H264Encoder._packetize(H264Encoder._split_bitstream(annex_b))
    if not payloads:
        raise ValueError(f"no NAL unit in a frame of {len(annex_b)} bytes")
    return tuple(payloads)


def vp8_payloads_of(frame: bytes) -> tuple[bytes, ...]:
    """RTP payloads of one VP8 frame, each at most 1300 bytes: one byte of descriptor, which marks the first."""
    if not frame:
        raise ValueError("an empty VP8 frame")
    room = PAYLOAD_MAX - 1
    parts = (frame[at : at + room] for at in range(0, len(frame), room))
    return tuple((b"\x00" if number else b"\x10") + part for number, part in enumerate(parts))


def playout_delay(min_ms: int, max_ms: int) -> bytes:
    """Three bytes: 12 bits each of the least and the greatest playout delay in units of 10 ms."""
    if not 0 <= min_ms <= max_ms <= 40_950:
        raise ValueError(f"playout delay {min_ms}..{max_ms} ms is not within 0..40950")
    return ((min_ms // 10) << 12 | (max_ms // 10)).to_bytes(3, "big")


def ntp_time(wall: float) -> int:
    """Unix seconds as a 64-bit NTP timestamp."""
    return int((wall + NTP_EPOCH) * 4_294_967_296) & 0xFFFFFFFFFFFFFFFF


def abs_send_time(ntp: int) -> int:
    """The middle 24 bits that the abs-send-time extension carries: seconds in 6.18 fixed point."""
    return (ntp >> 14) & 0xFFFFFF


@dataclass(slots=True)
class Sent:
    """One packet as it was sent, kept for retransmission."""

    sequence: int
    timestamp: int
    marker: bool
    payload: bytes


@dataclass(frozen=True, slots=True)
class HeaderPlan:
    """What is constant in the RTP headers of one viewer's stream.

    0x90 | pt/marker | seq | timestamp | ssrc | 0xBEDE | words | extensions, what changes last: abs-send-time with each
    frame (`stamp_at`), the transport's sequence number with each packet (`number_at`)
    """

    payload_type: int
    ssrc: int
    extensions: bytes
    stamp_at: int | None
    number_at: int | None

    @classmethod
    def negotiated(cls, payload_type: int, ssrc: int, ids: dict[str, int], mid: str) -> "HeaderPlan":
        """`ids`: header extension URI to the id that both sides agreed on."""
        values: list[tuple[int, bytes]] = []
        if MID_URI in ids and mid:
            values.append((ids[MID_URI], mid.encode()))
        if PLAYOUT_DELAY_URI in ids:
            values.append((ids[PLAYOUT_DELAY_URI], playout_delay(0, 0)))
        if ABS_SEND_TIME_URI in ids:
            values.append((ids[ABS_SEND_TIME_URI], b"\x00\x00\x00"))
        if TRANSPORT_CC_URI in ids:
            values.append((ids[TRANSPORT_CC_URI], b"\x00\x00"))
        if not values:
            return cls(payload_type, ssrc, b"", None, None)
        profile, body = pack_header_extensions(values)
        block = struct.pack("!HH", profile, len(body) // 4) + body
        starts: dict[int, int] = {}
        at, before = 4, 1 if profile == ONE_BYTE_HEADERS else 2
        for id, value in values:
            starts[id] = at + before
            at += before + len(value)
        stamp_at, number_at = (starts.get(ids.get(uri, -1)) for uri in (ABS_SEND_TIME_URI, TRANSPORT_CC_URI))
        return cls(payload_type, ssrc, block, stamp_at, number_at)

    def stamped(self, ntp: int) -> bytes:
        """The extension block with the sending time."""
        if self.stamp_at is None:
            return self.extensions
        at = self.stamp_at
        return self.extensions[:at] + abs_send_time(ntp).to_bytes(3, "big") + self.extensions[at + 3 :]

    def numbered(self, extensions: bytes, number: int) -> bytes:
        """The extension block with a transport sequence number; only where that was negotiated."""
        at = self.number_at
        assert at is not None
        return extensions[:at] + number.to_bytes(2, "big") + extensions[at + 2 :]

    def packet(self, sent: Sent, extensions: bytes) -> bytes:
        first = 0x90 if extensions else 0x80
        second = self.payload_type | (0x80 if sent.marker else 0)
        head = struct.pack("!BBHLL", first, second, sent.sequence, sent.timestamp, self.ssrc)
        return head + extensions + sent.payload


class SentPackets:
    """The last `size` packets by sequence number; `size` divides 65536, so a slot is never ambiguous."""

    def __init__(self, size: int = 1024) -> None:
        if size <= 0 or 65536 % size:
            raise ValueError(f"history of {size} packets does not divide 65536")
        self._slots: list[Sent | None] = [None] * size

    def keep(self, packet: Sent) -> None:
        self._slots[packet.sequence % len(self._slots)] = packet

    def find(self, sequence: int) -> Sent | None:
        packet = self._slots[sequence % len(self._slots)]
        return packet if packet is not None and packet.sequence == sequence else None


def retransmission(sequence: int, lost: Sent) -> Sent:
    """RTX (RFC 4588): the lost packet in the RTX stream, its old sequence number before the payload."""
    return Sent(sequence, lost.timestamp, lost.marker, struct.pack("!H", lost.sequence) + lost.payload)
