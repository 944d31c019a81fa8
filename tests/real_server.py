"""A `worldroom serve` in a process of its own, a viewer that drives it, and its journal afterwards."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
from worldroom.cli.journal_place import JournalPlace, reading
from worldroom.clients.bench.server import command, free_port
from worldroom.clients.python.room import RoomClient, join
from worldroom.rtc.wire import Receipt, ServerMessage
from worldroom.sessions.journal import events

PATIENCE_S = 240


@contextmanager
def served(
    folder: Path, port: int = 0, *more: str, log: Path | None = None, card: str = "toy"
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process and its address; `port` 0 = any; `more` options; `log`: where its log goes. Killed in the end if it
    still lives.
    """
    port = port or free_port()
    options = ["--card", card, "--port", str(port), "--data", str(folder), "--loopback", *more]
    env = os.environ | {"WORLDROOM_CACHE": str(folder / "cache")}
    with Path(log or os.devnull).open("wb") as said:
        process = subprocess.Popen([command(), "serve", *options], stderr=said, env=env)
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
    async with asyncio.timeout(PATIENCE_S), join(f"{base}/r/stop", loopback=True, patience=60.0) as room:
        room.press("ArrowLeft")
        async for _ in room.frames():
            if room.latency.frames >= 12:
                break
        room.on_message = told.append
        yield room, told


async def watched(room: RoomClient, count: int) -> list[Receipt]:
    """The receipts of so many frames more."""
    receipts: list[Receipt] = []
    async for frame in room.frames():
        if frame.receipt is not None:
            receipts.append(frame.receipt)
        if len(receipts) >= count:
            return receipts
    raise AssertionError("the room ended")


async def journaled(folder: Path, session: str) -> list[events.JournalEvent]:
    async with reading(JournalPlace(folder)) as history:
        return [event async for event in history.events(session)]


def replayed(session: str, folder: Path) -> tuple[int, dict[str, object]]:
    """How `worldroom replay` of the session ends, and its report."""
    words = [command(), "replay", session, "--data", str(folder), "--json"]
    ran = subprocess.run(words, stdout=subprocess.PIPE, timeout=120)
    return ran.returncode, json.loads(ran.stdout)
