"""A small LiveKit server for tests: enough of its signalling for LiveKit's own clients to meet in a room.

    client -- websocket /rtc --> join, offer and answer, trickle, add_track, ping, leave   (LiveKit's protocol 15)
    client == publisher connection ==> its data, its video        server == subscriber connection ==> everybody else's

One H.264 track a room is forwarded as it comes, packet by packet. No simulcast, no ICE restart: who wants to resume is
told to connect anew. Tokens are checked as LiveKit's server does: signature, expiry, room, and what they grant.
"""

import asyncio
import itertools
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import WSMsgType, web
from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCRtpTransceiver,
    RTCSessionDescription,
)
from aiortc.rtp import RtpPacket
from aiortc.sdp import candidate_from_sdp
from livekit.protocol import models, rtc
from worldroom.clock import SystemClock
from worldroom.rtc.media.ice import HostPolicy, confine
from worldroom.rtc.media.offer import one_codec
from worldroom.rtc.media.sender import FanoutSender

POLICY = HostPolicy(True, None, None)
PARAMETER_SET, IDR, STAP_A, FU_A = 7, 5, 24, 28


class Connection(RTCPeerConnection):
    """On loopback alone; its video is forwarded, never encoded."""

    def __init__(self, feedback: Any) -> None:
        super().__init__(RTCConfiguration(iceServers=[]))
        self._feedback = feedback
        self.video: FanoutSender | None = None

    def _RTCPeerConnection__createDtlsTransport(self) -> Any:
        transport = super()._RTCPeerConnection__createDtlsTransport()
        confine(transport.transport.iceGatherer._connection, POLICY, True)
        return transport

    def add_video(self, stream: str, track: str) -> None:
        transceiver = self.addTransceiver("video", direction="sendonly")
        plain = transceiver.sender
        self.video = FanoutSender(plain.transport, SystemClock(), self._feedback)
        self.video._stream_id, self.video._track_id = stream, track
        transceiver._RTCRtpTransceiver__sender = self.video
        transceiver.receiver._set_rtcp_ssrc(self.video._ssrc)
        transceiver.receiver._RTCRtpReceiver__remote_bitrate_estimator = None
        self._only_h264(transceiver)

    def _only_h264(self, transceiver: RTCRtpTransceiver) -> None:
        from aiortc.codecs import get_capabilities

        wanted = [c for c in get_capabilities("video").codecs if c.mimeType == "video/H264"]
        transceiver.setCodecPreferences(wanted)


@dataclass
class Forwarded:
    """A room's track: packets of one picture are gathered and go on together."""

    info: models.TrackInfo
    owner: "Client"
    receiver: RTCRtpReceiver
    ssrc: int = 0
    payloads: list[bytes] = field(default_factory=list)
    frames: int = 0

    async def take(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        self.ssrc = packet.ssrc
        if packet.payload:
            self.payloads.append(packet.payload)
        if not packet.marker or not self.payloads:
            return
        whole, self.payloads = tuple(self.payloads), []
        self.frames += 1
        for client in self.owner.others():
            if client.subscriber.video is not None:
                client.subscriber.video.push(whole, packet.timestamp, has_key(whole))

    async def want_key(self) -> None:
        if self.ssrc:
            await self.receiver._send_rtcp_pli(self.ssrc)


def has_key(payloads: tuple[bytes, ...]) -> bool:
    first = payloads[0]
    kind = first[0] & 31
    if kind == STAP_A:
        return first[3] & 31 in (PARAMETER_SET, IDR)
    return (first[1] & 31 if kind == FU_A else kind) in (PARAMETER_SET, IDR)


class Client:
    """One connected participant."""

    def __init__(self, room: "LiveRoom", info: models.ParticipantInfo, ws: web.WebSocketResponse) -> None:
        self.room, self.info, self.ws = room, info, ws
        self.publisher = Connection(self)
        self.publisher.on("datachannel", self._opened)
        self.subscriber = Connection(self)
        self.channels: dict[str, RTCDataChannel] = {
            "_reliable": self.subscriber.createDataChannel("_reliable", ordered=True),
            "_lossy": self.subscriber.createDataChannel("_lossy", ordered=False, maxRetransmits=0),
        }
        self.channels["_reliable"].on("open", self._active)
        self.announced: list[rtc.AddTrackRequest] = []
        self.kept: set[Any] = set()

    @property
    def identity(self) -> str:
        return str(self.info.identity)

    @property
    def connected(self) -> bool:
        """aiortc takes no second offer before its first one has led to a connection."""
        return self.channels["_reliable"].readyState == "open"

    async def _active(self) -> None:
        self.info.state = models.ParticipantInfo.State.ACTIVE
        if not self.info.permission.hidden:
            await self.room.tell(self)
        await self.room.share_track()

    def others(self) -> list["Client"]:
        return [client for client in self.room.clients.values() if client is not self]

    async def send(self, **response: Any) -> None:
        if not self.ws.closed:
            await self.ws.send_bytes(rtc.SignalResponse(**response).SerializeToString())

    # ---- feedback of the forwarded stream: to whoever makes it ------------------------------------------------------

    def streaming(self) -> None:
        self._want_key()

    def picture_lost(self) -> None:
        self._want_key()

    def estimate(self, bps: int) -> None:
        pass

    def overfull(self, kbps: int) -> None:
        pass

    def _want_key(self) -> None:
        if self.room.track is not None:
            self._keep(asyncio.ensure_future(self.room.track.want_key()))

    # ---- signalling -------------------------------------------------------------------------------------------------

    async def act(self, request: rtc.SignalRequest) -> None:
        kind = request.WhichOneof("message")
        if kind == "offer":
            await self.publisher.setRemoteDescription(RTCSessionDescription(request.offer.sdp, "offer"))
            self._catch_video()
            await self.publisher.setLocalDescription(await self.publisher.createAnswer())
            answer = {"type": "answer", "sdp": self.publisher.localDescription.sdp, "id": request.offer.id}
            await self.send(answer=answer)
            await self.room.share_track()
        elif kind == "answer":
            await self.subscriber.setRemoteDescription(RTCSessionDescription(request.answer.sdp, "answer"))
        elif kind == "trickle":
            await self._trickled(request.trickle)
        elif kind == "add_track":
            asked = request.add_track
            self.announced.append(asked)
            track = models.TrackInfo(
                sid=f"TR_{self.info.sid}",
                type=asked.type,
                name=asked.name,
                source=asked.source,
                width=asked.width,
                height=asked.height,
                mime_type="video/H264",
                packet_trailer_features=asked.packet_trailer_features,
            )
            self.info.tracks.append(track)
            await self.send(track_published={"cid": asked.cid, "track": track})
        elif kind == "ping":
            await self.send(pong=request.ping)
        elif kind == "ping_req":
            await self.send(pong_resp={"last_ping_timestamp": request.ping_req.timestamp, "timestamp": 1})
        elif kind == "leave":
            self.info.disconnect_reason = models.DisconnectReason.CLIENT_INITIATED
            await self.ws.close()

    async def offer_subscriber(self) -> None:
        await self.subscriber.setLocalDescription(await self.subscriber.createOffer())
        await self.send(offer={"type": "offer", "sdp": self.subscriber.localDescription.sdp})

    async def _trickled(self, trickle: rtc.TrickleRequest) -> None:
        init = json.loads(trickle.candidateInit)
        text = init.get("candidate", "")
        if not text or ".local" in text or "tcp" in text:
            return
        candidate = candidate_from_sdp(text.removeprefix("candidate:"))
        candidate.sdpMid, candidate.sdpMLineIndex = init.get("sdpMid"), init.get("sdpMLineIndex")
        target = self.publisher if trickle.target == rtc.SignalTarget.PUBLISHER else self.subscriber
        if target.remoteDescription is not None:
            await target.addIceCandidate(candidate)

    def _catch_video(self) -> None:
        for transceiver in self.publisher.getTransceivers():
            if transceiver.kind == "video" and self.info.tracks and self.room.track is None:
                transceiver._codecs = one_codec(transceiver._codecs)
                self.room.track = Forwarded(self.info.tracks[0], self, transceiver.receiver)
                transceiver.receiver._handle_rtp_packet = self.room.track.take

    def _opened(self, channel: RTCDataChannel) -> None:
        channel.on("message", lambda data: self._packet(channel.label, data))

    def _packet(self, label: str, data: bytes) -> None:
        packet = models.DataPacket.FromString(data)
        self.room.packets += 1
        if packet.WhichOneof("value") == "user" and not self.info.permission.can_publish_data:
            self.room.refused_packets += 1
            return
        packet.participant_identity, packet.participant_sid = self.identity, self.info.sid
        packet.user.participant_identity, packet.user.participant_sid = self.identity, self.info.sid
        wanted = set(packet.destination_identities) | set(packet.user.destination_identities)
        for client in self.others():
            channel = client.channels[label]
            if (not wanted or client.identity in wanted) and channel.readyState == "open":
                channel.send(packet.SerializeToString())

    def _keep(self, task: "asyncio.Future[Any]") -> None:
        self.kept.add(task)
        task.add_done_callback(self.kept.discard)

    async def close(self) -> None:
        await asyncio.gather(self.publisher.close(), self.subscriber.close(), return_exceptions=True)


@dataclass
class LiveRoom:
    name: str
    clients: dict[str, Client] = field(default_factory=dict)
    track: Forwarded | None = None
    packets: int = 0
    refused_packets: int = 0
    shared: set[str] = field(default_factory=set)

    async def share_track(self) -> None:
        """Whoever has not been offered the room's track is, and knows whose it is first."""
        track = self.track
        if track is None:
            return
        for client in list(self.clients.values()):
            if client is track.owner or client.identity in self.shared or not client.connected:
                continue
            self.shared.add(client.identity)
            await client.send(update={"participants": [track.owner.info]})
            client.subscriber.add_video(f"{track.owner.info.sid}|{track.info.sid}", track.info.sid)
            await client.offer_subscriber()

    async def tell(self, about: Client) -> None:
        for client in list(self.clients.values()):
            if client is not about:
                await client.send(update={"participants": [about.info]})


class LiveKitServer:
    """See the module docstring."""

    def __init__(self, key: str, secret: str, port: int = 0) -> None:
        self.key, self.secret = key, secret
        self.rooms: dict[str, LiveRoom] = {}
        self.joins: list[str] = []
        self.url = ""
        self._sids = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self._port = port

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/rtc", self._rtc)
        app.router.add_get("/rtc/validate", self._validate)
        app.router.add_get("/rtc/v1/validate", self._no_such_version)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"ws://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        for room in list(self.rooms.values()):
            for client in list(room.clients.values()):
                await client.ws.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def cut(self, room: str, identity: str) -> None:
        """Its connections break, as when the server is moved: the client has to come again by itself."""
        client = self.rooms[room].clients[identity]
        await client.close()
        await client.ws.close()

    def client(self, room: str, identity: str) -> Client | None:
        found = self.rooms.get(room)
        return None if found is None else found.clients.get(identity)

    def _claims(self, request: web.Request) -> dict[str, Any]:
        token = request.query.get("access_token") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            claims: dict[str, Any] = jwt.decode(token, self.secret, ["HS256"], issuer=self.key)
        except jwt.InvalidTokenError as error:
            raise web.HTTPUnauthorized(text=str(error)) from None
        if not claims.get("video", {}).get("roomJoin"):
            raise web.HTTPForbidden(text="no roomJoin")
        return claims

    async def _validate(self, request: web.Request) -> web.Response:
        self._claims(request)
        return web.Response(text="success", headers={"Access-Control-Allow-Origin": "*"})

    async def _no_such_version(self, request: web.Request) -> web.Response:
        """As an older server says it; clients then take two connections instead of one."""
        return web.Response(status=404, headers={"Access-Control-Allow-Origin": "*"})

    async def _rtc(self, request: web.Request) -> web.StreamResponse:
        claims = self._claims(request)
        ws = web.WebSocketResponse(max_msg_size=0)
        await ws.prepare(request)
        if request.query.get("reconnect") == "1":
            leave = {"action": rtc.LeaveRequest.Action.RECONNECT, "can_reconnect": True}
            await ws.send_bytes(rtc.SignalResponse(leave=leave).SerializeToString())
            await ws.close()
            return ws
        client = await self._joined(claims, ws)
        try:
            async for message in ws:
                if message.type is WSMsgType.BINARY:
                    await client.act(rtc.SignalRequest.FromString(message.data))
        finally:
            await self._left(client)
        return ws

    async def _joined(self, claims: dict[str, Any], ws: web.WebSocketResponse) -> Client:
        grant, identity = claims["video"], claims["sub"]
        room = self.rooms.setdefault(grant["room"], LiveRoom(grant["room"]))
        self.joins.append(identity)
        if (before := room.clients.get(identity)) is not None:
            await self._left(before)
            await before.ws.close()
        info = models.ParticipantInfo(
            sid=f"PA_{next(self._sids)}",
            identity=identity,
            name=claims.get("name", ""),
            metadata=claims.get("metadata", ""),
            attributes=claims.get("attributes", {}),
            state=models.ParticipantInfo.State.JOINED,
            permission={
                "can_subscribe": grant.get("canSubscribe", True),
                "can_publish": grant.get("canPublish", True),
                "can_publish_data": grant.get("canPublishData", True),
                "hidden": grant.get("hidden", False),
                "recorder": grant.get("recorder", False),
                "can_update_metadata": grant.get("canUpdateOwnMetadata", False),
            },
        )
        client = Client(room, info, ws)
        others = [other.info for other in room.clients.values() if not other.info.permission.hidden]
        room.clients[identity] = client
        await client.send(
            join={
                "room": {"sid": f"RM_{room.name}", "name": room.name},
                "participant": info,
                "other_participants": others,
                "server_version": "1.8.0",
                "subscriber_primary": False,
                "ping_timeout": 15,
                "ping_interval": 5,
                "server_info": {"version": "1.8.0", "protocol": 15},
            }
        )
        await client.offer_subscriber()
        if not info.permission.hidden:
            await room.tell(client)
        return client

    async def _left(self, client: Client) -> None:
        room = client.room
        if room.clients.get(client.identity) is not client:
            return
        del room.clients[client.identity]
        room.shared.discard(client.identity)
        if room.track is not None and room.track.owner is client:
            room.track = None
            room.shared.clear()
        client.info.state = models.ParticipantInfo.State.DISCONNECTED
        await room.tell(client)
        await client.close()


async def _serve_for_good(port: int) -> None:
    server = LiveKitServer("devkey", os.environ["WORLDROOM_LIVEKIT_SECRET"], port)
    await server.start()
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":  # python -m worldroom.tests.livekit_server PORT
    asyncio.run(_serve_for_good(int(sys.argv[1])))
