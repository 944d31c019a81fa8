"""The bench's report as a table and as JSON, and the arithmetic of fan-out."""

import io

import msgspec
import pytest
from rich.console import Console
from worldroom.clients.bench.cells import DriveCell, FanoutPoint, JoinCell, LatencyCell, fanout_cell
from worldroom.clients.bench.run import BenchFailed, BenchReport, run_bench, table
from worldroom.clients.python.latency import spread

POINTS = (
    FanoutPoint(0, 0.5, 0.0, 0.0, 0.0),
    FanoutPoint(1, 7.2, 3.0, 24.0, 43.0),
    FanoutPoint(2, 7.7, 3.2, 24.0, 43.0),
    FanoutPoint(4, 8.6, 3.6, 24.0, 43.0),
    FanoutPoint(8, 10.6, 4.4, 24.0, 44.0),
)
MS = spread([1.0, 2.0, 3.0])


def latency(fps: int) -> LatencyCell:
    return LatencyCell(fps, 3, MS, MS, MS, MS, MS, MS, MS, MS)


REPORT = BenchReport(
    machine="a machine",
    cores=2,
    load=(0.1, 0.5),
    seconds=8.0,
    seed=0,
    latency=latency(24),
    latency_fast=latency(240),
    fanout=fanout_cell(POINTS, [1800, 1800]),
    join=JoinCell(MS, MS, 0),
    drive=DriveCell("drive", 24.0, MS, MS, 80.0, 0),
)


def test_the_cost_of_a_further_viewer_is_the_slope_over_all_points() -> None:
    cell = fanout_cell(POINTS, [1800, 1800])
    assert (cell.first_ms, cell.encode_ms, cell.each_more_ms) == (3.0, 1.8, 0.2)
    assert cell.share == 0.1 and cell.share_of_first == 0.067


def test_the_table_shows_every_row_beside_its_bound() -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(table(REPORT))
    text = console.export_text()
    for part in ("latency 24 fps", "latency 240 fps", "fan-out", "running room", "24 fps", "<= 10 %", "p95 <= 500"):
        assert part in text, part


def test_the_json_has_stable_keys() -> None:
    report = msgspec.json.decode(msgspec.json.encode(REPORT))
    assert list(report) == (
        ["machine", "cores", "load", "seconds", "seed", "latency", "latency_fast", "fanout", "join", "drive", "memory"]
    )
    assert list(report["latency"]["added_ms"]) == ["p50", "p95", "p99", "min", "max", "count"]


async def test_an_unknown_row_is_named() -> None:
    with pytest.raises(BenchFailed, match="no row 'latencies'"):
        await run_bench(("latencies",), seconds=2)
