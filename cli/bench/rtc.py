"""`worldroom bench rtc`: viewers x worlds over real WebRTC, through a network that loses, delays and reorders."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import fail
from ..output import JsonFlag, print_object

if TYPE_CHECKING:
    from ...clients.bench.rtc import RtcReport


def bench_rtc(
    sessions: Annotated[int, typer.Option(min=1, max=16, help="Worlds, each with a driver.")] = 1,
    viewers: Annotated[int, typer.Option(min=1, max=128, help="People of each world, its driver among them.")] = 4,
    seconds: Annotated[float, typer.Option(min=2, help="Measuring time with all of them.")] = 10.0,
    delay_ms: Annotated[float, typer.Option(min=0, help="Delay of the round trip.")] = 0.0,
    jitter_ms: Annotated[
        float, typer.Option(min=0, help="More delay of a datagram, at most: puts them out of order.")
    ] = 0,
    loss: Annotated[float, typer.Option(min=0, max=0.5, help="Share of datagrams lost, each way.")] = 0.0,
    kbps: Annotated[int, typer.Option(min=0, help="Bandwidth of each viewer, each way; 0 = no limit.")] = 0,
    card: Annotated[str, typer.Option(help="The world; pictures of the toy say which input they contain.")] = "toy",
    unread: Annotated[bool, typer.Option("--unread", help="Spectators count frames and read none: for many.")] = False,
    seed: Annotated[int, typer.Option(help="Of phases and losses.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (SVG) here.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Motion-to-photon by receipts and by pixels, misses, freezes, and the CPU of a further viewer."""
    from ...clients.bench.crowd import CrowdFailed
    from ...clients.bench.rtc import RtcSpec, measure_rtc
    from ...clients.bench.rtc_plot import svg
    from ...clients.bench.server import ServerFailed, serving
    from ...clients.python.signalling import NoServer, RoomRefused

    spec = RtcSpec(sessions, viewers, seconds, delay_ms, jitter_ms, loss, kbps, seed, unread)
    try:
        with serving(card, "--slots", str(sessions), "--seats", str(max(32, viewers))) as base:
            report = asyncio.run(measure_rtc(base, spec))
    except (ServerFailed, NoServer, RoomRefused, CrowdFailed) as error:
        raise fail(str(error)) from None
    if plot is not None:
        try:
            plot.write_text(svg(report))
        except OSError as error:
            raise fail(f"cannot write {plot}: {error.strerror}") from None
    if as_json:
        print_object(report)
    else:
        Console().print(_table(report))


def _table(report: "RtcReport") -> Table:
    spec = report.spec
    title = (
        f"{spec.sessions} x {spec.viewers} viewers, {spec.delay_ms:g} ms, {spec.loss:.1%} loss: "
        f"{report.cpu_per_viewer:g} % of a core per further viewer, {report.late} of {report.chunks} chunks late"
    )
    table = Table(title=title, title_justify="left")
    for heading in ("drivers", "fps", "interval p50/p99/max", "freezes", "photon p50/p95", "by pixels", "missed"):
        table.add_column(heading)
    table.add_column("unanswered")
    for name, seen in (("alone", report.alone), ("with all", report.together)):
        interval, photon, pixel = seen.interval_ms, seen.photon_ms, seen.pixel_photon_ms
        table.add_row(
            name,
            f"{seen.fps:g}",
            f"{interval.p50:.1f} / {interval.p99:.1f} / {interval.max:.0f}",
            str(seen.freezes),
            f"{photon.p50:.1f} / {photon.p95:.1f}",
            f"{pixel.p50:.1f} / {pixel.p95:.1f}",
            f"{seen.missed:.1%}",
            f"{seen.unanswered} of {seen.inputs}",
        )
    return table
