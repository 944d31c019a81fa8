"""A clip of fifty steps: it is seen long before it is done, and outlives its worker from the last step on."""

import asyncio
import shutil
from pathlib import Path

from worldroom.engine import api
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.session.resume_state import ResumeState
from worldroom.models import catalog
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loop import Ask, Done, Outcome, Previews, StepKind
from worldroom.models.shared import serial
from worldroom.models.toy import golden
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, started, steady, until

CARD, PROMPT = "toy-clip", "a red desert"
ALL = 50


def denoised(device: FakeDevice) -> int:
    return sum(kind is StepKind.DENOISE for kind, _ in device.ran)


def digest(seed: int, clip: int) -> str:
    import hashlib

    packed = b"".join(value.to_bytes(8, "little") for value in golden.clip(seed, 0, clip, PROMPT))
    return hashlib.sha256(packed).hexdigest()


def test_its_first_picture_is_shown_before_it_is_done() -> None:
    async def scene() -> None:
        engine, _ = await started(steady(0.006), (catalog.load(CARD),))
        person = Person(engine, "s", PROMPT, controls=lambda chunk: ())
        await person.open(CARD)
        await until(lambda: person.done)
        done_at, _ = person.done[0]
        early = [(at, frame) for at, frame in person.frames if at < done_at]
        assert len(early) == 4 and all(frame.preview for _, frame in early)
        first_at, _ = early[0]
        began = done_at - (ALL + 5) * 0.006
        assert first_at - began < 0.25 * (done_at - began)
        await until(lambda: len(person.frames) >= 16)
        assert [frame.preview for _, frame in person.frames[:16]] == [True] * 4 + [False] * 12
        pts = [frame.pts for _, frame in person.frames]
        assert pts == sorted(set(pts)), "previews and frames are on one clock"
        assert person.digests()[0] == digest(1, 0)
        await engine.close()

    run(scene())


def test_it_goes_on_from_its_last_step_when_its_worker_ends(tmp_path: Path) -> None:
    async def scene() -> None:
        memory, copy = tmp_path / "memory", tmp_path / "copy"
        memory.mkdir()
        first, device = await started(steady(0.006), (catalog.load(CARD),), store=SnapshotFolder(memory))
        before = denoised(device)
        person = Person(first, "s", PROMPT, controls=lambda chunk: ())
        await person.open(CARD)
        await until(lambda: denoised(device) - before >= 30)
        await until(lambda: any(memory.iterdir()))
        await asyncio.sleep(0)
        shutil.copytree(memory, copy)  # the first worker is gone at this moment
        made = denoised(device) - before

        second, again = await started(steady(0.006), (catalog.load(CARD),), store=SnapshotFolder(copy))
        heir = Person(second, "s", PROMPT, controls=lambda chunk: ())
        warm = denoised(again)
        past = ResumeState(api.Open("s", CARD, 1), texts=(PROMPT,))
        assert isinstance(await second.restore(past, None, heir.hear), api.Opened)
        second.post(api.EncodePrompt("s", 1, PROMPT))
        await until(lambda: heir.done)
        assert heir.digests() == [digest(1, 0)]
        assert denoised(again) - warm <= ALL - made + 2
        await second.close()
        await first.close()

    run(scene())


def test_a_clip_that_is_asked_for_under_another_prompt_begins_anew(tmp_path: Path) -> None:
    async def scene() -> None:
        memory, copy = tmp_path / "memory", tmp_path / "copy"
        memory.mkdir()
        first, device = await started(steady(0.006), (catalog.load(CARD),), store=SnapshotFolder(memory))
        before = denoised(device)
        person = Person(first, "s", "another one", controls=lambda chunk: ())
        await person.open(CARD)
        await until(lambda: denoised(device) - before >= 30)
        shutil.copytree(memory, copy)

        second, again = await started(steady(0.006), (catalog.load(CARD),), store=SnapshotFolder(copy))
        heir = Person(second, "s", PROMPT, controls=lambda chunk: ())
        warm = denoised(again)
        past = ResumeState(api.Open("s", CARD, 1), texts=(PROMPT,))
        await second.restore(past, None, heir.hear)
        second.post(api.EncodePrompt("s", 1, PROMPT))
        await until(lambda: heir.done)
        assert heir.digests() == [digest(1, 0)]
        assert denoised(again) - warm == ALL
        await second.close()
        await first.close()

    run(scene())


def test_the_published_twin_previews_too_and_goes_on_from_any_of_its_states() -> None:
    loaded = catalog.load("wan-tiny-clip")
    loop, steps, shown = loaded.loop, loaded.choice.steps, []
    assert isinstance(loop, Previews) and loaded.state is not None
    shares, feature = (PromptShare("fox", 1.0),), loaded.runtime.encode_prompt("a red fox")
    ask = Ask(3, 0, 0, steps, Conditions(0, (), (0.0, 0.0), shares, 1, 0), ((feature, 1.0),), None, 0)

    def made(saves: bool) -> Outcome[object]:
        state = loop.init(ask)
        while not isinstance(plan := loop.next(state), Done):
            (result,) = loaded.runtime.execute(plan.kind, [plan.row], [None])
            state = loop.advance(state, result)
            if saves:
                state = serial.loads(serial.dumps(state), loaded.state)
            elif (preview := loop.preview(state)) is not None:
                shown.append((preview.done, preview.frames.shape))
        return loop.finalize(state)

    assert made(saves=False).digest == made(saves=True).digest
    assert shown and shown[0][0] < 0.5 and {shape[1:] for _, shape in shown} == {loaded.card.frame.each}
