"""What a real server keeps of people: consent as they gave it, words that go, pictures that can still be made again."""

import asyncio
import json
import subprocess
from pathlib import Path

from worldroom.clients.bench.server import command
from worldroom.clients.python.room import join
from worldroom.rtc.wire import Keep, Transition
from worldroom.sessions.journal import events
from worldroom.tests.real_server import journaled, ready, served

WORDS = "the orchard behind Elm Street"


def run(*words: str) -> dict[str, object]:
    done = subprocess.run([command(), *words, "--json"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


async def played(folder: Path) -> str:
    """Words of a driver who consents, a rewind over them, and a film; its session. The world waits suspended."""
    with served(folder, 0, "--option", "fps=12") as (process, base):  # so that two futures surely fit
        await ready(base)
        async with asyncio.timeout(60), join(f"{base}/r/stop", loopback=True, patience=20.0, consent=True) as room:
            room.press("ArrowLeft")
            await room.applied(await room.prompt(WORDS, Transition.BLEND, 0.25))
            await room.record(True)
            async for _ in room.frames():
                if room.latency.frames >= 40:
                    break
            await room.applied(await room.rewind(0.5))
            before = room.latency.frames
            async for _ in room.frames():
                if room.latency.frames >= before + 24:
                    break
            await room.applied(await room.choose(Keep.OTHER))
            assert room.welcome is not None
            session = room.welcome.session
        await asyncio.sleep(0.3)  # it is held: suspended with its server
        process.terminate()
        process.wait()
    return session


def holding(folder: Path, words: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


def test_words_are_taken_out_pictures_replay_and_deletion_leaves_nothing(tmp_path: Path) -> None:
    session = asyncio.run(played(tmp_path))
    happened = asyncio.run(journaled(tmp_path, session))
    assert [event.consent for event in happened if isinstance(event, events.Joined)] == [True]
    assert holding(tmp_path, WORDS), "the journal has them"

    place = ("--data", str(tmp_path))
    before = run("replay", session, *place)
    redacted = run("journal", "redact", session, *place)
    assert redacted == {"texts": 2, "embeddings": 2, "worlds": 1}, "the first prompt too; the world knew them"
    assert holding(tmp_path, WORDS) == []
    keys = {event.key for event in happened if isinstance(event, events.PromptReady)}
    assert [path for key in keys for path in holding(tmp_path, key)] == [], "a key is as good as its words"
    after = run("replay", session, *place)
    assert (before["same"], after["same"], after["chunks"]) == (True, True, before["chunks"])

    exported = run("export", session, *place, "--format", "parquet", "--consented", "--out", str(tmp_path / "out"))
    assert exported["sessions"] == 1
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| sessions with the consent of everybody who acted | 1 |" in card and "| prompts redacted | 1 |" in card

    removed = run("journal", "delete", session, "--yes", *place)
    assert removed["entries"] == len(happened) and (removed["films"], removed["worlds"]) == (1, 0)
    assert [path for path in holding(tmp_path, session) if tmp_path / "out" not in path.parents] == []
    assert not (tmp_path / "recordings" / session).exists()
    assert [*(tmp_path / "worlds").rglob("*.world")] == [], "nor a checkpoint"
