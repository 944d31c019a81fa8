"""The door: names and origins, tokens, proxies and rates; each refusal typed, counted, and nothing more than that."""

import ipaddress
import socket
from pathlib import Path

import httpx
import pytest
from worldroom.clock import SystemClock
from worldroom.rtc.access.keys import ApiKey, ApiKeys
from worldroom.rtc.access.spec import AccessSpec, AddressLimits
from worldroom.rtc.access.tokens import mint, read
from worldroom.sessions.messages import Grant
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_of

KEY = ApiKey("studio", "s" * 40)
KEYED = AccessSpec(keys=ApiKeys([KEY]))
NOW = 2_000_000_000.0


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def client(served: Served) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served.base, trust_env=False)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "192.168.1.7", "localhost.evil.example", ""])
async def test_case_51_a_server_on_loopback_answers_to_no_other_name(served: Served, host: str) -> None:
    async with client(served) as http:
        for path in ("/", "/r/test", "/v1/rooms", "/metrics", "/web/index.html"):
            refused = await http.get(path, headers={"Host": host})
            assert 400 <= refused.status_code < 500, path
        assert (await http.get("/healthz", headers={"Host": host})).status_code in (200, 400)
        made = await http.post("/v1/rooms/test/offer", json={"sdp": await offer_of()}, headers={"Host": host})
        assert made.status_code in (400, 421) and served.rooms.views() == ()


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9", "127.0.0.1", "127.9.9.9:8080", "[::1]:8080", "LOCALHOST."]
)
async def test_it_answers_to_this_machine_by_every_name_of_its_loopback(served: Served, host: str) -> None:
    async with client(served) as http:
        assert (await http.get("/v1/rooms", headers={"Host": host})).status_code == 200


async def test_beyond_loopback_addresses_are_answered_and_names_only_where_they_were_given(web_root: Path) -> None:
    spec = AccessSpec(loopback=False, hosts=("play.example.com", ".worlds.example"))
    async with serving(web_root, access=spec) as served, client(served) as http:
        for host, status in {
            "192.168.1.7:8080": 200,
            "[fd00::7]": 200,
            "play.example.com": 200,
            "a.worlds.example": 200,
            socket.gethostname(): 200,
            "worlds.example.evil.example": 421,
            "evil.example": 421,
        }.items():
            assert (await http.get("/v1/rooms", headers={"Host": host})).status_code == status, host


async def test_case_51_a_page_of_another_origin_changes_nothing_and_reads_nothing(served: Served) -> None:
    async with client(served) as http:
        for origin in ("https://evil.example", "http://127.0.0.1:1", "null"):
            asked = {"Origin": origin, "Content-Type": "application/json"}
            reply = await http.post("/v1/rooms/test/offer", content=b"{}", headers=asked)
            assert (reply.status_code, reply.json()["code"]) == (403, "foreign_origin")
            assert (await http.get("/v1/rooms", headers=asked)).status_code == 403
        own = {"Origin": served.base}
        reply = await http.post("/v1/rooms/test/offer", json={"sdp": await offer_of()}, headers=own)
        assert reply.status_code == 200


async def test_a_site_that_was_allowed_embeds_and_reads(web_root: Path) -> None:
    site = "https://site.example"
    async with serving(web_root, access=AccessSpec(origins=(site,))) as served, client(served) as http:
        asks = {"Origin": site, "Access-Control-Request-Method": "POST"}
        preflight = await http.options("/v1/rooms/test/offer", headers=asks)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == site
        assert "Authorization" in preflight.headers["access-control-allow-headers"]
        reply = await http.post("/v1/rooms/test/offer", json={"sdp": await offer_of()}, headers={"Origin": site})
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, site)
        assert "Origin" in reply.headers["vary"]
        page = await http.get("/r/test")
        assert f"frame-ancestors 'self' {site};" in page.headers["content-security-policy"]
        other = await http.options("/v1/rooms/test/offer", headers=asks | {"Origin": "https://evil.example"})
        assert other.status_code == 403 and "access-control-allow-origin" not in other.headers


async def test_case_51_nobody_frames_the_page_unless_allowed(served: Served) -> None:
    async with client(served) as http:
        page = await http.get("/r/test")
        assert page.headers["content-security-policy"].startswith("frame-ancestors 'self';")
        assert page.headers["x-content-type-options"] == "nosniff"


async def test_a_back_end_makes_rooms_with_its_key_and_its_people_come_in_with_the_token(web_root: Path) -> None:
    async with serving(web_root, access=KEYED) as served, client(served) as http:
        ask = {"room": "cup", "identity": "ada", "role": "driver", "name": "Ada", "ttl_s": 60}
        assert (await http.post("/v1/rooms", json=ask)).status_code == 401
        assert (await http.post("/v1/rooms", json=ask, auth=("studio", "wrong" * 10))).status_code == 401
        made = await http.post("/v1/rooms", json=ask, auth=(KEY.name, KEY.secret))
        assert made.status_code == 201 and made.json()["path"] == "/r/cup"
        token = made.json()["token"]
        assert read(KEYED.keys, token, SystemClock().wall()).rights == Rights(Grant.DRIVER, "ada", "Ada")
        reply = await http.post("/v1/rooms/cup/offer", json={"sdp": await offer_of()}, headers=bearer(token))
        assert reply.status_code == 200, reply.text
        elsewhere = await http.post("/v1/rooms/other/offer", json={"sdp": await offer_of()}, headers=bearer(token))
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (403, "other_room")
        bad = await http.post("/v1/rooms", json={"role": "king"}, auth=(KEY.name, KEY.secret))
        assert (bad.status_code, bad.json()["code"]) == (400, "bad_body")


async def test_an_open_server_names_rooms_for_anybody_here(served: Served) -> None:
    async with client(served) as http:
        made = await http.post("/v1/rooms")
        assert made.status_code == 201
        assert made.json() == {"room": made.json()["room"], "path": f"/r/{made.json()['room']}"}


async def test_how_several_drive_is_said_by_the_token_else_by_who_opens_the_room(web_root: Path) -> None:
    async with serving(web_root, access=KEYED) as served, client(served) as http:

        async def opened(room: str, role: str, token_says: str | None, offer_says: str) -> str:
            ask = {"room": room, "identity": "ada", "role": role, "drivers": token_says}
            made = await http.post("/v1/rooms", json=ask, auth=(KEY.name, KEY.secret))
            assert made.json()["path"] == f"/r/{room}"
            body = {"sdp": await offer_of(), "drivers": offer_says}
            reply = await http.post(f"/v1/rooms/{room}/offer", json=body, headers=bearer(made.json()["token"]))
            assert reply.status_code == 200, reply.text
            return next(view.drivers for view in served.rooms.views() if view.room == room)

        assert await opened("one", "driver", "vote:3", "controls:2") == "vote:3"
        assert await opened("two", "driver", None, "controls:2") == "controls:2"
        assert await opened("three", "spectator", None, "controls:2") == "turns"
        assert await opened("one", "driver", "turns", "turns") == "vote:3", "a room that is open keeps its own"


async def test_a_rule_for_drivers_that_is_none_is_refused(served: Served) -> None:
    async with client(served) as http:
        for ask in ({"drivers": "votes"}, {"drivers": "controls:left,left"}):
            bad = await http.post("/v1/rooms", json=ask)
            assert bad.status_code == 400 and bad.json()["code"] in ("bad_body", "bad_drivers")
        made = await http.post("/v1/rooms", json={"room": "cup", "drivers": "controls:left+right,up"})
        assert made.json()["path"] == "/r/cup?drivers=controls:left%2Bright,up"
        refused = await http.post(
            "/v1/rooms/cup/offer", json={"sdp": await offer_of(), "drivers": "controls:left+fire,up"}
        )
        assert (refused.status_code, refused.json()["code"]) == (400, "drivers")
        assert "no control 'fire'" in refused.json()["detail"]


async def test_expired_foreign_and_forged_tokens_are_told_apart(web_root: Path) -> None:
    async with serving(web_root, access=KEYED) as served, client(served) as http:
        tokens = {
            "token_expired": mint(KEY, "test", Rights(), 1_000_000.0),
            "unknown_key": mint(ApiKey("other", "o" * 40), "test", Rights(), NOW),
            "bad_token": mint(ApiKey("studio", "x" * 40), "test", Rights(), NOW),
        }
        for code, token in tokens.items():
            reply = await http.post("/v1/rooms/test/offer", json={"sdp": "v=0"}, headers=bearer(token))
            assert (reply.status_code, reply.json()["code"]) == (401, code)
            assert reply.headers["www-authenticate"] == "Bearer"
        metrics = await http.get("/metrics", auth=(KEY.name, KEY.secret))
        assert 'worldroom_edge_refused_total{code="token_expired"} 1.0' in metrics.text


async def test_a_proxy_is_believed_only_where_it_was_named(web_root: Path) -> None:
    told = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "play.example.com", "X-Forwarded-Proto": "https"}
    async with serving(web_root) as served, client(served) as http:
        assert (await http.get("/v1/rooms", headers=told)).status_code == 200, "ignored"
    loopback = (ipaddress.ip_network("127.0.0.0/8"),)
    spec = AccessSpec(
        proxies=loopback, hosts=("play.example.com",), limits=AddressLimits(offers_per_s=0.1, offers_burst=1)
    )
    async with serving(web_root, access=spec) as served, client(served) as http:
        own = told | {"Origin": "https://play.example.com"}
        offer = {"sdp": await offer_of()}
        assert (await http.post("/v1/rooms/test/offer", json=offer, headers=own)).status_code == 200
        again = await http.post("/v1/rooms/test/offer", json=offer, headers=own)
        assert (again.status_code, again.json()["code"], again.headers["retry-after"]) == (429, "too_many_offers", "1")
        other = own | {"X-Forwarded-For": "203.0.113.10"}
        assert (await http.post("/v1/rooms/test/offer", json=offer, headers=other)).status_code == 200
        lies = own | {"X-Forwarded-For": "203.0.113.77, 203.0.113.10"}
        assert (await http.post("/v1/rooms/test/offer", json=offer, headers=lies)).status_code == 429, (
            "last is believed"
        )


async def test_one_address_holds_no_more_viewers_than_its_share(web_root: Path) -> None:
    spec = AccessSpec(limits=AddressLimits(viewers=2))
    async with serving(web_root, access=spec) as served, client(served) as http:
        replies = [await http.post("/v1/rooms/test/offer", json={"sdp": await offer_of()}) for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 200, 503]
        assert replies[2].json()["code"] == "too_many_from_address"


async def test_requests_beyond_the_rate_are_refused_and_counted(web_root: Path) -> None:
    spec = AccessSpec(limits=AddressLimits(requests_per_s=0.1, requests_burst=3))
    async with serving(web_root, access=spec) as served, client(served) as http:
        replies = [await http.get("/v1/rooms") for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
        assert replies[3].json()["code"] == "too_many_requests"


@pytest.mark.parametrize("base", ["", "/world"])
async def test_case_92_under_a_base_path_everything_works_whether_the_proxy_takes_it_off_or_not(
    web_root: Path, base: str
) -> None:
    async with serving(web_root, access=AccessSpec(base_path="/world")) as served, client(served) as http:
        assert (await http.get(f"{base}/")).status_code == 200
        assert (await http.get(f"{base}/r/test")).status_code == 200
        assert (await http.get(f"{base}/v1/rooms")).json() == []
        made = await http.post(f"{base}/v1/rooms", json={"room": "cup"})
        assert made.json()["path"] == "/world/r/cup"
        offer = await http.post(f"{base}/v1/rooms/test/offer", json={"sdp": await offer_of()})
        assert offer.status_code == 200
        assert (await http.get("/worldly")).status_code == 404


async def test_case_91_head_is_get_without_a_body_and_a_wrong_method_says_which_is_right(served: Served) -> None:
    async with client(served) as http:
        for path in ("/", "/r/test", "/healthz", "/readyz", "/metrics", "/v1/rooms", "/v1/cards", "/web/index.html"):
            head, get = await http.head(path), await http.get(path)
            assert (head.status_code, head.content) == (get.status_code, b""), path
            assert head.headers["content-type"] == get.headers["content-type"]
        wrong = await http.get("/v1/rooms/test/offer")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
