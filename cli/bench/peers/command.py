"""`worldroom bench peers`: how old a picture is when it is decoded, and what a further viewer costs, beside others."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from ...errors import fail
from ...output import JsonFlag, print_object

if TYPE_CHECKING:
    from .measure import PeerSeen, PeersReport, PeersSpec

PEERS = ("aiortc", "fastrtc", "ours")
HEADINGS = (
    "",
    "viewers",
    "p50 / p95",
    "by aiortc's receiver",
    "fps",
    "kbit/s",
    "CPU %",
    "CPU ms a frame",
    "of a further viewer",
)


def bench_peers(
    viewers: Annotated[list[int] | None, typer.Option(min=1, max=64, help="Again for more cells; 1, 4, 8.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Measuring time of each cell.")] = 5.0,
    peer: Annotated[list[str] | None, typer.Option(help="Only these: aiortc, fastrtc, ours.")] = None,
    fps: Annotated[int, typer.Option(min=1, max=60)] = 30,
    scale: Annotated[int, typer.Option(min=2, max=8, help="Times 160 x 96 pixels.")] = 4,
    kbps: Annotated[int, typer.Option(min=500, max=3000, help="What each codes in; aiortc's own bounds.")] = 1000,
    folder: Annotated[Path, typer.Option(help="Here fastrtc's environment is made, once, by pip.")] = Path(
        "build/peers"
    ),
    as_json: JsonFlag = False,
) -> None:
    """The same picture, rate and viewers through aiortc, fastrtc and our media path: age when decoded, and CPU."""
    from .measure import PeersSpec

    wanted = tuple(peer or PEERS)
    if unknown := [name for name in wanted if name not in PEERS]:
        raise fail(f"no peer '{unknown[0]}'; peers: {', '.join(PEERS)}")
    spec = PeersSpec(tuple(sorted(set(viewers or (1, 4, 8)))), seconds, fps, scale, kbps)
    report = asyncio.run(_measured(wanted, spec, folder.resolve()))
    if as_json:
        print_object(report)
    else:
        Console().print(table(report))


async def _measured(wanted: tuple[str, ...], spec: "PeersSpec", folder: Path) -> "PeersReport":
    from .environment import NotInstalled, fastrtc_python, root
    from .measure import PeerSeen, PeersReport, SenderFailed, measure_peer, own_python

    async def seen(name: str) -> PeerSeen:
        try:
            python = await asyncio.to_thread(fastrtc_python, folder) if name == "fastrtc" else own_python()
            return await measure_peer(name, python, root(folder), spec)
        except (NotInstalled, SenderFailed) as error:
            return PeerSeen(name, missing=str(error))

    return PeersReport(spec, round(os.getloadavg()[0], 1), tuple([await seen(name) for name in wanted]))


def table(report: "PeersReport") -> Table:
    """Ours last, so that what it is of the others can be read beside it."""
    spec = report.spec
    view = Table(
        title=f"frame creation to decoded, ms: {160 * spec.scale}x{96 * spec.scale}, {spec.fps} fps, H.264 "
        f"{spec.kbps} kbit/s, {spec.seconds:g} s a cell, load {report.load:g}",
        title_justify="left",
    )
    for heading in HEADINGS:
        view.add_column(heading, justify="right")
    for peer in report.peers:
        _add(view, peer)
    return view


def _add(view: Table, peer: "PeerSeen") -> None:
    if peer.missing:
        view.add_row(peer.name, peer.missing)
    for index, cell in enumerate(peer.cells):
        view.add_row(
            "" if index else peer.name,
            str(cell.viewers),
            *(f"{ms.p50:.1f} / {ms.p95:.1f}" for ms in (cell.age_ms, cell.plain_ms)),
            f"{cell.fps:g}",
            f"{cell.kbps:g}",
            f"{cell.cpu_percent:g}",
            f"{cell.cpu_ms:.2f}",
            "" if index else f"{peer.each_more_ms:.3f}",
        )
