"""One WebRTC connection to a viewer: an RTCPeerConnection that answers an offer with one H.264 stream.

Knows SDP and aiortc; knows no room, no messages. A bad offer raises `BadOffer` and leaves nothing behind.
"""

import asyncio
import logging

from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCRtpTransceiver, RTCSessionDescription
from aiortc.exceptions import InternalError, InvalidStateError, OperationError
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.sdp import SessionDescription

from ...clock import Clock
from .ice import HostPolicy, confine
from .sender import FanoutSender, SenderFeedback, offer_playout_delay

log = logging.getLogger(__name__)

PROFILES = ("42e01f", "42001f")
CLOSE_TIMEOUT = 2.0


class BadOffer(ValueError):
    """An offer that cannot be answered; `code` is stable, `detail` is for a person."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


class ViewerConnection(RTCPeerConnection):
    """See the module docstring. `sender` exists once an offer has been taken."""

    sender: FanoutSender

    def __init__(
        self,
        clock: Clock,
        feedback: SenderFeedback,
        policy: HostPolicy,
        viewer_is_local: bool,
        ice_servers: tuple[str, ...] = (),
    ) -> None:
        offer_playout_delay()
        super().__init__(RTCConfiguration(iceServers=[RTCIceServer(urls=url) for url in ice_servers]))
        self._clock = clock
        self._feedback = feedback
        self._policy = policy
        self._viewer_is_local = viewer_is_local
        self._video = self.addTransceiver("video", direction="sendonly")

    async def take_offer(self, sdp: str) -> None:
        """Read an offer; raises `BadOffer`. aiortc's parser signals nonsense by many exceptions, all the peer's."""
        text = without_unreachable(sdp)
        try:
            check_outline(SessionDescription.parse(text))
            await self.setRemoteDescription(RTCSessionDescription(sdp=text, type="offer"))
            self._answerable()
            await self.createAnswer()
        except BadOffer:
            raise
        except OperationError:
            raise BadOffer("no_h264", "the offer has no H.264 constrained baseline in packetization mode 1") from None
        except InternalError as error:
            raise BadOffer("bad_sdp", str(error)) from None
        except (
            ValueError,
            KeyError,
            IndexError,
            AttributeError,
            TypeError,
            AssertionError,
            InvalidStateError,
        ) as error:
            raise BadOffer("bad_sdp", f"the offer is no valid SDP ({type(error).__name__})") from None

    def _answerable(self) -> None:
        """Settle what we would answer; raises `BadOffer`."""
        if self._video.mid is None:
            raise BadOffer("no_video", "the offer has no video section to receive on")
        if self._video._offerDirection not in ("sendonly", "sendrecv"):
            raise BadOffer("no_video", "the offer does not want to receive video")
        self._video._codecs = h264_only(self._video._codecs)
        for transceiver in self.getTransceivers():
            if transceiver is not self._video:
                transceiver.direction = "inactive"

    async def answer(self) -> str:
        """Gather and answer; raises `PortsExhausted`."""
        await self.setLocalDescription(await self.createAnswer())
        return self.localDescription.sdp

    async def end(self) -> None:
        """Close, for good and within two seconds; a connection that cannot be closed is left to the collector."""
        try:
            await asyncio.wait_for(self.close(), CLOSE_TIMEOUT)
        except TimeoutError:
            log.warning("a connection did not close within %.0f s and was left", CLOSE_TIMEOUT)
        except Exception:
            log.exception("a connection failed to close and was left")

    def heard(self) -> int:
        """Datagrams received so far: growth is the sign of life that every kind of viewer gives."""
        return int(self.sender.transport._RTCDtlsTransport__rx_packets)  # type: ignore[attr-defined]

    # ---- hooks of RTCPeerConnection ---------------------------------------------------------------------------------

    def _RTCPeerConnection__createTransceiver(
        self, direction: str, kind: str, sender_track: MediaStreamTrack | None = None
    ) -> RTCRtpTransceiver:
        transceiver: RTCRtpTransceiver = super()._RTCPeerConnection__createTransceiver(  # type: ignore[misc]
            direction, kind, sender_track
        )
        if kind == "video" and not hasattr(self, "sender"):
            plain = transceiver.sender
            self.sender = FanoutSender(plain.transport, self._clock, self._feedback)
            self.sender._stream_id = plain._stream_id
            transceiver._RTCRtpTransceiver__sender = self.sender  # type: ignore[attr-defined]
            transceiver.receiver._set_rtcp_ssrc(self.sender._ssrc)
        return transceiver

    def _RTCPeerConnection__createDtlsTransport(self) -> RTCDtlsTransport:
        transport: RTCDtlsTransport = super()._RTCPeerConnection__createDtlsTransport()  # type: ignore[misc]
        confine(transport.transport.iceGatherer._connection, self._policy, self._viewer_is_local)
        return transport


def check_outline(offer: SessionDescription) -> None:
    """What aiortc takes for granted and breaks half-way without; raises `BadOffer`."""
    mids = [media.rtp.muxId for media in offer.media]
    kinds = [media.kind for media in offer.media]
    if not offer.media or len(offer.media) > 8:
        raise BadOffer("bad_sdp", f"the offer has {len(offer.media)} media sections, 1 to 8 are read")
    if "" in mids or len(set(mids)) < len(mids):
        raise BadOffer("bad_sdp", "the offer's media sections have no distinct mids")
    if kinds.count("application") > 1 or any(kind not in ("audio", "video", "application") for kind in kinds):
        raise BadOffer("bad_sdp", "the offer has a media section that no viewer needs")
    bundled = [mid for group in offer.group if group.semantic == "BUNDLE" for mid in group.items]
    if sorted(map(str, bundled)) != sorted(mids):
        raise BadOffer("bad_sdp", "the offer's BUNDLE group does not name all of its media sections")
    if not all(media.dtls is not None and media.dtls.fingerprints for media in offer.media):
        raise BadOffer("bad_sdp", "the offer has a media section without a DTLS fingerprint")


def h264_only(codecs: list[RTCRtpCodecParameters]) -> list[RTCRtpCodecParameters]:
    """The one H.264 entry we send (constrained baseline first) and its retransmission entry; raises `BadOffer`."""
    for profile in PROFILES:
        for codec in codecs:
            if codec.name == "H264" and str(codec.parameters.get("profile-level-id", "")).lower() == profile:
                return [codec, *(c for c in codecs if c.parameters.get("apt") == codec.payloadType)]
    raise BadOffer("no_h264", "the offer has no H.264 constrained baseline in packetization mode 1")


def without_unreachable(sdp: str) -> str:
    """Drop mDNS candidates (resolving one can take a second) and the end mark, so that the peer's checks can come in
    from wherever they come."""
    lines = (line for line in sdp.splitlines() if line.strip() != "a=end-of-candidates")
    kept = (line for line in lines if not (line.startswith("a=candidate:") and ".local " in line))
    return "\r\n".join(kept) + "\r\n"
