"""Spectators whose RTP nobody reads: frames are counted by their last packet."""

from types import SimpleNamespace
from typing import cast

import pytest
from worldroom.clients.bench.crowd import Unread
from worldroom.clients.python.room import RoomClient


def spectator() -> Unread:
    receiver = SimpleNamespace(transport=SimpleNamespace())
    return Unread(cast(RoomClient, SimpleNamespace(link=SimpleNamespace(receiver=receiver))))


@pytest.mark.asyncio
async def test_a_frame_of_several_packets_is_one_frame() -> None:
    one, other = spectator(), spectator()
    for _ in range(24):
        for marker in (0, 0, 0x80):
            await one.take(bytes((0x90, marker | 102, 0, 1)), 0)
    for _ in range(12):
        await other.take(bytes((0x90, 0x80 | 102, 0, 1)), 0)
    assert (one.frames, other.frames) == (24, 12)
