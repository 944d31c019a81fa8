"""A real server with a real viewer is told to stop: it says so, writes the journal, and leaves no process behind."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from worldroom.clients.bench.server import command, free_port
from worldroom.clients.python.room import RoomClient, join
from worldroom.rtc.wire import Problem, ServerMessage
from worldroom.sessions import events
from worldroom.sessions.redis_embedded import EmbeddedRedis, connect
from worldroom.sessions.streams import Streams

PATIENCE_S = 60


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    options = ["--card", "toy", "--port", str(port), "--data", str(folder), "--loopback"]
    process = subprocess.Popen([command(), "serve", *options], stderr=subprocess.DEVNULL)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def ready(base: str) -> None:
    async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient(trust_env=False) as http:
        while True:
            try:
                if (await http.get(f"{base}/readyz")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.05)


@asynccontextmanager
async def driving(base: str) -> AsyncIterator[tuple[RoomClient, list[ServerMessage]]]:
    """A viewer that sees pictures, and what it is told from then on."""
    told: list[ServerMessage] = []
    async with asyncio.timeout(PATIENCE_S), join(f"{base}/r/stop", loopback=True, patience=20.0) as room:
        room.press("ArrowLeft")
        async for _ in room.frames():
            if room.latency.frames >= 12:
                break
        room.on_message = told.append
        yield room, told


async def journaled(folder: Path, session: str) -> list[events.JournalEvent]:
    redis = EmbeddedRedis(folder / "redis")
    redis.start()
    try:
        streams = Streams(await connect(redis.url), keep_s=3600)
        try:
            return [event async for _, _, event in streams.read(session)]
        finally:
            await streams.close()
    finally:
        redis.stop()


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
async def test_a_server_with_a_viewer_stops_in_order(sig: signal.Signals, tmp_path: Path) -> None:
    with served(tmp_path) as (process, base):
        await ready(base)
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) == 2, "the journal's server and one worker"
        async with driving(base) as (room, told):
            assert room.welcome is not None
            session = room.welcome.session
            process.send_signal(sig)
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
            problems = [message.code for message in told if isinstance(message, Problem)]
        assert problems == ["going_away"]
        assert [child for child in started if child.is_running()] == []
    assert not (tmp_path / "redis" / "valkey.pid").exists()
    assert not list((tmp_path / "spool").glob("*.spool"))
    written = await journaled(tmp_path, session)
    assert isinstance(written[0], events.StateMoved | events.Opened)
    assert written[-1] == events.Closed(reason="shutdown")
    begun = [event.chunk for event in written if isinstance(event, events.ChunkBegun)]
    assert begun == [*range(len(begun))]


def test_a_server_that_warms_up_stops_at_once(tmp_path: Path) -> None:
    """Before it is ready there is nothing to hand over; whatever it started is gone all the same."""
    with served(tmp_path) as (process, _):
        parent = psutil.Process(process.pid)
        while not (started := [child for child in parent.children() if child.name() == "valkey-server"]):
            assert process.poll() is None
        started += [child for child in parent.children() if child.name().startswith("python")]
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        assert [child for child in started if child.is_running()] == []


if sys.platform != "linux":
    pytestmark = pytest.mark.skip(reason="children are told apart by what Linux starts")
