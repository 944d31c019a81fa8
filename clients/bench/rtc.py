"""Viewers of several worlds over real WebRTC and a network of their own: what drivers feel, and what a viewer costs.

    drivers alone -> all viewers          CPU of the server in both; pictures and presses of the drivers in the second

Drivers decode and press at random phase; spectators receive. The server is another process. A driver's pictures of the
toy say which input they contain: that checks the receipts.
"""

import asyncio
import random
import time
from contextlib import AsyncExitStack

import httpx
import msgspec

from ...rtc.wire import Role
from ..python.latency import LatencyLog, LatencySpread, spread
from ..python.measure import Observation, press_at_random
from ..python.pictures import RoomFrame
from ..python.room import RoomClient, join
from .crowd import Crowd, crowd
from .metrics import CPU_SECONDS, figures, total
from .network import Network, PathSpec

SETTLE_S = 1.5
FREEZE_MS = 500.0


class RtcSpec(msgspec.Struct, frozen=True):
    """`viewers` of each session, its driver among them. Of the round trip's delay each direction has half."""

    sessions: int = 1
    viewers: int = 4
    seconds: float = 10.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    kbps: int = 0
    seed: int = 0
    unread: bool = False
    """Spectators are in a process of their own, count the frames that come and read none; their network is as it is."""

    @property
    def path(self) -> PathSpec:
        return PathSpec(self.delay_ms / 2, self.jitter_ms, self.loss, self.kbps)


class DriverSeen(msgspec.Struct, frozen=True):
    """What all drivers saw together. Times in ms; `missed`: share of the frames shown that never became a picture.

    `unanswered`: presses that no picture contained when the time was over, a last half second left out.
    """

    fps: float
    interval_ms: LatencySpread
    freezes: int
    photon_ms: LatencySpread
    pixel_photon_ms: LatencySpread
    missed: float
    inputs: int
    unanswered: int


class RtcReport(msgspec.Struct, frozen=True):
    """CPU in percent of one core. `alone`: the drivers before others came. `late`: chunks that moved the clock."""

    spec: RtcSpec
    alone: DriverSeen
    together: DriverSeen
    cpu_alone: float
    cpu_together: float
    cpu_per_viewer: float
    chunks: int
    late: int
    plis: int
    retransmitted: int
    low: int
    """Viewers on a low rung at the end."""
    spectator_fps: float
    """Of the spectator that got the fewest, where they are `unread`; 0 otherwise."""


class _Presses(Observation):
    """Presses also go to the log of receipts."""

    def __init__(self, log: LatencyLog) -> None:
        super().__init__()
        self.log, self.seqs = log, list[int]()

    def pressed(self, seq: int, at: float) -> None:
        super().pressed(seq, at)
        self.log.pressed(seq, at)
        self.seqs.append(seq)


class Driver:
    """One driver and what is measured of it; `begin` starts anew."""

    def __init__(self, room: RoomClient, dice: random.Random) -> None:
        self.room, self._dice = room, dice
        self.begin()
        room.pictures.on_joined = self._joined

    def begin(self) -> None:
        self.log, self.answered = LatencyLog(), 0
        self.seen = _Presses(self.log)

    def _joined(self, frame: RoomFrame) -> None:
        self.seen.joined(frame)
        self.log.decoded(frame.decoded_at)
        if frame.receipt is not None:
            self.answered = max(self.answered, frame.receipt.input_seq)
            self.log.contains(frame.receipt.input_seq, frame.decoded_at)

    async def drive(self, seconds: float) -> None:
        await press_at_random(self.room, self.seen, seconds, self._dice)


async def measure_rtc(base: str, spec: RtcSpec) -> RtcReport:
    """Raises what `join` raises, and `CrowdFailed`."""
    dice = random.Random(spec.seed)
    async with AsyncExitStack() as stack, httpx.AsyncClient(base_url=base, trust_env=False) as http:

        async def viewer(session: int, role: Role | None) -> RoomClient:
            await asyncio.sleep(dice.uniform(0.01, 0.06))
            network = Network(spec.path, spec.path, dice.getrandbits(30))
            url, seed = f"{base}/r/rtc-{session}", dice.getrandbits(30)
            return await stack.enter_async_context(
                join(url, role=role, loopback=True, decode=role is None, seed=seed, shape=network.shape)
            )

        drivers = [Driver(await viewer(session, None), dice) for session in range(spec.sessions)]
        await asyncio.sleep(SETTLE_S)
        alone, cpu_alone = await _measured(http, drivers, spec.seconds / 2)
        spectators = None
        if spec.unread:
            coming = crowd(base, spec.sessions, spec.viewers - 1, dice.getrandbits(30))
            spectators = await stack.enter_async_context(coming)
        else:
            for session in range(spec.sessions):
                for _ in range(spec.viewers - 1):
                    await viewer(session, Role.SPECTATOR)
        await asyncio.sleep(SETTLE_S)
        before = await figures(http)
        await _slowest(spectators)
        began = time.monotonic()
        together, cpu = await _measured(http, drivers, spec.seconds)
        slowest, took = await _slowest(spectators), time.monotonic() - began
        after = await figures(http)
    more = spec.sessions * (spec.viewers - 1)

    def grown(name: str) -> int:
        return round(total(after, name) - total(before, name))

    return RtcReport(
        spec=spec,
        alone=alone,
        together=together,
        cpu_alone=round(cpu_alone, 2),
        cpu_together=round(cpu, 2),
        cpu_per_viewer=round((cpu - cpu_alone) / more, 3) if more else 0.0,
        chunks=grown("worldroom_chunks_total"),
        late=grown("worldroom_chunks_late_total"),
        plis=grown("worldroom_edge_plis_total"),
        retransmitted=grown("worldroom_edge_retransmitted_total"),
        low=round(
            sum(value for name, value in after.items() if name.startswith("worldroom_rendition") and "_low" in name)
        ),
        spectator_fps=round(slowest / took, 2),
    )


async def _slowest(spectators: Crowd | None) -> int:
    """Frames of the one that got the fewest since the last question."""
    return 0 if spectators is None else await spectators.slowest()


async def _measured(http: httpx.AsyncClient, drivers: list[Driver], seconds: float) -> tuple[DriverSeen, float]:
    """What the drivers see in that time, and the server's CPU in percent of a core."""
    for driver in drivers:
        driver.begin()
    began, cpu = time.monotonic(), total(await figures(http), CPU_SECONDS)
    await asyncio.gather(*(driver.drive(seconds) for driver in drivers))
    took, used = time.monotonic() - began, total(await figures(http), CPU_SECONDS) - cpu
    await asyncio.sleep(0.5)
    intervals = [ms for driver in drivers for ms in driver.log.intervals_ms if ms == ms]
    shown = sum(max(driver.seen.numbers) - min(driver.seen.numbers) + 1 for driver in drivers if driver.seen.numbers)
    presses = [(driver, seq) for driver in drivers for seq in driver.seen.seqs]
    seen = DriverSeen(
        fps=round(sum(driver.log.frames for driver in drivers) / len(drivers) / (took + 0.5), 2),
        interval_ms=spread(intervals),
        freezes=sum(ms > FREEZE_MS for ms in intervals),
        photon_ms=spread([ms for driver in drivers for ms in driver.log.photon_ms]),
        pixel_photon_ms=spread([ms for driver in drivers for ms in driver.seen.pixels.photon_ms]),
        missed=round(sum(driver.seen.dropped for driver in drivers) / shown, 4) if shown else 1.0,
        inputs=len(presses),
        unanswered=sum(seq > driver.answered for driver, seq in presses),
    )
    return seen, 100 * used / took
