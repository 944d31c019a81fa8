"""Rooms made of the past on a real server: a film's moment goes on in a new room, whose session replays."""

import asyncio
from pathlib import Path

import httpx
from worldroom.clients.python.room import join
from worldroom.sessions.journal import events
from worldroom.tests.real_server import driving, journaled, ready, replayed, served, watched


async def planned(http: httpx.AsyncClient, session: str, **moment: object) -> httpx.Response:
    return await http.post(f"/v1/library/{session}/rooms", json=moment)


async def filmed(http: httpx.AsyncClient, session: str) -> bool:
    """Whether its film is whole, as it is when the lease is over."""
    films = (await http.get(f"/v1/library/{session}")).json()["session"]["films"]
    return bool(films and films[0]["frames"])


async def gone_on(folder: Path) -> tuple[str, str, int]:
    """A filmed drive, then a room that goes on a second into it; both sessions, and where they part."""
    with served(folder, 0, "--record", "all", "--lease", "1") as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            assert room.welcome is not None
            parent = room.welcome.session
            await room.applied(await room.reset(seed=5))
            await room.applied(await room.prompt("a red desert"))
            await watched(room, 60)
        async with asyncio.timeout(60), httpx.AsyncClient(base_url=base, trust_env=False) as http:
            for wrong in ({"chunk": 0}, {"chunk": 10**6}, {"film": "7"}):
                assert (await planned(http, parent, **wrong)).json()["code"] == "no_moment"
            for body in (b"[]", b"{", b'{"words": 1}'):
                answer = await http.post(f"/v1/library/{parent}/rooms", content=body)
                assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
            answer = await http.post(f"/v1/library/{parent}/rooms", content=b"x" * 20_000)
            assert answer.status_code == 413
            assert (await planned(http, "nobody")).json()["code"] == "no_session"
            while not await filmed(http, parent):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)
            answer = await planned(http, parent, film="1", seconds=1.0)
            assert answer.status_code == 201, answer.text
            name = answer.json()["room"]
            async with join(f"{base}/r/{name}", loopback=True, patience=20.0) as room:
                room.press("ArrowRight")
                seen = await watched(room, 40)
                assert room.welcome is not None
                child, first = room.welcome.session, room.welcome.chunk
                assert seen[0].chunk >= first > 10
        process.terminate()
        process.wait()
    return parent, child, first


def test_a_moment_of_a_film_goes_on_in_a_new_room_and_replays_with_its_parent(tmp_path: Path) -> None:
    parent, child, first = asyncio.run(gone_on(tmp_path))
    opened = next(e for e in asyncio.run(journaled(tmp_path, child)) if isinstance(e, events.SessionOpened))
    assert opened.origin is not None
    assert (opened.origin.session, opened.origin.chunk) == (parent, first)
    for session in (child, parent):
        code, report = replayed(session, tmp_path)
        assert (code, report["same"], report["unseen"]) == (0, True, 0), report
        assert int(str(report["chunks"])) > 8
