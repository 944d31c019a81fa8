"""`worldroom bench steer`: whether keys and prompts show in what a real server of `drive` sends."""

from typing import Annotated

import typer

from ..errors import fail
from ..output import JsonFlag, print_object, report_table


def bench_steer(
    trials: Annotated[int, typer.Option(min=1, max=500, help="Worlds to steer; one takes about six seconds.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the worlds and of the looks.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Steer left and right in the same worlds, then ask for another look; the judge reads the decoded pictures."""
    from ...clients.bench.server import ServerFailed, serving
    from ...clients.python.signalling import NoServer, RoomRefused
    from .live_steer import run

    try:
        with serving("drive") as base:
            report = run(base, trials, seed)
    except (ServerFailed, NoServer, RoomRefused, ConnectionError) as error:
        raise fail(str(error)) from None
    if as_json:
        print_object(report)
    else:
        report_table(f"steering, {trials} worlds", report)
