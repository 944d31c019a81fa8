"""Sends by aiortc as its documents show it: one track, a `MediaRelay` that gives each connection its own of it."""

import asyncio
import fractions

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from aiortc.codecs import h264
from aiortc.contrib.media import MediaRelay
from av import VideoFrame

from .lines import spec_of_arguments, stay_on_loopback, talk
from .picture import MovingPicture, PictureSpec

TICKS = 90_000


class StampedTrack(VideoStreamTrack):
    """`recv` waits for the next picture's moment and makes it."""

    def __init__(self, spec: PictureSpec) -> None:
        super().__init__()
        self._picture, self._fps = MovingPicture(spec), spec.fps
        self._number, self._began = 0, asyncio.get_running_loop().time()

    async def recv(self) -> VideoFrame:
        due = self._began + self._number / self._fps
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        frame = VideoFrame.from_ndarray(self._picture.next(), format="rgb24")
        frame.pts, frame.time_base = self._number * TICKS // self._fps, fractions.Fraction(1, TICKS)
        self._number += 1
        return frame


async def send(spec: PictureSpec) -> None:
    stay_on_loopback()
    h264.DEFAULT_BITRATE = spec.kbps * 1000
    track, relay = StampedTrack(spec), MediaRelay()
    connections: list[RTCPeerConnection] = []

    async def answer(offer: str) -> str:
        pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connections.append(pc)
        pc.addTrack(relay.subscribe(track))
        await pc.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await pc.setLocalDescription(await pc.createAnswer())
        return str(pc.localDescription.sdp)

    await talk(answer)


if __name__ == "__main__":
    asyncio.run(send(spec_of_arguments()))
