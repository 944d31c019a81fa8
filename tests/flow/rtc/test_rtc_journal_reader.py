"""The Python client reads journals over HTTP: once, by group, from where it was."""

from pathlib import Path

from worldroom.clients.python.journal import JournalEntry, journal
from worldroom.clients.python.room import RoomClient
from worldroom.tests.real_server import driving, ready, served


async def test_a_group_reads_every_entry_once(tmp_path: Path) -> None:
    async def read(group: str, *types: str) -> list[JournalEntry]:
        return [entry async for entry in journal(base, group, types, tmp_path, follow=False)]

    async def reset(room: RoomClient, seed: int) -> None:
        """A journal is written beside the frames: what was applied is read there a moment later."""
        await room.applied(await room.reset(seed=seed))
        async for entry in journal(base, f"until {seed}", ("session.epoch",), tmp_path, every_s=0.05):
            if entry.event["seed"] == seed:
                return

    with served(tmp_path / "data") as (_, base):
        await ready(base)
        async with driving(base) as (room, _):
            await reset(room, 5)
            first = await read("all")
            await reset(room, 6)
            second = await read("all")
            epochs = await read("epochs", "session.epoch")
    numbers = [entry.number for entry in first + second]
    assert numbers == list(range(1, len(numbers) + 1)) and second
    assert [entry.event["seed"] for entry in epochs] == [5, 6]
    assert {entry.session for entry in first} == {room.welcome.session if room.welcome is not None else ""}
