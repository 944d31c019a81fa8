"""Latents that a real server keeps: a card that is not exact replays within its tolerance, pairs resolve."""

import asyncio
import io
import itertools
import json
import subprocess
from pathlib import Path

import httpx
import msgspec
import numpy as np
from worldroom.cli.journal_place import JournalPlace
from worldroom.cli.journaling import archive_now
from worldroom.clients.bench.server import command
from worldroom.models.contract.latents import Latents
from worldroom.rtc.wire import Keep
from worldroom.sessions.journal import events
from worldroom.sessions.journal.entry import Stamp, decode, encode
from worldroom.sessions.journal.latents import EVERY, FOLDER, kept_latents, name_of
from worldroom.tests.real_server import driving, journaled, ready, served, watched
from worldroom.training.examples.reward_from_pairs import Pair, from_journal


def run(*words: str) -> tuple[int, dict[str, object]]:
    done = subprocess.run([command(), *words, "--json"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


async def driven(folder: Path) -> str:
    """A short drive of a card whose chunks may come out a little otherwise."""
    with served(folder, 0, "--inexact", card="drive") as (process, base):
        await ready(base)
        async with driving(base) as (room, _):
            assert room.welcome is not None
            await watched(room, 3 * EVERY)
        process.terminate()
        process.wait()
        return room.welcome.session


def elsewhere(folder: Path, session: str, seed: int) -> list[int]:
    """The journal as a machine that rounds otherwise would have left it: other digests, latents a little off.

    The chunks whose latents were kept.
    """
    asyncio.run(archive_now(JournalPlace(folder), session))
    archive, rng, kept = JournalPlace(folder).opened_archive(), np.random.default_rng(seed), []
    index = archive.index(session)
    assert index is not None
    rows = [row for part in index.parts for row in archive.part(session, part)]
    for place, row in enumerate(rows):
        event = decode(session, row.number, row.at, row.body).event
        if not isinstance(event, events.ChunkCommitted):
            continue
        digest = f"{event.chunk:064x}"
        if (data := kept_latents(archive, session, event.digest)) is not None:
            values = np.load(io.BytesIO(data))
            off = values + np.ptp(values) * rng.normal(scale=1e-5, size=values.shape)
            archive.put_beside(session, FOLDER, name_of(digest), Latents.of(off).packed())
            kept.append(event.chunk)
        rows[place] = msgspec.structs.replace(row, body=encode(msgspec.structs.replace(event, digest=digest), Stamp()))
    archive.replace(index, [rows])
    return kept


def disturb(folder: Path, session: str, chunk: int) -> None:
    """One number of that chunk's latents becomes another."""
    archive, digest = JournalPlace(folder).opened_archive(), f"{chunk:064x}"
    data = kept_latents(archive, session, digest)
    assert data is not None
    values = np.load(io.BytesIO(data))
    values.flat[7] += 2 * np.ptp(values)
    archive.put_beside(session, FOLDER, name_of(digest), Latents.of(values).packed())


def test_a_card_that_is_not_exact_replays_within_its_tolerance_and_the_first_chunk_beyond_is_named(
    tmp_path: Path,
) -> None:
    session = asyncio.run(driven(tmp_path))
    place = ("--data", str(tmp_path))
    opened = next(e for e in asyncio.run(journaled(tmp_path, session)) if isinstance(e, events.SessionOpened))
    assert (opened.mode, opened.latents) == ("inexact", EVERY)
    code, report = run("replay", session, *place, "--verify")
    assert (code, report["same"], report["within"]) == (0, True, 0), "this machine makes the same bits"

    kept = elsewhere(tmp_path, session, seed=1)
    assert kept[:3] == [0, EVERY, 2 * EVERY]
    code, report = run("replay", session, *place, "--verify")
    assert (code, report["same"], report["within"], report["vouched"]) == (0, True, len(kept), True), report
    assert 0 < float(str(report["largest_error"])) < 1e-3

    disturb(tmp_path, session, kept[2])
    code, report = run("replay", session, *place, "--verify")
    assert (code, report["same"], report["different"]) == (1, False, 1)
    first = msgspec.convert(report["first_divergence"], dict[str, object])
    assert (first["chunk"], float(str(first["error"])) > 0.5) == (kept[2], True)

    code, removed = run("journal", "delete", session, *place, "--yes")
    assert code == 0 and int(str(removed["archive_bytes"])) > 0
    assert not list((tmp_path / "archive").rglob("*.npy"))


def test_a_pair_finds_the_latents_of_its_futures(tmp_path: Path) -> None:
    async def played() -> tuple[str, dict[str, bytes | None], list[Pair]]:
        with served(tmp_path, 0, "--keep-latents", "4") as (process, base):
            await ready(base)
            async with driving(base) as (room, _):
                assert room.welcome is not None
                session = room.welcome.session
                await room.applied(await room.fork())
                await watched(room, 80)
                await room.applied(await room.choose(Keep.OTHER))
                await watched(room, 20)
            await asyncio.sleep(0.5)
            found: dict[str, bytes | None] = {}
            async with httpx.AsyncClient(base_url=base, trust_env=False) as http:
                lines = (await http.get(f"/v1/library/{session}/entries?types=preference.chosen")).content.splitlines()
                (choice,) = [json.loads(line)["event"] for line in lines]
                for branch in choice["branches"]:
                    for place, digest in enumerate(branch["digests"]):
                        answer = await http.get(f"/v1/library/{session}/latents/{digest}")
                        found[f"{branch['branch']}.{place}"] = answer.content if answer.status_code == 200 else None
                assert (await http.get(f"/v1/library/{session}/latents/{'0' * 64}")).json()["code"] == "no_latents"
            pairs = await from_journal(base, None, tmp_path)
            process.terminate()
            process.wait()
            return session, found, pairs

    session, found, learnt = asyncio.run(played())
    archive = JournalPlace(tmp_path).opened_archive()
    pairs = [e for e in asyncio.run(journaled(tmp_path, session)) if isinstance(e, events.PreferenceChosen)]
    (choice,), (pair,) = pairs, learnt
    assert pair.label == 1.0 and pair.first.shape == pair.second.shape and not np.array_equal(pair.first, pair.second)
    assert len(choice.branches) == 2 and min(len(branch.digests) for branch in choice.branches) > 4
    for branch in choice.branches:
        kept = [place for place, digest in enumerate(branch.digests) if kept_latents(archive, session, digest)]
        spaced = {later - earlier for earlier, later in itertools.pairwise(kept)}
        assert spaced == {4}, f"future {branch.branch}: {kept}"
        for place, digest in enumerate(branch.digests):
            data = kept_latents(archive, session, digest)
            assert found[f"{branch.branch}.{place}"] == data
            assert data is None or Latents.of(np.load(io.BytesIO(data))).digest == digest, "they are those it names"
    assert kept_latents(archive, session, choice.branches[1].digests[0]), "the first chunk of a future is kept"
