"""The shortest way through the edge: join, see, press, ask."""

import asyncio

from worldroom.clients.python.room import join
from worldroom.engine import api


async def test_a_viewer_sees_frames_with_receipts_and_its_presses_in_them(served) -> None:
    running = asyncio.create_task(served.engine.run())
    async with join(served.url, loopback=True) as room:
        assert room.welcome is not None and room.welcome.card == "toy"
        seen = []
        pressed = 0
        async for frame in room.frames():
            seen.append(frame)
            if len(seen) == 5:
                pressed = room.press("ArrowLeft")
            if frame.receipt is not None and pressed and frame.receipt.input_seq >= pressed:
                break
            assert len(seen) < 100
        assert seen[-1].picture is not None and (seen[-1].picture.width, seen[-1].picture.height) == (320, 192)
        assert room.pictures.counts.undecodable == 0
        await room.prompt("a red sky")
        async with asyncio.timeout(20):
            while not (rates := served.engine.asked(api.SetBitrate)):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        assert {command.session for command in rates} == {room.welcome.session}, "the encoder is told how fast"
    running.cancel()
    print(room.counts, room.latency.photon, room.latency.intervals)
