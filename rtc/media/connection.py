"""One WebRTC connection to a viewer: an RTCPeerConnection that answers an offer with one video stream.

Knows aiortc (`offer.py` reads the text); knows no room, no messages. A bad offer raises `BadOffer` and leaves nothing
behind.
"""

import asyncio
import logging
from collections.abc import Callable

from aiortc import (
    RTCConfiguration,
    RTCIceCandidate,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpTransceiver,
    RTCSessionDescription,
)
from aiortc.exceptions import InternalError, InvalidStateError, OperationError
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcdtlstransport import RTCDtlsTransport

from ...clock import Clock
from .ice import HostPolicy, confine
from .ice_servers import IceServer
from .offer import NO_CODEC, NO_CODEC_DETAIL, BadOffer, Offer, one_codec, read_offer
from .sctp import PartialMessages
from .sender import FanoutSender, SenderFeedback, offer_playout_delay

log = logging.getLogger(__name__)

CLOSE_TIMEOUT = 2.0


class ViewerConnection(RTCPeerConnection):
    """See the module docstring. `sender` exists once an offer has been taken; `too_much` hears of a peer whose messages
    are larger or slower than may be."""

    sender: FanoutSender

    def __init__(
        self,
        clock: Clock,
        feedback: SenderFeedback,
        policy: HostPolicy,
        viewer_is_local: bool,
        ice_servers: tuple[IceServer, ...] = (),
        too_much: Callable[[], None] = lambda: None,
    ) -> None:
        offer_playout_delay()
        super().__init__(RTCConfiguration(iceServers=[_of_aiortc(server) for server in ice_servers]))
        self._clock = clock
        self._feedback = feedback
        self._policy = policy
        self._viewer_is_local = viewer_is_local
        self.partial = PartialMessages(clock, too_much)
        self._offer = Offer("", {})
        self._video = self.addTransceiver("video", direction="sendonly")

    async def take_offer(self, sdp: str) -> None:
        """Read an offer; raises `BadOffer`. aiortc signals nonsense by many exceptions, all the peer's fault."""
        self._offer = read_offer(sdp)
        try:
            await self.setRemoteDescription(RTCSessionDescription(sdp=self._offer.read, type="offer"))
            self._answerable()
            await self.createAnswer()
        except (BadOffer, OSError):
            raise
        except OperationError:
            raise BadOffer(NO_CODEC, NO_CODEC_DETAIL) from None
        except InternalError as error:
            raise BadOffer("bad_sdp", str(error)) from None
        except Exception as error:
            raise BadOffer("bad_sdp", f"the offer is no valid SDP ({type(error).__name__})") from None

    def _answerable(self) -> None:
        """Settle what we would answer; raises `BadOffer`."""
        if self._video.mid is None:
            raise BadOffer("no_video", "the offer has no video section to receive on")
        if self._video._offerDirection not in ("sendonly", "sendrecv"):
            raise BadOffer("no_video", "the offer does not want to receive video")
        self._video._codecs = one_codec(self._video._codecs)
        for transceiver in self.getTransceivers():
            if transceiver is not self._video:
                transceiver.direction = "inactive"

    async def answer(self) -> str:
        """Gather and answer; raises `PortsExhausted`."""
        await self.setLocalDescription(await self.createAnswer())
        return self._offer.whole_answer(self.localDescription.sdp)

    @property
    def sends_h264(self) -> bool:
        """Of the answer; VP8 otherwise. Known once an offer has been taken."""
        return bool(self._video._codecs[0].name == "H264")

    @property
    def etag(self) -> str:
        """Of this connection's ICE session, as WHEP wants it."""
        return f'"{self.sender.transport.transport.iceGatherer.getLocalParameters().usernameFragment}"'

    @property
    def remote_ufrag(self) -> str:
        return str(self.sender.transport.transport._connection.remote_username or "")

    async def add_candidates(self, candidates: tuple[RTCIceCandidate, ...]) -> None:
        """What the peer has found since its offer; what this connection has no section for is dropped."""
        mids = {transceiver.mid for transceiver in self.getTransceivers()}
        for candidate in candidates:
            if candidate.sdpMid in mids:
                await self.addIceCandidate(candidate)

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
            # It estimates what comes in, with a thousand buckets; nothing comes in. 200 of them cost the loop 100 ms.
            transceiver.receiver._RTCRtpReceiver__remote_bitrate_estimator = None  # type: ignore[attr-defined]
        return transceiver

    def _RTCPeerConnection__createSctpTransport(self) -> None:
        super()._RTCPeerConnection__createSctpTransport()  # type: ignore[misc]
        assert self.sctp is not None
        self.partial.bound(self.sctp)

    async def _RTCPeerConnection__connect(self) -> None:
        """In a task that nobody awaits: a connection that ends while it is made, as in a storm of reloads, has not
        failed."""
        try:
            await super()._RTCPeerConnection__connect()  # type: ignore[misc]
        except (InvalidStateError, ConnectionError) as error:
            log.info("a connection ended while it was made (%s)", type(error).__name__)

    def _RTCPeerConnection__createDtlsTransport(self) -> RTCDtlsTransport:
        transport: RTCDtlsTransport = super()._RTCPeerConnection__createDtlsTransport()  # type: ignore[misc]
        confine(transport.transport.iceGatherer._connection, self._policy, self._viewer_is_local)
        return transport


def _of_aiortc(server: IceServer) -> RTCIceServer:
    return RTCIceServer(list(server.urls), server.username or None, server.credential or None)
