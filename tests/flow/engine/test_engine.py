"""The engine on a fake device in virtual time: presses and cancels land while the device is busy."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.output.encode import H264Encoder
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import BadSteps, FakeDevice, Person, driven, engine_on, started, steady, toy, until

FRAME = 1 / 24


def play(scene: Callable[[], Awaitable[None]]) -> None:
    run(scene())


async def closed(engine: Engine, *people: Person) -> None:
    """Close everything; nothing may be left in any pool."""
    for person in people:
        engine.post(api.Close(person.session))
    await asyncio.sleep(1)
    for capacity in engine.capacity():
        assert (capacity.sessions, capacity.pool_bytes_used, capacity.queue_depth) == (0, 0, 0)
    assert engine.services.features.in_use == 0
    engine.check_integrity()
    await engine.close()


def test_a_driver_sees_every_frame_at_the_cards_rate() -> None:
    async def scene() -> None:
        engine, _ = await started(encoder=H264Encoder)
        driver = Person(engine, "a")
        opened = await driver.open()
        assert isinstance(opened, api.Opened)
        assert (opened.steps, opened.precision, opened.card.width) == (2, "int", 640)
        await asyncio.sleep(5)
        assert len(driver.frames) in range(119, 122)
        assert all(abs(interval - FRAME) < 1e-6 for interval in driver.intervals())
        assert [frame.frame for _, frame in driver.frames] == list(range(len(driver.frames)))
        assert [frame.chunk for _, frame in driver.frames] == [frame.input_seq for _, frame in driver.frames]
        assert driver.frames[0][1].key
        assert driver.frames[0][1].data[:4] == b"\0\0\0\x01"
        assert not any(frame.key for _, frame in driver.frames[1:])
        ticks = [b.pts - a.pts for (_, a), (_, b) in itertools.pairwise(driver.frames)]
        assert set(ticks) == {3750}
        assert driver.frames[9][1].timings == api.Timings(wait_us=0, step_us=6000, decode_us=2000, encode_us=0)
        await closed(engine, driver)

    play(scene)


def test_conditions_are_sampled_just_in_time() -> None:
    async def scene() -> None:
        engine, _, driver = await driven()  # 4 steps of 2 ms
        await asyncio.sleep(3)
        for shown, frame in driver.frames[24:]:
            assert 0.008 < shown - frame.begun < 0.0115, "price 8 ms and a margin below 3.5 ms"
        await closed(engine, driver)

    play(scene)


@pytest.mark.parametrize("latency_class", list(api.LatencyClass))
@pytest.mark.parametrize("per_chunk", [1, 12])
def test_a_model_of_infinite_speed_is_never_more_than_one_chunk_ahead(
    latency_class: api.LatencyClass, per_chunk: int
) -> None:
    async def scene() -> None:
        engine, _ = await started(steady(0.0), (toy(per_chunk=per_chunk),))
        driver = Person(engine, "a")
        await driver.open(latency_class=latency_class)
        await asyncio.sleep(10)
        first_shown: dict[int, float] = {}
        for shown, frame in driver.frames:
            first_shown.setdefault(frame.chunk, shown)
        assert len(driver.done) > 15
        for done, event in driver.done[2:-2]:
            assert done >= first_shown[event.chunk - 1] - 1e-9
        await closed(engine, driver)

    play(scene)


def test_a_slow_model_that_becomes_fast_again_is_back_at_its_rate_within_three_seconds() -> None:
    async def scene() -> None:
        engine, device, driver = await driven()
        await asyncio.sleep(2)
        device.cost = steady(0.025)  # 100 ms a chunk
        await asyncio.sleep(10)
        slow = driver.intervals()[-20:]
        assert all(0.095 < interval < 0.110 for interval in slow), "as fast as the model, not slower"
        device.cost = steady(0.002)
        await asyncio.sleep(3)
        count = len(driver.frames)
        await asyncio.sleep(2)
        assert len(driver.frames) - count == 48
        assert min(driver.intervals()) > 0.9 * FRAME, "nothing is caught up in a burst"
        await closed(engine, driver)

    play(scene)


def test_after_a_pause_of_thirty_seconds_the_pace_is_normal_at_once() -> None:
    async def scene() -> None:
        engine, _, driver = await driven()
        await asyncio.sleep(2)
        engine.post(api.Pause("a"))
        await asyncio.sleep(0.2)
        paused = len(driver.frames)
        await asyncio.sleep(30)
        assert len(driver.frames) == paused
        engine.post(api.Resume("a"))
        await asyncio.sleep(1)
        after = driver.intervals()[paused : paused + 10]
        assert all(abs(interval - FRAME) < 1e-6 for interval in after)
        gap_pts = driver.frames[paused][1].pts - driver.frames[paused - 1][1].pts
        gap = driver.frames[paused][0] - driver.frames[paused - 1][0]
        assert gap_pts == pytest.approx(gap * 90_000, abs=2), "presentation times follow the clock, not the frame index"
        assert [frame.chunk for _, frame in driver.frames] == list(range(len(driver.frames)))
        await closed(engine, driver)

    play(scene)


def test_a_supersede_takes_effect_within_one_step() -> None:
    async def scene() -> None:
        engine, device, driver = await driven(steady(0.008))
        await asyncio.sleep(1)
        await until(lambda: device.busy)
        steps_before, asked = len(device.ran), asyncio.get_running_loop().time()
        driver.supersede()
        await until(lambda: driver.cancelled)
        assert driver.cancelled[0][0] - asked <= 0.008
        assert len(device.ran) - steps_before == 1, "the step on the device ends, no further one starts"
        await closed(engine, driver)

    play(scene)


def test_a_waiting_step_of_a_superseded_chunk_never_starts() -> None:
    async def scene() -> None:
        engine, device = await started(steady(0.004), spec=EngineSpec(max_rows=1))
        first, second = Person(engine, "a"), Person(engine, "b")
        await first.open()
        await second.open()
        await until(lambda: engine.capacity()[0].queue_depth)
        waiting = engine.services.dispatcher.waiting
        loser = first if "a" in waiting else second
        before = len(loser.cancelled)
        loser.supersede()
        for _ in range(4):
            await asyncio.sleep(0)
        assert device.busy
        assert len(loser.cancelled) == before + 1
        await closed(engine, first, second)

    play(scene)


@pytest.mark.parametrize("per_chunk", [1, 12])
def test_after_a_restart_no_frame_of_the_older_epoch_is_shown(per_chunk: int) -> None:
    async def scene() -> None:
        engine, _ = await started(cards=(toy(per_chunk=per_chunk),))
        driver, fresh = Person(engine, "a"), Person(engine, "b")
        await driver.open()
        for _ in range(5):
            await asyncio.sleep(0.737)
            driver.supersede(restart=True, seed=99)
            at = asyncio.get_running_loop().time()
            await asyncio.sleep(1.3)
            later = [frame for shown, frame in driver.frames if shown > at]
            assert {frame.epoch for frame in later} == {driver.epoch}
            assert max(driver.intervals()) < 2.5 * FRAME
        chunks = [event.chunk for _, event in driver.done]
        assert chunks == list(range(len(chunks))), "chunk numbers go on"
        await fresh.open(seed=99)
        await closed(engine, driver, fresh)

    play(scene)


def test_frames_of_long_chunks_leave_one_by_one() -> None:
    async def scene() -> None:
        engine, _, driver = await driven(steady(0.05), (toy(per_chunk=12),))
        await asyncio.sleep(10)
        intervals = np.array(driver.intervals()[12:])
        assert len(intervals) > 200
        assert np.abs(intervals / FRAME - 1).max() < 0.05
        await closed(engine, driver)

    play(scene)


def test_many_sessions_keep_their_rates_on_one_device() -> None:
    async def scene() -> None:
        engine, _ = await started(steady(0.002), spec=EngineSpec(slots=4, max_rows=1))
        people = [Person(engine, name) for name in "abcd"]
        for person in people:
            await person.open()
            await asyncio.sleep(0.013)
        await asyncio.sleep(2)
        for person in people:
            person.frames.clear()
        await asyncio.sleep(5)
        for person in people:
            assert len(person.frames) in (119, 120, 121)
            assert person.done[-1][1].late_us < 1000
        await closed(engine, *people)

    play(scene)


def test_a_session_that_never_answers_blocks_nobody_and_costs_nothing() -> None:
    async def scene() -> None:
        engine, _ = await started()
        silent, driver = Person(engine, "a", answers=False), Person(engine, "b")
        await silent.open()
        await driver.open()
        await asyncio.sleep(2)
        assert len(silent.dues) == 1
        assert not silent.frames
        assert len(driver.frames) in (47, 48, 49)
        silent.answers = True
        silent.answer()
        await asyncio.sleep(2)
        assert len(silent.frames) in (47, 48, 49)
        assert not silent.faults
        assert silent.done[0][1].late_us < 10_000, "two seconds without an answer are not lateness"
        assert max(silent.done[-1][1].late_us, driver.done[-1][1].late_us) < 100, "the two have drifted apart"
        await closed(engine, silent, driver)

    play(scene)


def test_a_full_engine_refuses_with_figures_and_a_closed_session_makes_room() -> None:
    async def scene() -> None:
        engine, _ = await started(spec=EngineSpec(slots=2))
        first, second, third = Person(engine, "a"), Person(engine, "b"), Person(engine, "c")
        assert isinstance(await first.open(), api.Opened)
        assert isinstance(await second.open(), api.Opened)
        refused = await third.open()
        figures = api.Shortage(needed=1, used=2, limit=2, unit=api.Unit.PLACES)
        assert refused == api.Refused("c", api.RefusalReason.NO_SLOT, "all 2 places are taken", 0, 3.0, figures)
        await asyncio.sleep(0.5)
        engine.post(api.Close("a"))
        assert isinstance(await third.open(), api.Opened)
        await asyncio.sleep(1)
        assert len(third.frames) > 20
        await closed(engine, second, third)

    play(scene)


def test_a_session_closed_while_it_waits_for_a_slot_never_opens() -> None:
    async def scene() -> None:
        engine, device = await started(spec=EngineSpec(slots=1))
        first, second = Person(engine, "a"), Person(engine, "b")
        await first.open()
        await until(lambda: device.busy)
        engine.post(api.Close("a"))
        opening = asyncio.create_task(second.open())
        await asyncio.sleep(0)
        assert not opening.done(), "the slot comes back when the step on the device ends"
        engine.post(api.Close("b"))
        refused = await opening
        assert isinstance(refused, api.Refused)
        assert refused.reason is api.RefusalReason.CONFLICT
        await asyncio.sleep(1)
        await closed(engine)

    play(scene)


def test_two_sessions_that_fit_alone_but_not_together_are_refused_at_the_door() -> None:
    async def scene() -> None:
        engine, _ = await started(steady(0.006))  # 24 ms of 41.7 ms
        first, second = Person(engine, "a"), Person(engine, "b")
        assert isinstance(await first.open(), api.Opened)
        refused = await second.open()
        assert isinstance(refused, api.Refused)
        assert refused.reason is api.RefusalReason.NO_COMPUTE
        assert refused.detail == "a session takes 58% of the device, 58% of 90% is in use"
        assert engine.capacity()[0].sessions_max == 1
        await closed(engine, first)

    play(scene)


def test_what_cannot_be_served_is_refused_by_name() -> None:
    async def scene() -> None:
        engine, _ = await started()
        driver = Person(engine, "a")
        reasons = []
        for more in ({"card": "toi"}, {"steps": 9}):
            refused = await driver.open(**more)
            assert isinstance(refused, api.Refused)
            reasons.append((refused.reason, refused.detail))
        await driver.open()
        refused = await driver.open()
        assert isinstance(refused, api.Refused)
        reasons.append((refused.reason, refused.detail))
        assert reasons == [
            (api.RefusalReason.UNKNOWN_CARD, "no card 'toi' here: toy"),
            (api.RefusalReason.RECIPE, "recipe 'toy-1' does not allow steps '9': it allows 1, 2, 3, 4"),
            (api.RefusalReason.CONFLICT, "session 'a' is open already"),
        ]
        await closed(engine, driver)

    play(scene)


def test_a_fault_loses_one_chunk_and_the_fourth_in_a_row_pauses() -> None:
    async def scene() -> None:
        engine, device = await started()
        driver, neighbour = Person(engine, "a"), Person(engine, "b")
        await driver.open()
        await asyncio.sleep(1)
        device.fail = bad = BadSteps(StepKind.DECODE, 1)
        await asyncio.sleep(1)
        assert driver.faults == [
            api.Fault(
                "a", "step_failed", "FloatingPointError: latents of 1 row are not finite", fatal=False, whole=True
            )
        ]
        chunks = [event.chunk for _, event in driver.done]
        assert chunks == list(range(len(chunks))), "the chunk was made again from the last commit"
        bad.left = 3
        await asyncio.sleep(1)
        assert [fault.fatal for fault in driver.faults] == [False] * 4, "bad chunks, and it goes on"
        bad.left = 4
        await asyncio.sleep(1)
        assert [fault.fatal for fault in driver.faults] == [False] * 7 + [True]
        paused = len(driver.frames)
        await neighbour.open()
        await asyncio.sleep(1)
        assert len(driver.frames) == paused
        assert len(neighbour.frames) > 20
        engine.post(api.Resume("a"))
        await asyncio.sleep(1)
        assert len(driver.frames) > paused + 20
        assert driver.digests() == await solo_digests(len(driver.done))
        await closed(engine, driver, neighbour)

    play(scene)


async def solo_digests(count: int) -> list[str]:
    engine, _ = await started()
    driver = Person(engine, "solo")
    await driver.open()
    await until(lambda: len(driver.done) >= count)
    await engine.close()
    return driver.digests()[:count]


def test_frames_that_are_not_what_the_card_promises_are_a_fault() -> None:
    async def scene() -> None:
        engine, device, driver = await driven()
        await asyncio.sleep(0.5)

        def not_a_picture(batch: Batch, results: list[Any]) -> list[Any]:
            if batch.kind is StepKind.DECODE:
                wrong = np.full(results[0].frames_FHWC.shape, 0.5, np.float32)
                results = [type(results[0])(wrong)]
            return results

        device.change = not_a_picture
        await asyncio.sleep(0.5)
        assert [fault.code for fault in driver.faults] == ["bad_frames"] * 4
        assert driver.faults[0].detail == "frames are float32 (all finite: True), the card promises uint8"
        await closed(engine, driver)

    play(scene)


def test_a_prompt_that_was_never_encoded_is_a_fault_and_not_a_crash() -> None:
    async def scene() -> None:
        engine, _, driver = await driven()
        await asyncio.sleep(0.3)
        known, driver.key = driver.key, "0123"
        await asyncio.sleep(0.06)
        fault = driver.faults[0]
        assert (fault.code, fault.fatal) == ("unknown_prompt", False)
        assert fault.detail == "no feature 0123: encode the prompt again"
        driver.key = known
        engine.post(api.Resume("a"))
        await asyncio.sleep(1)
        assert len(driver.frames) > 20
        await closed(engine, driver)

    play(scene)


def test_equal_prompts_of_two_sessions_are_encoded_once() -> None:
    async def scene() -> None:
        engine, device = await started()
        first, second = Person(engine, "a", prompt="a red desert"), Person(engine, "b", prompt="a red desert")
        await first.open()
        await asyncio.sleep(0.2)
        encodes = [kind for kind, _ in device.ran].count(StepKind.PROMPT_ENCODE)
        await second.open()
        await asyncio.sleep(0.2)
        assert first.key == second.key
        assert [kind for kind, _ in device.ran].count(StepKind.PROMPT_ENCODE) == encodes
        await closed(engine, first, second)

    play(scene)


def test_a_viewer_who_joins_a_still_world_gets_a_key_frame_of_it() -> None:
    async def scene() -> None:
        engine, _, driver = await driven()
        await asyncio.sleep(1)
        engine.post(api.Pause("a"))
        await asyncio.sleep(5)
        shown = len(driver.frames)
        engine.post(api.RequestKey("a", joined=True))
        await asyncio.sleep(0.3)
        assert len(driver.frames) == shown + 1
        again = driver.frames[-1][1]
        assert again.key
        assert (again.frame, again.chunk) == (shown, driver.frames[-2][1].chunk)
        assert again.pts > driver.frames[-2][1].pts + 4 * 90_000
        await closed(engine, driver)

    play(scene)


def test_key_requests_make_one_key_frame_and_a_storm_makes_few() -> None:
    async def scene() -> None:
        engine, _, driver = await driven()
        await asyncio.sleep(1)
        engine.post(api.RequestKey("a"))
        await asyncio.sleep(3)
        assert sum(frame.key for _, frame in driver.frames) == 2
        for _ in range(300):
            engine.post(api.RequestKey("a"))
            await asyncio.sleep(0.01)
        assert sum(frame.key for _, frame in driver.frames) <= 2 + 11
        await closed(engine, driver)

    play(scene)


def test_every_command_is_harmless_at_any_time() -> None:
    async def scene() -> None:
        engine, _ = await started()
        driver = Person(engine, "a")
        conditions = api.Conditions(0, (0.0,) * 4, (0.0, 0.0), (), 1, 0)
        commands = [
            api.Close("nobody"),
            api.Begin("nobody", 0, conditions),
            api.Begin("a", 77, conditions),
            api.Resume("a"),
            api.RequestKey("a"),
            api.SetBitrate("a", 10_000_000),
            api.SetBitrate("a", -5),
            api.Supersede("a", 0),
        ]
        await driver.open()
        for _ in range(10):
            for command in commands:
                engine.post(command)
                await asyncio.sleep(0.0171)
        await asyncio.sleep(1)
        assert not driver.faults
        assert {event.chunk for _, event in driver.cancelled} == {77}
        assert all(abs(interval - FRAME) < 0.045 for interval in driver.intervals())
        await closed(engine, driver)
        engine.post(api.Close("a"))
        assert await engine.open(api.Open("z", "toy", 1), driver.hear) == api.Refused(
            "z", api.RefusalReason.NOT_READY, "the engine is warming up or closing", 0, 3.0
        )

    play(scene)


def test_nothing_is_admitted_before_warm_up_and_the_first_chunk_costs_what_the_tenth_does() -> None:
    async def scene() -> None:
        cold = dict.fromkeys(StepKind, 3)

        def cost(batch: Batch) -> float:
            cold[batch.kind] -= 1
            return 0.5 if cold[batch.kind] >= 0 else 0.002

        engine = engine_on(FakeDevice(cost))
        driver = Person(engine, "a")
        starting = asyncio.create_task(engine.start())
        await asyncio.sleep(0.1)
        refused = await driver.open()
        assert isinstance(refused, api.Refused)
        assert refused.reason is api.RefusalReason.NOT_READY
        await starting
        assert engine.cards()[0].price_us == 8000
        assert isinstance(await driver.open(), api.Opened)
        await asyncio.sleep(1)
        costs = [done.timings.step_us + done.timings.decode_us for _, done in driver.done]
        assert costs[0] == costs[9] == 8000
        await closed(engine, driver)

    play(scene)
