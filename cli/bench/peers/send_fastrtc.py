"""Sends by fastrtc: a generator that its `Stream` starts for each connection. Runs in an environment of its own."""

import asyncio
from collections.abc import Iterator
from itertools import count

import numpy as np
from aiortc.codecs import h264
from fastrtc import Stream, VideoStreamHandler
from numpy.typing import NDArray

from .lines import spec_of_arguments, stay_on_loopback, talk
from .picture import MovingPicture, PictureSpec

CONNECTIONS_MAX = 64


async def send(spec: PictureSpec) -> None:
    stay_on_loopback()
    h264.DEFAULT_BITRATE = spec.kbps * 1000
    ids = count()

    def pictures() -> Iterator[NDArray[np.uint8]]:
        picture = MovingPicture(spec)
        while True:
            yield picture.next()

    stream = Stream(
        VideoStreamHandler(pictures, fps=spec.fps),
        mode="receive",
        modality="video",
        concurrency_limit=CONNECTIONS_MAX,
        server_rtc_configuration={"iceServers": []},
    )

    async def answer(offer: str) -> str:
        name = str(next(ids))
        body = {"sdp": offer, "type": "offer", "webrtc_id": name}
        said = await stream.handle_offer(body, stream.set_additional_outputs(name))
        stream.set_input(name, name)
        return str(said["sdp"])

    await talk(answer)


if __name__ == "__main__":
    asyncio.run(send(spec_of_arguments()))
