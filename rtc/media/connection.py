"""A viewer's WebRTC connection: answers an offer with one video stream. Knows no room, no messages."""

from collections.abc import Callable

from aiortc import RTCRtpTransceiver
from aiortc.mediastreams import MediaStreamTrack

from ...clock import Clock
from .ice import HostPolicy
from .ice_servers import IceServer
from .offered import OfferedConnection
from .sctp import PartialMessages
from .sender import FanoutSender, SenderFeedback, offer_playout_delay


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
        offer_playout_delay()
        self._clock, self._feedback = clock, feedback
        self.partial = PartialMessages(clock, too_much)
        super().__init__("sendonly", policy, viewer_is_local, ice_servers)

    @property
    def sends_h264(self) -> bool:
        """Of the answer; VP8 otherwise. Known once an offer has been taken."""
        return bool(self._video._codecs[0].name == "H264")

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
