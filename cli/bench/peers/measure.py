"""Runs one sending process after the other, with more and more viewers, and reckons what each cost."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import linear_regression

import msgspec

from ....clients.bench.child import ending
from ....clients.python.latency import LatencySpread, spread
from .viewer import PeerViewer

SETTLE_S = 1.0
ANSWER_S = 30.0
LINE_MAX = 1 << 20


class SenderFailed(RuntimeError):
    """A sending process ended or was silent."""


class PeersSpec(msgspec.Struct, frozen=True):
    """`scale` times 160 x 96 pixels."""

    viewers: tuple[int, ...] = (1, 4, 8)
    seconds: float = 5.0
    fps: int = 30
    scale: int = 4
    kbps: int = 1000


class PeerCell(msgspec.Struct, frozen=True):
    """`age_ms`: frame creation to decoded, all viewers; `plain_ms`: the first one's by aiortc's own receiver.

    `fps` and `kbps` are what a viewer gets, `cpu_ms` what the sender's process took per frame that a viewer got.
    """

    viewers: int
    age_ms: LatencySpread
    plain_ms: LatencySpread
    fps: float
    kbps: float
    cpu_percent: float
    cpu_ms: float


class PeerSeen(msgspec.Struct, frozen=True):
    """`each_more_ms`: CPU of a further viewer a frame. `missing`: why there is nothing, where that is so."""

    name: str
    cells: tuple[PeerCell, ...] = ()
    each_more_ms: float = 0.0
    missing: str = ""


class PeersReport(msgspec.Struct, frozen=True):
    spec: PeersSpec
    load: float
    peers: tuple[PeerSeen, ...]


class Sender:
    """A sending process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self._name, self._process = name, process

    async def answer(self, offer: str) -> str:
        return str(await self._ask("answer", {"offer": offer}))

    async def cpu_s(self) -> float:
        return float(str(await self._ask("cpu", {})))

    async def ready(self) -> None:
        await self._heard("ready")

    async def _ask(self, wanted: str, line: dict[str, str]) -> object:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        return await self._heard(wanted)

    async def _heard(self, wanted: str) -> object:
        assert self._process.stdout is not None
        try:
            said: dict[str, object] = json.loads(
                await asyncio.wait_for(self._process.stdout.readline(), ANSWER_S) or "{}"
            )
        except TimeoutError:
            said = {}
        if wanted not in said:
            raise SenderFailed(f"the process that sends by {self._name} ended or says nothing")
        return said[wanted]


@asynccontextmanager
async def sending(name: str, python: Path, root: Path, spec: PeersSpec) -> AsyncIterator[Sender]:
    """`root`: the folder in which `worldroom` is found; what the process says besides is thrown away."""
    module = f"worldroom.cli.bench.peers.send_{name}"
    process = await asyncio.create_subprocess_exec(
        str(python),
        "-m",
        module,
        *(str(number) for number in (spec.scale, spec.fps, spec.kbps)),
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "GRADIO_ANALYTICS_ENABLED": "False"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LINE_MAX,
    )
    async with ending(process):
        sender = Sender(name, process)
        await sender.ready()
        yield sender


async def measure_peer(name: str, python: Path, root: Path, spec: PeersSpec) -> PeerSeen:
    """Raises `SenderFailed`."""
    cells: list[PeerCell] = []
    async with AsyncExitStack() as stack:
        sender = await stack.enter_async_context(sending(name, python, root, spec))
        viewers: list[PeerViewer] = []
        for count in spec.viewers:
            while len(viewers) < count:
                viewer = PeerViewer(plain=not viewers)
                stack.push_async_callback(viewer.close)
                await viewer.take(await sender.answer(await viewer.offer()))
                viewers.append(viewer)
            await asyncio.sleep(SETTLE_S)
            cells.append(await _cell(sender, viewers, spec.seconds))
    return PeerSeen(name, tuple(cells), each_more_ms(cells))


async def _cell(sender: Sender, viewers: Sequence[PeerViewer], seconds: float) -> PeerCell:
    cpu, began = await sender.cpu_s(), time.monotonic()
    for viewer in viewers:
        viewer.begin()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    ages = [age for viewer in viewers for age in viewer.ages_ms]
    plain = [age for viewer in viewers for age in viewer.plain_ms]
    octets = sum(viewer.octets for viewer in viewers)
    return reckoned(len(viewers), ages, plain, octets, took, await sender.cpu_s() - cpu)


def reckoned(
    viewers: int, ages_ms: list[float], plain_ms: list[float], octets: int, took: float, cpu_s: float
) -> PeerCell:
    """`octets` of all viewers."""
    frames = len(ages_ms) / viewers
    return PeerCell(
        viewers,
        spread(ages_ms),
        spread(plain_ms),
        fps=round(frames / took, 2),
        kbps=round(octets * 8 / 1000 / took / viewers, 1),
        cpu_percent=round(100 * cpu_s / took, 2),
        cpu_ms=round(1000 * cpu_s / frames, 3) if frames else 0.0,
    )


def each_more_ms(cells: Sequence[PeerCell]) -> float:
    """The slope over all cells, by least squares: per frame, so that a sender that lags is not called cheap."""
    seen = [cell for cell in cells if cell.age_ms.count]
    if len({cell.viewers for cell in seen}) < 2:
        return 0.0
    return round(linear_regression([cell.viewers for cell in seen], [cell.cpu_ms for cell in seen]).slope, 4)


def own_python() -> Path:
    return Path(sys.executable)
