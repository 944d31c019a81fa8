"""Faults of edges like this one that people met elsewhere: each test has the right value."""

import asyncio
import errno
import gc
import os
import random
import signal
import socket
import threading
from pathlib import Path

import httpx
import msgspec
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.exceptions import InvalidStateError
from fastapi import FastAPI
from worldroom.cli.serve import listen
from worldroom.clock import SystemClock
from worldroom.engine import api
from worldroom.rtc import viewer
from worldroom.rtc.http import lists, server
from worldroom.rtc.http.server import AcceptFaults, EdgeServer
from worldroom.rtc.media.connection import ViewerConnection
from worldroom.rtc.media.offer import BadOffer, read_offer
from worldroom.rtc.media.sctp import MESSAGE_BYTES_MAX
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.malformed import misplace
from worldroom.tests.flow.rtc.test_rtc_app import offer_body, offer_of, post

AUDIO = (
    "m=audio 0 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=mid:{mid}\r\na=inactive\r\na=rtpmap:111 opus/48000/2\r\n"
)


def sections(sdp: str) -> list[list[str]]:
    """[kind, port, mid] of every media section."""
    found = []
    for part in sdp.split("m=")[1:]:
        kind, port = part.split(" ")[:2]
        found.append([kind, "0" if port == "0" else "port", part.split("a=mid:")[1].split("\r\n")[0]])
    return found


async def test_case_114_a_rejected_section_is_answered_at_its_place_with_port_0(served: Served) -> None:
    offer = await offer_of()
    head, video = offer.split("m=video", 1)
    before = head + AUDIO.format(mid="x") + "m=video" + video
    after = offer + AUDIO.format(mid="y")
    for text, expected in (
        (before, [["audio", "0", "x"], ["video", "port", "0"], ["application", "port", "1"]]),
        (after, [["video", "port", "0"], ["application", "port", "1"], ["audio", "0", "y"]]),
    ):
        reply = await post(served.base, offer_body(text))
        assert reply.status_code == 200, reply.text
        answer = reply.json()["sdp"]
        assert sections(answer) == expected
        assert "a=group:BUNDLE 0 1\r\n" in answer


async def test_case_114_sections_that_no_viewer_needs_are_rejected_and_the_rest_plays(served: Served) -> None:
    offer = await offer_of()
    text = AUDIO.format(mid="t").replace("m=audio 0", "m=text 9")
    second = "m=video" + offer.split("m=video")[1].split("m=application")[0].replace("a=mid:0", "a=mid:9")
    bundled = offer.replace("BUNDLE 0 1", "BUNDLE 0 1 t 9")
    reply = await post(served.base, offer_body(bundled + text + second))
    assert reply.status_code == 200, reply.text
    assert [part[1] for part in sections(reply.json()["sdp"])] == ["port", "port", "0", "0"]


async def test_case_114_a_video_that_is_stopped_is_no_video(served: Served) -> None:
    reply = await post(served.base, offer_body((await offer_of()).replace("m=video 9", "m=video 0")))
    assert (reply.status_code, reply.json()["code"]) == (400, "no_video"), reply.text


async def test_case_108_the_shortest_offer_that_broke_the_parser_is_a_4xx(served: Served) -> None:
    reply = await post(served.base, offer_body((await offer_of()).replace("a=mid:0", "a=fmtp:0 x=1\r\na=mid:0")))
    assert reply.status_code in (200, 400), reply.text


def mutated(text: str, dice: random.Random) -> str:
    """A line left out, doubled, moved, cut, or with letters of another."""
    lines = text.split("\r\n")
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    match how := dice.randrange(6):
        case 0 | 1 | 2 | 3:
            misplace(dice, lines, how, at, other)
        case 4:
            lines[at] = lines[at].replace(dice.choice("0123456789:/ ="), dice.choice(["", "x", "99999999999", " "]))
        case _:
            lines.insert(at, dice.choice(["a=fmtp:0 x=1", "a=rtpmap:x", "m=video", "a=ssrc:x y", "a=rtcp-fb:96"]))
    return "\r\n".join(lines)


async def test_case_108_no_mutated_offer_is_the_servers_fault(served: Served) -> None:
    dice, whole = random.Random(108), await offer_of()
    statuses: dict[int, int] = {}
    for _ in range(120):
        text = whole
        for _ in range(dice.randrange(1, 4)):
            text = mutated(text, dice)
        reply = await post(served.base, offer_body(text))
        statuses[reply.status_code] = statuses.get(reply.status_code, 0) + 1
        for each in served.edge.viewers:
            each.leave("makes room for the next")
    assert set(statuses) <= {200, 400, 422}, statuses
    assert len(statuses) > 1


def test_case_108_thousands_of_mutated_offers_are_read_or_refused() -> None:
    dice = random.Random(7)
    whole = asyncio.run(offer_of())
    for _ in range(2000):
        text = whole
        for _ in range(dice.randrange(1, 6)):
            text = mutated(text, dice)
        try:
            assert read_offer(text).read
        except BadOffer as refusal:
            assert refusal.code == "bad_sdp"


async def test_case_103_a_message_without_end_ends_its_connection_and_no_other(served: Served) -> None:
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver("video", direction="recvonly")
    control = pc.createDataChannel("control")
    told: list[str] = []
    control.on("message", told.append)
    await pc.setLocalDescription(await pc.createOffer())
    reply = await post(served.base, offer_body(pc.localDescription.sdp))
    answer = reply.json()["sdp"]
    assert f"a=max-message-size:{MESSAGE_BYTES_MAX}" in answer
    await pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
    await served.until(lambda: control.readyState == "open")
    assert len(served.edge.viewers) == 1
    assert pc.sctp is not None
    pc.sctp._remote_max_message_size = 0  # a peer that does not heed the answer
    control.send(b"x" * (4 * MESSAGE_BYTES_MAX))
    await served.until(lambda: served.edge.viewers == ())
    assert served.edge.totals().malformed == 1
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 200
    await pc.close()


async def test_case_110_a_storm_of_offers_is_worked_on_one_at_a_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, most = 0, 0
    take = ViewerConnection.take_offer

    async def counted(self: ViewerConnection, sdp: str) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await take(self, sdp)
        at_work -= 1

    monkeypatch.setattr(ViewerConnection, "take_offer", counted)
    body = offer_body(await offer_of())
    replies = await asyncio.gather(*(post(served.base, body) for _ in range(40)))
    full = [reply for reply in replies if reply.status_code == 503]
    assert {reply.status_code for reply in replies} == {200, 503} and most == 1
    assert {reply.json()["code"] for reply in full} == {"room_full"}


async def test_case_110_a_storm_of_reloads_leaves_the_last_and_tells_the_others(served: Served) -> None:
    sdp = await offer_of()
    token = (await post(served.base, offer_body(sdp))).json()["token"]
    body = msgspec.json.encode({"sdp": sdp, "token": token})
    replies = await asyncio.gather(*(post(served.base, body) for _ in range(20)))
    told = [(reply.status_code, reply.json().get("code")) for reply in replies]
    assert set(told) == {(200, None), (409, "taken_over")} and told.count((409, "taken_over")) >= 10
    await served.until(lambda: len(served.edge.viewers) == 1)


async def test_case_110_who_stands_in_line_for_an_answer_has_not_failed_to_connect(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ViewerConnection.answer

    async def late(self: ViewerConnection) -> str:
        await asyncio.sleep(1.2)  # the edge looks at its viewers twice a second
        return await answer(self)

    monkeypatch.setattr(viewer, "CONNECT_TIMEOUT", 0.2)
    monkeypatch.setattr(ViewerConnection, "answer", late)
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 200


async def test_case_98_without_descriptors_an_offer_is_a_503_that_says_when_to_come_back(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "worldroom.rtc")

    async def none_left(self: ViewerConnection) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(ViewerConnection, "answer", none_left)
    for _ in range(20):
        reply = await post(served.base, offer_body(await offer_of()))
        assert (reply.status_code, reply.json()["code"], reply.headers["retry-after"]) == (503, "exhausted", "5")
    assert served.edge.viewers == ()
    assert len([line for line in caplog.messages if "offer failed" in line]) == 3
    assert not any(record.exc_info for record in caplog.records)


async def test_case_111_who_never_says_what_they_want_is_hung_up_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEAD_S", 0.2)
    port = int(served.base.rsplit(":", 1)[1])
    async with asyncio.timeout(15):
        for said in (b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(said)
            answer = await reader.read()
            assert (b"200 OK" in answer) is (b"Host" in said)
            writer.close()


async def test_case_111_beyond_the_limit_connections_are_hung_up_on_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    port = int(served.base.rsplit(":", 1)[1])
    kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(5):
        with pytest.raises(ConnectionError):
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            if not await reader.read():
                raise ConnectionResetError
    for _, open_writer in kept:
        open_writer.close()


def test_case_111_what_cannot_be_accepted_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    faults = AcceptFaults(SystemClock())
    for _ in range(100):
        error = OSError(errno.EMFILE, "Too many open files")
        faults.heard(loop, {"message": "socket.accept() out of system resource", "exception": error})
    loop.close()
    assert len(caplog.messages) == 1 and "ulimit" in caplog.messages[0]


async def test_case_105_small_answers_leave_at_once() -> None:
    listener = listen("127.0.0.1", 0)
    sockets: list[int] = []

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sockets.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(accepted, sock=listener):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        await reader.read()
        writer.close()
    assert sockets == [1]


async def test_case_106_a_trace_is_made_beside_the_loop_bounded_and_one_at_a_time(
    web_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(web_root) as served, httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        step = api.BatchRan("cpu", "toy", "chunk_rollout", "denoise", ("s",), 1.0, 1.1, 0.01, 0.01)
        monkeypatch.setattr(served.engine, "steps", lambda: (step,) * 10_000, raising=False)
        events = (await http.get("/v1/trace")).json()["traceEvents"]
        assert len(events) < 3 * lists.STEPS_MAX + 10
        gate = threading.Event()
        monkeypatch.setattr(served.engine, "steps", lambda: (step,) if gate.wait(10) else ())
        asked = [asyncio.create_task(http.get("/v1/trace")) for _ in range(2)]
        (refused,), (waiting,) = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert (refused.result().status_code, refused.result().json()["code"]) == (503, "busy")
        assert (await http.get("/healthz")).status_code == 200, "the loop goes on"
        gate.set()
        assert (await waiting).status_code == 200


def test_case_89_a_hang_up_of_the_terminal_is_a_request_to_stop_but_not_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        for ignored in (False, True):
            if ignored:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            stopping = EdgeServer(FastAPI())
            with stopping.capture_signals():
                os.kill(os.getpid(), signal.SIGHUP)
            assert stopping.should_exit is not ignored
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_case_56_a_storm_of_reloads_leaves_no_error_in_the_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Each offer takes the seat over while the connection before it is still being made."""
    token = None
    for _ in range(12):
        pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        pc.addTransceiver("video", direction="recvonly")
        pc.createDataChannel("control")
        await pc.setLocalDescription(await pc.createOffer())
        body = msgspec.json.encode({"sdp": pc.localDescription.sdp} | ({"token": token} if token else {}))
        reply = await post(served.base, body)
        assert reply.status_code == 200
        token = reply.json()["token"]
        await asyncio.sleep(0.02)
        await pc.close()
    for each in served.edge.viewers:
        each.leave("the last one")
    await asyncio.sleep(0.5)
    gc.collect()  # a task whose exception nobody took says so when it is collected
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_case_56_a_connection_that_ends_while_it_is_made_has_not_failed(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[RTCPeerConnection] = []

    async def connect(self: RTCPeerConnection) -> None:
        """As aiortc does when the transport was stopped between two sections of the offer."""
        ended.append(self)
        raise InvalidStateError("RTCIceTransport is closed")

    monkeypatch.setattr(RTCPeerConnection, "_RTCPeerConnection__connect", connect)
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 200
    await asyncio.sleep(0.2)
    gc.collect()
    assert any(isinstance(each, ViewerConnection) for each in ended)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
