"""What is left in the edge of joins that are over: nothing."""

import asyncio
import gc
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from aioice.ice import Connection
from aiortc import RTCDtlsTransport, RTCSctpTransport
from worldroom.engine.heap import give_back
from worldroom.rtc.edge import Newcomer
from worldroom.rtc.media.connection import LET_GO_S, ViewerConnection
from worldroom.rtc.media.sender import FanoutSender
from worldroom.rtc.viewer import Viewer
from worldroom.rtc.wire import AnswerBody, OfferBody
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rights import OPEN
from worldroom.sessions.rooms.seats import Seat
from worldroom.tests.flow.rtc.conftest import Served, serving
from worldroom.tests.flow.rtc.test_rtc_app import offer_of

OF_A_JOIN = (Viewer, ViewerConnection, FanoutSender, RTCDtlsTransport, RTCSctpTransport, Connection, Participant, Seat)


async def joins(served: Served, offer: OfferBody, count: int) -> None:
    """So many people come one after the other, get their answer, and go on purpose; fifty of them go at a time."""
    for number in range(count):
        answer = await served.edge.take_offer("test", offer, Newcomer(OPEN, "127.0.0.1"))
        assert isinstance(answer, AnswerBody)
        served.edge.viewers[-1].leave_for_good()
        if number % 50 == 49:
            await served.until(lambda: served.edge.viewers == () and served.edge.closing == 0)
    gc.collect()


def alive() -> list[object]:
    gc.collect()
    return [thing for thing in gc.get_objects() if isinstance(thing, OF_A_JOIN)]


async def test_case_104_no_object_of_a_join_outlives_it(served: Served) -> None:
    offer = OfferBody(await offer_of())
    before = alive()  # of scenes that were played in this process
    await joins(served, offer, 100)
    await asyncio.sleep(LET_GO_S + 1.0)  # questions of ICE that nobody answers are repeated so long
    known = {id(thing) for thing in before}
    left = Counter(type(thing).__name__ for thing in alive() if id(thing) not in known)
    assert max(left.values(), default=0) <= 2, left  # the seat by which the world waits, whom the watch looked at last


async def test_case_110_a_storm_leaves_little_to_the_collector_which_would_stand_on_the_loop(served: Served) -> None:
    offer, many = OfferBody(await offer_of()), 20
    gc.collect()
    gc.disable()
    try:
        for _ in range(many):
            assert isinstance(await served.edge.take_offer("test", offer, Newcomer(OPEN, "127.0.0.1")), AnswerBody)
            served.edge.viewers[-1].leave_for_good()
        await served.until(lambda: served.edge.viewers == () and served.edge.closing == 0)
        await asyncio.sleep(LET_GO_S + 0.5)
        assert gc.collect() < 250 * many, "aiortc's circles alone are 400 objects each"
    finally:
        gc.enable()


async def test_a_loop_that_stood_still_takes_nothing_apart_that_still_runs(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    end = ViewerConnection.end

    async def end_and_stand(connection: ViewerConnection) -> None:
        await end(connection)
        time.sleep(LET_GO_S + 0.1)  # noqa: ASYNC251 - it is the loop that shall stand

    monkeypatch.setattr(ViewerConnection, "end", end_and_stand)
    assert isinstance(
        await served.edge.take_offer("test", OfferBody(await offer_of()), Newcomer(OPEN, "127.0.0.1")), AnswerBody
    )
    await asyncio.sleep(0.1)  # by now it asks, every 20 ms, whether it may connect
    served.edge.viewers[-1].leave_for_good()
    await served.until(lambda: served.edge.viewers == () and served.edge.closing == 0)
    await asyncio.sleep(LET_GO_S + 0.5)
    gc.collect()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.slow
async def test_case_104_the_edge_does_not_grow_with_the_joins_that_were(web_root: Path) -> None:
    offer = OfferBody(await offer_of())
    async with serving(web_root, stores=True) as served:
        sizes = []
        for count in (900, 1000, 1000):  # after the first of them journal and heap have their size
            await joins(served, offer, count)
            await asyncio.sleep(0.5)
            gc.collect()
            give_back()  # what is in use counts, not the holes between: those are a tenth, now more, now less
            sizes.append(psutil.Process().memory_info().rss)
    assert max(sizes) < 1.02 * sizes[0], sizes
