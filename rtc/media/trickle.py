"""SDP fragments of trickle ICE (RFC 8840): which candidates a peer has found, under which user fragment. Pure."""

from dataclasses import dataclass

from aiortc.rtcicetransport import RTCIceCandidate
from aiortc.sdp import candidate_from_sdp

CANDIDATES_MAX = 64


class BadFragment(ValueError):
    """A body that is no fragment."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """`ufrag` '' = not said. mDNS candidates are left out: the peer's checks come in without them."""

    ufrag: str
    candidates: tuple[RTCIceCandidate, ...]


def read_fragment(text: str) -> Fragment:
    """Raises `BadFragment`. What is no candidate and no user fragment is ignored."""
    ufrag, mid = "", "0"
    found: list[RTCIceCandidate] = []
    for line in text.splitlines():
        name, _, value = line.strip().partition(":")
        if name == "a=ice-ufrag":
            ufrag = value
        elif name == "a=mid":
            mid = value
        elif name == "a=candidate" and ".local " not in value:
            found.append(_candidate(value, mid))
    if len(found) > CANDIDATES_MAX:
        raise BadFragment(f"{len(found)} candidates, at most {CANDIDATES_MAX} are read")
    return Fragment(ufrag, tuple(found))


def _candidate(value: str, mid: str) -> RTCIceCandidate:
    try:
        candidate = candidate_from_sdp(value)
    except (ValueError, IndexError, AssertionError):
        raise BadFragment("a candidate of the fragment cannot be read") from None
    candidate.sdpMid = mid
    return candidate
