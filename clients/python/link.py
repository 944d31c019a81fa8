"""One connection to a room: offer, answer, channels, frames. Made once, never repaired; `room.py` makes the next one.

Knows the wire and aiortc; knows nothing of retries, keys or latency.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
from aioice import Connection
from aiortc import (
    RTCBundlePolicy,
    RTCConfiguration,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCSessionDescription,
)

from ...rtc.wire import (
    AnswerBody,
    Channel,
    ClientMessage,
    OfferBody,
    Role,
    ServerMessage,
    Welcome,
    encode,
)
from .assembly import FrameAssembly
from .lenient import decode_known
from .loopback import gather_on_loopback
from .signalling import NoServer, RoomPlace

CONNECT_TIMEOUT = 10.0
CLOSE_TIMEOUT = 2.0


class EdgeLink:
    """See the module docstring. `lost` is set when the connection is over; `on_message` gets None for a message that
    this client does not know. `shape` gets the sockets of the connection before it is made."""

    def __init__(
        self,
        place: RoomPlace,
        loopback: bool,
        on_message: Callable[[ServerMessage | None], None],
        on_frame: Callable[[int, bytes, bool], None],
        shape: Callable[[Connection], None] | None = None,
    ) -> None:
        self._shape = shape
        self._place = place
        self._on_message = on_message
        self.lost = asyncio.Event()
        self._over = asyncio.Event()
        self.welcome: asyncio.Future[Welcome] = asyncio.get_running_loop().create_future()
        self.token = ""
        self.participant = ""
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[], bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
        self.assembly = FrameAssembly(on_frame, time.monotonic)
        video = self.pc.addTransceiver("video", direction="recvonly")
        known = RTCRtpReceiver.getCapabilities("video")
        assert known is not None
        video.setCodecPreferences([c for c in known.codecs if c.mimeType in ("video/H264", "video/rtx")])
        self.receiver = video.receiver
        self.receiver._RTCRtpReceiver__jitter_buffer = self.assembly  # type: ignore[attr-defined]
        self.channels = {
            Channel.CONTROL: self.pc.createDataChannel("control"),
            Channel.INPUT: self.pc.createDataChannel("input", ordered=False, maxRetransmits=0),
            Channel.RECEIPTS: self.pc.createDataChannel("receipts", ordered=False, maxRetransmits=0),
        }
        for channel in self.channels.values():
            channel.on("message", self._received)
        self.channels[Channel.CONTROL].on("close", self.end)
        self.pc.on("connectionstatechange", self._state_changed)
        if loopback or place.local:
            gather_on_loopback(self.pc, alone=loopback)

    async def open(
        self, token: str | None, role: Role | None, name: str | None = None, consent: bool = False
    ) -> Welcome:
        """Connect and wait for the welcome; raises `RoomRefused` or `NoServer`."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self.pc.setLocalDescription(await self.pc.createOffer())
                self._shaped()
                world = self._place.card, self._place.drivers
                answer = await self._ask(OfferBody(self.pc.localDescription.sdp, token, role, name, consent, *world))
                self.token, self.participant = answer.token, answer.participant
                await self.pc.setRemoteDescription(RTCSessionDescription(answer.sdp, "answer"))
                return await self._welcomed()
        except TimeoutError:
            raise NoServer(f"no connection to {self._place.base} within {CONNECT_TIMEOUT:.0f} s") from None
        except ValueError as error:
            raise NoServer(f"what answers at {self._place.base} is no room ({type(error).__name__})") from None

    def send(self, message: ClientMessage, channel: Channel) -> bool:
        """Whether it left; a channel that is not open takes nothing."""
        target = self.channels[channel]
        if target.readyState != "open":
            return False
        target.send(encode(message))
        return True

    def received(self) -> int:
        """Datagrams so far, whatever they were."""
        return int(self.receiver.transport._RTCDtlsTransport__rx_packets)  # type: ignore[attr-defined]

    async def ask_for_key(self) -> None:
        """Tell the server that a picture could not be decoded."""
        for source in self.receiver.getSynchronizationSources():
            await self.receiver._send_rtcp_pli(source.source)

    def end(self) -> None:
        """The connection is over, for whatever reason."""
        self.lost.set()
        self._over.set()

    async def close(self) -> None:
        self.end()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.pc.close(), CLOSE_TIMEOUT)

    async def _welcomed(self) -> Welcome:
        """The welcome, or `NoServer` as soon as the connection is lost."""
        self.welcome.add_done_callback(lambda _: self._over.set())
        await self._over.wait()
        if not self.welcome.done():
            raise NoServer(f"the connection to {self._place.base} failed before the welcome")
        return self.welcome.result()

    async def _ask(self, offer: OfferBody) -> AnswerBody:
        headers = {"Content-Type": "application/json"}
        reply = await self._place.post("offer", msgspec.json.encode(offer), headers)
        return msgspec.json.decode(reply, type=AnswerBody)

    def _received(self, data: str | bytes) -> None:
        message = decode_known(data)
        if isinstance(message, Welcome) and not self.welcome.done():
            self.welcome.set_result(message)
        self._on_message(message)

    def _state_changed(self) -> None:
        if self.pc.connectionState in ("failed", "closed"):
            self.end()

    def _shaped(self) -> None:
        """Put a network that is not as it is between this client and the server, where somebody wants that."""
        if self._shape is not None:
            for transport in self.pc._RTCPeerConnection__iceTransports:  # type: ignore[attr-defined]
                self._shape(transport.iceGatherer._connection)
