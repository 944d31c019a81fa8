"""Real aiortc peers on loopback. Deadlines are counted in frames, never in seconds of the wall clock."""

import asyncio
import threading
import time

from aiortc.rtp import RTCP_PSFB_PLI, RtcpPsfbPacket
from worldroom.clients.python.link import EdgeLink
from worldroom.clients.python.room import join
from worldroom.clients.python.signalling import RoomPlace
from worldroom.engine.api import RequestKey
from worldroom.rtc import viewer
from worldroom.rtc.wire import Channel, Feedback, KeyEdge, Problem, WorldState
from worldroom.sessions.journal.events import InputReceived, Joined


class Watcher:
    """A viewer that keeps what it gets and decodes nothing."""

    def __init__(self, url: str) -> None:
        self.frames: list[tuple[int, bool]] = []
        self.messages: list[object] = []
        self.link = EdgeLink(RoomPlace.of(url), True, self.messages.append, self._frame)

    def _frame(self, rtp: int, data: bytes, key: bool) -> None:
        self.frames.append((rtp, key))

    async def __aenter__(self) -> "Watcher":
        await self.link.open(None, None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.close()


async def test_a_late_joiner_sees_its_first_frame_within_ten_frames_and_it_is_a_key_frame(served) -> None:
    async with Watcher(served.url) as first:
        await served.frames_until(lambda: len(first.frames) >= 40, limit=80)
        async with Watcher(served.url) as late:
            took = await served.frames_until(lambda: bool(late.frames), limit=30)
            assert took <= 10
            assert late.frames[0][1] is True
            assert all(key is False for _, key in first.frames[1:30])


async def test_one_picture_loss_gives_exactly_one_key_frame_in_the_next_100(served) -> None:
    async with Watcher(served.url) as watcher:
        await served.frames_until(lambda: len(watcher.frames) >= 20, limit=60)
        keys_before = len(served.engine.keys)
        await watcher.link.ask_for_key()
        await asyncio.sleep(0.05)
        for _ in range(100):
            served.engine.step()
            await asyncio.sleep(0.005)
        assert len(served.engine.keys) - keys_before == 1
        assert served.edge.totals().plis == 1


async def test_a_storm_of_picture_losses_is_one_question_until_a_key_frame_answers_it(served) -> None:
    async with Watcher(served.url) as one, Watcher(served.url) as two:
        await served.frames_until(lambda: bool(one.frames) and bool(two.frames), limit=60)
        first = served.edge.viewers[0]
        await asyncio.sleep(0.35)
        asked = len(served.engine.asked(RequestKey))
        for _ in range(50):
            first.picture_lost()
        assert len(served.engine.asked(RequestKey)) - asked == 1
        served.engine.step()
        await asyncio.sleep(0.35)
        assert len(served.engine.asked(RequestKey)) - asked == 1
        first.picture_lost()
        assert len(served.engine.asked(RequestKey)) - asked == 2


async def test_a_viewer_that_never_reads_delays_nobody(served) -> None:
    async with Watcher(served.url) as deaf, Watcher(served.url) as other:
        await served.frames_until(lambda: bool(deaf.frames) and bool(other.frames), limit=60)
        for transport in deaf.link.pc._RTCPeerConnection__iceTransports:
            for protocol in transport._connection._protocols:
                asyncio.get_running_loop()._remove_reader(protocol.transport.get_extra_info("socket").fileno())
        before = len(other.frames)
        for _ in range(90):
            served.engine.step()
            await asyncio.sleep(0.01)
        await served.until(lambda: len(other.frames) >= before + 90)
        assert served.edge.totals().frames_skipped <= 3


async def test_a_viewer_killed_without_goodbye_is_removed_and_the_other_never_notices(served) -> None:
    async with Watcher(served.url) as killed, Watcher(served.url) as other:
        await served.frames_until(lambda: bool(killed.frames) and bool(other.frames), limit=60)
        for transport in killed.link.pc._RTCPeerConnection__iceTransports:
            for protocol in transport._connection._protocols:
                protocol.transport.abort()
        start, before = served.engine.frames, len(other.frames)
        await served.frames_until(lambda: served.rooms.views()[0].viewers == 1, limit=6 * 30)
        assert len(served.edge.viewers) == 1
        assert len(other.frames) - before >= served.engine.frames - start - 2


async def test_a_server_that_could_hear_nobody_for_a_while_loses_nobody(served, monkeypatch) -> None:
    monkeypatch.setattr(viewer, "SILENCE_TIMEOUT", 2.0)
    async with join(served.url, loopback=True, decode=False) as room:
        await asyncio.sleep(0.8)
        time.sleep(3.0)  # noqa: ASYNC251  the loop stands still, as on a machine that was put to sleep
        await asyncio.sleep(1.5)
        assert room.counts.reconnects == 0 and len(served.edge.viewers) == 1


async def test_a_viewer_that_gives_no_sign_of_life_is_removed(served, monkeypatch) -> None:
    monkeypatch.setattr(viewer, "SILENCE_TIMEOUT", 1.0)
    async with Watcher(served.url):  # sends no pings, and a world without frames gives it nothing to report
        await served.until(lambda: served.edge.viewers == ())


async def test_a_viewer_that_says_goodbye_is_removed_at_once(served) -> None:
    async with Watcher(served.url) as watcher:
        await served.frames_until(lambda: bool(watcher.frames), limit=60)
    await served.until(lambda: served.edge.viewers == ())
    assert served.rooms.views()[0].state is WorldState.HELD
    assert served.edge.streams() == {}


async def test_twenty_connections_leave_no_thread_and_no_task(served) -> None:
    async def once() -> None:
        async with Watcher(served.url) as watcher:
            await served.frames_until(lambda: bool(watcher.frames), limit=60)
        await served.until(lambda: served.edge.viewers == () and served.edge.closing == 0)

    await once()
    await asyncio.sleep(0.1)
    threads, tasks = threading.active_count(), len(asyncio.all_tasks())
    for _ in range(20):
        await once()
    await asyncio.sleep(0.1)
    assert threading.active_count() <= threads
    assert len(asyncio.all_tasks()) <= tasks + 1


async def test_malformed_messages_are_answered_and_counted(served) -> None:
    async with Watcher(served.url) as watcher:
        await served.until(lambda: len(served.edge.viewers) == 1 and served.edge.viewers[0].connected)
        control = watcher.link.channels[Channel.CONTROL]
        for text in ("", "{", '{"type":"prompt","id":7,"text":""}', '{"type":"input","seq":1,"held":[]}', b"\xff\xfe"):
            control.send(text)
        await served.until(lambda: watcher.link.send(Feedback(9, 1, 1), Channel.INPUT))
        await served.until(lambda: served.rooms.counters().malformed == 6)
        await served.until(lambda: sum(isinstance(m, Problem) for m in watcher.messages) == 6)
        answered = [m.id for m in watcher.messages if isinstance(m, Problem)]
        assert [id for id in answered if id is not None] in ([7, 9], [9, 7])
        assert served.edge.totals().malformed == 6


async def test_lossy_input_arrives_typed_and_pings_come_back(served) -> None:
    async with join(served.url, loopback=True, decode=False) as room:
        await served.frames_until(lambda: room.pictures.counts.frames > 3, limit=60)
        seq = room.press("ArrowUp")
        await served.until(lambda: served.journaled(InputReceived) != [])
        heard = served.journaled(InputReceived)[0]
        assert heard.held == ("ArrowUp",) and heard.edges == (KeyEdge(seq, "ArrowUp", True),)
        await served.frames_until(lambda: room.latency.photon.count == 1, limit=60)


async def test_a_client_whose_server_cuts_it_comes_back_with_its_token(served) -> None:
    async with join(served.url, loopback=True, decode=False) as room:
        await served.frames_until(lambda: room.pictures.counts.frames > 3, limit=60)
        next(iter(served.edge.viewers)).leave("test")
        await served.until(lambda: room.counts.reconnects == 1)
        joined = served.journaled(Joined)
        assert [(j.participant, j.resumed) for j in joined] == [(joined[0].participant, r) for r in (False, True)]
        seen = room.pictures.counts.frames
        await served.frames_until(lambda: room.pictures.counts.frames > seen, limit=60)


async def test_sender_reports_and_key_requests_use_the_streams_own_clock(served) -> None:
    async with Watcher(served.url) as watcher:
        await served.frames_until(lambda: len(watcher.frames) > 5, limit=60)
        sender = next(iter(served.edge.viewers)).connection.sender
        pli = RtcpPsfbPacket(fmt=RTCP_PSFB_PLI, ssrc=1, media_ssrc=sender._ssrc)
        await sender._handle_rtcp_packet(pli)
        assert sender.counts.plis == 1
        first, last = watcher.frames[0][0], watcher.frames[-1][0]
        assert (last - first) & 0xFFFFFFFF == 3000 * (len(watcher.frames) - 1)
