"""What a server tells about itself: a bounded ring of steps, a trace that Perfetto reads, a table for a terminal."""

import msgspec
from rich.console import Console
from worldroom.cli.top import Now, table
from worldroom.engine.api import Capacity, LatencyClass, SessionInfo, Step
from worldroom.engine.device.trail import Trail
from worldroom.rtc.trace import chrome_trace


def step(number: int, *sessions: str) -> Step:
    return Step("cpu", "toy", "denoise", sessions, queued=number - 0.25, started=float(number), seconds=0.5, price=0.6)


def test_the_ring_forgets_the_oldest_and_tells_what_is_new() -> None:
    steps = Trail(kept=3)
    steps.extend(step(n, "a") for n in range(5))
    assert [kept.started for kept in steps.all()] == [2.0, 3.0, 4.0]
    assert [new.started for new in steps.since(4)] == [4.0]
    assert steps.since(steps.count) == ()
    assert len(steps.since(0)) == 3


def test_a_trace_has_one_row_per_device_and_session() -> None:
    trace = msgspec.json.decode(msgspec.json.encode(chrome_trace([step(1, "a", "b"), step(2, "b"), step(3, "")])))
    rows = {(e["pid"], e["args"]["name"]): e["tid"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert list(rows) == [(1, "cpu"), (2, "a"), (2, "b")]
    device = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    assert [(e["ts"], e["dur"], e["args"]["rows"]) for e in device] == [(1e6, 5e5, 2), (2e6, 5e5, 1), (3e6, 5e5, 1)]
    mine = [e["name"] for e in trace["traceEvents"] if e["ph"] == "X" and e["tid"] == rows[(2, "b")]]
    assert mine == ["waits", "denoise", "waits", "denoise"]


def test_the_table_shows_rates_and_prices() -> None:
    capacity = Capacity("toy", "cpu", 1, 4, 0.2, 0.9, 8000, 64, 256, 64, 2, 100, 3, 0, 0)
    info = SessionInfo("room-1", "toy", LatencyClass.INTERACTIVE, "waiting", 100, 100, 3, 1500, 8000, 7000, 10)
    before = Now(0.0, (capacity,), (info,))
    now = Now(2.0, (capacity,), (msgspec.structs.replace(info, frames=148),))
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(before, now))
    text = console.export_text()
    assert "24.0" in text
    assert "8.0 ms" in text
    assert "20% of 90%" in text
