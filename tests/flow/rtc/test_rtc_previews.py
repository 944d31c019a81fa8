"""A world that takes long for a chunk shows a first look of it, and says that it is one."""

from pathlib import Path

from worldroom.clients.python.room import join
from worldroom.models import catalog
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec
from worldroom.tests.real_rooms import edge

FRAMES_MAX = 200


async def test_receipts_say_which_frames_are_a_first_look(web_root: Path) -> None:
    looks: dict[int, list[bool]] = {}
    async with (
        edge(catalog.load("toy-clip", options=packed(ToySpec(step_seconds=0.01))), web_root) as base,
        join(f"{base}/r/slow", loopback=True, decode=False) as room,
    ):
        async for frame in room.frames():
            if frame.receipt is not None:
                looks.setdefault(frame.receipt.chunk, []).append(frame.receipt.preview)
            if len(looks) > 3:
                break
            assert sum(map(len, looks.values())) < FRAMES_MAX
    whole = [shown for shown in list(looks.values())[1:-1] if True in shown]
    assert whole, "some clip was seen before it was done"
    assert all(shown == sorted(shown, reverse=True) for shown in whole), "first looks come first"
    assert all(False in shown for shown in whole), "and then the clip itself"
