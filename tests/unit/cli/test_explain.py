"""What a server tells about itself: a bounded ring of steps, a trace that Perfetto reads, a table for a terminal."""

import io

import msgspec
import pytest
from rich.console import Console
from typer.testing import CliRunner
from worldroom.cli import top
from worldroom.cli.main import app
from worldroom.cli.top import Now, TopReport, report, table
from worldroom.engine.api import BatchRan, Capacity, LatencyClass, PoolBytes, SessionInfo
from worldroom.engine.device.history import StepHistory
from worldroom.rtc.http.trace import chrome_trace


def step(number: int, *sessions: str) -> BatchRan:
    return BatchRan(
        "cpu",
        "toy",
        "chunk_rollout",
        "denoise",
        sessions,
        queued=number - 0.25,
        started=float(number),
        seconds=0.5,
        price=0.6,
    )


def test_the_ring_forgets_the_oldest_and_tells_what_is_new() -> None:
    steps = StepHistory(length=3)
    steps.extend([step(n, "a") for n in range(5)])
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


CAPACITY = Capacity(
    "matrix-game-2-temple-run", "cpu", 2, 1, 0.2, 0.9, 8000, 64, 61_931_520, 7_925_760, 2, 100, 3, 0, 0, asleep=1,
    device_model="cpu", device_bytes=16 << 30,
    pools=(PoolBytes("kv", 7_925_760, 61_931_520), PoolBytes("worlds", 1 << 20, 2 << 30, host=True)),
)  # fmt: skip
AWAKE = SessionInfo(
    "00f1e2d3c4b5a697", "toy", LatencyClass.INTERACTIVE, "waiting", 100, 123456, 3, 1500, 8000, 7000, 10
)
SLEEPER = SessionInfo("ffeeddccbbaa9988", "toy", LatencyClass.INTERACTIVE, "suspended", 50, 50, 0, 0, 8000, 7000, 10)


def looked() -> TopReport:
    before = Now(0.0, (CAPACITY,), (AWAKE, SLEEPER))
    return report(before, Now(2.0, (CAPACITY,), (msgspec.structs.replace(AWAKE, frames=148), SLEEPER)))


def text_of(shown: TopReport, width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table(shown))
    return console.export_text()


def test_the_tables_fit_80_columns_with_whole_names_and_units() -> None:
    text = text_of(looked(), 80)
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    lines = {tuple(line.split()) for line in text.splitlines()}
    awake = "00f1e2d3c4b5a697 interactive waiting 24.0 123456 3 1.5 ms 8.0 ms 7.0 ms"
    assert tuple(awake.split()) in lines
    assert ("matrix-game-2-temple-run",) in lines
    held = "kv 7.56 MiB of 59.1 MiB", "worlds 1.00 MiB of 2.00 GiB (host)"
    for line in (*held, "device time 20% of 90%", "chunks late 3 of 100"):
        assert tuple(line.split()) in lines


def test_who_sleeps_is_shown_apart() -> None:
    text = text_of(looked(), 80)
    assert "sessions awake" in text and "1 of 1" in text and "2 of 1" not in text
    above, below = text.split("asleep: paused or left")
    assert "ffeeddccbbaa9988" in below and "ffeeddccbbaa9988" not in above
    assert "95th percentile of the last 32" in above


def test_a_refresh_as_json_is_one_object() -> None:
    made = msgspec.json.decode(msgspec.json.encode(looked()))
    assert [(entry["fps"], entry["info"]["state"]) for entry in made["sessions"]] == [
        (24.0, "waiting"),
        (0.0, "suspended"),
    ]
    assert (made["cards"][0]["sessions"], made["cards"][0]["asleep"]) == (2, 1)


def test_a_look_over_http_is_one_line_of_json_or_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([Now(0.0, (CAPACITY,), (AWAKE,)), Now(1.0, (CAPACITY,), (AWAKE,))] * 2)
    monkeypatch.setattr(top, "look", lambda client: next(looks))
    shown = CliRunner().invoke(app, ["top", "--once", "--every", "0.2", "--json"])
    assert shown.exit_code == 0 and shown.output.count("\n") == 1
    assert msgspec.json.decode(shown.output)["sessions"][0]["fps"] == 0.0
    shown = CliRunner().invoke(app, ["top", "--once", "--every", "0.2"])
    assert shown.exit_code == 0 and "00f1e2d3c4b5a697" in shown.output and shown.output.endswith("\n")
