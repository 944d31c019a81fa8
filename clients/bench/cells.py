"""What each row of the bench measures, against a running server. Clients come and press at random, seeded phase.

The server is another process: its CPU is read from its own /metrics, its latencies come from receipts.
"""

import asyncio
import random
import time
from contextlib import AsyncExitStack
from statistics import linear_regression

import httpx
import msgspec

from ...rtc.wire import Receipt, Role
from ..python.latency import LatencyLog, LatencySpread, spread
from ..python.measure import Observation, press_at_random, run_join
from ..python.pictures import RoomFrame
from ..python.room import RoomClient, join
from .metrics import CPU_SECONDS, figures

SETTLE_S = 1.0
VIEWERS = (0, 1, 2, 4, 8)
JOINS = 12
FRESH_ROOMS = 4


class LatencyCell(msgspec.Struct, frozen=True):
    """Input received to packet sent, in ms, over all inputs: total = hold + added + step.

    `hold`: waiting for the next frame's slot, inherent in the frame rate. `step`: the model. `added`: everything else.
    """

    fps: int
    inputs: int
    total_ms: LatencySpread
    hold_ms: LatencySpread
    step_ms: LatencySpread
    added_ms: LatencySpread
    wait_ms: LatencySpread
    decode_ms: LatencySpread
    encode_ms: LatencySpread
    pace_ms: LatencySpread


class FanoutPoint(msgspec.Struct, frozen=True):
    """The server with that many viewers: CPU in percent of one core and per frame, and what the driver gets."""

    viewers: int
    cpu_percent: float
    cpu_ms_per_frame: float
    driver_fps: float
    driver_interval_p99_ms: float


class FanoutCell(msgspec.Struct, frozen=True):
    """CPU per frame, ms. `first_ms`: what the first viewer brings (world, encode, send); `encode_ms`: the encoder,
    from receipts; `each_more_ms`: a further viewer. `share`: each_more / (encode + each_more)."""

    points: tuple[FanoutPoint, ...]
    first_ms: float
    encode_ms: float
    each_more_ms: float
    share_of_first: float
    share: float


class JoinCell(msgspec.Struct, frozen=True):
    """Join called to first picture decoded, in ms: into a running room, and into a room that did not exist.

    `refusals`: how often the server had no place at first; the waiting for one is part of the times.
    """

    running_room_ms: LatencySpread
    fresh_room_ms: LatencySpread
    refusals: int


class DriveCell(msgspec.Struct, frozen=True):
    """One driver as the Python client sees it."""

    card: str
    fps: float
    interval_ms: LatencySpread
    motion_to_photon_ms: LatencySpread
    first_frame_ms: float
    dropped: int


async def measure_latency(base: str, seconds: float, dice: random.Random) -> LatencyCell:
    """One driver presses at random phase; every frame that contains a new input is a sample."""
    samples: list[Receipt] = []
    async with join(f"{base}/r/latency", loopback=True, decode=False, seed=dice.getrandbits(30)) as room:
        last = 0

        def take(frame: RoomFrame) -> None:
            nonlocal last
            receipt = frame.receipt
            if receipt is not None and receipt.input_seq > last:
                last = receipt.input_seq
                samples.append(receipt)

        await asyncio.sleep(SETTLE_S)
        room.pictures.on_joined = take
        await press_at_random(room, Observation(), seconds, dice)
        assert room.welcome is not None
        fps = room.welcome.fps

    def ms(*names: str) -> LatencySpread:
        return spread([sum(_duration(sample, name) for name in names) / 1000 for sample in samples])

    return LatencyCell(
        fps=fps,
        inputs=len(samples),
        total_ms=ms("hold", "wait", "step", "decode", "encode", "pace"),
        hold_ms=ms("hold"),
        step_ms=ms("step"),
        added_ms=ms("wait", "decode", "encode", "pace"),
        wait_ms=ms("wait"),
        decode_ms=ms("decode"),
        encode_ms=ms("encode"),
        pace_ms=ms("pace"),
    )


async def measure_fanout(base: str, seconds: float, dice: random.Random) -> FanoutCell:
    """CPU of the server process with 0, 1, 2, 4 and 8 viewers of one room; the first one drives."""
    points: list[FanoutPoint] = []
    encode_us: list[int] = []
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=base, trust_env=False) as http:
        viewers: list[RoomClient] = []
        for count in VIEWERS:
            while len(viewers) < count:
                await asyncio.sleep(dice.uniform(0.02, 0.1))
                viewer = join(f"{base}/r/fanout", loopback=True, decode=False, seed=dice.getrandbits(30))
                viewers.append(await stack.enter_async_context(viewer))
            await asyncio.sleep(SETTLE_S)
            points.append(await _point(http, viewers, seconds, encode_us))
    return fanout_cell(tuple(points), encode_us)


async def _point(
    http: httpx.AsyncClient, viewers: list[RoomClient], seconds: float, encode_us: list[int]
) -> FanoutPoint:
    """One point; the driver's view of it from a latency log of its own."""
    log = LatencyLog()

    def take(frame: RoomFrame) -> None:
        log.decoded(frame.decoded_at)
        if frame.receipt is not None and len(viewers) == 1:
            encode_us.append(frame.receipt.encode_us)

    if viewers:
        viewers[0].pictures.on_joined = take
    began, cpu = time.monotonic(), await _cpu_seconds(http)
    await asyncio.sleep(seconds)
    took, used = time.monotonic() - began, await _cpu_seconds(http) - cpu
    return FanoutPoint(
        viewers=len(viewers),
        cpu_percent=round(100 * used / took, 2),
        cpu_ms_per_frame=round(1000 * used / log.frames, 3) if log.frames else 0.0,
        driver_fps=round(log.frames / took, 2),
        driver_interval_p99_ms=log.intervals.p99,
    )


def fanout_cell(points: tuple[FanoutPoint, ...], encode_us: list[int]) -> FanoutCell:
    """Per frame, so that a machine too busy to keep the frame rate does not distort it; the slope by least squares."""
    first_ms = points[1].cpu_ms_per_frame
    counts, costs = zip(*((point.viewers, point.cpu_ms_per_frame) for point in points[1:]), strict=True)
    each_more_ms = linear_regression(counts, costs).slope
    encode_ms = sum(encode_us) / len(encode_us) / 1000 if encode_us else 0.0
    return FanoutCell(
        points=points,
        first_ms=round(first_ms, 3),
        encode_ms=round(encode_ms, 3),
        each_more_ms=round(each_more_ms, 3),
        share_of_first=round(each_more_ms / first_ms, 3) if first_ms > 0 else 0.0,
        share=round(each_more_ms / (encode_ms + each_more_ms), 3) if encode_ms > 0 else 0.0,
    )


async def measure_join(base: str, dice: random.Random) -> JoinCell:
    """Viewers join a running room, then rooms that nobody has opened yet."""
    running: list[tuple[float, int]] = []
    fresh: list[tuple[float, int]] = []
    async with join(f"{base}/r/join", loopback=True, decode=False):
        await asyncio.sleep(SETTLE_S)
        for _ in range(JOINS):
            await asyncio.sleep(dice.uniform(0.05, 0.25))
            running.append(await _time_to_picture(f"{base}/r/join", Role.SPECTATOR))
    for number in range(FRESH_ROOMS):
        await asyncio.sleep(dice.uniform(0.05, 0.25))
        fresh.append(await _time_to_picture(f"{base}/r/fresh-{number}", None))
    return JoinCell(
        running_room_ms=spread([taken for taken, _ in running]),
        fresh_room_ms=spread([taken for taken, _ in fresh]),
        refusals=sum(refusals for _, refusals in running + fresh),
    )


async def measure_drive(base: str, seconds: float, seed: int) -> DriveCell:
    report = await run_join(f"{base}/r/drive", seconds=seconds, seed=seed, loopback=True)
    assert report.motion_to_photon_ms is not None, "who is first in a room drives"
    return DriveCell(
        card=report.card,
        fps=report.fps,
        interval_ms=report.interval_ms,
        motion_to_photon_ms=report.motion_to_photon_ms,
        first_frame_ms=report.first_frame_ms,
        dropped=report.dropped,
    )


# ---- parts ----------------------------------------------------------------------------------------------------------


def _duration(receipt: Receipt, name: str) -> int:
    durations = {
        "hold": receipt.hold_us,
        "wait": receipt.wait_us,
        "step": receipt.step_us,
        "decode": receipt.decode_us,
        "encode": receipt.encode_us,
        "pace": receipt.pace_us,
    }
    return durations[name]


async def _time_to_picture(url: str, role: Role | None) -> tuple[float, int]:
    """Milliseconds, and how often the server refused before."""
    began = time.monotonic()
    async with join(url, role=role, loopback=True) as room:
        async for frame in room.frames():
            return (frame.decoded_at - began) * 1000, room.retry.refusals
    raise ConnectionError("the room ended before its first picture")


async def _cpu_seconds(http: httpx.AsyncClient) -> float:
    """User and system seconds of the server process so far."""
    said = (await figures(http)).get(CPU_SECONDS)
    if said is None:
        raise ConnectionError(f"the server's /metrics have no {CPU_SECONDS} (it is read from /proc)")
    return said
