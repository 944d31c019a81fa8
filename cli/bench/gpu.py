"""`worldroom bench gpu`: what one wants to know of a GPU on the day there is one, in one command under ten minutes.

    correctness   every kernel against float64; every family's tiny card against its independent reference
    prices        ms of each step of published sizes with drawn weights: all noise, the same work
    sessions      how many of them hold their pace at once
    latency       key to picture, by a client of a real server

Each stage is a command of its own with its own time; one that fails or is too slow is said and the rest goes on.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ...clients.bench.server import command as worldroom
from ...clock import SystemClock
from ..output import JsonFlag, print_object

MINUTES = 9.5


class StageReport(msgspec.Struct, frozen=True):
    """`said`: one line for people. `result`: what the command printed as JSON, null where it failed."""

    stage: str
    command: str
    ok: bool
    seconds: float
    said: str
    result: msgspec.Raw


class GpuReport(msgspec.Struct, frozen=True):
    device: str
    seconds: float
    ok: bool
    stages: tuple[StageReport, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """`seconds`: it is ended after so many."""

    name: str
    arguments: tuple[str, ...]
    seconds: float


def bench_gpu(
    card: Annotated[list[str] | None, typer.Argument(help="Published cards to price; default: two of 1.3B.")] = None,
    dry: Annotated[bool, typer.Option("--dry", help="The same on tiny cards, for a machine without a GPU.")] = False,
    into: Annotated[Path | None, typer.Option(help="Also write the JSON into this file.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Correctness, prices, sessions held and latency on this device, in one table. Exit status 1 when a stage fails."""
    clock, device = SystemClock(), _device()
    began, stages = clock.now(), []
    for stage in dry_run() if dry else planned(tuple(card or ("self-forcing-1.3b", "longlive-1.3b"))):
        left = MINUTES * 60 - (clock.now() - began)
        at = clock.now()
        ok, said, result = run(stage, min(stage.seconds, left))
        command = f"worldroom {' '.join(stage.arguments)}"
        stages.append(StageReport(stage.name, command, ok, round(clock.now() - at, 1), said, msgspec.Raw(result)))
        Console(stderr=True).print(f"{stage.name}: {said}", highlight=False, markup=False)
    report = GpuReport(device, round(clock.now() - began, 1), all(stage.ok for stage in stages), tuple(stages))
    if into is not None:
        into.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    if as_json:
        print_object(report)
    else:
        Console().print(table(report))
    if not report.ok:
        raise typer.Exit(1)


def planned(cards: tuple[str, ...]) -> tuple[Stage, ...]:
    """What is asked of a GPU."""
    stages = [
        Stage("kernels", ("bench", "kernels", "--repeats", "20", "--no-compiled"), 90),
        Stage("parity", ("parity", "wan-tiny-random"), 60),
        Stage("fp8", ("bench", "model", "wan-tiny-random", "--precision", "fp8"), 40),
    ]
    for name in cards:
        drawn = (name, "--option", "drawn=true")
        for precision in ("bf16", "fp8"):
            model = ("bench", "model", *drawn, "--chunks", "6", "--precision", precision)
            stages.append(Stage(f"price {name} {precision}", model, 75))
        light = (*drawn, "--option", "decoder=tiny")
        stages.append(Stage(f"price {name} light decoder", ("bench", "model", *light, "--chunks", "6"), 75))
    most = (cards[0], "--option", "drawn=true", "--option", "decoder=tiny")
    stages.append(Stage(f"sessions {cards[0]}", ("bench", "capacity", *most, "--most", "4", "--seconds", "8"), 120))
    stages.append(Stage("latency drive", ("bench", "--row", "latency", "--seconds", "6"), 60))
    return tuple(stages)


def dry_run() -> tuple[Stage, ...]:
    """The same stages where there is no GPU: tiny cards, few chunks."""
    return (
        Stage("kernels", ("bench", "kernels", "--repeats", "3", "--no-compiled"), 120),
        Stage("parity", ("parity", "waypoint-tiny-random"), 120),
        Stage("price fp8", ("bench", "model", "wan-tiny-random", "--chunks", "2", "--precision", "fp8"), 60),
        Stage(
            "price light decoder",
            ("bench", "model", "wan-tiny-random", "--chunks", "2", "--option", "decoder=tiny"),
            60,
        ),
        Stage("sessions", ("bench", "capacity", "toy", "--most", "2", "--seconds", "1"), 60),
        Stage("latency", ("bench", "--row", "latency", "--seconds", "2"), 90),
    )


def run(stage: Stage, seconds: float) -> tuple[bool, str, bytes]:
    """Whether it went well, a line for people, and its JSON."""
    if seconds < 1:
        return False, "no time was left for it", b"null"
    command = [worldroom(), *stage.arguments, "--json"]
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return False, f"it took longer than {seconds:.0f} s", b"null"
        errors.seek(0)
        last = errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return False, f"status {done.returncode}: {last[0][:200]}", b"null"
    said = told(result)
    return done.returncode == 0, said if done.returncode == 0 else f"status {done.returncode}: {said}", done.stdout


def told(result: Mapping[str, Any]) -> str:
    """The figures that count, of a command's JSON."""
    match result:
        case {"figures": [*figures], "triton": str(triton)}:
            worst = max(figure["error"] for figure in figures)
            ran = {figure["ran"] for figure in figures}
            return f"{len(figures)} kernels by {', '.join(sorted(ran))} (triton {triton}), worst error {worst:.2g}"
        case {"ok": bool(ok), "verdicts": [*checks]}:
            held = sum(bool(check["ok"]) for check in checks)
            return f"{held} of {len(checks)} checks hold: {'ok' if ok else 'NOT ok'}"
        case {"models": [model]}:
            pace = f"{model['fps']:.1f} fps, {model['realtime']:.2f} of its pace"
            return f"{model['chunk_ms']:.1f} ms a chunk, {pace}, {model['session_bytes'] / 2**30:.2f} GiB a session"
        case {"held": int(held), "fps": int(fps)}:
            return f"{held} sessions hold {fps} fps; then: {result.get('refused') or 'nobody was refused'}"
        case {"latency": {"total_ms": {"p50": p50, "p95": p95, "count": count}}}:
            return f"key to picture p50 {p50:.0f}, p95 {p95:.0f} ms of {count} presses"
        case _:
            plain = [f"{key} {value}" for key, value in result.items() if not isinstance(value, list | dict)]
            return ", ".join(plain)[:200] or ", ".join(result)


def table(report: GpuReport) -> Table:
    made = Table("stage", "ok", "s", "what was found", title=f"{report.device}, {report.seconds:.0f} s")
    for stage in report.stages:
        made.add_row(stage.stage, "yes" if stage.ok else "NO", f"{stage.seconds:.0f}", stage.said)
    return made


def _device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
