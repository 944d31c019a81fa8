"""WHEP: what a player of somebody else's making meets, status by status; and a picture in the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import httpx
import pytest
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.rtcicetransport import candidate_to_aioice
from worldroom.clients.python.loopback import gather_on_loopback
from worldroom.clock import SystemClock
from worldroom.rtc.access.keys import ApiKey, ApiKeys
from worldroom.rtc.access.spec import AccessSpec
from worldroom.rtc.access.tokens import mint
from worldroom.rtc.media import ice_restart
from worldroom.rtc.media.ice_restart import another_agent, take_over
from worldroom.rtc.media.ice_servers import IceServersSpec
from worldroom.rtc.media.trickle import BadFragment, Fragment, read_fragment, write_fragment
from worldroom.sessions.messages import Grant
from worldroom.sessions.rooms.rights import Rights
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_body, offer_of, post

SDP = {"Content-Type": "application/sdp"}
FRAGMENT = {"Content-Type": "application/trickle-ice-sdpfrag"}
CANDIDATE = (
    "a=ice-ufrag:{ufrag}\r\na=ice-pwd:x\r\nm=video 9 RTP/AVP 0\r\na=mid:0\r\n"
    "a=candidate:1 1 udp 2130706431 127.0.0.1 9 typ host\r\n"
)


def client(served: Served) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served.base, trust_env=False)


async def player_offer() -> str:
    """Of a player: one video and one audio to receive, no data channel."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver("video", direction="recvonly")
    pc.addTransceiver("audio", direction="recvonly")
    sdp = (await pc.createOffer()).sdp
    await pc.close()
    return sdp


async def seen(served: Served, track: MediaStreamTrack, count: int) -> None:
    """So many pictures more."""

    async def watch() -> None:
        for _ in range(count):
            await track.recv()

    watching = asyncio.create_task(watch())
    await served.frames_until(watching.done, 10 * count)


async def opened(served: Served) -> None:
    """Somebody drives in the room."""
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 200


@asynccontextmanager
async def playing(served: Served) -> AsyncIterator[tuple[RTCPeerConnection, httpx.AsyncClient, httpx.Response]]:
    """A player beside the driver that has seen pictures, with candidates of loopback alone; and its 201."""
    await opened(served)
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver("video", direction="recvonly")
    gather_on_loopback(pc)
    await pc.setLocalDescription(await pc.createOffer())
    async with client(served) as http:
        made = await http.post("/v1/rooms/test/whep", content=pc.localDescription.sdp, headers=SDP)
        await pc.setRemoteDescription(RTCSessionDescription(made.text, "answer"))
        await seen(served, pc.getReceivers()[0].track, 5)
        yield pc, http, made
    await pc.close()


async def test_a_player_gets_a_session_with_location_and_etag_and_ends_it(served: Served) -> None:
    await opened(served)
    async with client(served) as http:
        made = await http.post("/v1/rooms/test/whep", content=await player_offer(), headers=SDP)
        assert (made.status_code, made.headers["content-type"]) == (201, "application/sdp")
        assert made.headers["location"].startswith("/v1/rooms/test/whep/") and made.headers["etag"].startswith('"')
        assert "a=sendonly" in made.text and made.text.count("m=") == 2 and "a=inactive" in made.text
        assert served.rooms.views()[0].viewers == 2
        ended = await http.delete(made.headers["location"])
        assert ended.status_code == 200
        assert served.rooms.views()[0].viewers == 1
        assert (await http.delete(made.headers["location"])).status_code == 404


async def test_a_player_sees_the_world_in_pictures(served: Served) -> None:
    await opened(served)
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver("video", direction="recvonly")
    await pc.setLocalDescription(await pc.createOffer())
    async with client(served) as http:
        made = await http.post("/v1/rooms/test/whep", content=pc.localDescription.sdp, headers=SDP)
    await pc.setRemoteDescription(RTCSessionDescription(made.text, "answer"))
    track = pc.getReceivers()[0].track
    frames = asyncio.create_task(served.frames_until(lambda: picture.done(), 200))
    picture = asyncio.ensure_future(track.recv())
    await frames
    assert (picture.result().width, picture.result().height) == (320, 192)
    await pc.close()


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({"Content-Type": "application/json"}, b"{}", 415, "not_sdp"),
        (SDP, b"", 400, "bad_sdp"),
        (SDP, b"hello", 400, "bad_sdp"),
        (SDP, b"x" * 70_000, 413, "too_large"),
    ],
)
async def test_what_is_no_offer_is_refused(
    served: Served, headers: dict[str, str], content: bytes, status: int, code: str
) -> None:
    await opened(served)
    async with client(served) as http:
        reply = await http.post("/v1/rooms/test/whep", content=content, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (status, code)


async def test_a_room_that_nobody_opened_is_a_conflict_that_says_when_to_come_back(served: Served) -> None:
    async with client(served) as http:
        reply = await http.post("/v1/rooms/test/whep", content=await player_offer(), headers=SDP)
    assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (409, "no_stream", "2")


async def test_a_player_with_neither_codec_is_told_406(served: Served) -> None:
    await opened(served)
    offer = (await offer_of(("video/VP8",))).replace("VP8/90000", "VP9/90000")
    async with client(served) as http:
        reply = await http.post("/v1/rooms/test/whep", content=offer, headers=SDP)
    assert (reply.status_code, reply.json()["code"]) == (406, "no_codec")


async def test_trickled_candidates_need_the_etag_and_a_restart_the_star(served: Served) -> None:
    await opened(served)
    async with client(served) as http:
        offer = await player_offer()
        made = await http.post("/v1/rooms/test/whep", content=offer, headers=SDP)
        place, etag = made.headers["location"], made.headers["etag"]
        ufrag = offer.split("a=ice-ufrag:")[1].split("\r\n")[0]
        own, other = CANDIDATE.format(ufrag=ufrag), CANDIDATE.format(ufrag="new1")
        for headers, body, status, code in (
            (SDP | {"If-Match": etag}, own, 415, "not_a_fragment"),
            (FRAGMENT, own, 428, "no_if_match"),
            (FRAGMENT | {"If-Match": '"no"'}, own, 412, "other_etag"),
            (FRAGMENT | {"If-Match": "*"}, other, 400, "bad_fragment"),
            (FRAGMENT | {"If-Match": etag}, other, 422, "other_ufrag"),
            (FRAGMENT | {"If-Match": etag}, "a=candidate:x", 400, "bad_fragment"),
        ):
            reply = await http.patch(place, content=body, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (status, code)
        taken = await http.patch(place, content=own, headers=FRAGMENT | {"If-Match": etag})
        assert (taken.status_code, taken.content, "etag" in taken.headers) == (204, b"", False)
        missing = await http.patch(place + "x", content=own, headers=FRAGMENT | {"If-Match": etag})
        assert missing.status_code == 404


async def test_pictures_flow_on_over_an_ice_restart(served: Served) -> None:
    async with playing(served) as (pc, http, made):
        place, etag = made.headers["location"], made.headers["etag"]
        track, transport = pc.getReceivers()[0].track, pc.getReceivers()[0].transport.transport

        agent, mid = another_agent(transport, []), pc.getTransceivers()[0].mid
        agent.get_component_candidates = partial(agent.get_component_candidates, addresses=["127.0.0.1"])
        await agent.gather_candidates()
        own = Fragment(agent.local_username, agent.local_password, ())
        body, star = write_fragment(own, "m=video 9 UDP/TLS/RTP/SAVPF 0", mid), {"If-Match": "*"}
        restarted = await http.patch(place, content=body, headers=FRAGMENT | star)
        assert (restarted.status_code, restarted.headers["content-type"]) == (200, FRAGMENT["Content-Type"])
        assert "m=video 9 UDP/TLS/RTP/SAVPF" in restarted.text and f"a=mid:{mid}\r\n" in restarted.text
        theirs, renewed = read_fragment(restarted.text), restarted.headers["etag"]
        assert renewed == f'"{theirs.ufrag}"' != etag and len(theirs.candidates) == 1
        outdated = await http.patch(place, content=body, headers=FRAGMENT | {"If-Match": etag})
        assert outdated.status_code == 412
        await seen(served, track, 5)

        agent.remote_username, agent.remote_password = theirs.ufrag, theirs.password
        for candidate in theirs.candidates:
            await agent.add_remote_candidate(candidate_to_aioice(candidate))
        (before,) = transport._connection._protocols
        await take_over(transport, agent)
        await served.until(before.transport.is_closing)
        (player,) = (each.connection for each in served.edge.viewers if each.silence_s > 5)
        heard = player.heard()
        await served.frames_until(lambda: player.heard() > heard, 200)
        await seen(served, track, 20)
        assert pc.connectionState == "connected" and transport.state == "completed"
        assert (await http.patch(place, content=body, headers=FRAGMENT | {"If-Match": renewed})).status_code == 204
        assert served.rooms.views()[0].viewers == 2, "as the same participant"


async def test_an_ice_restart_that_comes_to_nothing_ends_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ice_restart, "CHECKS_S", 0.1)
    async with playing(served) as (pc, http, made):
        for name in ("lost", "gone"):
            body, star = f"a=ice-ufrag:{name}\r\na=ice-pwd:{'p' * 22}\r\n", {"If-Match": "*"}
            assert (
                await http.patch(made.headers["location"], content=body, headers=FRAGMENT | star)
            ).status_code == 200
        await asyncio.sleep(0.15)
        await seen(served, pc.getReceivers()[0].track, 30)
        assert pc.connectionState == "connected"
        assert (await http.delete(made.headers["location"])).status_code == 200


async def test_options_get_and_head_are_what_the_drafts_reserve(served: Served) -> None:
    async with client(served) as http:
        options = await http.options("/v1/rooms/test/whep")
        assert (options.status_code, options.headers["accept-post"]) == (200, "application/sdp")
        assert (await http.get("/v1/rooms/test/whep")).status_code == 200
        head = await http.head("/v1/rooms/test/whep")
        assert (head.status_code, head.headers["content-type"]) == (200, "application/sdp")


async def test_a_token_opens_one_rooms_stream_and_a_driver_who_plays_does_not_take_the_wheel(web_root) -> None:
    key = ApiKey("studio", "s" * 40)
    async with serving(web_root, access=AccessSpec(keys=ApiKeys([key]))) as served, client(served) as http:
        assert (await http.post("/v1/rooms/test/whep", content="v=0", headers=SDP)).status_code == 401
        token = mint(key, "test", Rights(Grant.DRIVER, "ada"), SystemClock().wall())
        bearer = {"Authorization": f"Bearer {token}"}
        drives = await http.post("/v1/rooms/test/offer", json={"sdp": await offer_of()}, headers=bearer)
        assert drives.status_code == 200
        made = await http.post("/v1/rooms/test/whep", content=await player_offer(), headers=SDP | bearer)
        assert made.status_code == 201
        assert served.rooms.views()[0].viewers == 2, "the driver's own connection goes on"
        assert (await http.delete(made.headers["location"])).status_code == 401
        assert (await http.delete(made.headers["location"], headers=bearer)).status_code == 200


async def test_ice_servers_are_told_with_credentials_that_expire(web_root) -> None:
    ice = IceServersSpec(stun=("stun:s.example",), turn=("turn:t.example?transport=udp",), turn_secret="north")
    async with serving(web_root, ice=ice) as served, client(served) as http:
        told = (await http.get("/v1/rooms/test/ice")).json()
        assert told["ttl_s"] == 3600 and told["ice_servers"][0] == {"urls": ["stun:s.example"]}
        assert told["ice_servers"][1]["username"].endswith(":guest")
        await opened(served)
        made = await http.post("/v1/rooms/test/whep", content=await player_offer(), headers=SDP)
        links = made.headers.get_list("link")
        assert links[0] == '<stun:s.example>; rel="ice-server"'
        assert links[1].startswith('<turn:t.example?transport=udp>; rel="ice-server"; username="')


def test_credentials_are_an_hmac_of_expiry_and_identity() -> None:
    spec = IceServersSpec(turn=("turn:t.example",), turn_secret="north", turn_ttl_s=100)
    (server,) = spec.for_client("ada", 1000.0)
    assert (server.username, server.credential) == ("1100:ada", "EjM/H2XfupeFa2dupGvz6QfJ0p0=")


def test_fragments_without_sense_are_refused_and_mdns_names_left_out() -> None:
    assert read_fragment("a=mid:0\r\na=candidate:1 1 udp 1 x.local 9 typ host\r\n").candidates == ()
    with pytest.raises(BadFragment):
        read_fragment("a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n" * 65)
