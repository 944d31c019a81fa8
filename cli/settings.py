"""`worldroom.toml`: every flag of every command as `[command]` and `flag = value`; environment and flags win over it.

[serve]                                 --port 8443                 WORLDROOM_SERVE_PORT=8443
port = 8443
allow-host = ["play.example.com"]       --allow-host NAME
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .errors import did_you_mean, fail
from .folders import config_dir

FILE = "worldroom.toml"
ENV_PREFIX = "WORLDROOM"

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", envvar="WORLDROOM_CONFIG", help=f"Settings; default: {FILE} here, else in the user's folder."
    ),
]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
]


def settings(ctx: typer.Context, config: ConfigOption = None, version: VersionOption = False) -> None:
    """Read the settings before any command is."""
    path = config or _found()
    if path is None:
        return
    assert isinstance(ctx.command, TyperGroup)
    ctx.default_map = _checked(path, ctx.command, _read(path))


def _found() -> Path | None:
    places = [Path(FILE)]
    try:
        places.append(config_dir() / FILE)
    except typer.Exit:  # no home: then there are no settings in it
        return None
    return next((place for place in places if place.is_file()), None)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise fail(f"cannot read {path}: {said}") from None


def _checked(path: Path, group: TyperGroup, tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables as click takes them; every name is one of a command or a flag."""
    known: dict[str, Any] = {}
    for name, table in tables.items():
        command = group.commands.get(name)
        if command is None or not isinstance(table, dict):
            raise fail(f"{path}: there is no command '{name}'{did_you_mean(name, group.commands)}")
        if isinstance(command, TyperGroup):
            known[name] = _checked(path, command, table)
            continue
        flags = {option.lstrip("-"): param.name for param in command.params for option in param.opts}
        for flag in table:
            if flag not in flags:
                raise fail(f"{path}: [{name}] has no flag '{flag}'{did_you_mean(flag, flags)}")
        several = {param.name for param in command.params if getattr(param, "multiple", False)}
        values = {flags[flag]: value for flag, value in table.items()}
        known[name] = {
            flag: [value] if flag in several and isinstance(value, str) else value for flag, value in values.items()
        }
    return known
