"""One WebRTC connection to a viewer: an RTCPeerConnection that answers an offer with one H.264 stream.

Knows SDP and aiortc; knows no room, no messages. A bad offer raises `BadOffer` and leaves nothing behind.
"""

import asyncio
import logging

from aiortc import RTCConfiguration, RTCIceServer, RTCPeerConnection, RTCRtpTransceiver, RTCSessionDescription
from aiortc.exceptions import InternalError, InvalidStateError, OperationError
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcdtlstransport import RTCDtlsParameters, RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters

from ..clock import Clock
from .ice import HostPolicy, confine
from .sender import FanoutSender, Feedback, offer_playout_delay

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
    _RTCPeerConnection__remoteDtls: dict[object, RTCDtlsParameters]  # private to RTCPeerConnection, read here

    def __init__(
        self,
        clock: Clock,
        feedback: Feedback,
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
        offer = RTCSessionDescription(sdp=without_unreachable(sdp), type="offer")
        try:
            await self.setRemoteDescription(offer)
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
        if self._video.mid is None:
            raise BadOffer("no_video", "the offer has no video section to receive on")
        if self._video._offerDirection not in ("sendonly", "sendrecv"):
            raise BadOffer("no_video", "the offer does not want to receive video")
        if not all(parameters.fingerprints for parameters in self._RTCPeerConnection__remoteDtls.values()):
            raise BadOffer("bad_sdp", "the offer has no DTLS fingerprint")
        self._video._codecs = h264_only(self._video._codecs)
        for transceiver in self.getTransceivers():
            if transceiver is not self._video:
                transceiver.direction = "inactive"

    async def answer(self) -> str:
        """Gather and answer; raises `PortsExhausted`."""
        await self.setLocalDescription(await self.createAnswer())
        return self.localDescription.sdp

    async def end(self) -> None:
        """Close, for good and within two seconds."""
        try:
            await asyncio.wait_for(self.close(), CLOSE_TIMEOUT)
        except TimeoutError:
            log.warning("a connection did not close within %.0f s and was left", CLOSE_TIMEOUT)

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
