"""Renditions on demand, in virtual time: who asks gets them, who asks no more does not, and nobody is late for them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import numpy.typing as npt
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.api import Rendition
from worldroom.engine.output.encode import EncodedFrame
from worldroom.engine.output.renditions import Renditions, Setting
from worldroom.simulation.virtual_time import run
from worldroom.tests.slow_executor import slow_executor

TIMES = api.Timings(0, 0, 0, 0)
VP8, LOW = Rendition.VP8, Rendition.H264_LOW


class CountingEncoder:
    """Makes a key frame first and when asked; data is the picture's first byte."""

    def __init__(self, kbps: int) -> None:
        self.kbps, self.fresh = [kbps], True

    def encode(self, picture: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
        key, self.fresh = key or self.fresh, False
        if picture[0] == 99:
            raise RuntimeError("99 cannot be encoded")
        return EncodedFrame(bytes([picture[0]]), key)

    def set_bitrate(self, kbps: int) -> None:
        self.kbps.append(kbps)


class Scene:
    """Ten frames a second; an encoder takes `cost` virtual seconds a frame."""

    def __init__(self, cost: float = 0.01) -> None:
        self.loop, self.number = slow_executor(lambda: cost), 0
        self.encoders: list[tuple[Rendition, CountingEncoder]] = []
        self.made: list[tuple[float, api.Rendered]] = []
        setting = Setting("a", 0.1, LoopClock(self.loop), None, self._make, self._keep)  # type: ignore[arg-type]
        self.renditions = Renditions(setting, lambda rendition: 300 if rendition.low else 1200)

    def _make(self, rendition: Rendition, kbps: int) -> CountingEncoder:
        encoder = CountingEncoder(kbps)
        self.encoders.append((rendition, encoder))
        return encoder

    def _keep(self, rendered: api.Rendered) -> None:
        self.made.append((self.loop.time(), rendered))

    async def frames(self, count: int, epoch: int = 0, value: int | None = None) -> None:
        for _ in range(count):
            picture = np.full(4, self.number % 90 if value is None else value, np.uint8)
            self.show(picture, epoch)
            await asyncio.sleep(0.1)

    def show(self, picture: npt.NDArray[np.uint8], epoch: int = 0) -> None:
        number = self.number
        shown = api.Frame("a", number, number, epoch, number * 9000, False, b"h264", 0, 1, (), 0.0, TIMES)
        self.renditions.shown(picture, shown)
        self.number += 1

    def seen(self) -> list[tuple[int, bool]]:
        return [(rendered.frame.frame, rendered.frame.key) for _, rendered in self.made]


def scene(cost: float = 0.01) -> Callable[[Callable[[Scene], Coroutine[Any, Any, None]]], None]:
    def play(of: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            stage = Scene(cost)
            await of(stage)
            await stage.renditions.close()

        run(whole())

    return play


def test_nothing_is_encoded_until_somebody_asks_and_then_from_the_picture_on_the_screens() -> None:
    @scene()
    async def _(stage: Scene) -> None:
        await stage.frames(5)
        assert stage.encoders == []
        stage.renditions.request_key(VP8, joined=True)
        await asyncio.sleep(0.05)
        assert stage.seen() == [(4, True)]
        await stage.frames(3)
        assert stage.seen() == [(4, True), (5, False), (6, False), (7, False)]
        assert stage.encoders[0][1].kbps[0] == 1200


def test_it_ends_five_seconds_after_nobody_asked_any_more_and_begins_anew() -> None:
    @scene()
    async def _(stage: Scene) -> None:
        await stage.frames(1)
        stage.renditions.set_bitrate(LOW, 250)
        await stage.frames(45)
        assert stage.renditions.made == {LOW}
        await stage.frames(10)
        assert stage.renditions.made == frozenset()
        assert stage.seen()[-1][0] <= 52
        stage.renditions.set_bitrate(LOW, 250)
        await stage.frames(2)
        assert len(stage.encoders) == 2 and stage.seen()[-1] == (57, False)


def test_asked_again_each_second_it_goes_on_at_the_rate_that_was_told_last() -> None:
    @scene()
    async def _(stage: Scene) -> None:
        for kbps in (250, 200, 220, 240, 260, 280, 300):
            stage.renditions.set_bitrate(LOW, kbps)
            await stage.frames(10)
        assert len(stage.encoders) == 1 and stage.encoders[0][1].kbps[-1] == 300
        assert [key for _, key in stage.seen()].count(True) == 1


def test_a_slow_thread_leaves_raw_frames_out_and_never_an_encoded_one() -> None:
    @scene(cost=0.25)
    async def _(stage: Scene) -> None:
        stage.renditions.request_key(VP8, joined=True)
        await stage.frames(40)
        numbers = [frame for frame, _ in stage.seen()]
        assert numbers == sorted(set(numbers)) and 12 <= len(numbers) <= 17
        lags = [at - 0.1 * rendered.frame.frame for at, rendered in stage.made]
        assert max(lags) - min(lags) < 0.6, "the newest frame is taken: delay does not grow"


def test_a_key_frame_of_a_still_is_made_of_the_last_picture_with_a_later_time() -> None:
    @scene()
    async def _(stage: Scene) -> None:
        stage.renditions.request_key(VP8, joined=True)
        await stage.frames(2)
        await asyncio.sleep(1.0)
        stage.renditions.request_key(VP8, joined=True)
        await asyncio.sleep(0.3)
        assert stage.seen() == [(0, True), (1, False), (1, True)]
        times = [rendered.frame.pts for _, rendered in stage.made]
        assert times == sorted(times) and times[2] - times[1] > 80_000


def test_a_redirected_world_shows_nothing_of_before_and_then_a_key_frame() -> None:
    @scene(cost=0.05)
    async def _(stage: Scene) -> None:
        stage.renditions.request_key(VP8, joined=True)
        await stage.frames(3)
        stage.show(np.zeros(4, np.uint8))
        await asyncio.sleep(0.01)
        stage.renditions.drop_before(1)
        await asyncio.sleep(0.1)
        await stage.frames(1, epoch=1)
        assert stage.seen() == [(0, True), (1, False), (2, False), (4, True)]


def test_an_encoder_that_fails_ends_its_rendition_only_and_is_made_anew_when_asked() -> None:
    @scene()
    async def _(stage: Scene) -> None:
        stage.renditions.request_key(VP8, joined=True)
        stage.renditions.request_key(LOW, joined=True)
        await stage.frames(2)
        await stage.frames(1, value=99)
        assert stage.renditions.made == frozenset()
        stage.renditions.request_key(VP8, joined=True)
        await stage.frames(2)
        assert stage.renditions.made == {VP8} and stage.seen()[-1] == (4, False)
