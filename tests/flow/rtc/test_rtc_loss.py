"""Datagrams lost on the way: retransmission repairs the picture, and the client has no frame of delay left over."""

import asyncio

from worldroom.clients.bench.network import Network, PathSpec
from worldroom.clients.python.room import join
from worldroom.sessions.journal import events


def lossy(served, share: float) -> Network:
    """Throw away that share of what the server sends to the viewers who are there."""
    network = Network(PathSpec(loss=share), PathSpec(), seed=11)
    for viewer in served.edge.viewers:
        network.shape(viewer.connection.sender.transport.transport._connection)
    return network


async def test_five_percent_loss_leaves_no_frame_undecodable_and_no_delay_behind(served) -> None:
    async with join(served.url, loopback=True) as room:
        await served.frames_until(lambda: room.pictures.counts.frames >= 5, limit=60)
        before = served.engine.frames - room.pictures.counts.frames  # they were made while it connected
        network = lossy(served, 0.05)
        for _ in range(150):
            served.engine.step()
            await asyncio.sleep(0.02)
        assert network.up.lost >= 3
        totals = served.edge.totals()
        assert totals.nacks >= 1 and totals.retransmitted >= 1
        network.up.spec = PathSpec()
        for _ in range(10):
            served.engine.step()
            await asyncio.sleep(0.02)
        await served.until(lambda: room.pictures.settled)
        assert room.pictures.counts.undecodable == 0
        assert room.pictures.counts.frames >= served.engine.frames - before


async def test_every_tap_steers_exactly_one_chunk_however_its_messages_travel(served) -> None:
    path = PathSpec(delay_ms=10, jitter_ms=40, loss=0.1)
    network = Network(path, path, seed=5)
    async with join(served.url, loopback=True, shape=network.shape) as room:
        await served.frames_until(lambda: room.pictures.counts.frames >= 3, limit=200)
        before = steered_left(served)
        for _ in range(20):
            room.press("ArrowLeft")
            last = room.release("ArrowLeft")
            await served.until(lambda last=last: last in (one.seq for one in served.journaled(events.InputReceived)))
            for _ in range(4):  # while what was sent again and late still arrives
                served.engine.step()
                await asyncio.sleep(0.02)
    assert network.up.lost >= 4
    assert steered_left(served) - before == 20


def steered_left(served) -> float:
    """Chunks begun so far in which the tap's control is pressed."""
    return sum(event.conditions.controls[1] for event in served.journaled(events.ChunkBegun))


async def test_everything_lost_for_a_while_ends_with_one_key_frame(served) -> None:
    async with join(served.url, loopback=True) as room:
        await served.frames_until(lambda: room.pictures.counts.frames >= 5, limit=60)
        network = lossy(served, 1.0)
        for _ in range(70):
            served.engine.step()
            await asyncio.sleep(0.005)
        network.up.spec = PathSpec()
        await asyncio.sleep(0.35)
        keys, seen = len(served.engine.keys), room.pictures.counts.frames
        await served.frames_until(lambda: room.pictures.counts.frames > seen, limit=60)
        assert 0 <= len(served.engine.keys) - keys <= 2
        assert room.pictures.counts.undecodable == 0


async def test_the_server_stops_with_a_live_viewer(served) -> None:
    async with join(served.url, loopback=True, patience=0.0, decode=False) as room:
        await served.frames_until(lambda: room.pictures.counts.frames >= 3, limit=60)
        async with asyncio.timeout(10):
            await served.edge.close()
        assert served.edge.viewers == () and served.edge.closing == 0
