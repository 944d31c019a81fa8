"""WHIP: what a source of somebody else's making meets, status by status; and a world that begins from its picture."""

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import msgspec
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription, VideoStreamTrack
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.rtc.access.keys import ApiKey, ApiKeys
from worldroom.rtc.access.spec import AccessSpec
from worldroom.rtc.access.tokens import mint
from worldroom.sessions.messages import Grant
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.flow.rtc import conftest
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_body, offer_of, post
from worldroom.tests.flow.rtc.test_whep import CANDIDATE, FRAGMENT, SDP, client

SIZE = api.FirstFramesSize(width=64, height=48, frames=1)


@pytest.fixture
async def studio(web_root, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """Rooms whose worlds take a first frame."""
    monkeypatch.setattr(conftest, "CARD", msgspec.structs.replace(conftest.CARD, first_frames=SIZE))
    async with serving(web_root) as served:
        yield served


async def driver(served: Served) -> dict[str, str]:
    """Somebody drives in the room; their bearer."""
    answer = await post(served.base, offer_body(await offer_of()))
    return {"Authorization": f"Bearer {answer.json()['token']}"}


async def source() -> tuple[RTCPeerConnection, str]:
    """A camera with a moving picture, and its offer."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver(VideoStreamTrack(), direction="sendonly")
    await pc.setLocalDescription(await pc.createOffer())
    return pc, pc.localDescription.sdp


async def test_a_world_begins_from_a_sources_picture_and_the_session_ends(studio: Served) -> None:
    bearer, (pc, offer) = await driver(studio), await source()
    async with client(studio) as http:
        made = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | bearer)
        assert (made.status_code, made.headers["content-type"]) == (201, "application/sdp")
        assert made.headers["location"].startswith("/v1/rooms/test/whip/") and made.headers["etag"].startswith('"')
        assert "a=recvonly" in made.text
        await pc.setRemoteDescription(RTCSessionDescription(made.text, "answer"))
        await studio.until(lambda: any(each.first_frames is not None for each in studio.engine.asked(api.Supersede)))
        (began,) = studio.engine.asked(api.Supersede)
        assert began.restart and began.first_frames is not None
        assert (began.first_frames.width, began.first_frames.height, began.first_frames.frames) == (64, 48, 1)
        assert (await http.delete(made.headers["location"], headers=bearer)).status_code == 200
        assert (await http.delete(made.headers["location"], headers=bearer)).status_code == 404
    await pc.close()


async def test_a_source_that_goes_before_its_first_picture_leaves_nothing(studio: Served) -> None:
    bearer, (pc, offer) = await driver(studio), await source()
    async with client(studio) as http:
        made = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | bearer)
        assert (await http.delete(made.headers["location"], headers=bearer)).status_code == 200
    await pc.close()
    assert not studio.engine.asked(api.Supersede)


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"Content-Type": "application/json"}, lambda _: b"{}", 415, "not_sdp"),
        (SDP, lambda _: b"", 400, "bad_sdp"),
        (SDP, lambda _: b"hello", 400, "bad_sdp"),
        (SDP, lambda _: b"x" * 70_000, 413, "too_large"),
        (SDP, lambda offer: offer.replace("a=sendonly", "a=recvonly").encode(), 400, "no_video"),
        (SDP, lambda offer: offer.replace("H264", "H263").replace("VP8", "VP7").encode(), 406, "no_codec"),
    ],
)
async def test_what_is_no_offer_is_refused(
    studio: Served, headers: dict[str, str], body: Callable[[str], bytes], status: int, code: str
) -> None:
    bearer, (pc, offer) = await driver(studio), await source()
    async with client(studio) as http:
        reply = await http.post("/v1/rooms/test/whip", content=body(offer), headers=headers | bearer)
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    await pc.close()


async def test_only_the_driver_of_an_open_room_with_such_worlds_has_a_source(served: Served, studio: Served) -> None:
    pc, offer = await source()
    async with client(studio) as http:
        reply = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP)
        assert (reply.status_code, reply.json()["code"]) == (401, "no_token")
        reply = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | {"Authorization": "Bearer x"})
        assert (reply.status_code, reply.headers["retry-after"]) == (409, "2")
        await driver(studio)
        watching = {
            "Authorization": f"Bearer {(await post(studio.base, offer_body(await offer_of()))).json()['token']}"
        }
        reply = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | watching)
        assert (reply.status_code, reply.json()["code"]) == (403, "not_driving")
    bearer = await driver(served)
    async with client(served) as http:
        reply = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | bearer)
        assert (reply.status_code, reply.json()["code"]) == (409, "no_first_frame")
    await pc.close()


async def test_a_token_whose_identity_drives_is_a_drivers(web_root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "CARD", msgspec.structs.replace(conftest.CARD, first_frames=SIZE))
    key = ApiKey("studio", "s" * 40)
    bearer = {"Authorization": f"Bearer {mint(key, 'test', Rights(Grant.DRIVER, 'ada'), SystemClock().wall())}"}
    pc, offer = await source()
    async with serving(web_root, access=AccessSpec(keys=ApiKeys([key]))) as served, client(served) as http:
        await http.post("/v1/rooms/test/offer", json={"sdp": await offer_of()}, headers=bearer)
        made = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | bearer)
        assert made.status_code == 201
        assert (await http.delete(made.headers["location"])).status_code == 401
    await pc.close()


async def test_trickled_candidates_need_the_etag_and_a_restart_the_star(studio: Served) -> None:
    bearer, (pc, offer) = await driver(studio), await source()
    async with client(studio) as http:
        made = await http.post("/v1/rooms/test/whip", content=offer, headers=SDP | bearer)
        place, etag = made.headers["location"], made.headers["etag"]
        own = CANDIDATE.format(ufrag=offer.split("a=ice-ufrag:")[1].split("\r\n")[0])
        for headers, status in (
            (SDP | {"If-Match": etag}, 415),
            (FRAGMENT, 428),
            (FRAGMENT | {"If-Match": '"no"'}, 412),
            (FRAGMENT | {"If-Match": "*"}, 204),
            (FRAGMENT | {"If-Match": etag}, 204),
        ):
            assert (await http.patch(place, content=own, headers=headers | bearer)).status_code == status
        other = f"a=ice-ufrag:other\r\na=ice-pwd:{'p' * 22}\r\n"
        early = await http.patch(place, content=other, headers=FRAGMENT | {"If-Match": "*"} | bearer)
        assert (early.status_code, early.json()["code"]) == (422, "not_connected")
    await pc.close()
    await asyncio.sleep(0)


async def test_options_get_and_head_are_what_the_rfc_reserves(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        options = await http.options("/v1/rooms/test/whip")
        assert (options.status_code, options.headers["accept-post"]) == (200, "application/sdp")
        assert (await http.get("/v1/rooms/test/whip")).status_code == 200
        assert (await http.head("/v1/rooms/test/whip")).headers["content-type"] == "application/sdp"
