"""HTTP: what the application answers, above all when something is wrong with the question."""

import asyncio

import httpx
import msgspec
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection
from worldroom.engine.api import Close, RefusalReason, Refused, Shortage, Unit
from worldroom.rtc.media.packets import PLAYOUT_DELAY_URI
from worldroom.rtc.media.transport_feedback import TRANSPORT_CC_URI


async def offer_of(codecs: tuple[str, ...] = (), direction: str = "recvonly") -> str:
    """A browser-like offer; `codecs` = mime types to keep."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    transceiver = pc.addTransceiver("video", direction=direction)
    if codecs:
        capabilities = transceiver.receiver.getCapabilities("video").codecs
        transceiver.setCodecPreferences([c for c in capabilities if c.mimeType in codecs])
    pc.createDataChannel("control")
    description = await pc.createOffer()
    sdp = description.sdp
    await pc.close()
    return sdp


async def post(base: str, body: bytes, room: str = "test") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        headers = {"Content-Type": "application/json"}
        return await http.post(f"{base}/v1/rooms/{room}/offer", content=body, headers=headers)


def offer_body(sdp: str) -> bytes:
    return msgspec.json.encode({"sdp": sdp})


async def test_the_front_door_is_a_lobby_and_play_leads_to_a_fresh_room(served) -> None:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        front = await http.get("/")
        assert front.status_code == 200 and "the lobby" in front.text
        play = await http.get("/play")
        assert play.status_code == 302
        page = await http.get(f"/{play.headers['location']}")
        assert page.status_code == 200 and "a room" in page.text
        assert (await http.get("/web/index.html")).status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "back"),
    [
        ("/r/bad%20name", 400, "../"),
        ("/nowhere", 404, "./"),
        ("/r/a/b/c", 404, "../../../"),
        ("/v1/nothing", 404, "../"),
    ],
)
async def test_case_64_a_person_gets_a_page_where_a_program_gets_json(
    served, path: str, status: int, back: str
) -> None:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        person = await http.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert person.status_code == status
        assert person.headers["content-type"].startswith("text/html")
        assert f"<a href='{back}'>" in person.text
        for accept in ("*/*", "application/json"):
            program = await http.get(path, headers={"Accept": accept})
            assert program.status_code == status
            assert set(program.json()) == {"code", "detail"}


async def test_case_64_a_page_about_a_wrong_address_runs_nothing_of_it(served) -> None:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        page = await http.get("/%3Cscript%3Ealert(1)%3C/script%3E", headers={"Accept": "text/html"})
        assert "<script>" not in page.text


async def test_lists_health_and_metrics(served) -> None:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        assert (await http.get("/healthz")).json() == {"ok": True}
        assert (await http.get("/readyz")).json() == {"ready": True}
        served.engine.ready = False
        not_ready = await http.get("/readyz")
        assert not_ready.status_code == 503 and not_ready.json()["code"] == "not_ready"
        assert (await http.get("/v1/cards")).json() == []
        assert (await http.get("/v1/rooms")).json() == []
        assert (await http.get("/v1/capacity")).json()[0]["card"] == "toy"
        metrics = (await http.get("/metrics")).text
        for name in ("viewers", "rooms", "edge_plis_total", "edge_nacks_total", "queue_depth", "chunks_late_total"):
            assert f"\nworldroom_{name}" in metrics, name
        missing = await http.get("/v1/nothing")
        assert missing.status_code == 404 and missing.json() == {"code": "not_found", "detail": "GET /v1/nothing"}
        wrong = await http.get("/v1/rooms/test/offer")
        assert wrong.status_code == 405 and wrong.json()["code"] == "method_not_allowed"


BAD_SDPS = [
    "",
    "v=0",
    "hello",
    "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n",
    "v=0\r\nm=video\r\n",
    "v=0\r\nm=video x UDP/TLS/RTP/SAVPF 96\r\n",
    "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=sctp-port:x\r\n",
    "v=0\r\na=group:BUNDLE 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=ice-ufrag:a\r\na=ice-pwd:b\r\na=rtpmap:zz\r\n",
    "\x00" * 100,
]


@pytest.mark.parametrize("sdp", BAD_SDPS)
async def test_a_bad_sdp_gets_a_4xx_and_leaves_nothing_behind(served, sdp: str) -> None:
    reply = await post(served.base, offer_body(sdp))
    assert reply.status_code == 400, reply.text
    assert set(reply.json()) == {"code", "detail"}
    assert served.edge.viewers == () and served.rooms.views() == () and served.edge.streams() == {}


async def test_a_mutilated_real_offer_gets_a_4xx_at_every_line(served) -> None:
    lines = (await offer_of()).splitlines()
    for index in range(0, len(lines), 3):
        kept = [line[: len(line) // 2] if i == index else line for i, line in enumerate(lines)]
        reply = await post(served.base, offer_body("\r\n".join(kept)))
        assert reply.status_code in (200, 400, 422), (lines[index], reply.status_code, reply.text)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad_body"),
        (b"{", 400, "bad_body"),
        (b'{"sdp":1}', 400, "bad_body"),
        (b'{"sdp":"v=0","more":1}', 400, "bad_body"),
        (b'{"sdp":"v=0","role":"king"}', 400, "bad_body"),
        (b"x" * 70_000, 413, "too_large"),
    ],
)
async def test_bodies_are_strict_and_bounded(served, body: bytes, status: int, code: str) -> None:
    reply = await post(served.base, body)
    assert (reply.status_code, reply.json()["code"]) == (status, code)


async def test_only_json_is_read_so_that_other_sites_cannot_post_forms(served) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        reply = await http.post(f"{served.base}/v1/rooms/test/offer", data={"sdp": "v=0"})
    assert (reply.status_code, reply.json()["code"]) == (415, "not_json")


async def test_a_peer_with_neither_codec_is_told_so(served) -> None:
    vp9_only = (await offer_of(("video/VP8",))).replace("VP8/90000", "VP9/90000")
    reply = await post(served.base, offer_body(vp9_only))
    assert (reply.status_code, reply.json()["code"]) == (422, "no_codec")


async def test_h264_is_answered_before_vp8_and_vp8_where_there_is_no_other(served) -> None:
    both = (await post(served.base, offer_body(await offer_of()))).json()["sdp"]
    assert "H264/90000" in both and "VP8/90000" not in both
    one = (await post(served.base, offer_body(await offer_of(("video/VP8",))))).json()["sdp"]
    assert "VP8/90000" in one and "H264/90000" not in one


async def test_a_peer_that_only_sends_video_is_told_so(served) -> None:
    reply = await post(served.base, offer_body(await offer_of(direction="sendonly")))
    assert (reply.status_code, reply.json()["code"]) == (400, "no_video")


async def test_the_answer_promises_only_what_is_done(served) -> None:
    more = ("a=rtcp-fb:99 transport-cc", "a=rtcp-fb:99 ccm fir", f"a=extmap:6 {PLAYOUT_DELAY_URI}")
    offered = (await offer_of()).replace("a=rtcp-fb:99 nack pli", "\r\n".join(("a=rtcp-fb:99 nack pli", *more)))
    reply = await post(served.base, offer_body(offered))
    assert reply.status_code == 200, reply.text
    answer = reply.json()["sdp"]
    video = answer[answer.index("m=video") :].split("m=application")[0]
    assert "transport-cc" not in answer and "transport-wide-cc" not in answer and "ccm fir" not in answer
    assert "a=sendonly" in video and "VP8" not in video
    assert video.count("a=rtpmap") == 2 and "profile-level-id=42e01f" in video
    assert "packetization-mode=1" in video
    assert more[-1] in video
    assert "127.0.0.1" in answer and "typ host" in answer and "typ srflx" not in answer


async def test_transport_wide_feedback_is_taken_where_packets_may_be_numbered_and_the_codec_has_it(served) -> None:
    feedback, numbers = "a=rtcp-fb:101 transport-cc", f"a=extmap:9 {TRANSPORT_CC_URI}"
    for lines, taken in ((feedback, False), (numbers, False), (f"{feedback}\r\n{numbers}", True)):
        offered = (await offer_of()).replace("a=rtcp-fb:101 nack pli", f"a=rtcp-fb:101 nack pli\r\n{lines}")
        answer = (await post(served.base, offer_body(offered))).json()["sdp"]
        assert (feedback in answer and numbers in answer) is taken
        assert ("transport-cc" in answer or TRANSPORT_CC_URI in answer) is taken


async def test_refusals_say_when_to_come_back(served) -> None:
    figures = Shortage(needed=1, used=4, limit=4, unit=Unit.PLACES)
    served.engine.refusal = Refused("", RefusalReason.NO_SLOT, "4 of 4 slots in use", 2, 3.2, figures)
    reply = await post(served.base, offer_body(await offer_of()))
    assert reply.status_code == 503 and reply.headers["retry-after"] == "4"
    assert reply.json() == {
        "code": "no_slot",
        "detail": "4 of 4 slots in use",
        "reason": "no_slot",
        "queue_place": 2,
        "retry_after_s": 3.2,
        "figures": {"needed": 1.0, "used": 4.0, "limit": 4.0, "unit": "places"},
    }
    served.engine.refusal = Refused("", RefusalReason.CONFLICT, "already loading", 0, 1.0)
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 409
    assert served.edge.viewers == ()


async def test_who_hangs_up_while_the_room_waits_for_a_place_waits_no_longer(served, caplog) -> None:
    caplog.set_level("INFO", "worldroom.rtc")
    served.engine.gate = asyncio.Event()
    with pytest.raises(httpx.ReadTimeout):
        async with httpx.AsyncClient(trust_env=False, timeout=0.5) as http:
            headers = {"Content-Type": "application/json"}
            body = offer_body(await offer_of())
            await http.post(f"{served.base}/v1/rooms/test/offer", content=body, headers=headers)
    await served.until(lambda: len(served.engine.asked(Close)) == 1 and served.edge.viewers == ())
    assert caplog.messages == [], "that is nobody's fault"
    served.engine.gate.set()
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 200
    assert served.rooms.views()[0].viewers == 1


async def test_an_exhausted_port_range_is_a_clear_503_and_frees_its_seat(served_on_one_port) -> None:
    served = served_on_one_port
    first = await post(served.base, offer_body(await offer_of()))
    second = await post(served.base, offer_body(await offer_of()))
    assert first.status_code == 200, first.text
    assert (second.status_code, second.json()["code"]) == (503, "no_udp_port")
    assert second.headers["retry-after"] == "2"
    assert served.rooms.views()[0].viewers == 1, "the first one's"
