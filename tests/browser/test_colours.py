"""Known colours as Chromium shows them, over WebRTC, from a card that makes RGB and from one that makes I420."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import torch
import worldroom.clients.web
from worldroom.kernels.frames_to_yuv import frames_to_yuv
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.card import Pixels
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.toy.card import ToySpec
from worldroom.models.toy.loop import Decoded
from worldroom.models.toy.runtime import ToyRuntime
from worldroom.tests.fake_engine import toy
from worldroom.tests.real_rooms import edge

from .conftest import Visitor

pytestmark = pytest.mark.browser

COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "grey": (128, 128, 128),
    "skin": (224, 172, 138),
    "sea": (30, 90, 140),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
}
# In the middle of each of eight bars: red, green, blue of a canvas; Y, Cb, Cr as they were decoded; the colour space.
SEEN = """(async () => {
  const video = document.getElementById('picture');
  const { videoWidth: width, videoHeight: height } = video;
  const canvas = new OffscreenCanvas(width, height);
  const brush = canvas.getContext('2d', { willReadFrequently: true });
  brush.drawImage(video, 0, 0);
  const frame = new VideoFrame(video);
  const bytes = new Uint8Array(frame.allocationSize());
  const planes = await frame.copyTo(bytes);
  const { matrix, primaries, transfer, fullRange } = frame.colorSpace;
  const said = [frame.format, matrix, primaries, transfer, fullRange];
  frame.close();
  const at = (plane, x, y) => bytes[planes[plane].offset + y * planes[plane].stride + x];
  const x = (bar) => (bar + 0.5) * width / 8;
  const each = (read) => [...Array(8).keys()].map((bar) => read(x(bar), height / 2));
  const rgb = each((x, y) => [...brush.getImageData(x, y, 1, 1).data.slice(0, 3)]);
  const yuv = each((x, y) => [at(0, x, y), at(1, x / 2, y / 2), at(2, x / 2, y / 2)]);
  return [rgb, yuv, said];
})()"""


def bars() -> np.ndarray:
    """96 x 160: eight bars, each 20 pixels wide."""
    return np.tile(np.repeat(np.array(list(COLOURS.values()), np.uint8), 20, axis=0), (96, 1, 1))


class Painting(ToyRuntime):
    """A toy that sees nothing but this picture."""

    def __init__(self, picture: np.ndarray) -> None:
        super().__init__(ToySpec(fps=12, sleeps=False), lambda seconds: None)
        self._picture = picture

    def execute(self, kind: StepKind, rows: Sequence[Any], views: Sequence[CacheView | None]) -> list[Any]:
        results = super().execute(kind, rows, views)
        return [Decoded(self._picture[None]) for _ in results] if kind is StepKind.DECODE else results


def painting(pixels: Pixels) -> LoadedCard:
    loaded = toy(fps=12)
    frame = replace(loaded.card.frame, pixels=pixels)
    picture = bars()
    if pixels is Pixels.I420:
        whole = torch.from_numpy(bars()).permute(2, 0, 1)[None]
        picture = frames_to_yuv(whole, scale=frame.scale, smooth=frame.smooth).view(frame.each).numpy()
    runtime = Painting(picture)
    return replace(loaded, card=replace(loaded.card, frame=frame), runtime=runtime, slab=runtime)


@contextmanager
def serving(card: LoadedCard) -> Iterator[str]:
    """The address of a server in a thread of its own."""
    answers: Queue[str] = Queue()
    over = threading.Event()

    async def serve() -> None:
        async with edge(card, Path(worldroom.clients.web.__file__).parent) as address:
            answers.put(address)
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        yield answers.get(timeout=60)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("pixels", list(Pixels))
def test_colours_arrive_as_they_were_painted(visitor: Callable[..., Visitor], pixels: Pixels) -> None:
    with serving(painting(pixels)) as address:
        viewer = visitor().open(f"{address}/r/colours").until_playing()
        viewer.until("worldroom.world.onScreen.chunk > 12")
        rgb, yuv, said = viewer.page.evaluate(SEEN)
        assert said == ["I420", "bt709", "bt709", "bt709", False]
        whole = frames_to_yuv(
            torch.tensor(list(COLOURS.values()), dtype=torch.uint8)[:, :, None, None].expand(8, 3, 2, 2)
        )
        assert np.abs(np.array(yuv) - whole[:, [0, 4, 5]].numpy()).max() <= 1
        off = np.abs(np.array(rgb) - np.array(list(COLOURS.values()))).max(0)
        # Without a GPU Chromium takes 2 Cb for 2.11 Cb (libyuv, on x86): a pure blue arrives as 243.
        assert off[0] <= 2 and off[1] <= 2 and off[2] <= 13, rgb
        viewer.page.close()
