"""A real server with a real viewer is told to stop: it says so, writes the journal, and leaves no process behind."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import psutil
import pytest
from worldroom.rtc.wire import Problem
from worldroom.sessions.journal import events
from worldroom.sessions.messages import WorldState
from worldroom.sessions.states import Cause
from worldroom.tests.real_server import PATIENCE_S, driving, journaled, ready, served


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
async def test_a_server_with_a_viewer_stops_in_order(sig: signal.Signals, tmp_path: Path) -> None:
    with served(tmp_path) as (process, base):
        await ready(base)
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) >= 2, "the journal's server and a worker at least"
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
    assert isinstance(written[0], events.StateMoved | events.SessionOpened)
    moved = [event for event in written if isinstance(event, events.StateMoved)]
    assert moved[-1] == events.StateMoved(WorldState.RUNNING, WorldState.HELD, Cause.ABANDONED), "it was suspended"
    begun = [event.chunk for event in written if isinstance(event, events.ChunkBegun)]
    assert begun == [*range(len(begun))]


def named(parent: psutil.Process, name: str) -> list[psutil.Process]:
    """Its children whose program begins so; helpers that are gone already do not count."""
    found = []
    for child in parent.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name().startswith(name):
                found.append(child)
    return found


def test_a_server_that_warms_up_stops_at_once(tmp_path: Path) -> None:
    """Before it is ready there is nothing to hand over; whatever it started is gone all the same."""
    with served(tmp_path) as (process, _):
        parent = psutil.Process(process.pid)
        while not (started := named(parent, "valkey-server")):
            assert process.poll() is None
        started += named(parent, "python")
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        assert [child for child in started if child.is_running()] == []


if sys.platform != "linux":
    pytestmark = pytest.mark.skip(reason="children are told apart by what Linux starts")
