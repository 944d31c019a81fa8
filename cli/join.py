"""`worldroom join`: a headless viewer and driver that measures what it sees."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from .errors import fail
from .output import JsonFlag, print_object, report_table


def join(
    url: Annotated[str, typer.Argument(help="Address of a room, http://127.0.0.1:8080/r/blue-otter, or of a server.")],
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long to stay.")] = 10.0,
    out: Annotated[Path | None, typer.Option(help="Save what was received as MP4 (remuxed, not re-encoded).")] = None,
    drive: Annotated[bool, typer.Option("--drive/--watch", help="Press keys at random phase, or only watch.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of the key presses.")] = 0,
    loopback: Annotated[bool, typer.Option(help="WebRTC over 127.0.0.1 only.")] = False,
    token: Annotated[
        str | None,
        typer.Option(envvar="WORLDROOM_TOKEN", help="The token that opens the room, as `worldroom token` makes."),
    ] = None,
    cacert: Annotated[Path | None, typer.Option(help="Certificate (PEM) of who signed the server's.")] = None,
    card: Annotated[str | None, typer.Option(help="The world of a room that is not open yet.")] = None,
    drivers: Annotated[str | None, typer.Option(help="How several people drive it then: as in serve.")] = None,
    consent: Annotated[bool, typer.Option("--consent", help="What is done here may be used to train models.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Join a room without a browser, drive at random, and print frame rate and motion-to-photon latency."""
    from ..clients.python.measure import JoinFailed, JoinReport, run_join

    async def stay() -> JoinReport:
        staying = asyncio.ensure_future(
            run_join(
                url,
                seconds=seconds,
                out_mp4=out,
                drive=drive,
                seed=seed,
                loopback=loopback,
                access=token,
                cacert=cacert,
                consent=consent,
                card=card,
                drivers=drivers,
            )
        )
        for ended in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(ended, staying.cancel)
        return await staying

    try:
        report = asyncio.run(stay())
    except JoinFailed as error:
        raise fail(str(error)) from None
    except asyncio.CancelledError:
        raise typer.Exit(130) from None  # told to stop: the film, if any, is whole
    if as_json:
        print_object(report)
    else:
        report_table(f"{seconds:g} s in {url}", report)
