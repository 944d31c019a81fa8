"""`worldroom replay` on the journal of a real session: the same latents, a film, and the first chunk that differs."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import av
import msgspec
from typer.testing import CliRunner
from worldroom.cli.journal_place import JournalPlace
from worldroom.cli.journaling import archive_now
from worldroom.cli.main import app
from worldroom.clients.bench.server import command
from worldroom.clients.python.room import join
from worldroom.rtc.wire import Transition, Welcome
from worldroom.sessions.journal import events
from worldroom.sessions.journal.entry import Stamp, decode, encode
from worldroom.tests.real_server import PATIENCE_S, driving, journaled, ready, served


def replay(*words: str) -> tuple[int, str]:
    """Exit status, and what was said: on stdout, or on stderr when it failed."""
    done = subprocess.run([command(), "replay", *words], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr if done.returncode == 2 else done.stdout


async def recorded(folder: Path) -> str:
    """A session of the toy with keys, a blend and a restart, journaled in `folder`; its name."""
    with served(folder) as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            assert room.welcome is not None
            await room.applied(await room.prompt("a red desert", Transition.BLEND, 0.25))
            room.release("ArrowLeft")
            room.press("ArrowUp")
            await room.applied(await room.reset(seed=77))
            before = room.latency.frames
            async for _ in room.frames():
                if room.latency.frames >= before + 12:
                    break
        process.terminate()
        process.wait()
        return room.welcome.session


def tampered(folder: Path, session: str) -> tuple[int, int]:
    """Change the digest of the fifth chunk in the journal; its (epoch, chunk)."""
    asyncio.run(archive_now(JournalPlace(folder), session))
    archive = JournalPlace(folder).opened_archive()
    index = archive.index(session)
    assert index is not None and index.whole
    rows, done, changed = [row for part in index.parts for row in archive.part(session, part)], 0, (0, 0)
    for place, row in enumerate(rows):
        event = decode(session, row.number, row.at, row.body).event
        done += isinstance(event, events.ChunkCommitted)
        if isinstance(event, events.ChunkCommitted) and done == 5:
            changed = (event.epoch, event.chunk)
            forged = msgspec.structs.replace(event, digest="0" * 32)
            rows[place] = msgspec.structs.replace(row, body=encode(forged, Stamp()))
    archive.replace(index, [rows])
    return changed


def test_a_recorded_session_comes_out_the_same(tmp_path: Path) -> None:
    folder, film = tmp_path / "data", tmp_path / "again.mp4"
    session = asyncio.run(recorded(folder))
    written = asyncio.run(journaled(folder, session))
    done = [event for event in written if isinstance(event, events.ChunkCommitted)]
    code, out = replay(session, "--data", str(folder), "--out", str(film), "--json")
    report = json.loads(out)
    assert (code, report["same"], report["first_divergence"]) == (0, True, None)
    assert (report["card"], report["epochs"], report["chunks"]) == ("toy", 2, len(done))
    with av.open(str(film)) as shown:
        assert sum(1 for _ in shown.decode(video=0)) == report["frames"] > 12

    code, out = replay("--data", str(folder), "--json")
    listed = json.loads(out)["sessions"]
    assert (code, [(entry["session"], entry["room"], entry["card"]) for entry in listed]) == (
        0,
        [(session, "stop", "toy")],
    )
    epoch, chunk = tampered(folder, session)
    code, out = replay(session, "--data", str(folder), "--json")
    report = json.loads(out)
    assert (code, report["same"], report["different"]) == (1, False, 1)
    assert report["first_divergence"]["epoch"] == epoch
    assert report["first_divergence"]["chunk"] == chunk
    assert report["first_divergence"]["recorded"] == "0" * 32


def test_what_cannot_be_replayed_is_one_clear_line(tmp_path: Path) -> None:
    code, out = replay("a1", "--data", str(tmp_path))
    assert code == 2
    assert f"there is no journal in {tmp_path}" in out


def test_a_part_of_it_and_what_might_have_been(tmp_path: Path) -> None:
    session = asyncio.run(recorded(tmp_path))
    done = [e for e in asyncio.run(journaled(tmp_path, session)) if isinstance(e, events.ChunkCommitted)]
    place = ("--data", str(tmp_path), "--json")
    first = done[-5].chunk
    code, out = replay(session, *place, "--from", str(first))
    report = json.loads(out)
    later = [event for event in done if event.chunk >= first]
    assert (code, report["same"], report["chunks"], report["unseen"]) == (0, True, len(later), len(done) - len(later))

    film = tmp_path / "other.mp4"
    code, out = replay(session, *place, "--prompt", "a violet dusk", "--steps", "1", "--out", str(film))
    report = json.loads(out)
    assert (code, report["same"], report["counterfactual"]) == (0, None, "other words, 1 steps for 2")
    assert report["chunks"] == len(done) and film.exists()

    code, said = replay(session, *place, "--verify", "--from", "3")
    assert code == 2 and "--verify compares all that was recorded" in said
    assert replay(session, *place, "--verify")[0] == 0


async def watched_room(url: str, at: int) -> tuple[Welcome, list[int]]:
    """What a room says of itself, and the first chunks it shows; then those from chunk `at` on."""
    async with asyncio.timeout(PATIENCE_S), join(url, loopback=True) as room:
        chunks, sought = [], False
        async for frame in room.frames():
            chunks += [] if frame.receipt is None else [frame.receipt.chunk]
            if len(chunks) == 3:
                assert await room.applied(await room.seek(at)) == at
                sought = True
            if sought and len(chunks) > 6:
                assert room.welcome is not None
                return room.welcome, chunks
        raise AssertionError("the room ended")


def test_it_is_watched_in_a_room_of_a_server_that_is_started_for_it_or_runs(tmp_path: Path) -> None:
    session = asyncio.run(recorded(tmp_path))
    words = [command(), "replay", session, "--data", str(tmp_path), "--room", "here", "--prompt", "snow at night"]
    serving = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        assert serving.stderr is not None
        said = next(line for line in serving.stderr if " and watch" in line)
        url = said.split()[1]
        code, other = replay(session, "--room", url.partition("/r/")[0])
        assert (code, other.partition("/r/")[0]) == (0, url.partition("/r/")[0]) and other.strip() != url
        differs, _ = asyncio.run(watched_room(url, 20))
        same, chunks = asyncio.run(watched_room(other.strip(), 20))
        assert (differs.replay, differs.counterfactual) == (session, "other words")
        assert (same.replay, same.counterfactual) == (session, "")
        assert chunks[:3] == sorted(chunks[:3]) and 20 <= chunks[-1] < 40, "sought"
        code, why = replay("nobody", "--room", url.partition("/r/")[0])
        assert code == 2 and "there is no session of that name" in why
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=PATIENCE_S) == 0
    finally:
        serving.kill()


def test_a_room_that_cannot_be_had_is_one_clear_line(tmp_path: Path) -> None:
    for words in (["--room", "http://127.0.0.1:1"], ["--room", "here", "--verify"]):
        done = CliRunner().invoke(app, ["replay", "one", "--data", str(tmp_path), *words])
        assert done.exit_code == 2 and len(done.output.strip().splitlines()) == 1, done.output
