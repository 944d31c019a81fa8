"""Transport-wide feedback as bytes: which packets of a connection arrived, and when (RTCP 205, format 15).

    sequence of the first packet | packets | reference time | count | statuses in chunks | a delta for each that arrived

Pure: bytes in, arrivals out. Source: draft-holmer-rmcat-transport-wide-cc-extensions-01, sections 2 and 3.1.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

TRANSPORT_CC_URI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
RTPFB, TRANSPORT_CC = 205, 15
PACKETS_MAX = 4096
"""Of one feedback; receivers send some ten a second."""
TICK_S = 250e-6
REFERENCE_TICKS = 256
LOST, SMALL, LARGE = 0, 1, 2


class BadFeedback(ValueError):
    """Bytes that are no transport-wide feedback."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Of the packets from `first` on (16 bits, it wraps): seconds on the receiver's own clock, None = not arrived."""

    first: int
    times: tuple[float | None, ...]


def feedback_apart(compound: bytes) -> tuple[list[bytes], bytes]:
    """The bodies of transport-wide feedback in an RTCP compound, and the compound without them.

    aiortc takes them for NACKs and throws the whole compound away where one is padded.
    """
    bodies, others, at = [], b"", 0
    while at + 4 <= len(compound):
        first, kind, words = struct.unpack_from("!BBH", compound, at)
        end = at + 4 + 4 * words
        if end > len(compound):
            break
        if kind == RTPFB and first & 0x1F == TRANSPORT_CC:
            body = compound[at + 4 : end]
            bodies.append(body[: len(body) - body[-1]] if first & 0x20 and body else body)
        else:
            others += compound[at:end]
        at = end
    return bodies, others + compound[at:]


def read_feedback(body: bytes) -> Arrivals:
    """What follows the RTCP header, without padding; raises `BadFeedback`."""
    if len(body) < 16:
        raise BadFeedback(f"{len(body)} bytes")
    first, packets = struct.unpack_from("!HH", body, 8)
    if packets > PACKETS_MAX:
        raise BadFeedback(f"{packets} packets, at most {PACKETS_MAX} are read")
    ticks = int.from_bytes(body[12:15], "big", signed=True) * REFERENCE_TICKS
    statuses: list[int] = []
    at = 16
    while len(statuses) < packets:
        if at + 2 > len(body):
            raise BadFeedback("the statuses end early")
        statuses.extend(_statuses(int.from_bytes(body[at : at + 2], "big")))
        at += 2
    times: list[float | None] = []
    for status in statuses[:packets]:
        if status == LOST:
            times.append(None)
            continue
        size = 1 if status == SMALL else 2
        if status not in (SMALL, LARGE) or at + size > len(body):
            raise BadFeedback("the deltas end early")
        ticks += int.from_bytes(body[at : at + size], "big", signed=status == LARGE)
        at += size
        times.append(ticks * TICK_S)
    return Arrivals(first, tuple(times))


def _statuses(chunk: int) -> Iterator[int]:
    """0 run of one status | 10 fourteen of one bit | 11 seven of two bits."""
    if not chunk & 0x8000:
        yield from (chunk >> 13 & 3 for _ in range(chunk & 0x1FFF))
    elif not chunk & 0x4000:
        yield from (chunk >> shift & 1 for shift in range(13, -1, -1))
    else:
        yield from (chunk >> shift & 3 for shift in range(12, -1, -2))
