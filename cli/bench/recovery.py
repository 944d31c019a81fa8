"""`worldroom bench recovery`: the worker is killed under full rooms; how long until every picture moves again.

    kill -9 -> found dead -> next worker warm -> worlds made again from checkpoint and journal -> next frame

One edge in this process without a network, so the figures are the engine's: rooms, journal, worker process, encoder.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ...clients.python.latency import LatencySpread, spread
from ...clock import SystemClock
from ..errors import fail
from ..output import JsonFlag, print_object, report_table

if TYPE_CHECKING:
    from ...engine.worker.client import WorkerClient
    from ...sessions.journal.journal import Journal
    from .stage import SilentViewer

PATIENCE_S = 60.0
LOOK_S = 0.002


class RecoveryReport(msgspec.Struct, frozen=True):
    """Milliseconds from the kill. `chunks_lost`, `doubled`: gaps
    and repetitions in the journals' finished chunks. `faults`: sessions that were told that they are lost.
    """

    card: str
    sessions: int
    kills: int
    spare: bool
    found_dead_ms: LatencySpread
    warm_ms: LatencySpread
    next_frame_ms: LatencySpread
    chunks_journaled: int
    chunks_lost: int
    doubled: int
    events_dropped: int
    faults: int


def bench_recovery(
    card: Annotated[str, typer.Argument(help="The card of every room.")] = "drive",
    sessions: Annotated[int, typer.Option(min=1, max=64, help="Rooms; as many as are admitted.")] = 8,
    kills: Annotated[int, typer.Option(min=1, max=50, help="How often the worker is killed.")] = 3,
    play: Annotated[float, typer.Option(min=0.5, help="Seconds of play before each kill.")] = 5.0,
    background: Annotated[
        bool, typer.Option(help="Rooms of background class, of which a device takes more than it can show in time.")
    ] = False,
    spare: Annotated[bool, typer.Option(help="Keep a process that waits to take over, as the server does.")] = True,
    as_json: JsonFlag = False,
) -> None:
    """kill -9 of the worker under full rooms: time to the next frame, and what the journals lost."""
    from ...engine.worker.client import WorkerFailed

    try:
        report = asyncio.run(measure(card, sessions, kills, play, background, spare))
    except WorkerFailed as failed:
        raise fail(str(failed)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"worker of {report.sessions} sessions killed {report.kills} times", report)


async def measure(card: str, sessions: int, kills: int, play: float, background: bool, spare: bool) -> RecoveryReport:
    """Raises `WorkerFailed`, or `TimeoutError` when a session never shows a frame again."""
    from ...engine.api import LatencyClass
    from ...engine.spec import EngineSpec
    from ...engine.worker.client import WorkerClient
    from ...engine.worker.spec import WorkerSpec
    from ...sessions.rooms.opener import RoomsSpec
    from .stage import SilentViewer, seats, staged

    clock = SystemClock()
    latency_class = LatencyClass.BACKGROUND if background else LatencyClass.INTERACTIVE
    with tempfile.TemporaryDirectory(prefix="worldroom-prices-") as folder:
        engine, spare_after = EngineSpec(slots=sessions), 0.5 if spare else None
        serving = WorkerSpec((card,), None, engine, prices=Path(folder), spare_after=spare_after)
        door = WorkerClient(serving, clock)
        async with staged(door, clock, RoomsSpec(card=card, latency_class=latency_class)) as stage:
            viewers = [viewer async for viewer in seats(stage.rooms, sessions) if isinstance(viewer, SilentViewer)]
            if not viewers:
                raise fail("not a single session was admitted")
            dead, warm, next_frame = [], [], []
            for _ in range(kills):
                await asyncio.sleep(play)
                found, ready, frames = await _kill(door, viewers)
                dead.append(found)
                warm.append(ready)
                next_frame += frames
            await asyncio.sleep(play)
            done, dropped = _finished(stage.journal, viewers), stage.journal.counters().dropped
            faults = sum(len(viewer.problems) for viewer in viewers)
    return RecoveryReport(
        card=card,
        sessions=len(viewers),
        kills=kills,
        spare=spare,
        found_dead_ms=spread([seconds * 1e3 for seconds in dead]),
        warm_ms=spread([seconds * 1e3 for seconds in warm]),
        next_frame_ms=spread([seconds * 1e3 for seconds in next_frame]),
        chunks_journaled=sum(len(chunks) for chunks in done),
        chunks_lost=sum(len(set(range(max(chunks) + 1)) - set(chunks)) for chunks in done),
        doubled=sum(len(chunks) - len(set(chunks)) for chunks in done),
        events_dropped=dropped,
        faults=faults,
    )


def _finished(journal: "Journal", viewers: "list[SilentViewer]") -> list[list[int]]:
    """Of each session the chunks that its journal says are done, in order of writing."""
    from ...sessions.journal.events import ChunkCommitted

    return [
        [event.chunk for event in journal.buffered(viewer.session) if isinstance(event, ChunkCommitted)]
        for viewer in viewers
    ]


async def _kill(door: "WorkerClient", viewers: "list[SilentViewer]") -> tuple[float, float, list[float]]:
    """Seconds to a death certificate, to a warm worker, and to each session's next frame."""
    deaths, began = door.deaths, asyncio.get_running_loop().time()
    os.kill(door.pid, signal.SIGKILL)
    found = await _until(lambda: door.deaths > deaths)
    seen = [len(viewer.frames) for viewer in viewers]
    ready = await _until(lambda: door.ready)
    await _until(lambda: all(len(viewer.frames) > before for viewer, before in zip(viewers, seen, strict=True)))
    frames = [viewer.frames[before] - began for viewer, before in zip(viewers, seen, strict=True)]
    return found - began, ready - began, frames


async def _until(condition: Callable[[], bool]) -> float:
    """The loop's time when it holds; raises `TimeoutError`."""
    for _ in range(int(PATIENCE_S / LOOK_S)):
        if condition():
            return asyncio.get_running_loop().time()
        await asyncio.sleep(LOOK_S)
    raise TimeoutError(f"not so within {PATIENCE_S:g} s")
