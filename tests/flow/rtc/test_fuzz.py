"""Nonsense from every side, seeded: nothing of it ends a room, each is answered or counted.

Short in `make test`; ten thousand of them in `make slow`.
"""

import random
from contextlib import AbstractAsyncContextManager

import httpx
import pytest
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from worldroom.clients.python.room import RoomClient, join
from worldroom.rtc.access.spec import AccessSpec, AddressLimits
from worldroom.rtc.wire import Channel, WireError, decode_client
from worldroom.sessions.messages import Leave
from worldroom.tests.flow.rtc import malformed
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_body, offer_of, post

LONG = pytest.mark.timeout(1800)
BUSY = AccessSpec(limits=AddressLimits(1e6, 1_000_000, 1e6, 1_000_000, 256))


@pytest.mark.parametrize(("seed", "count"), [(1, 200), pytest.param(2, 4000, marks=pytest.mark.slow)])
async def test_malformed_http_is_answered_and_the_room_goes_on(web_root, seed: int, count: int) -> None:
    dice, sdp = random.Random(seed), await offer_of()
    async with serving(web_root, access=BUSY) as served, driving(served) as driver:
        async with httpx.AsyncClient(base_url=served.base, trust_env=False, timeout=30) as http:
            for _ in range(count):
                bad = malformed.requests(dice, sdp)
                headers = {name: value.encode("utf-8") for name, value in bad.headers.items()}
                reply = await http.request(bad.method, bad.path, headers=headers, content=bad.body)
                assert reply.status_code < 500 or reply.status_code == 503, (seed, bad, reply.text)
                if (
                    reply.status_code >= 400
                    and bad.method != "HEAD"
                    and "json" in reply.headers.get("content-type", "")
                ):
                    assert reply.json()["code"], (seed, bad)
                tidy(served)
        await alive(served, driver)


@pytest.mark.parametrize(("seed", "count"), [(1, 60), pytest.param(2, 3000, marks=[pytest.mark.slow, LONG])])
async def test_malformed_sdp_is_answered_and_leaves_nothing(web_root, seed: int, count: int) -> None:
    dice, sdp = random.Random(seed), await offer_of()
    async with serving(web_root, access=BUSY) as served, driving(served) as driver:
        for _ in range(count):
            text = malformed.spoilt_sdp(dice, sdp)
            reply = await post(served.base, offer_body(text.encode("utf-8", "replace").decode()))
            assert reply.status_code in (200, 400, 422, 503), (seed, text, reply.text)
            tidy(served)
        assert len(served.edge.viewers) == 1, "only the driver is left"
        await alive(served, driver)


@pytest.mark.parametrize(("seed", "count"), [(1, 300), pytest.param(2, 3000, marks=pytest.mark.slow)])
async def test_malformed_channel_messages_are_counted_and_the_room_goes_on(web_root, seed: int, count: int) -> None:
    dice = random.Random(seed)
    async with serving(web_root, access=BUSY) as served, driving(served) as driver:
        pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        pc.addTransceiver("video", direction="recvonly")
        channels = {kind: pc.createDataChannel(kind.value) for kind in Channel}  # all reliable: none may be lost here
        await pc.setLocalDescription(await pc.createOffer())
        answer = await post(served.base, offer_body(pc.localDescription.sdp))
        await pc.setRemoteDescription(RTCSessionDescription(answer.json()["sdp"], "answer"))
        await served.until(lambda: all(channel.readyState == "open" for channel in channels.values()))
        wrong = 0
        for number in range(count):
            kind, text = dice.choice(list(Channel)), malformed.messages(dice)
            try:
                if isinstance(decode_client(text, kind), Leave):
                    continue  # that would be obeyed
            except WireError:
                wrong += 1
            channels[kind].send(text)
            if number % 20 == 0:
                await served.until(lambda: all(channel.bufferedAmount == 0 for channel in channels.values()))
        await served.until(lambda: served.edge.totals().malformed == wrong)
        assert served.rooms.counters().malformed == wrong
        assert pc.connectionState == "connected"
        await alive(served, driver)
        await pc.close()


def tidy(served: Served) -> None:
    """Whoever got in after all goes again, but for the driver."""
    for viewer in served.edge.viewers[1:]:
        viewer.leave("was let in by chance")


def driving(served: Served) -> AbstractAsyncContextManager[RoomClient]:
    """Somebody who holds the room: a whole client, with its signs of life. Who gives none is removed within seconds,
    and the room with them a lease later."""
    return join(served.url, loopback=True, decode=False)


async def alive(served: Served, driver: RoomClient) -> None:
    """The driver never lost the connection, gets the frames of its world, and people still come in."""
    assert driver.counts.reconnects == 0
    seen = driver.pictures.counts.frames
    await served.frames_until(lambda: driver.pictures.counts.frames > seen, limit=60)
    assert (await post(served.base, offer_body(await offer_of()))).status_code == 200
