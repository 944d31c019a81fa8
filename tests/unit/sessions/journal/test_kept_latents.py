"""Latents beside a journal: which are kept, within which bounds, and what a replay makes of them."""

from pathlib import Path

import numpy as np
from worldroom.engine import api
from worldroom.models.contract.latents import Latents
from worldroom.sessions.journal.archive import Archive
from worldroom.sessions.journal.compare import Comparison
from worldroom.sessions.journal.latents import EVERY, LatentsKeeper, LatentsSpec, kept_latents, name_of

TIMINGS = api.Timings(0, 0, 0, 0)


def latents(value: float, *, off: float = 0.0) -> Latents:
    return Latents.of(np.array([value, value + 1.0 + off], np.float32))


def test_a_card_that_owes_a_tolerance_keeps_them_unless_the_server_says_else(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    assert [LatentsKeeper(archive).every(tolerance) for tolerance in (0.0, 0.1)] == [0, EVERY]
    assert [LatentsKeeper(archive, LatentsSpec(every)).every(0.1) for every in (0, 3)] == [0, 3]


async def test_what_is_kept_is_read_by_its_digest_and_goes_with_the_session(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    keeper, one = LatentsKeeper(archive), latents(1)
    keeper.start()
    keeper.keep("s", one.digest, one.packed())
    await keeper.close()
    assert kept_latents(archive, "s", one.digest) == one.packed()
    assert kept_latents(archive, "s", latents(2).digest) is None
    assert archive.delete("s") == len(one.packed())
    assert kept_latents(archive, "s", one.digest) is None


async def test_a_session_keeps_no_more_than_its_bytes_also_across_servers(tmp_path: Path) -> None:
    size = len(latents(0).packed())
    for start, kept in ((0, 2), (10, 0)):
        keeper = LatentsKeeper(Archive(tmp_path), LatentsSpec(session_bytes=2 * size + 1))
        keeper.start()
        for number in range(start, start + 4):
            keeper.keep("s", latents(number).digest, latents(number).packed())
        await keeper.close()
        assert (keeper.counters.kept, keeper.counters.dropped) == (kept, 4 - kept)


async def test_what_waits_for_a_slow_archive_is_bounded(tmp_path: Path) -> None:
    size = len(latents(0).packed())
    keeper = LatentsKeeper(Archive(tmp_path), LatentsSpec(waiting_bytes=3 * size))
    for number in range(5):
        keeper.keep("s", latents(number).digest, latents(number).packed())
    assert keeper.counters.dropped == 2
    keeper.start()
    await keeper.close()
    assert keeper.counters.kept == 3


async def test_an_archive_that_takes_nothing_is_counted_and_said_once(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    (tmp_path / "archive" / "s").write_text("a file where the session's folder should be")
    keeper = LatentsKeeper(archive)
    keeper.start()
    keeper.keep("s", latents(0).digest, latents(0).packed())
    await keeper.close()
    assert (keeper.counters.kept, keeper.counters.dropped) == (0, 1)


def test_a_digest_of_many_parts_is_a_name_that_files_may_have() -> None:
    long = "-".join(["a" * 64] * 9)
    assert len(name_of(long)) < 80 and name_of(long) != name_of(long + "-b")
    assert name_of("a" * 64) == "a" * 64 + ".npy"


# ---- comparing -----------------------------------------------------------------------------------------------------


def done(chunk: int, made: Latents) -> api.ChunkDone:
    return api.ChunkDone("again", chunk, 0, made.digest, 0, TIMINGS, latents=made.packed())


async def compared(errors: dict[int, float], every: int = 4, tolerance: float = 0.1, chunks: int = 12) -> Comparison:
    """Chunks of which every fourth was kept; `errors`: by how much some come out otherwise."""
    kept = {latents(chunk).digest: latents(chunk).packed() for chunk in range(0, chunks, every)}

    async def of(digest: str) -> bytes | None:
        return kept.get(digest)

    comparison = Comparison(tolerance, every, of)
    for chunk in range(chunks):
        await comparison.take(0, latents(chunk).digest, done(chunk, latents(chunk, off=errors.get(chunk, 0.0))))
    return comparison


async def test_an_error_within_the_tolerance_passes_and_one_beyond_it_is_named() -> None:
    small = await compared(dict.fromkeys(range(12), 0.05))
    assert (small.mismatches, small.within, small.unjudged, small.vouched) == ([], 3, 3, True)
    assert 0.04 < small.largest < 0.06
    grown = await compared({chunk: 0.02 * chunk for chunk in range(12)})
    assert [(each.chunk, round(each.error or 0, 2)) for each in grown.mismatches] == [(8, 0.16)]


async def test_of_an_exact_card_bits_alone_count() -> None:
    exact = await compared({5: 1e-3}, tolerance=0.0)
    assert [(each.chunk, each.error) for each in exact.mismatches] == [(5, None)]


async def test_chunks_that_nothing_vouches_for_are_said() -> None:
    none = await compared(dict.fromkeys(range(12), 0.05), every=100, chunks=12)
    assert (none.within, none.unjudged, none.vouched) == (1, 11, True)
    lost = Comparison(0.1, 4)
    for chunk in range(12):
        await lost.take(0, latents(chunk).digest, done(chunk, latents(chunk, off=0.05)))
    assert (lost.unjudged, lost.vouched) == (12, False)
    again = await compared({})
    assert (again.within, again.unjudged, again.vouched) == (0, 0, True)
