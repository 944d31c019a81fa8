"""`worldroom bench`: measure a server of our own on this machine, as ratios side by side in one run."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console

from ..errors import did_you_mean, fail
from ..output import JsonFlag, print_object, report_table
from . import (
    capacity,
    falsifier,
    fork,
    gpu,
    kernels,
    link,
    model,
    overhead,
    recovery,
    rtc,
    sharing,
    skip,
    soak,
    steer,
    storm,
    worlds,
)
from .peers.command import bench_peers
from .records.command import bench_records

app = typer.Typer(help="Measure latency, fan-out, joining and driving with synthetic clients at random phase.")

app.command("model")(model.bench_model)
app.command("capacity")(capacity.bench_capacity)
app.command("falsifier")(falsifier.bench_falsifier)
app.command("fork")(fork.bench_fork)
app.command("gpu")(gpu.bench_gpu)
app.command("kernels")(kernels.bench_kernels)
app.command("link")(link.bench_link)
app.command("overhead")(overhead.bench_overhead)
app.command("peers")(bench_peers)
app.command("records")(bench_records)
app.command("recovery")(recovery.bench_recovery)
app.command("rtc")(rtc.bench_rtc)
app.command("sharing")(sharing.bench_sharing)
app.command("skip")(skip.bench_skip)
app.command("soak")(soak.bench_soak)
app.command("steer")(steer.bench_steer)
app.command("storm")(storm.bench_storm)
app.command("worlds")(worlds.bench_worlds)


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    row: Annotated[
        list[str] | None, typer.Option(help="Only these rows: latency, fanout, join, drive; memory.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=2, help="Measuring time of each cell.")] = 8.0,
    seed: Annotated[int, typer.Option(help="Seed of the clients' phases.")] = 0,
    card: Annotated[str, typer.Option(help="Row memory: the world to measure.")] = "toy",
    as_json: JsonFlag = False,
) -> None:
    """All rows but memory, in under five minutes. Starts its own server on a free loopback port and stops it again."""
    if context.invoked_subcommand is not None:
        return
    from ...clients.bench import run

    rows = (*run.ROWS, *run.LONG_ROWS)
    unknown = [name for name in row or () if name not in rows]
    if unknown:
        raise fail(f"no row '{unknown[0]}'{did_you_mean(unknown[0], rows)}; rows: {', '.join(rows)}")
    try:
        report = asyncio.run(run.run_bench(tuple(row or run.ROWS), seconds=seconds, seed=seed, card=card))
    except run.BenchFailed as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        Console().print(run.table(report))


@app.command("browser")
def browser(
    card: Annotated[str, typer.Option(help="The world to measure.")] = "drive",
    seconds: Annotated[float, typer.Option(min=5, help="Measuring time.")] = 20.0,
    as_json: JsonFlag = False,
) -> None:
    """Motion-to-photon and frame intervals in headless Chromium on loopback."""
    from ...clients.bench.browser import BrowserMissing, run_browser
    from ...clients.bench.server import ServerFailed

    try:
        report = run_browser(card=card, seconds=seconds)
    except (BrowserMissing, ServerFailed) as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"{card} in headless Chromium", report)
