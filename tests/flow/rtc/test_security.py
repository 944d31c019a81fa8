"""Who may do what, tried one by one: every endpoint and message by everybody. docs/SECURITY.md is this table.

`WORLDROOM_WRITE_DOCS=1 pytest tests/flow/rtc/test_security.py` writes the page anew.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from worldroom.clock import SystemClock
from worldroom.rtc.access.keys import ApiKey, ApiKeys
from worldroom.rtc.access.spec import AccessSpec
from worldroom.rtc.access.tokens import mint
from worldroom.rtc.livekit.spec import LiveKitSpec
from worldroom.sessions import messages
from worldroom.sessions.messages import ClientMessage, Grant
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.fake_door import Screen
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_of
from worldroom.tests.flow.sessions.test_room_flows import House, got, play
from worldroom.tests.journaled_sessions import happened
from worldroom.tests.unit.test_film import encoded

PAGE = Path(__file__).resolve().parents[3] / "docs" / "SECURITY.md"
KEY = ApiKey("studio", "s" * 40)
ROOM = "test"


@dataclass(frozen=True)
class Caller:
    name: str
    headers: Callable[[], dict[str, str]]
    key: bool = False


def token(grant: Grant, room: str = ROOM, age: float = 0.0, key: ApiKey = KEY) -> dict[str, str]:
    now = SystemClock().wall()
    return {"Authorization": f"Bearer {mint(key, room, Rights(grant), now - age, 3600)}"}


CALLERS = (
    Caller("no token", dict),
    Caller("forged", lambda: token(Grant.DRIVER, key=ApiKey("studio", "x" * 40))),
    Caller("expired", lambda: token(Grant.DRIVER, age=7200)),
    Caller("other room", lambda: token(Grant.DRIVER, "elsewhere")),
    Caller("spectator", lambda: token(Grant.SPECTATOR)),
    Caller("recorder", lambda: token(Grant.RECORDER)),
    Caller("co-driver", lambda: token(Grant.CO_DRIVER)),
    Caller("driver", lambda: token(Grant.DRIVER)),
    Caller("foreign origin", lambda: token(Grant.DRIVER) | {"Origin": "https://evil.example"}),
    Caller("wrong host", lambda: token(Grant.DRIVER) | {"Host": "evil.example"}),
    Caller("API key", dict, key=True),
)

ENDPOINTS: tuple[tuple[str, str, dict[str, str], str], ...] = (
    ("GET", "/", {}, ""),
    ("GET", "/library", {}, ""),
    ("GET", "/r/test", {}, ""),
    ("GET", "/web/index.html", {}, ""),
    ("GET", "/openapi.json", {}, ""),
    ("GET", "/healthz", {}, ""),
    ("GET", "/readyz", {}, ""),
    ("GET", "/metrics", {}, ""),
    ("GET", "/v1/cards", {}, ""),
    ("GET", "/v1/capacity", {}, ""),
    ("GET", "/v1/rooms", {}, ""),
    ("POST", "/v1/rooms", {"Content-Type": "application/json"}, "{}"),
    ("GET", "/v1/sessions", {}, ""),
    ("GET", "/v1/trace", {}, ""),
    ("GET", "/v1/library", {}, ""),
    ("GET", "/v1/library/of-this-room", {}, ""),
    ("GET", "/v1/library/of-another", {}, ""),
    ("GET", "/v1/library/of-this-room/entries", {}, ""),
    ("GET", "/v1/library/of-this-room/1.mp4", {}, ""),
    ("GET", "/v1/library/of-this-room/1.timeline", {}, ""),
    ("POST", "/v1/library/of-this-room/rooms", {}, ""),
    ("POST", "/v1/library/of-this-room/replay", {}, ""),
    ("GET", "/v1/library/export?session=of-this-room", {}, ""),
    ("DELETE", "/v1/library/of-this-room", {}, ""),
    ("GET", "/v1/something-new", {}, ""),
    ("GET", "/v1/rooms/test/ice", {}, ""),
    ("POST", "/v1/rooms/test/livekit", {}, ""),
    ("POST", "/v1/rooms/test/offer", {"Content-Type": "application/json"}, "offer"),
    ("POST", "/v1/rooms/test/first_frame", {"Content-Type": "image/png"}, "x"),
    ("POST", "/v1/rooms/test/recording", {}, ""),
    ("DELETE", "/v1/rooms/test/recording", {}, ""),
    ("GET", "/v1/rooms/test/clip", {}, ""),
    ("POST", "/v1/rooms/test/adapters", {"Content-Type": "application/json"}, '{"stack":[]}'),
    ("POST", "/v1/rooms/test/whep", {"Content-Type": "application/sdp"}, "sdp"),
    ("POST", "/v1/rooms/test/whip", {"Content-Type": "application/sdp"}, "sdp"),
    ("PATCH", "/v1/rooms/test/whip/id", {"Content-Type": "application/trickle-ice-sdpfrag"}, ""),
    ("DELETE", "/v1/rooms/test/whip/id", {}, ""),
    ("PATCH", "/v1/rooms/test/whep/id", {"Content-Type": "application/trickle-ice-sdpfrag"}, ""),
    ("DELETE", "/v1/rooms/test/whep/id", {}, ""),
)

MESSAGES: tuple[ClientMessage, ...] = (
    messages.Input(seq=1, held=("KeyW",)),
    messages.Prompt(id=1, text="rain"),
    messages.Adapt(id=1, stack=(messages.AdapterChoice("film"),)),
    messages.PauseWorld(id=1),
    messages.ResumeWorld(id=1),
    messages.ResetWorld(id=1),
    messages.Rewind(id=1, seconds=1.0),
    messages.Fork(id=1),
    messages.Regenerate(id=1),
    messages.Seek(id=1, chunk=0),
    messages.Choose(id=1, keep=messages.Keep.TIE),
    messages.Feedback(id=1, chunk=0, value=1),
    messages.PassWheel(id=1),
    messages.RefuseWheel(id=1, to="nobody"),
    messages.Shown(frames=((0, 1.0),)),
    messages.Ping(id=1, sent_ms=1.0),
    messages.Leave(id=1),
)


async def outcome(http: httpx.AsyncClient, caller: Caller, endpoint: tuple[str, str, dict[str, str], str]) -> str:
    method, path, headers, body = endpoint
    sdp = await offer_of()
    content = {"offer": '{"sdp":' + repr(sdp).replace("'", '"') + "}", "sdp": sdp}.get(body, body)
    auth = httpx.BasicAuth(KEY.name, KEY.secret) if caller.key else None
    reply = await http.request(method, path, content=content or None, headers=headers | caller.headers(), auth=auth)
    if reply.status_code < 400:
        return str(reply.status_code)
    return f"{reply.status_code} `{reply.json()['code']}`"


async def http_table(served: Served) -> list[list[str]]:
    rows = []
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        for endpoint in ENDPOINTS:
            cells = []
            for caller in CALLERS:
                cells.append(await outcome(http, caller, endpoint))
                for viewer in served.edge.viewers:
                    viewer.leave("makes room for the next")
            rows.append([f"`{endpoint[0]} {endpoint[1]}`", *cells])
    return rows


SEATS = ("driver at the wheel", "driver without it", "co-driver without it", "spectator", "recorder")


def message_table() -> list[list[str]]:
    return [
        [f"`{type(message).__name__.lower()}`", *(answered(message, seat) for seat in SEATS)] for message in MESSAGES
    ]


def answered(message: ClientMessage, seat: str) -> str:
    """What one message from one kind of seat comes to, in a room of its own."""
    said: list[str] = []

    async def scene(house: House) -> None:
        driver, one = await come(house, Grant.DRIVER)
        if seat == "driver at the wheel":
            member, screen = driver, one
        else:
            grant = Grant(seat.removesuffix(" without it"))
            member, screen = await come(house, grant)
        if isinstance(message, messages.ResumeWorld):
            driver.receive(messages.PauseWorld(id=9))
        before = len(screen.messages)
        member.receive(message)
        await asyncio.sleep(0.2)
        new = screen.messages[before:]
        refused = [f"`{told.code}`" for told in new if isinstance(told, messages.Problem)]
        said.append(refused[0] if refused else "yes")
        assert got(screen, messages.Welcome)

    play(scene)
    return said[0]


async def come(house: House, grant: Grant) -> tuple[Participant, Screen]:
    screen = Screen()
    member = await house.rooms.join("lobby", screen, None, None, None, Rights(grant))
    assert isinstance(member, Participant)
    return member, screen


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def current(mark: str, table: str) -> None:
    """The page's table under that mark is this one; written where that is asked for."""
    text = PAGE.read_text()
    begin, end = f"<!-- {mark} -->\n", f"\n<!-- /{mark} -->"
    assert begin in text and end in text
    if os.environ.get("WORLDROOM_WRITE_DOCS"):
        text = text[: text.index(begin) + len(begin)] + table + text[text.index(end) :]
        PAGE.write_text(text)
    hint = "run with WORLDROOM_WRITE_DOCS=1 and read what has changed"
    assert text[text.index(begin) + len(begin) : text.index(end)] == table, hint


async def test_every_endpoint_by_everybody_is_what_the_page_says(web_root: Path) -> None:
    nowhere = LiveKitSpec("ws://127.0.0.1:9", KEY)
    async with serving(web_root, access=AccessSpec(keys=ApiKeys([KEY])), livekit=nowhere) as served:
        for session, room in (("of-this-room", "test"), ("of-another", "elsewhere")):
            await served.shelf.write(session, happened(3, room=room))
            await served.shelf.film(session, encoded(3), turn=2)
        rows = await http_table(served)
    current("endpoints", markdown(["", *(caller.name for caller in CALLERS)], rows))


def test_every_message_by_every_kind_of_seat_is_what_the_page_says() -> None:
    current("messages", markdown(["", *SEATS], message_table()))


def test_no_message_is_missing_from_the_table() -> None:
    assert {type(message) for message in MESSAGES} == set(ClientMessage.__args__)


@pytest.mark.parametrize("column", ["no token", "forged", "expired", "other room", "foreign origin", "wrong host"])
def test_who_has_no_token_of_this_room_gets_nothing_but_pages_and_health(column: str) -> None:
    table = PAGE.read_text().split("<!-- endpoints -->\n")[1].split("\n<!--")[0].splitlines()
    at = table[0].split(" | ").index(column)
    opened = {row.split(" | ")[0].strip("| `") for row in table[2:] if row.split(" | ")[at].startswith("2")}
    pages = {"GET /", "GET /library", "GET /r/test", "GET /web/index.html", "GET /openapi.json"}
    listed = {"GET /v1/cards", "GET /v1/capacity", "GET /v1/rooms"} if column == "other room" else set()
    assert opened <= pages | {"GET /healthz", "GET /readyz"} | listed
