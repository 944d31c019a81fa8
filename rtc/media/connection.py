"""A viewer's WebRTC connection: answers an offer with one video stream. Knows no room, no messages."""

import asyncio
from collections.abc import Callable

from aiortc import RTCRtpTransceiver
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtcpFeedback

from ...clock import Clock
from .circles import let_go
from .ice import HostPolicy
from .ice_servers import IceServer
from .offered import OfferedConnection
from .packets import PLAYOUT_DELAY_URI
from .sctp import PartialMessages
from .sender import FanoutSender, SenderFeedback
from .transport_feedback import TRANSPORT_CC_URI, feedback_apart

LET_GO_S = 1.0
"""Timers of a closed connection have run by then."""


class ViewerConnection(OfferedConnection):
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
        self._clock, self._feedback = clock, feedback
        self.partial = PartialMessages(clock, too_much)
        super().__init__("sendonly", policy, viewer_is_local, ice_servers)

    @property
    def sends_h264(self) -> bool:
        """Of the answer; VP8 otherwise. Known once an offer has been taken."""
        return bool(self._video._codecs[0].name == "H264")

    async def end(self) -> None:
        """As every connection; when its last tasks have ended it is let go."""
        await super().end()
        if self.connectionState == "closed":
            asyncio.get_running_loop().call_later(LET_GO_S, self._let_go)

    def heard(self) -> int:
        """Datagrams received so far: growth is the sign of life that every kind of viewer gives."""
        return int(self.sender.transport._RTCDtlsTransport__rx_packets)  # type: ignore[attr-defined]

    def _let_go(self) -> None:
        if self.connecting:  # the loop stood still for longer than that
            asyncio.get_running_loop().call_later(LET_GO_S, self._let_go)
        else:
            let_go(self)

    def _answerable(self) -> None:
        """Also take two header extensions that aiortc does not know: the playout delay, and packets' numbers where the
        peer offers transport-wide feedback for the codec that it gets."""
        super()._answerable()
        codec, feedback = self._video._codecs[0], RTCRtcpFeedback("transport-cc")
        offered = self._RTCPeerConnection__remoteDescription().media[self._video._get_mline_index()].rtp  # type: ignore[attr-defined]
        extensions = {extension.uri: extension for extension in offered.headerExtensions}
        uris = [PLAYOUT_DELAY_URI]
        if any(c.payloadType == codec.payloadType and feedback in c.rtcpFeedback for c in offered.codecs):
            uris.append(TRANSPORT_CC_URI)
        self._video._headerExtensions += [extensions[uri] for uri in uris if uri in extensions]
        if TRANSPORT_CC_URI in uris and TRANSPORT_CC_URI in extensions:
            codec.rtcpFeedback.append(feedback)

    # ---- hooks of RTCPeerConnection ---------------------------------------------------------------------------------

    def _RTCPeerConnection__createDtlsTransport(self) -> RTCDtlsTransport:
        transport: RTCDtlsTransport = super()._RTCPeerConnection__createDtlsTransport()
        read = transport._handle_rtcp_data

        async def read_apart(data: bytes) -> None:
            bodies, others = feedback_apart(data)
            for body in bodies:
                self.sender.take_transport_feedback(body)
            await read(others)

        transport._handle_rtcp_data = read_apart  # type: ignore[method-assign]
        return transport

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
