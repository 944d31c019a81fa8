"""SDP fragments of trickle ICE and of ICE restarts (RFC 8840): which candidates a peer has found, under which user
fragment and password. Pure."""

from dataclasses import dataclass

from aiortc.rtcicetransport import RTCIceCandidate
from aiortc.sdp import candidate_from_sdp, candidate_to_sdp

CANDIDATES_MAX = 64


class BadFragment(ValueError):
    """A body that is no fragment."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """`ufrag`, `password` '' = not said. mDNS candidates are left out: the peer's checks come in without them."""

    ufrag: str
    password: str
    candidates: tuple[RTCIceCandidate, ...]


def read_fragment(text: str) -> Fragment:
    """Raises `BadFragment`. What is no candidate and no user fragment is ignored."""
    ufrag, password, mid = "", "", "0"
    found: list[RTCIceCandidate] = []
    for line in text.splitlines():
        name, _, value = line.strip().partition(":")
        if name == "a=ice-ufrag":
            ufrag = value
        elif name == "a=ice-pwd":
            password = value
        elif name == "a=mid":
            mid = value
        elif name == "a=candidate" and ".local " not in value:
            found.append(_candidate(value, mid))
    if len(found) > CANDIDATES_MAX:
        raise BadFragment(f"{len(found)} candidates, at most {CANDIDATES_MAX} are read")
    return Fragment(ufrag, password, tuple(found))


def write_fragment(fragment: Fragment, media: str, mid: str) -> str:
    """All that there is to say, under one media section. `media`: its m= line."""
    who = [f"a=ice-ufrag:{fragment.ufrag}", f"a=ice-pwd:{fragment.password}"]
    found = [f"a=candidate:{candidate_to_sdp(candidate)}" for candidate in fragment.candidates]
    return "\r\n".join([media, f"a=mid:{mid}", *who, *found, "a=end-of-candidates"]) + "\r\n"


def _candidate(value: str, mid: str) -> RTCIceCandidate:
    try:
        candidate = candidate_from_sdp(value)
    except (ValueError, IndexError, AssertionError):
        raise BadFragment("a candidate of the fragment cannot be read") from None
    candidate.sdpMid = mid
    return candidate
