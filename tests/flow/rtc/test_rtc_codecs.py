"""Peers that we did not write: aiortc as it is, with VP8 alone and with H.264, in one room on a real engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from av import VideoFrame
from worldroom.clients.python.markers import read
from worldroom.clients.python.pictures import RoomFrame
from worldroom.clients.python.room import RoomClient, join
from worldroom.engine.api import Rendition
from worldroom.models import catalog
from worldroom.rtc.edge import Edge
from worldroom.rtc.media.ice import HostPolicy, confine
from worldroom.rtc.wire import Channel, PauseWorld
from worldroom.tests.real_rooms import behind_edge


@asynccontextmanager
async def stock_viewer(address: str, codec: str) -> AsyncIterator[asyncio.Queue[VideoFrame]]:
    """aiortc's own receiver, over WHEP, offering one codec; the pictures it decodes."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    transceiver = pc.addTransceiver("video", direction="recvonly")
    known = transceiver.receiver.getCapabilities("video").codecs
    transceiver.setCodecPreferences([one for one in known if one.mimeType in (codec, "video/rtx")])
    for transport in pc._RTCPeerConnection__iceTransports:
        confine(transport.iceGatherer._connection, HostPolicy(loopback_only=True), True)
    pictures: asyncio.Queue[VideoFrame] = asyncio.Queue()

    async def watch() -> None:
        while True:
            pictures.put_nowait(await transceiver.receiver.track.recv())

    await pc.setLocalDescription(await pc.createOffer())
    async with httpx.AsyncClient(trust_env=False) as http:
        reply = await http.post(
            f"{address}/v1/rooms/codecs/whep",
            content=pc.localDescription.sdp,
            headers={"Content-Type": "application/sdp"},
        )
    assert reply.status_code == 201, reply.text
    await pc.setRemoteDescription(RTCSessionDescription(reply.text, "answer"))
    watching = asyncio.create_task(watch())
    try:
        yield pictures
    finally:
        watching.cancel()
        await pc.close()


@asynccontextmanager
async def driven(folder: Path) -> AsyncIterator[tuple[str, Edge, RoomClient, AsyncIterator[RoomFrame]]]:
    """The room with a driver who has seen five frames: its address, the edge behind it, the driver and what follows."""
    async with (
        behind_edge(catalog.load("toy"), folder) as (address, edge),
        asyncio.timeout(40),
        join(f"{address}/r/codecs", loopback=True) as driver,
    ):
        frames = driver.frames()
        for _ in range(5):
            await anext(frames)
        yield address, edge, driver, frames


async def test_a_peer_without_h264_sees_the_same_world_in_vp8_and_the_encoder_ends_with_it(tmp_path) -> None:
    async with driven(tmp_path) as (address, edge, driver, frames):
        (stream,) = edge.streams().values()
        assert stream.watched() == {Rendition.H264: 1}
        async with stock_viewer(address, "video/VP8") as pictures:
            seq = driver.press("ArrowUp")
            markers = []
            while not markers or markers[-1].input_seq < seq:
                if (marker := read(await pictures.get())) is not None:
                    markers.append(marker)
            assert [m.world_ms for m in markers] == sorted(m.world_ms for m in markers)
            while stream.watched().get(Rendition.VP8) != 1:
                await pictures.get()
        seen = [await anext(frames) for _ in range(3)]
        assert all(frame.receipt is not None and frame.picture is not None for frame in seen)
        while Rendition.VP8 in stream.rates:
            await anext(frames)


async def test_h264_and_vp8_viewers_of_one_room_get_one_encoder_each(tmp_path) -> None:
    async with (
        behind_edge(catalog.load("toy"), tmp_path) as (address, edge),
        asyncio.timeout(40),
        join(f"{address}/r/codecs", loopback=True, decode=False),
        stock_viewer(address, "video/H264") as h264,
        stock_viewer(address, "video/VP8") as vp8,
        stock_viewer(address, "video/VP8") as more,
    ):
        shown = [await pictures.get() for pictures in (h264, vp8, more) for _ in range(3)]
        assert {(picture.width, picture.height) for picture in shown} == {(640, 384)}
        (stream,) = edge.streams().values()
        assert stream.watched()[Rendition.H264] == 2
        while stream.watched().get(Rendition.VP8) != 2:
            await vp8.get()


async def test_a_vp8_viewer_who_comes_to_a_world_that_is_paused_gets_its_picture(tmp_path) -> None:
    async with driven(tmp_path) as (address, edge, driver, _):
        driver.link.send(PauseWorld(id=1), Channel.CONTROL)
        await asyncio.sleep(0.3)
        async with stock_viewer(address, "video/VP8"):
            late = edge.viewers[-1]
            while late.connection.sender.counts.frames == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            assert late.connection.sender.counts.skipped == 0
