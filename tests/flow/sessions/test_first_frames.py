"""A world begins from a picture or goes on from a video: rooms on the real engine with a tiny card, virtual time."""

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator

import numpy as np
import pytest
import torch
from worldroom.engine import api
from worldroom.engine.caches import parts, snapshot
from worldroom.engine.session.resume_state import ResumeState
from worldroom.models import catalog
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.version import SOFTWARE
from worldroom.sessions.journal import events
from worldroom.sessions.journal.replay import read as read_journal
from worldroom.sessions.journal.replay import replay
from worldroom.sessions.messages import Prompt, Transition, Welcome
from worldroom.sessions.rooms.first_frames import BadFirstFrames, UploadedMedia, read
from worldroom.sessions.views import FirstFrame
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, until
from worldroom.tests.files import picture, video
from worldroom.tests.real_rooms import Server, stream

CARD = "wan-tiny-random"


def gradient() -> bytes:
    rgb_HWC = np.zeros((96, 128, 3), np.uint8)
    rgb_HWC[..., 0], rgb_HWC[..., 1] = np.arange(128)[None] * 2, np.arange(96)[:, None] * 2
    return picture(UploadedMedia.PNG, rgb_HWC)


async def body(data: bytes) -> AsyncIterator[bytes]:
    file = io.BytesIO(data)
    while part := file.read(1000):
        yield part


async def upload(server: Server, token: str, media: UploadedMedia, data: bytes) -> FirstFrame:
    return await server.rooms.first_frame("lobby", token, media, body(data))


async def refused(server: Server, token: str, media: UploadedMedia, data: bytes, room: str = "lobby") -> str:
    try:
        await server.rooms.first_frame(room, token, media, body(data))
    except BadFirstFrames as problem:
        return problem.code
    raise AssertionError("the upload was taken")


def test_a_picture_then_a_video_begin_worlds_that_replay_to_the_same_digests() -> None:
    async def main() -> None:
        server = Server()
        await server.start(catalog.load(CARD))
        driver, screen = await server.join()
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome) and welcome.first_frame is not None
        assert (welcome.first_frame.width, welcome.first_frame.height, welcome.recache) == (64, 48, True)
        await asyncio.sleep(2)
        assert await upload(server, driver.token, UploadedMedia.PNG, gradient()) == FirstFrame(1, 1, 64, 48)
        await asyncio.sleep(3)
        film = video(UploadedMedia.MP4, [4 * n for n in range(50)], fps=16)
        assert await upload(server, driver.token, UploadedMedia.MP4, film) == FirstFrame(2, 9, 64, 48)
        await asyncio.sleep(3)

        encoded = [kind for kind, _ in server.device.ran if kind is StepKind.ENCODE]
        begun = [e for e in server.events(screen) if isinstance(e, events.EpochStarted)]
        assert [(e.epoch, e.first_frames is not None and e.first_frames.frames) for e in begun] == [(1, 1), (2, 9)]
        assert len(encoded) >= 2
        assert {frame.epoch for frame in screen.frames} == {0, 1, 2}
        first = [frame for frame in screen.frames if frame.epoch == 1]
        assert [sum(f.chunk == first[0].chunk + n for f in first) for n in range(2)] == [9, 12]

        script = await read_journal(stream(server.events(screen)))
        driver.leave()
        replayed = await replay(server.engine, script, "again")
        assert replayed.chunks >= 8 and replayed.mismatches == ()
        await server.stop()

    run(main())


def test_the_opening_frames_are_the_pictures_own_through_the_codec() -> None:
    """What the engine shows first is what encoding and decoding the picture by hand gives, whatever the seed."""

    async def main() -> None:
        server = Server()
        loaded = catalog.load(CARD)
        await server.start(loaded)
        card = server.engine.cards()[0]
        assert card.first_frames is not None
        opening = read(gradient(), UploadedMedia.PNG, card, card.first_frames)
        person = Person(server.engine, "a", "anything")
        assert isinstance(await person.open(CARD), api.Opened)
        await until(lambda: len(person.done) >= 1)
        for epoch, seed in ((1, 5), (2, 6)):
            person.epoch = epoch
            server.engine.post(api.Supersede("a", epoch, restart=True, seed=seed, first_frames=opening))
            await until(lambda epoch=epoch: [d for _, d in person.done if d.epoch == epoch])
        openings = [next(d.digest for _, d in person.done if d.epoch == epoch) for epoch in (1, 2)]
        assert openings[0] == openings[1]
        networks = loaded.runtime.networks
        picture_3THW = torch.from_numpy(opening.unpack().repeat(9, 0)).permute(3, 0, 1, 2).float() / 127.5 - 1
        with torch.no_grad():
            clean = networks.vae.encode(picture_3THW[None])[0]
        assert openings[0] == hashlib.sha256(np.ascontiguousarray(clean.numpy()).tobytes()).hexdigest()
        await server.engine.close()

    run(main())


def test_only_the_driver_of_an_open_room_uploads_and_not_too_often() -> None:
    async def main() -> None:
        server = Server()
        await server.start(catalog.load(CARD))
        driver, screen = await server.join()
        watcher, _ = await server.join()
        await asyncio.sleep(1)
        png = gradient()
        assert await refused(server, driver.token, UploadedMedia.PNG, png, room="nowhere") == "no_room"
        assert await refused(server, "nobody", UploadedMedia.PNG, png) == "no_place"
        assert await refused(server, watcher.token, UploadedMedia.PNG, png) == "not_driving"
        assert await refused(server, driver.token, UploadedMedia.PNG, b"\x89PNG\r\n\x1a\n") == "torn"
        assert (
            await refused(server, driver.token, UploadedMedia.MP4, video(UploadedMedia.MP4, [9] * 4, fps=16))
            == "length"
        )
        assert await refused(server, driver.token, UploadedMedia.PNG, png + bytes(9 << 20)) == "too_large"
        assert await refused(server, driver.token, UploadedMedia.PNG, png) == "busy"
        await asyncio.sleep(3)
        assert (await upload(server, driver.token, UploadedMedia.PNG, png)).epoch == 1
        counters = server.rooms.counters()
        assert (counters.uploads, counters.uploads_refused) == (1, 7)
        assert [e for e in server.events(screen) if isinstance(e, events.Faulted)] == []
        await server.stop()

    run(main())


def test_a_card_without_an_encoder_begins_from_words_alone() -> None:
    async def main() -> None:
        server = Server()
        await server.start()
        driver, screen = await server.join()
        welcome = screen.messages[0]
        assert isinstance(welcome, Welcome) and welcome.first_frame is None and not welcome.recache
        assert await refused(server, driver.token, UploadedMedia.PNG, gradient()) == "no_first_frame"
        driver.receive(Prompt(id=1, text="snow", transition=Transition.RECACHE))
        assert [getattr(m, "code", "") for m in screen.messages][-1] == "no_recache"
        await server.stop()

    run(main())


def test_a_recache_prompt_rebuilds_the_cache_once() -> None:
    async def main() -> None:
        server = Server()
        await server.start(catalog.load(CARD))
        driver, screen = await server.join()
        await asyncio.sleep(4)
        server.device.ran.clear()
        driver.receive(Prompt(id=1, text="snow falls", transition=Transition.RECACHE))
        await asyncio.sleep(4)
        begun = [e for e in server.events(screen) if isinstance(e, events.ChunkBegun)]
        assert sum(e.conditions.recache for e in begun) == 1
        assert sum(kind is StepKind.RECACHE for kind, _ in server.device.ran) == 1
        await server.stop()

    run(main())


def test_a_world_that_waits_for_its_opening_is_written_down_with_it() -> None:
    """Its worker ends before the first chunk is made: the next worker begins from the same picture."""

    async def main() -> None:
        loaded = catalog.load(CARD)
        engine, _ = await started(cards=(loaded,))
        size = engine.cards()[0].first_frames
        assert size is not None
        opening = read(gradient(), UploadedMedia.PNG, engine.cards()[0], size)
        whole = Person(engine, "a", "words")
        await whole.open(CARD, seed=3)
        await until(lambda: len(whole.done) >= 1)
        whole.epoch = 1
        engine.post(api.Supersede("a", 1, restart=True, seed=9, first_frames=opening))
        await until(lambda: sum(d.epoch == 1 for _, d in whole.done) >= 2)
        wanted = [d for _, d in whole.done if d.epoch == 1]
        number = wanted[0].chunk

        kept = snapshot.Snapshot(
            made_by=snapshot.maker(loaded), steps=4, seed=9, branch=0, number=number, epoch=1,
            carry=None, count=0, entries=(), features=(), picture=None, opening=opening, software=SOFTWARE,
        )  # fmt: skip
        later = Person(engine, "b", "words", key=whole.key, epoch=1)
        past = ResumeState(api.Open("b", CARD, seed=3), (), ("words",), progress=api.Progress(chunk=number, epoch=1))
        assert isinstance(await engine.restore(past, parts.whole(kept.dumps(), {}), later.hear), api.Opened)
        await until(lambda: len(later.done) >= 2)
        assert later.digests()[:2] == [d.digest for d in wanted[:2]]

        restarted = Person(engine, "c", "words", key=whole.key, epoch=1)
        history = (api.Supersede("c", 1, restart=True, seed=9, first_frames=opening),)
        past = ResumeState(api.Open("c", CARD, seed=3), history, ("words",), progress=api.Progress(chunk=0, epoch=1))
        assert isinstance(await engine.restore(past, None, restarted.hear), api.Opened)
        await until(lambda: len(restarted.done) >= 1)
        assert restarted.digests()[0] == wanted[0].digest
        await engine.close()

    run(main())


@pytest.mark.parametrize("card", ["matrix-game-tiny-random", "anyflow-tiny-random"])
def test_other_families_begin_from_a_picture_too(card: str) -> None:
    if card.startswith("anyflow"):
        pytest.importorskip("diffusers")

    async def main() -> None:
        loaded = catalog.load(card)
        engine, _ = await started(lambda batch: 0.001, cards=(loaded,))
        info = engine.cards()[0]
        assert info.first_frames is not None and not info.recache
        controls = (0.0,) * len(loaded.card.controls)
        person = Person(engine, "a", loaded.card.suggestions[0], lambda chunk: controls)
        assert isinstance(await person.open(card), api.Opened)
        await until(lambda: len(person.done) >= 1, within=30)
        digests = []
        pictures = [gradient(), gradient(), picture(UploadedMedia.PNG, np.full((96, 128, 3), 200, np.uint8))]
        for epoch, data in enumerate(pictures, 1):
            person.epoch = epoch
            opening = read(data, UploadedMedia.PNG, info, info.first_frames)
            engine.post(api.Supersede("a", epoch, restart=True, seed=7, first_frames=opening))
            await until(lambda epoch=epoch: [d for _, d in person.done if d.epoch == epoch], within=30)
            done = next(d for _, d in person.done if d.epoch == epoch)
            digests.append(done.digest)
        assert digests[1] != digests[2], "another picture is another world"
        assert not person.faults
        if card.startswith("anyflow"):
            assert digests[0] == digests[1], "its first frame is the picture's, whatever chunk it is"
        await engine.close()

    run(main())
