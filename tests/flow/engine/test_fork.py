"""One world becomes several at a boundary: they share what was made, part from there, and stand side by side."""

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from worldroom.engine import api
from worldroom.engine.engine import Engine
from worldroom.engine.output import mosaic
from worldroom.engine.output.mosaic import Mosaic
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.card import FrameSpec
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import FakeDevice, Person, driven, started, toy, until


async def forked(engine: Engine, of: Person, noises: dict[str, int]) -> tuple[dict[str, Person], api.Refused | None]:
    """People for the futures of `of`, each with the noise of a branch, who steer them as it is steered."""
    people = {name: Person(engine, name, epoch=epoch, key=of.key) for epoch, name in enumerate(noises, 1)}

    def hear(event: api.Event) -> None:
        people[event.session].hear(event)

    branches = tuple(api.Branch(name, noise, people[name].epoch) for name, noise in noises.items())
    told: list[api.Forked] = []
    refused = await engine.fork(api.ForkSession(of.session, branches), hear, told.append)
    for person in people.values():
        person.dues.insert(0, (-1.0, told[0].chunk if told else -1))
    return people, refused


async def playing(shares: bool = True, slots: int = 4, **more: Any) -> tuple[Engine, FakeDevice, Person]:
    card = replace(toy(), shares=shares)
    engine, device, person = await driven(cards=(card,), spec=EngineSpec(slots=slots), **more)
    await until(lambda: len(person.done) >= 10)
    return engine, device, person


@pytest.mark.parametrize("shares", [True, False])
def test_the_same_noise_makes_the_same_future_and_another_one_another(shares: bool) -> None:
    async def main() -> None:
        engine, _, person = await playing(shares)
        others, refused = await forked(engine, person, {"same": 0, "else": 7})
        assert refused is None
        chunk = others["same"].dues[0][1]
        await until(lambda: all(len(other.done) >= 12 for other in others.values()))
        mine = {done.chunk: done.digest for _, done in person.done}
        same = {done.chunk: done.digest for _, done in others["same"].done}
        other = {done.chunk: done.digest for _, done in others["else"].done}
        assert min(same) == min(other) == chunk
        assert all(mine[each] == digest for each, digest in same.items() if each in mine)
        assert not set(mine.values()) & set(other.values())
        engine.check_integrity()
        await engine.close()
        engine.check_integrity()

    run(main())


def test_a_fork_copies_nothing_and_entries_fall_out_of_each_window_by_themselves() -> None:
    async def main() -> None:
        engine, device, person = await playing()
        pool = engine.runtimes["toy"].pool
        used, ran = pool.bytes_used, len(device.ran)
        person.answers = False
        await asyncio.sleep(0.2)
        _, refused = await forked(engine, person, {"b": 1, "c": 2, "d": 3})
        assert refused is None and len(device.ran) - ran <= 3, "no step but the last chunk's own"
        window, each = pool.spec.window, pool.spec.bytes_per_entry
        assert pool.bytes_used - used == 3 * (pool.spec.ring - window) * each, "what each can write without a copy"
        engine.check_integrity()
        await engine.close()

    run(main())


@pytest.mark.slow
@pytest.mark.parametrize("shares", [True, False])
def test_a_video_world_reads_what_it_shares_where_it_lies(shares: bool) -> None:
    """Until nothing of the common past is left in the window, and a future that writes disturbs no other."""

    async def main() -> None:
        card = replace(catalog.load("wan-tiny-random"), shares=shares)
        engine, device = await started(cards=(card,), spec=EngineSpec(slots=3))
        person = Person(engine, "a", controls=lambda chunk: ())
        await person.open(card.card.name, latency_class=api.LatencyClass.BACKGROUND)
        window = engine.runtimes[card.card.name].pool.spec.window
        await until(lambda: len(person.done) > window)
        people, refused = await forked(engine, person, {"same": 0, "else": 7})
        assert refused is None
        for other in people.values():
            other.controls = person.controls
        await until(lambda: all(len(each.done) > window + 1 for each in people.values()))
        mine = {done.chunk: done.digest for _, done in person.done}
        same = {done.chunk: done.digest for _, done in people["same"].done}
        met = [chunk for chunk in same if chunk in mine]
        assert len(met) > window and all(mine[chunk] == same[chunk] for chunk in met)
        assert not set(people["else"].digests()) & set(mine.values())
        assert (StepKind.CACHE_IO in [kind for kind, _ in device.ran[-60:]]) is not shares
        engine.check_integrity()
        await engine.close()

    run(main())


def test_a_world_that_runs_ahead_or_ends_disturbs_no_other() -> None:
    async def main() -> None:
        engine, _, person = await playing()
        people, _ = await forked(engine, person, {"b": 0, "c": 0})
        still, goes = people["b"], people["c"]
        still.answers = False
        await until(lambda: len(goes.done) >= 9)
        engine.post(api.Close("a"))
        await asyncio.sleep(0.1)
        newcomer = Person(engine, "new", prompt="something else")
        await newcomer.open()
        await until(lambda: len(newcomer.done) >= 6)
        still.answers = True
        still.answer()
        await until(lambda: len(still.done) >= 9)
        assert still.digests()[:9] == goes.digests()[:9]
        engine.check_integrity()
        await engine.close()

    run(main())


def test_all_futures_find_a_place_or_none_is_made() -> None:
    async def main() -> None:
        engine, _, person = await playing(slots=3)
        people, refused = await forked(engine, person, {"b": 1, "c": 2, "d": 3})
        assert refused is not None and refused.reason is api.RefusalReason.NO_SLOT
        done = len(person.done)
        await asyncio.sleep(0.5)
        assert len(person.done) > done and not any(other.done for other in people.values())
        assert engine.capacity()[0].sessions == 1
        await engine.close()

    run(main())


def test_side_by_side_one_stream_shows_all_and_whoever_is_kept_goes_on_in_it() -> None:
    async def main() -> None:
        engine, _, person = await playing()
        people, _ = await forked(engine, person, {"b": 1})
        other = people["b"]
        engine.post(api.ShowBeside("a", ("b",)))
        await until(lambda: len(other.done) >= 10)
        assert not other.frames, "its pictures are parts of the other's"
        engine.post(api.ShowBeside("b"))
        engine.post(api.Close("a"))
        await until(lambda: len(other.frames) >= 5)
        numbers = [frame.frame for _, frame in person.frames + other.frames]
        times = [frame.pts for _, frame in person.frames + other.frames]
        assert numbers == list(range(len(numbers)))
        assert times == sorted(set(times)), "the stream's time never goes back"
        assert other.frames[0][1].key
        await engine.close()

    run(main())


def test_a_composed_picture_has_every_world_in_its_place() -> None:
    frame = FrameSpec(16, 8, 2, 24, 1, smooth=False)
    white, black = np.full((8, 16, 3), 255, np.uint8), np.zeros((8, 16, 3), np.uint8)
    two, four = Mosaic(frame, 2), Mosaic(frame, 4)
    two.put(0, white)
    two.put(1, black)
    luma = two.picture()[:16]
    assert (luma[4:12, :16] > 230).all() and (luma[4:12, 16:] < 20).all() and (luma[:4] == 16).all()
    for place in range(4):
        four.put(place, white if place == 3 else black)
    luma = four.picture()[:16]
    assert (luma[8:, 16:] > 230).all() and (luma[:8] < 20).all() and (luma[8:, :16] < 20).all()


def test_only_what_changed_is_made_small_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scaled: list[int] = []
    plain = mosaic.enlarged

    def counted(picture: np.ndarray, *more: Any) -> Any:
        scaled.append(int(picture[0, 0, 0]))
        return plain(picture, *more)

    monkeypatch.setattr(mosaic, "enlarged", counted)
    two = Mosaic(FrameSpec(16, 8, 2, 24, 1, smooth=False), 2)
    for place, grey in ((0, 50), (1, 100)):
        two.put(place, np.full((8, 16, 3), grey, np.uint8))
    before = two.picture()
    two.put(1, np.full((8, 16, 3), 200, np.uint8))
    after = two.picture()
    assert scaled == [50, 100, 200]
    assert (before[4:12, :16] == after[4:12, :16]).all() and (before[4:12, 16:] < after[4:12, 16:]).all()
