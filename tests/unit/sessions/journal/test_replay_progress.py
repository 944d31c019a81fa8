"""How far a replay is: counted in chunks, said on a terminal alone."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from worldroom.cli.output import progress
from worldroom.cli.replaying import chunks_until
from worldroom.engine import api
from worldroom.models.contract.conditions import Conditions
from worldroom.models.contract.version import UnknownContract
from worldroom.sessions.journal import events
from worldroom.sessions.journal.replay import CommittedChunk, EpochScript, Script, read


def epoch(number: int, chunks: int) -> EpochScript:
    conditions = Conditions(number, (0.0,), (0.0, 0.0), (), 1, 0)
    return EpochScript(number, 7, tuple(CommittedChunk(chunk, conditions, "d") for chunk in range(chunks)))


def frame(epoch: int, chunk: int) -> api.Frame:
    return api.Frame("s", 0, chunk, epoch, 0, True, b"", 0, 1, (0.0,), 0.0, api.Timings(0, 0, 0, 0))


def test_chunks_of_earlier_epochs_count() -> None:
    opened = events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", 7, 0)
    script = Script(opened, {}, (epoch(0, 5), epoch(1, 3)))
    assert [chunks_until(script, frame(*at)) for at in ((0, 0), (0, 4), (1, 0), (1, 2))] == [1, 5, 6, 8]


def test_where_nobody_watches_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("chunks") as bar:
        bar.advance(bar.add_task("replaying", total=3))
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_it_is_a_line_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("chunks") as bar:
        bar.advance(bar.add_task("replaying", total=3))
        bar.refresh()
    out, err = capsys.readouterr()
    assert out == "" and "replaying" in err and "1/3" in err


async def _events(*events_in_order: events.JournalEvent) -> AsyncIterator[events.JournalEvent]:
    for event in events_in_order:
        yield event


def test_a_journal_of_another_contract_is_refused() -> None:
    opened = events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", 7, 0, contract=9)
    with pytest.raises(UnknownContract, match="this journal has contract version 9, this program reads 1 to 2"):
        asyncio.run(read(_events(opened)))
    old = events.SessionOpened("lobby", "toy", "1", "w0", 2, "int", 7, 0)
    assert asyncio.run(read(_events(old))).opened.contract == 1
