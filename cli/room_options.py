"""Options that say what rooms are like: how many sit in one, who drives, how long an empty one waits."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ..sessions.drivers import BadDrivers, DriversRule
from .errors import fail


@dataclass(frozen=True)
class RoomOptions:
    """See the module docstring."""

    lease: Annotated[float, typer.Option(min=1, help="Seconds a world waits for its viewers to come back.")] = 60.0
    seats: Annotated[int, typer.Option(min=1, max=1024, help="People in one room, who drives among them.")] = 32
    drivers: Annotated[
        str,
        typer.Option(help="How several people drive a room: turns, controls:2, controls:left+right,up+down, vote:5."),
    ] = "turns"

    @property
    def rule(self) -> DriversRule:
        return drivers_of(self.drivers)


def drivers_of(text: str) -> DriversRule:
    """What --drivers says; fails in one line."""
    try:
        return DriversRule.read(text)
    except BadDrivers as error:
        raise fail(f"--drivers: {error}") from None
