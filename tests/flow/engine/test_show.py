"""From raw frames to events under pressure: bounded, in order, and only raw frames are ever dropped."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.counters import Counters
from worldroom.engine.output.encode import H264Encoder
from worldroom.engine.output.playout import Playout
from worldroom.engine.output.publisher import FramePublisher, RawFrame
from worldroom.engine.scheduling.costs import Estimate
from worldroom.models.contract.card import FrameSpec
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import BlankEncoder
from worldroom.tests.slow_executor import slow_executor

FRAME = FrameSpec(width=16, height=16, scale=1, fps=10, per_chunk=1)
TIMES = api.Timings(0, 0, 0, 0)


class Stage:
    """A show whose encoder takes `cost` virtual seconds a frame."""

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.loop = slow_executor(lambda: self.cost)
        self.frames: list[tuple[float, api.Frame]] = []
        self.failures: list[BaseException] = []
        self.made: list[float] = []
        clock = LoopClock(self.loop)
        self.playout = Playout(FRAME.fps, 1, self.loop.time())
        self.counters = Counters()
        self.show = FramePublisher(
            "a",
            FRAME,
            clock,
            self.playout,
            None,
            Estimate(),
            self.made.append,
            self._keep,
            self.failures.append,  # type: ignore[arg-type]
            self.counters,
        )

    async def open(self, encoder: Callable[[], H264Encoder] = lambda: BlankEncoder(FRAME, 1, 1)) -> None:
        cost, self.cost = self.cost, 0.0
        await self.show.open(encoder)
        self.cost = cost

    def _keep(self, frame: api.Frame) -> None:
        self.frames.append((self.loop.time(), frame))

    def shot(self, number: int, at: float, epoch: int = 0) -> RawFrame:
        return RawFrame(np.zeros((16, 16, 3), np.uint8), at, number, epoch, number, 1, (), at, TIMES)


def test_a_producer_twice_as_fast_as_playout_is_bounded_and_its_drops_are_counted() -> None:
    async def scene() -> None:
        stage = Stage(cost=0.1)  # the encoder manages 10 frames a second
        await stage.open()
        for number in range(1200):  # 20 frames a second for 60 s
            stage.show.push([stage.shot(number, stage.loop.time())])
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        lags = [shown - frame.begun for shown, frame in stage.frames]
        assert max(lags) <= 0.3, "two frames wait at most, and a third is being encoded"
        assert len(stage.frames) + stage.counters.dropped == 1200
        assert 580 < len(stage.frames) < 620
        chunks = [frame.chunk for _, frame in stage.frames]
        assert chunks == sorted(chunks)
        assert [frame.frame for _, frame in stage.frames] == list(range(len(stage.frames))), "no encoded one is dropped"
        await stage.show.close()

    run(scene())


def test_frames_wait_for_their_playout_time() -> None:
    async def scene() -> None:
        stage = Stage(cost=0.0)
        await stage.open()
        stage.show.push([stage.shot(n, 1.0 + n / 10) for n in range(3)])
        await asyncio.sleep(2)
        assert [shown for shown, _ in stage.frames] == [1.0, 1.1, 1.2]
        assert [frame.pts for _, frame in stage.frames] == [90_000, 99_000, 108_000]
        await stage.show.close()

    run(scene())


def test_an_encoded_frame_of_an_older_epoch_is_thrown_away_and_the_next_is_a_key_frame() -> None:
    async def scene() -> None:
        stage = Stage(cost=0.02)
        await stage.open()
        stage.show.push([stage.shot(0, 0.5)])
        await asyncio.sleep(0.6)
        stage.show.push([stage.shot(1, 0.7), stage.shot(2, 0.8)])
        await asyncio.sleep(0.099)  # frame 1 is encoded and waits for 0.7
        assert stage.show.drop_before(1)
        stage.show.push([stage.shot(3, 0.8, epoch=1)])
        await asyncio.sleep(1)
        assert [(frame.chunk, frame.key) for _, frame in stage.frames] == [(0, True), (3, True)]
        assert (stage.counters.superseded, stage.counters.dropped) == (2, 0)
        await stage.show.close()

    run(scene())


def test_a_frame_is_encoded_at_once_when_it_is_the_next_and_tells_what_its_chunk_took() -> None:
    async def scene() -> None:
        stage = Stage(cost=0.02)
        await stage.open()
        await asyncio.sleep(0.95)
        first, second = stage.shot(0, 1.0), stage.shot(1, 1.1)
        stage.show.push([replace(first, took=0.25), second])
        await asyncio.sleep(0.03)
        assert stage.made == [0.27], "encoded from .95 to .97, long before its time"
        assert stage.frames == []
        await asyncio.sleep(0.5)
        assert [round(shown, 6) for shown, _ in stage.frames] == [1.0, 1.1]
        assert stage.made == [0.27], "of a chunk's first frame alone"
        await stage.show.close()

    run(scene())


def test_an_encoder_that_breaks_is_reported() -> None:
    class Broken(BlankEncoder):
        def encode(self, *_: Any) -> Any:
            raise RuntimeError("x264 kept a frame back")

    async def scene() -> None:
        stage = Stage(cost=0.0)
        await stage.open(lambda: Broken(FRAME, 1, 1))
        stage.show.push([stage.shot(0, 0.0)])
        await asyncio.sleep(0.1)
        assert [str(problem) for problem in stage.failures] == ["x264 kept a frame back"]
        await stage.show.close()

    run(scene())
