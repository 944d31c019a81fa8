"""One WebRTC connection that answers an offer with one video section: what viewers' and sources' connections share.

Knows aiortc (`offer.py` reads the text). A bad offer raises `BadOffer` and leaves nothing behind.
"""

import asyncio
import logging

from aioice.ice import Connection
from aiortc import RTCConfiguration, RTCIceCandidate, RTCIceServer, RTCPeerConnection, RTCSessionDescription
from aiortc.exceptions import InternalError, InvalidStateError, OperationError
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcicetransport import RTCIceTransport, candidate_from_aioice, candidate_to_aioice

from .ice import HostPolicy, confine
from .ice_restart import another_agent, dismiss, take_over
from .ice_servers import IceServer
from .offer import NO_CODEC, NO_CODEC_DETAIL, BadOffer, Offer, one_codec, read_offer, tagged
from .trickle import Fragment, write_fragment

log = logging.getLogger(__name__)

CLOSE_TIMEOUT = 2.0
WANTED = {"sendonly": "receive", "recvonly": "send"}


class OfferedConnection(RTCPeerConnection):
    """See the module docstring. `direction`: what we do with video, sendonly or recvonly."""

    def __init__(
        self, direction: str, policy: HostPolicy, peer_is_local: bool, ice_servers: tuple[IceServer, ...] = ()
    ) -> None:
        self._ice_servers = [_of_aiortc(server) for server in ice_servers]
        super().__init__(RTCConfiguration(iceServers=self._ice_servers))
        self._direction = direction
        self._policy = policy
        self._peer_is_local = peer_is_local
        self._offer = Offer("", {})
        self._connecting: set[asyncio.Future[None]] = set()
        self._restarted: Connection | None = None
        """The ICE agent of the newest restart, in place or on its way there."""
        self._restarting: asyncio.Task[None] | None = None
        self._video = self.addTransceiver("video", direction=direction)

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
        does = WANTED[self._direction]
        if self._video.mid is None:
            raise BadOffer("no_video", f"the offer has no video section to {does} on")
        if self._video._offerDirection not in (self._direction, "sendrecv"):
            raise BadOffer("no_video", f"the offer does not want to {does} video")
        self._video._codecs = one_codec(self._video._codecs)
        for transceiver in self.getTransceivers():
            if transceiver is not self._video:
                transceiver.direction = "inactive"

    async def answer(self) -> str:
        """Gather and answer; raises `PortsExhausted`."""
        await self.setLocalDescription(await self.createAnswer())
        return self._offer.whole_answer(self.localDescription.sdp)

    @property
    def etag(self) -> str:
        """Of this connection's ICE session, as WHEP and WHIP want it."""
        return f'"{self._agent.local_username}"'

    @property
    def connecting(self) -> bool:
        """Some attempt to connect has not ended; one that was closed ends with its next wish to run."""
        return bool(self._connecting)

    @property
    def remote_ufrag(self) -> str:
        return self._agent.remote_username or ""

    async def add_candidates(self, candidates: tuple[RTCIceCandidate, ...]) -> None:
        """What the peer has found since its offer; what this connection has no section for is dropped."""
        mids = {transceiver.mid for transceiver in self.getTransceivers()}
        for candidate in candidates:
            if candidate.sdpMid in mids:
                await self._agent.add_remote_candidate(candidate_to_aioice(candidate))

    async def restart_ice(self, asked: Fragment) -> str:
        """The peer has another fragment and password: ours, with new candidates, in a fragment. What flows goes on by
        the old addresses until the new ones are found to work. Raises `PortsExhausted`.
        """
        agent = another_agent(self._ice, self._ice_servers)
        agent.remote_username, agent.remote_password = asked.ufrag, asked.password
        confine(agent, self._policy, self._peer_is_local)
        try:
            await agent.gather_candidates()
        except BaseException:
            await dismiss(agent)
            raise
        if self._restarting is not None:
            self._restarting.cancel()
        self._restarted, self._restarting = agent, asyncio.create_task(self._move_to(agent))
        await self.add_candidates(asked.candidates)
        found = tuple(candidate_from_aioice(candidate) for candidate in agent.local_candidates)
        return write_fragment(Fragment(agent.local_username, agent.local_password, found), *tagged(self._offer.read))

    async def _move_to(self, agent: Connection) -> None:
        try:
            await take_over(self._ice, agent)
            log.info("a connection goes on by other addresses")
        except ConnectionError as error:
            log.info("an ICE restart came to nothing: %s", error)

    async def end(self) -> None:
        """Close, for good and within two seconds; a connection that cannot be closed is left to the collector."""
        if self._restarting is not None:
            self._restarting.cancel()
        try:
            await asyncio.wait_for(self.close(), CLOSE_TIMEOUT)
        except TimeoutError:
            log.warning("a connection did not close within %.0f s and was left", CLOSE_TIMEOUT)
        except Exception:
            log.exception("a connection failed to close and was left")

    @property
    def _agent(self) -> Connection:
        return self._restarted or self._ice._connection

    @property
    def _ice(self) -> RTCIceTransport:
        return self._video.receiver.transport.transport

    # ---- hooks of RTCPeerConnection ---------------------------------------------------------------------------------

    def _RTCPeerConnection__connect(self) -> asyncio.Future[None]:
        """aiortc leaves it to itself: who takes the connection apart must know of it."""
        attempt = asyncio.ensure_future(self._connect())
        self._connecting.add(attempt)
        attempt.add_done_callback(self._connecting.discard)
        return attempt

    async def _connect(self) -> None:
        """A connection that ends while it is made, as in a storm of reloads, has not failed."""
        try:
            await super()._RTCPeerConnection__connect()  # type: ignore[misc]
        except (InvalidStateError, ConnectionError) as error:
            log.info("a connection ended while it was made (%s)", type(error).__name__)

    def _RTCPeerConnection__createDtlsTransport(self) -> RTCDtlsTransport:
        transport: RTCDtlsTransport = super()._RTCPeerConnection__createDtlsTransport()  # type: ignore[misc]
        confine(transport.transport.iceGatherer._connection, self._policy, self._peer_is_local)
        return transport


def _of_aiortc(server: IceServer) -> RTCIceServer:
    return RTCIceServer(list(server.urls), server.username or None, server.credential or None)
