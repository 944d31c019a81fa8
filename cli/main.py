"""The `worldroom` command: assembles the house and nothing else. Every command lives in a file of its own."""

import os

# Spinning OpenMP threads on a busy machine cost a scheduler quantum per barrier; must be set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import typer

from .. import __version__
from . import join, play
from .errors import fail
from .output import told_output
from .settings import ENV_PREFIX, settings

app = typer.Typer(
    name="worldroom",
    help="Serve interactive video and world models in real time: open a room, drive a world that a network dreams.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.callback()(settings)
app.command("join")(join.join)
app.command("play")(play.play)


def _add_server_commands() -> None:
    """Everything but `join` needs what a server needs."""
    from . import access, cards, doctor, export, journal, parity, replay, rollout, serve, simulate, top, train
    from .bench import command

    app.command("serve")(serve.serve)
    app.command("token")(access.token)
    app.add_typer(cards.app, name="cards")
    app.command("train")(train.train)
    app.command("parity")(parity.parity)
    app.add_typer(command.app, name="bench")
    app.command("doctor")(doctor.doctor)
    app.command("export")(export.export)
    app.command("replay")(replay.replay)
    app.add_typer(journal.app, name="journal")
    app.command("top")(top.top)
    app.command("rollout")(rollout.rollout)
    app.command("simulate")(simulate.simulate)


try:
    _add_server_commands()
except ModuleNotFoundError as missing:
    package = missing.name or ""
    if package.startswith("worldroom"):
        raise

    @app.command("serve", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def serve_nothing() -> None:
        """Start the server (this installation is a client's: see the message)."""
        raise fail(f"a server needs '{package}', which is not installed: pip install 'worldroom[server,embedded]'")


@app.command("version")
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Entry point of the console script."""
    with told_output():
        app(auto_envvar_prefix=ENV_PREFIX)
