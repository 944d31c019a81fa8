"""`--option NAME=VALUE`: what a card's family lets one set, on the commands that start a worker."""

from typing import Annotated

import typer

from .errors import fail

OptionFlag = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the card's family; may be given several times."),
]


def options_of(given: list[str] | None) -> dict[str, str]:
    """By name; ends the command when one is not NAME=VALUE."""
    options = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise fail(f"--option '{text}' is not NAME=VALUE")
        options[name] = value
    return options
