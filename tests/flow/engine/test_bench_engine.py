"""The engine's bench rows measure what they say, on the toy; how fast anything is, is nobody's business here."""

from worldroom.cli.bench import capacity, link, overhead, sharing
from worldroom.models import catalog
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec


async def test_overhead_counts_batches_gaps_and_what_is_not_math() -> None:
    loaded = catalog.load("toy", options=packed(ToySpec(step_seconds=0.002)))
    report = await overhead.measure(loaded, (1, 3), steps=1, max_rows=2, seconds=1.5)
    assert [row.sessions for row in report.rows] == [1, 3]
    for row in report.rows:
        assert row.batches > 0
        assert row.math_ms.min >= 2.0, "the toy sleeps so long in each batch"
        assert row.gap_us.count == row.batches - 1, "the toy has one lane"
        assert 0.0 < row.outside < 1.0
        assert row.loop_us > 0.0


async def test_capacity_adds_rooms_until_there_are_enough() -> None:
    report = await capacity.measure("toy", workers=1, most=2, seconds=1.0)
    assert [row.sessions for row in report.rows] == list(range(1, len(report.rows) + 1))
    assert len(report.rows) == 2 or report.refused
    assert all(0 <= row.within <= row.sessions and row.fps_min > 0 for row in report.rows)
    assert report.held in (0, *(row.sessions for row in report.rows))


async def test_link_sends_each_kind_of_message() -> None:
    report = await link.measure(count=5, frame_bytes=100)
    assert [(row.message, row.us.count) for row in report.rows] == [("Begin", 5), ("Frame", 5), ("ChunkDue", 5)]
    assert all(row.us.min > 0 for row in report.rows)


def test_sharing_takes_every_way_in_every_round() -> None:
    report = sharing.measure((1, 2), rounds=3)
    assert [(row.network, row.rows) for row in report.rows] == [
        ("tiny", 1), ("tiny", 2), ("dim 384", 1), ("dim 384", 2),
    ]  # fmt: skip
    assert all(row.invariant_ms.count == row.alone_ms.count == row.plain_ms.count == 3 for row in report.rows)
    assert all(row.ratio_plain > 0 and row.least_alone > 0 for row in report.rows)


def test_lanes_that_overlap_are_not_counted_twice() -> None:
    noted = [overhead.Math(1, 0.0, 2.0, 2.0, 1), overhead.Math(2, 1.0, 3.0, 2.0, 1)]
    noted.append(overhead.Math(1, 2.5, 4.0, 1.5, 1))
    assert overhead.covered(noted) == 4.0
    assert overhead.gaps(noted) == [0.5]
