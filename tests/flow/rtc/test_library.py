"""The library by HTTP: pages, one session, what a film shows of it, an export, an end."""

import io

import av
import httpx
import msgspec
import pytest
from worldroom.sessions.journal import events
from worldroom.sessions.journal.store import StoredEntry
from worldroom.sessions.library.library import LibraryPage, SessionDetail
from worldroom.sessions.library.timeline import FilmTimeline
from worldroom.tests.flow.rtc.conftest import Served
from worldroom.tests.journaled_sessions import happened, onward
from worldroom.tests.unit.test_film import encoded


def client(served: Served) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served.base, trust_env=False)


async def test_sessions_are_listed_page_by_page_the_newest_first(served: Served) -> None:
    for number in range(5):
        card = "drive" if number == 3 else "toy"
        await served.shelf.write(f"s{number}", happened(3, card=card, liked=(1, 2)[:number]), at=1000.0 + 60 * number)
    await served.shelf.film("s4", encoded(3), turn=2)
    async with client(served) as http:
        page = msgspec.json.decode((await http.get("/v1/library?limit=2")).content, type=LibraryPage)
        assert (page.total, [each.session for each in page.sessions]) == (5, ["s4", "s3"])
        assert page.cards == {"toy": 4, "drive": 1}
        newest = page.sessions[0]
        assert (newest.room, newest.card, newest.likes, newest.ended) == ("lobby", "toy", 2, True)
        assert (newest.films[0].frames, page.sessions[1].films) == (3, ())
        page = msgspec.json.decode((await http.get("/v1/library?offset=4&limit=2")).content, type=LibraryPage)
        assert [(each.session, each.likes) for each in page.sessions] == [("s0", 0)]
        page = msgspec.json.decode((await http.get("/v1/library?card=drive")).content, type=LibraryPage)
        assert (page.total, page.cards) == (1, {"toy": 4, "drive": 1})
        assert (await http.get("/v1/library?limit=201")).json()["code"] == "bad_query"


async def test_a_running_session_is_listed_with_what_is_not_archived_yet(served: Served) -> None:
    rows = [
        StoredEntry("now", number, 1000.0 + number, served.shelf.body(event))
        for number, event in enumerate(happened(3, liked=(0, 2))[:-1], 1)
    ]
    await served.shelf.store.append(rows)
    async with client(served) as http:
        (session,) = msgspec.json.decode((await http.get("/v1/library")).content, type=LibraryPage).sessions
        assert (session.session, session.ended, session.likes) == ("now", False, 2)
        assert (await http.delete("/v1/library/now")).json()["code"] == "not_ended"


async def test_a_film_knows_where_in_it_everything_happened(served: Served) -> None:
    """A prompt at chunk 20, a like of chunk 30; back to chunk 24 at chunk 40, and on in another future."""
    await served.shelf.turned("s", encoded(64))
    async with client(served) as http:
        timeline = msgspec.json.decode((await http.get("/v1/library/s/1.timeline")).content, type=FilmTimeline)
        places = {mark.type: mark.at for mark in timeline.marks}
        assert places["preference.rated"] == pytest.approx(30 / 24)
        assert places["session.turned"] == pytest.approx(24 / 24), "where it went back to"
        assert places["session.closed"] is None
        (fork,) = timeline.forks
        assert fork.chunk == 24 and (fork.left.branch, fork.right.branch) == (0, 1)
        assert (fork.left.at, fork.left.until) == (pytest.approx(1.0), pytest.approx(39 / 24))
        assert (fork.right.at, fork.right.until) == (pytest.approx(40 / 24), pytest.approx(63 / 24))
        detail = msgspec.json.decode((await http.get("/v1/library/s")).content, type=SessionDetail)
        assert (detail.chunks, detail.session.likes) == (64, 1)
        assert [mark.text for mark in detail.marks if mark.type == "prompt.asked"] == ["a town", "a town by night"]
        assert (await http.get("/v1/library/s/2.timeline")).json()["code"] == "no_film"
        answer = await http.get("/v1/library/s/1.mp4", headers={"Range": "bytes=0-99"})
        assert (answer.status_code, len(answer.content)) == (206, 100)
        film = await http.get("/v1/library/s/1.mp4")
    with av.open(io.BytesIO(film.content)) as got:
        assert sum(1 for _ in got.decode(video=0)) == 64


async def test_selected_sessions_are_exported_and_one_is_deleted(served: Served) -> None:
    await served.shelf.write("one", happened(3))
    await served.shelf.write("two", happened(3))
    await served.shelf.film("two", encoded(3), turn=2)
    async with client(served) as http:
        tar = await http.get("/v1/library/export?session=one&session=two&format=pairs")
        assert (tar.status_code, tar.text) == (200, "pairs: one two")
        assert (await http.get("/v1/library/export?session=../x")).json()["code"] == "bad_query"
        removed = (await http.delete("/v1/library/two")).json()
        assert removed["films"] == 1 and removed["film_bytes"] > 1000 and removed["entries"] == len(happened(3))
        assert (await http.get("/v1/library/two")).json()["code"] == "no_session"
        assert (await http.delete("/v1/library/two")).json()["code"] == "no_session"
        assert (await http.get("/v1/library")).json()["total"] == 1
    assert not (served.shelf.folder / "recordings" / "two").exists()


async def test_a_session_that_others_go_on_from_is_deleted_only_by_force(served: Served) -> None:
    await served.shelf.write("one", happened(3))
    await served.shelf.write("on", onward(events.Origin("one", 0, 2)))
    async with client(served) as http:
        refused = await http.delete("/v1/library/one")
        assert (refused.status_code, refused.json()["code"]) == (409, "has_children")
        assert "in on, which cannot be replayed without it" in refused.json()["detail"]
        assert (await http.delete("/v1/library/one?force=yes")).json()["code"] == "bad_query"
        assert (await http.get("/v1/library")).json()["total"] == 2
        assert (await http.delete("/v1/library/one?force=1")).json()["entries"] == len(happened(3))
        assert (await http.delete("/v1/library/on")).status_code == 200, "nobody goes on from it"
