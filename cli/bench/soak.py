"""`worldroom bench soak`: people come and go for a long time, and the server stays as it is."""

import asyncio
from typing import Annotated

import typer

from ..errors import fail
from ..output import JsonFlag, print_object, report_table


def bench_soak(
    seconds: Annotated[float, typer.Option(min=10, help="How long people come and go, after a warm-up.")] = 60.0,
    sessions: Annotated[int, typer.Option(min=1, max=16, help="Worlds, each with a driver all the time.")] = 4,
    card: Annotated[str, typer.Option(help="The world.")] = "toy",
    livekit_url: Annotated[str, typer.Option(help="A LiveKit server from which people come as well.")] = "",
    livekit_key: Annotated[str, typer.Option(help="Its key; the secret in WORLDROOM_LIVEKIT_SECRET.")] = "devkey",
    seed: Annotated[int, typer.Option(help="Of who comes when.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Memory, threads, descriptors and tasks while viewers come and go: as browsers do, by WHEP, from LiveKit."""
    from ...clients.bench.server import ServerFailed, served
    from ...clients.bench.soak import soak
    from ...clients.python.signalling import NoServer, RoomRefused

    there = ("--livekit-url", livekit_url, "--livekit-key", livekit_key) if livekit_url else ()
    try:
        with served(card, "--slots", str(sessions), *there) as server:
            report = asyncio.run(soak(server.base, server.pid, sessions, seconds, seed, bool(livekit_url)))
    except (ServerFailed, NoServer, RoomRefused) as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"{sessions} worlds of {card}, {seconds:g} s", report)
