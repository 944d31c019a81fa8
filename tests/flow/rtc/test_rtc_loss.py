"""Datagrams lost on the way: retransmission repairs the picture, and the client has no frame of delay left over."""

import asyncio
import random

from aiortc.rtp import is_rtcp
from worldroom.clients.python.room import join


def lose_media(edge, share: float, dice: random.Random) -> list[int]:
    """Throw away that share of the RTP packets that the server sends; counts them."""
    lost = [0]
    for viewer in edge.viewers:
        transport = viewer.connection.sender.transport.transport
        send = transport._send

        async def lossy(data: bytes, send=send) -> None:
            if 128 <= data[0] < 192 and not is_rtcp(data) and dice.random() < share:
                lost[0] += 1
                return
            await send(data)

        transport._send = lossy
    return lost


async def test_five_percent_loss_leaves_no_frame_undecodable_and_no_delay_behind(served) -> None:
    async with join(served.url, loopback=True) as room:
        await served.frames_until(lambda: room.pictures.counts.frames >= 5, limit=60)
        lost = lose_media(served.edge, 0.05, random.Random(11))
        for _ in range(150):
            served.engine.step()
            await asyncio.sleep(0.02)
        assert lost[0] >= 3
        totals = served.edge.totals()
        assert totals.nacks >= 1 and totals.retransmitted >= 1
        for viewer in served.edge.viewers:
            viewer.connection.sender.transport.transport._send = (
                viewer.connection.sender.transport.transport._connection.send
            )
        for _ in range(10):
            served.engine.step()
            await asyncio.sleep(0.02)
        await served.until(lambda: room.pictures.settled)
        assert room.pictures.counts.undecodable == 0
        assert room.pictures.counts.frames >= served.engine.frames - 8


async def test_everything_lost_for_a_while_ends_with_one_key_frame(served) -> None:
    async with join(served.url, loopback=True) as room:
        await served.frames_until(lambda: room.pictures.counts.frames >= 5, limit=60)
        lose_media(served.edge, 1.0, random.Random(1))
        for _ in range(70):
            served.engine.step()
            await asyncio.sleep(0.005)
        for viewer in served.edge.viewers:
            transport = viewer.connection.sender.transport.transport
            transport._send = transport._connection.send
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
