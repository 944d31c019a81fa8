"""`worldroom bench soak`: people come and go for a long time, and the server stays as it is."""

import asyncio
from typing import Annotated

import typer

from ..errors import fail
from ..output import JsonFlag, print_object, report_table


def bench_soak(
    seconds: Annotated[float, typer.Option(min=10, help="How long people come and go.")] = 60.0,
    sessions: Annotated[int, typer.Option(min=1, max=16, help="Worlds, each with a driver all the time.")] = 4,
    card: Annotated[str, typer.Option(help="The world.")] = "toy",
    seed: Annotated[int, typer.Option(help="Of who comes when.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Memory, threads, descriptors and tasks while viewers come and go, WHEP players among them."""
    from ...clients.bench.server import ServerFailed, served
    from ...clients.bench.soak import soak
    from ...clients.python.signalling import NoServer, RoomRefused

    try:
        with served(card, "--slots", str(sessions)) as server:
            report = asyncio.run(soak(server.base, server.pid, sessions, seconds, seed))
    except (ServerFailed, NoServer, RoomRefused) as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"{sessions} worlds of {card}, {seconds:g} s", report)
