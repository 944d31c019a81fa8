"""Rooms in which an earlier session is shown again: recomputed live, compared with the record, steered by nobody."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import pytest
from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.sessions import messages
from worldroom.sessions.journal import events
from worldroom.sessions.journal.script import Script
from worldroom.sessions.recording.recordings import Recordings
from worldroom.sessions.rooms import playback
from worldroom.sessions.rooms.adapting import AdaptFailed, adapt
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.past import NoMoment, replay_plan
from worldroom.sessions.rooms.recording import RecordingRefused, RoomRecordings
from worldroom.sessions.rooms.room import CloseReason
from worldroom.sessions.rooms.room_record import RoomRecord
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.sessions.rooms.suspend import RoomSuspension
from worldroom.sessions.rooms.suspend_store import SuspendStore
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_door import Screen
from worldroom.tests.flow.sessions.test_past_rooms import WORDS, House, house, played

STEERS: tuple[messages.ClientMessage, ...] = (
    messages.Prompt(1, "snow"),
    messages.Adapt(1, ()),
    messages.ResetWorld(1),
    messages.Rewind(1, 0.5),
    messages.Fork(1),
    messages.Regenerate(1),
    messages.Choose(1, messages.Keep.TIE),
    messages.Feedback(1, 0, 1),
)


def problems(screen: Screen) -> list[str]:
    return [message.code for message in screen.messages if isinstance(message, messages.Problem)]


async def until_over(screen: Screen) -> None:
    async with asyncio.timeout(60):
        while "room_closed" not in problems(screen):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)


def recorded(script: Script) -> list[tuple[float, ...]]:
    """The keys of every chunk, in the order in which they were played."""
    return [each.conditions.controls for epoch in script.epochs for each in epoch.chunks]


async def ended(h: House) -> str:
    """A session of three epochs, the last of them another future; its room is closed."""
    session = await played(h)
    h.rooms.open_rooms()[0].close(CloseReason.LEASE)
    return session


def test_a_session_is_shown_again_chunk_by_chunk_and_the_room_closes_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        script, entries = await h.script(session), len(h.journal.buffered(session))
        room = await h.past.plan_replay(session)
        with caplog.at_level(logging.INFO):
            _, screen, welcome = await h.join(room)
            assert (welcome.replay, welcome.chunk, welcome.role) == (session, 0, messages.Role.DRIVER)
            await until_over(screen)
        assert ": 0 chunks differ" in caplog.text
        expected = recorded(script)
        shown = dict.fromkeys(frame.chunk for frame in screen.frames)
        assert list(shown) == list(range(len(expected)))
        assert [frame.controls for frame in screen.frames] == [expected[frame.chunk] for frame in screen.frames]
        assert len(set(expected)) > 1, "keys were pressed"
        assert [frame.pts for frame in screen.frames] == sorted({frame.pts for frame in screen.frames})
        told = [message.text for message in screen.messages if isinstance(message, messages.PromptChanged)]
        assert told[-1] == WORDS and len(told) == 2
        assert not h.rooms.has(room)
        assert h.journal.buffered(welcome.session) == [], "it is no session"
        again = await h.script(session)
        assert again.epochs == script.epochs and len(h.journal.buffered(session)) >= entries
        _, _, welcome = await h.join(room)
        assert welcome.replay == session, "and once more"
        await h.close()

    run(scene())


def test_what_is_not_what_was_recorded_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        kept = h.kept.events

        async def forged(name: str) -> AsyncIterator[events.JournalEvent]:
            """The digest of one chunk is another one."""
            async for event in kept(name):
                if isinstance(event, events.ChunkCommitted) and (event.epoch, event.chunk) == (0, 3):
                    event = msgspec.structs.replace(event, digest="0" * len(event.digest))
                yield event

        h.kept.events = forged  # type: ignore[method-assign]
        with caplog.at_level(logging.INFO):
            _, screen, _ = await h.join(await h.past.plan_replay(session))
            await until_over(screen)
        assert ": 1 chunks differ" in caplog.text
        await h.close()

    run(scene())


class Notes:
    """In place of the store of suspended rooms: the names of those that were written down."""

    def __init__(self) -> None:
        self.noted: set[str] = set()

    async def note(self, record: RoomRecord) -> None:
        self.noted.add(record.room)

    async def forget_note(self, room: str) -> None:
        self.noted.discard(room)

    async def find(self, room: str, cards: Collection[str]) -> None:
        return None


def test_a_replay_is_neither_filmed_nor_suspended_nor_noted(tmp_path: Path) -> None:
    async def scene() -> None:
        h = await house()
        planned = await h.past.plan_replay(await ended(h))
        clock, notes = LoopClock(asyncio.get_running_loop()), Notes()
        recordings = Recordings(tmp_path, clock)
        suspension, films = RoomSuspension(cast(SuspendStore, notes), h.client), RoomRecordings(recordings, every=True)
        spec = RoomsSpec(card=h.client.cards()[0].name, lease_s=600.0)
        h.rooms = Rooms(h.client, h.journal, clock, spec, suspension=suspension, recordings=films, past=h.past)
        noting = asyncio.create_task(suspension.keep_noting(h.rooms.open_rooms))
        driver, _, welcome = await h.join(planned)
        _, _, other = await h.join("other")
        await asyncio.sleep(2.0)
        assert notes.noted == {"other"}
        assert recordings.running(other.session) is not None and recordings.running(welcome.session) is None
        with pytest.raises(RecordingRefused, match="this is a replay"):
            films.start(planned, driver.token)
        room = h.rooms.open_room(planned)
        assert room is not None
        driver.leave()
        assert room.session.state is messages.WorldState.HELD and not await suspension.suspend(room)
        noting.cancel()
        h.rooms.open_room("other").close(CloseReason.LEASE)  # type: ignore[union-attr]
        await h.close()
        await recordings.close()

    run(scene())


def test_a_session_that_is_deleted_is_shown_no_more() -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        room, onward = await h.past.plan_replay(session), await h.past.plan(session, 3, 0)
        h.past.forget("another")
        assert h.past.planned(room) is not None
        h.past.forget(session)
        assert h.past.planned(room) is h.past.planned(onward) is None
        await h.close()

    run(scene())


def test_nobody_steers_a_replay_but_it_can_be_paused() -> None:
    async def scene() -> None:
        h = await house()
        room = await h.past.plan_replay(await ended(h))
        driver, screen, _ = await h.join(room)
        await asyncio.sleep(1.0)
        for message in STEERS:
            driver.receive(message)
        driver.receive(messages.Input(seq=7, held=("ArrowUp",)))
        assert problems(screen) == ["replay"] * (len(STEERS) + 1)
        with pytest.raises(AdaptFailed, match="this is a replay"):
            await adapt(h.rooms.open_room(room), driver.token, ())
        driver.receive(messages.PauseWorld(9))
        await asyncio.sleep(1.0)
        frames = len(screen.frames)
        await asyncio.sleep(2.0)
        assert len(screen.frames) == frames
        driver.receive(messages.ResumeWorld(10))
        await until_over(screen)
        assert len(screen.frames) > frames and all(given.seq == 0 for given in screen.given)
        await h.close()

    run(scene())


def test_what_its_viewers_links_carry_reaches_the_world_that_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        h = await house()
        room = await h.past.plan_replay(await ended(h))
        _, _, welcome = await h.join(room)
        posted: list[api.Command] = []
        post = h.client.post

        def noted(command: api.Command) -> None:
            posted.append(command)
            post(command)

        monkeypatch.setattr(h.client, "post", noted)
        opened = h.rooms.open_room(room)
        assert opened is not None
        opened.session.set_bitrate(api.SetBitrate(welcome.session, 700))
        (told,) = [command for command in posted if isinstance(command, api.SetBitrate)]
        await asyncio.sleep(0.5)
        begun = {command.session for command in posted if isinstance(command, api.Begin)}
        assert told.kbps == 700 and {told.session} == begun != {welcome.session}
        await h.close()

    run(scene())


def test_it_may_begin_at_a_moment_of_the_session() -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        script = await h.script(session)
        before = sum(len(epoch.chunks) for epoch in script.epochs[:2])
        chunk = script.of(2).chunks[4].chunk
        _, screen, _ = await h.join(await h.past.plan_replay(session, chunk))
        await until_over(screen)
        assert screen.frames[0].chunk == before + 4
        assert screen.frames[-1].chunk == len(recorded(script)) - 1
        for wrong in ((10**6, None), (chunk, 0)):
            with pytest.raises(NoMoment):
                await h.past.plan_replay(session, *wrong)
        await h.close()

    run(scene())


def test_a_session_whose_words_are_gone_is_refused_when_it_is_planned() -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        script = await h.script(session)
        script = replace(script, texts=dict.fromkeys(script.texts, "redacted:0123"))
        with pytest.raises(NoMoment, match="words were taken out"):
            replay_plan(script, session, None, None)
        await h.close()

    run(scene())


def made(screen: Screen) -> list[int]:
    """Chunks in the order in which they were shown."""
    chunks = [frame.chunk for frame in screen.frames]
    return [chunk for place, chunk in enumerate(chunks) if place == 0 or chunk != chunks[place - 1]]


def test_who_drives_a_replay_seeks_in_it_within_a_world_and_over_its_futures(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        script = await h.script(session)
        every = len(recorded(script))
        driver, screen, welcome = await h.join(await h.past.plan_replay(session))
        assert welcome.replay_chunks == every
        await asyncio.sleep(1.0)
        seeks = (every - 20, 5, every - 30, every - 60)  # on, back to another start, on to another future, back in it
        for id, chunk in enumerate(seeks, 1):
            driver.receive(messages.Seek(id, chunk))
            await asyncio.sleep(1.5)
        with caplog.at_level(logging.INFO):
            await until_over(screen)
        assert ": 0 chunks differ" in caplog.text, "the same bits, wherever it was begun"
        applied = {m.id: m.chunk for m in screen.messages if isinstance(m, messages.Applied)}
        assert applied == dict(enumerate(seeks, 1))
        jumps = [(one, two) for one, two in zip(made(screen), made(screen)[1:], strict=False) if two != one + 1]
        assert [two for _, two in jumps] == list(seeks)
        expected = recorded(script)
        assert [frame.controls for frame in screen.frames] == [expected[frame.chunk] for frame in screen.frames]
        assert [frame.pts for frame in screen.frames] == sorted({frame.pts for frame in screen.frames})
        assert made(screen)[-1] == every - 1
        await h.close()

    run(scene())


def test_what_cannot_be_sought_is_said_and_it_plays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        every = len(recorded(await h.script(session)))
        room = await h.past.plan_replay(session)
        driver, screen, _ = await h.join(room)
        watcher, watched, _ = await h.join(room)
        live, seen, _ = await h.join("another")
        live.receive(messages.Seek(1, 0))
        watcher.receive(messages.Seek(1, 0))
        driver.receive(messages.Seek(1, every))
        driver.receive(messages.Seek(2, 30))
        driver.receive(messages.Seek(3, 40))
        await asyncio.sleep(1.0)
        monkeypatch.setattr(playback, "REMADE_MOST", 10)
        driver.receive(messages.Seek(4, 30))
        told = [m.detail for m in screen.messages if isinstance(m, messages.Problem)]
        assert told == [
            f"this replay has chunks 0 to {every - 1}",
            "the replay is on its way to another moment",
            "30 chunks would have to be made again, and 10 is the most",
        ]
        assert (problems(watched), problems(seen)) == (["not_driving"], ["no_moment"])
        frames = len(screen.frames)
        await asyncio.sleep(1.0)
        assert len(screen.frames) > frames and 30 <= screen.frames[frames].chunk < 100
        await h.close()

    run(scene())


def test_a_paused_replay_that_is_sought_stands_at_that_moment() -> None:
    async def scene() -> None:
        h = await house()
        driver, screen, _ = await h.join(await h.past.plan_replay(await ended(h)))
        await asyncio.sleep(1.0)
        driver.receive(messages.PauseWorld(1))
        await asyncio.sleep(0.5)
        driver.receive(messages.Seek(2, 50))
        await asyncio.sleep(1.0)
        frames = len(screen.frames)
        driver.receive(messages.ResumeWorld(3))
        await asyncio.sleep(1.0)
        assert screen.frames[frames].chunk == 50
        await h.close()

    run(scene())


def test_under_other_words_it_is_marked_and_compared_with_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        h = await house()
        session = await ended(h)
        script = await h.script(session)
        begun: list[api.Begin] = []
        post = h.client.post

        def noted(command: api.Command) -> None:
            if isinstance(command, api.Begin):
                begun.append(command)
            post(command)

        h.client.post = noted  # type: ignore[method-assign]
        driver, screen, welcome = await h.join(await h.past.plan_replay(session, words="snow at night"))
        assert (welcome.replay, welcome.counterfactual) == (session, "other words")
        driver.receive(messages.Seek(1, 40))
        with caplog.at_level(logging.INFO):
            await until_over(screen)
        assert f"a replay of session {session} is over: a counterfactual" in caplog.text
        mixes = {command.conditions.prompts for command in begun}
        assert len(mixes) == 1 and {share.key for mix in mixes for share in mix}.isdisjoint(script.texts)
        told = [message.text for message in screen.messages if isinstance(message, messages.PromptChanged)]
        assert set(told) == {"snow at night"}
        pressed = recorded(script)
        assert [frame.controls for frame in screen.frames] == [pressed[frame.chunk] for frame in screen.frames]
        with pytest.raises(NoMoment, match="characters"):
            await h.past.plan_replay(session, words="x" * 100_000)
        await h.close()

    run(scene())
