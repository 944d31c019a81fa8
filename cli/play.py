"""`worldroom play`: a room in a window of its own, without a browser."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from .errors import fail


def play(
    url: Annotated[str, typer.Argument(help="Address of a room, http://127.0.0.1:8080/r/blue-otter, or of a server.")],
    token: Annotated[str | None, typer.Option(envvar="WORLDROOM_TOKEN", help="The token that opens the room.")] = None,
    cacert: Annotated[Path | None, typer.Option(help="Certificate (PEM) of who signed the server's.")] = None,
    scale: Annotated[int, typer.Option(min=1, max=8, help="How much larger the window is than the picture.")] = 2,
    loopback: Annotated[bool, typer.Option(help="WebRTC over 127.0.0.1 only.")] = False,
) -> None:
    """Drive a world in a window: arrows or letters, Escape leaves."""
    from ..clients.python.room import join
    from ..clients.python.signalling import NoServer, RoomRefused

    try:
        from ..clients.python.play import Window
    except ModuleNotFoundError:
        raise fail("a window needs pygame: pip install 'worldroom[game]'") from None

    async def stay() -> None:
        async with join(url, access=token, cacert=cacert, loopback=loopback) as room:
            await Window(room, scale).play()

    try:
        asyncio.run(stay())
    except (NoServer, RoomRefused, ValueError) as error:
        raise fail(str(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
