"""Observers on a running engine: prices and history are fed, numbers that are not finite end one chunk of one session,
and probes name the first step in which two runs differ.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from worldroom.engine import api
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.models.drive.loop import Denoised
from worldroom.models.drive.runtime import DriveRuntime
from worldroom.models.toy.runtime import ToyRuntime
from worldroom.simulation.virtual_time import run
from worldroom.tests.drive_card import drive
from worldroom.tests.fake_engine import Person, started, steady, until
from worldroom.tests.probes import Probes


def test_a_row_with_a_number_that_is_not_finite_is_a_fault_of_its_session_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execute, poisoned = DriveRuntime.execute, []

    def one_row_is_bad(self: Any, kind: StepKind, rows: Sequence[Any], views: Sequence[Any]) -> list[Any]:
        results = execute(self, kind, rows, views)
        if len(rows) == 2 and kind is StepKind.COMMIT_DENOISE and not poisoned:
            poisoned.append(kind)
            bad_NC = np.array(results[1].x0_NC)
            bad_NC[3, 5] = np.nan
            results[1] = Denoised(bad_NC)
        return results

    async def scene() -> None:
        engine, _ = await started(steady(0.005), (drive(),), EngineSpec(slots=2, share_cap=1.0))
        people = [Person(engine, name, "snow") for name in "ab"]
        for person in people:
            assert isinstance(await person.open("drive"), api.Opened)
        monkeypatch.setattr(DriveRuntime, "execute", one_row_is_bad)
        await until(lambda: poisoned and all(len(person.done) > 3 for person in people))
        (fault,) = [fault for person in people for fault in person.faults]
        assert fault.detail == "NotFinite: commit_denoise of card 'drive': 1 numbers are not finite"
        assert not fault.fatal
        for person in people:
            assert [event.chunk for _, event in person.done] == list(range(len(person.done)))
        await engine.close()

    run(scene())


def test_what_ran_is_in_the_trail_with_who_was_in_it_and_its_price() -> None:
    async def scene() -> None:
        engine, _ = await started(steady(0.004))
        person = Person(engine, "a")
        await person.open()
        await until(lambda: len(person.done) > 2)
        mine = [step for step in engine.steps() if step.sessions == ("a",) and step.kind == StepKind.DENOISE]
        assert len(mine) >= 6
        assert all(step.seconds == pytest.approx(step.price) == pytest.approx(0.004) for step in mine)
        await engine.close()

    run(scene())


async def tapped(sessions: str) -> Probes:
    probes = Probes()
    engine, _ = await started(spec=EngineSpec(slots=4, share_cap=1.0), observers=(probes,))
    people = [Person(engine, name, "a red desert") for name in sessions]
    for person in people:
        assert isinstance(await person.open(seed=ord(person.session)), api.Opened)
    await until(lambda: all(len(person.done) >= 6 for person in people))
    await engine.close()
    return probes


def test_taps_of_a_session_are_the_same_in_company(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, together = run(tapped("b")).of("b"), run(tapped("abc")).of("b")
    steps = min(len(alone), len(together))
    assert steps >= 24
    assert alone[:steps] == together[:steps]

    execute = ToyRuntime.execute
    monkeypatch.setattr(
        ToyRuntime,
        "execute",
        lambda self, kind, rows, views: execute(
            self, kind, [rows[0]] * len(rows) if kind is StepKind.COMMIT else rows, views
        ),
    )
    mixed = run(tapped("abc")).of("b")
    first = next(n for n, (ours, theirs) in enumerate(zip(mixed, alone, strict=False)) if ours != theirs)
    assert {probe.kind for probe in mixed[:first]} >= {StepKind.COMMIT}
    assert mixed[first].kind == StepKind.DENOISE, "a wrong commit shows in the next pass that reads the cache"
