"""Sends by our edge's media path: encoded and packetized once, then each viewer's own connection.

In one process, as the peers are: the worker, the wait for the playout moment, and rooms are left out.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from ....clock import SystemClock
from ....engine.output.encode import H264Encoder, KeyGate
from ....models.contract.card import FrameSpec
from ....rtc.media.connection import ViewerConnection
from ....rtc.media.ice import HostPolicy
from ....rtc.media.packets import payloads_of
from .lines import spec_of_arguments, talk
from .picture import UNIT_HEIGHT, UNIT_WIDTH, MovingPicture, PictureSpec

TICKS = 90_000


class Keys:
    """What viewers say of their streams: when a key frame is wanted. Their estimates count for nothing here."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self.gate = KeyGate()

    def streaming(self) -> None:
        self.gate.request(True, self._clock.now())

    def picture_lost(self) -> None:
        self.gate.request(False, self._clock.now())

    def estimate(self, bps: int) -> None:
        pass

    def overfull(self, kbps: int) -> None:
        pass


async def _stream(spec: PictureSpec, keys: Keys, clock: SystemClock, viewers: list[ViewerConnection]) -> None:
    picture = MovingPicture(spec)
    frame = FrameSpec(UNIT_WIDTH * spec.scale, UNIT_HEIGHT * spec.scale, 1, spec.fps, 1)
    encoder = H264Encoder(frame, spec.kbps, spec.kbps)
    loop, began, number = asyncio.get_running_loop(), clock.now(), 0
    with ThreadPoolExecutor(1, thread_name_prefix="encode") as thread:
        while True:
            await asyncio.sleep(began + number / spec.fps - clock.now())
            key, pts = keys.gate.opens(clock.now()), number * TICKS // spec.fps
            made = await loop.run_in_executor(thread, encoder.encode, picture.next(), pts, key)
            if made.key:
                keys.gate.made(clock.now())
            payloads = payloads_of(made.data)
            for viewer in viewers:
                viewer.sender.push(payloads, pts, made.key)
            number += 1


async def send(spec: PictureSpec) -> None:
    clock = SystemClock()
    keys, viewers = Keys(clock), list[ViewerConnection]()

    async def answer(offer: str) -> str:
        viewer = ViewerConnection(clock, keys, HostPolicy(loopback_only=True), viewer_is_local=True)
        await viewer.take_offer(offer)
        said = await viewer.answer()
        viewers.append(viewer)
        return said

    streaming = asyncio.create_task(_stream(spec, keys, clock, viewers))
    await talk(answer)
    streaming.cancel()


if __name__ == "__main__":
    asyncio.run(send(spec_of_arguments()))
