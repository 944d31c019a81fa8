"""One viewer, the same for every sender: frames are read twice, and both times the picture says how old it is.

packets -> whole at the marker bit -> decoded             as our Python client does
        -> aiortc's jitter buffer -> its decoder's thread  as aiortc does; of the first viewer alone
"""

import asyncio
from contextlib import suppress

import av
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.jitterbuffer import JitterBuffer, JitterFrame
from aiortc.mediastreams import MediaStreamError
from aiortc.rtp import RtpPacket

from ....clients.python.assembly import FrameAssembly
from ....clients.python.loopback import gather_on_loopback
from ....clients.python.markers import read
from .picture import age_us, now_us


class _BothBuffers:
    """In the place of aiortc's jitter buffer."""

    def __init__(self, assembly: FrameAssembly, plain: JitterBuffer | None) -> None:
        self._assembly, self._plain = assembly, plain

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        asks, _ = self._assembly.add(packet)
        return (asks, None) if self._plain is None else self._plain.add(packet)


class PeerViewer:
    """See the module docstring. `ages_ms`: frame creation to decoded; `plain_ms`: by aiortc's own receiver."""

    def __init__(self, plain: bool) -> None:
        self.ages_ms: list[float] = []
        self.plain_ms: list[float] = []
        self.octets = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._decoder = av.VideoCodecContext.create("h264", "r")
        self._decoder.thread_count = 1
        self._pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        video = self._pc.addTransceiver("video", direction="recvonly")
        known = RTCRtpReceiver.getCapabilities("video")
        assert known is not None
        video.setCodecPreferences([c for c in known.codecs if c.mimeType in ("video/H264", "video/rtx")])
        receiver = video.receiver
        assembly = FrameAssembly(self._whole, asyncio.get_running_loop().time)
        buffers = _BothBuffers(assembly, JitterBuffer(capacity=512, is_video=True) if plain else None)
        receiver._RTCRtpReceiver__jitter_buffer = buffers  # type: ignore[attr-defined]
        # No estimates: aiortc would code in another bit rate than was asked for, and begin anew each time.
        receiver._RTCRtpReceiver__remote_bitrate_estimator = None  # type: ignore[attr-defined]
        self._receiver, self._plain = receiver, plain

    def begin(self) -> None:
        self.ages_ms, self.plain_ms, self.octets = [], [], 0

    async def offer(self) -> str:
        gather_on_loopback(self._pc)
        await self._pc.setLocalDescription(await self._pc.createOffer())
        return str(self._pc.localDescription.sdp)

    async def take(self, answer: str) -> None:
        await self._pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        if self._plain:
            self._tasks.append(asyncio.create_task(self._watch()))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._pc.close(), 2.0)

    def _whole(self, rtp: int, data: bytes, key: bool) -> None:
        self.octets += len(data)
        with suppress(av.FFmpegError):
            for picture in self._decoder.decode(av.Packet(data)):
                _note(picture, self.ages_ms)

    async def _watch(self) -> None:
        with suppress(MediaStreamError):
            while True:
                picture = await self._receiver.track.recv()
                assert isinstance(picture, av.VideoFrame)
                _note(picture, self.plain_ms)


def _note(picture: av.VideoFrame, ages_ms: list[float]) -> None:
    now, marker = now_us(), read(picture)
    if marker is not None:
        ages_ms.append(age_us(marker.chunk, marker.input_seq, now) / 1000)
