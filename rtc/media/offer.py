"""An offer as text: what is read of it, what is rejected in the answer, and what cannot be answered at all.

    offer   m=audio 9 .. | m=video 9 .. | m=video 0 ..     aiortc reads the sections that are kept
    answer  m=audio 9 .. | m=video 9 .. | m=video 0 ..     every section has one at its place (RFC 8829, 5.3.1)

Pure: texts in, texts out. Everything that is wrong in an offer is the peer's fault, a `BadOffer`.
"""

import re
from dataclasses import dataclass

from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.sdp import SessionDescription

PROFILES = ("42e01f", "42001f")
SECTIONS_MAX = 16
KINDS = ("audio", "video", "application")
NO_CODEC = "no_codec"
NO_CODEC_DETAIL = "the offer has neither H.264 constrained baseline in packetization mode 1 nor VP8"


class BadOffer(ValueError):
    """An offer that cannot be answered; `code` is stable, `detail` is for a person."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


@dataclass(frozen=True, slots=True)
class Offer:
    """`read`: the text that aiortc gets. `rejected`: the answer's sections at these places of the whole offer."""

    read: str
    rejected: dict[int, str]

    def whole_answer(self, answer: str) -> str:
        """aiortc's answer with a section at every place."""
        head, sections = _split(answer)
        for place in sorted(self.rejected):
            sections.insert(place, self.rejected[place])
        return _join(head, sections)


def read_offer(sdp: str) -> Offer:
    """Set aside the sections that the peer has stopped or that no viewer needs; raises `BadOffer`."""
    head, sections = _split(sdp)
    if not 1 <= len(sections) <= SECTIONS_MAX:
        raise BadOffer("bad_sdp", f"the offer has {len(sections)} media sections, 1 to {SECTIONS_MAX} are read")
    kept: list[str] = []
    rejected: dict[int, str] = {}
    kinds: list[str] = []
    for place, section in enumerate(sections):
        kind = _kind(section)
        if kind in KINDS and not _stopped(section) and (kind == "audio" or kind not in kinds):
            kept.append(section)
            kinds.append(kind)
        else:
            rejected[place] = _rejection(section)
    offer = Offer(_join(_bundle_of(head, kept), [_reachable(section) for section in kept]), rejected)
    _check_outline(offer.read)
    return offer


def one_codec(codecs: list[RTCRtpCodecParameters]) -> list[RTCRtpCodecParameters]:
    """The one entry we send and its retransmission entry: H.264 (constrained baseline first), else VP8; raises
    `BadOffer`.
    """
    h264 = [
        codec
        for profile in PROFILES
        for codec in codecs
        if codec.name == "H264" and str(codec.parameters.get("profile-level-id", "")).lower() == profile
    ]
    for codec in [*h264, *(codec for codec in codecs if codec.name == "VP8")]:
        return [codec, *(c for c in codecs if c.parameters.get("apt") == codec.payloadType)]
    raise BadOffer(NO_CODEC, NO_CODEC_DETAIL)


def tagged(sdp: str) -> tuple[str, str]:
    """Of the section whose transport is the bundle's (RFC 9143, 7.3.1): its m= line in a fragment, and its mid."""
    head, sections = _split(sdp)
    mid = next(line.split()[1] for line in head if line.startswith("a=group:BUNDLE "))
    kind, _, protocol, *_ = next(s for s in sections if f"\na=mid:{mid}\r\n" in f"{s}\r\n").split()
    return f"{kind} 9 {protocol} 0", mid


def _check_outline(text: str) -> None:
    """What aiortc takes for granted and breaks half-way without. Its parser fails in many ways, all the peer's."""
    try:
        offer = SessionDescription.parse(text)
    except Exception as error:
        raise BadOffer("bad_sdp", f"the offer is no valid SDP ({type(error).__name__})") from None
    mids = [media.rtp.muxId or "" for media in offer.media]
    if "" in mids or len(set(mids)) < len(mids):
        raise BadOffer("bad_sdp", "the offer's media sections have no distinct mids")
    bundled = [str(mid) for group in offer.group if group.semantic == "BUNDLE" for mid in group.items]
    if sorted(bundled) != sorted(mids):
        raise BadOffer("bad_sdp", "the offer's BUNDLE group does not name all of its media sections")
    if not all(media.dtls is not None and media.dtls.fingerprints for media in offer.media):
        raise BadOffer("bad_sdp", "the offer has a media section without a DTLS fingerprint")


def _split(sdp: str) -> tuple[list[str], list[str]]:
    """Lines before the first media section, and each section as text."""
    head: list[str] = []
    sections: list[list[str]] = []
    for line in sdp.splitlines():
        if line.startswith("m="):
            sections.append([line])
        elif sections:
            sections[-1].append(line)
        else:
            head.append(line)
    return head, ["\r\n".join(section) for section in sections]


def _join(head: list[str], sections: list[str]) -> str:
    return "\r\n".join([*head, *sections]) + "\r\n"


def _kind(section: str) -> str:
    return section[2:].split(" ", 1)[0]


def _stopped(section: str) -> bool:
    """Port 0 says so, but for a section that is only reachable through the bundle (RFC 9143, 6)."""
    words = section.splitlines()[0].split(" ")
    return len(words) > 1 and words[1] == "0" and "\na=bundle-only" not in section


def _rejection(section: str) -> str:
    words = section.splitlines()[0].split(" ")
    if len(words) < 4:
        raise BadOffer("bad_sdp", "the offer has a media section without port, protocol and format")
    mid = re.search(r"^a=mid:\S+", section, re.MULTILINE)
    lines = [f"{words[0]} 0 {' '.join(words[2:])}", "c=IN IP4 0.0.0.0", "a=inactive"]
    return "\r\n".join([*lines, *([mid[0]] if mid else [])])


def _bundle_of(head: list[str], kept: list[str]) -> list[str]:
    """The head without the mids of sections that were set aside."""
    mids = {mid[1] for section in kept if (mid := re.search(r"^a=mid:(\S+)", section, re.MULTILINE))}

    def of(line: str) -> str:
        if not line.startswith("a=group:BUNDLE"):
            return line
        return " ".join(["a=group:BUNDLE", *(mid for mid in line.split()[1:] if mid in mids)])

    return [of(line) for line in head]


def _reachable(section: str) -> str:
    """Without mDNS candidates (resolving one can take a second) and the end mark, so that the peer's checks can come in
    from wherever they come."""
    lines = (line for line in section.split("\r\n") if line.strip() != "a=end-of-candidates")
    return "\r\n".join(line for line in lines if not (line.startswith("a=candidate:") and ".local " in line))
