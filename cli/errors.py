"""How the command line fails: one clear line on stderr and exit status 2, a traceback only for our own faults."""

import difflib
from collections.abc import Iterable

import typer


def fail(message: str) -> typer.Exit:
    """Print one line and return the exit to raise: `raise fail("port 8080 is taken: ...")`."""
    typer.secho(f"worldroom: {message}", fg=typer.colors.RED, err=True)
    return typer.Exit(2)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' (did you mean 'drive'?)' or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.4)
    return f" (did you mean '{near[0]}'?)" if near else ""
