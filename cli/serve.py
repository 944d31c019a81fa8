"""`worldroom serve`: options of the server; `assemble.py` builds what they ask for."""

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..engine.spec import SLOTS_AUTO, EngineSpec
from ..engine.worker.devices import BadDevice, WorkerDevice, named
from .access import AccessOptions
from .adapter_options import AdapterOptions
from .engine_options import EngineOptions
from .errors import fail
from .journal_options import JournalOptions, KeepOptions, RecordWhat
from .logs import LogFormat
from .network import NetworkOptions
from .option_groups import takes
from .options import OptionFlag, options_of
from .room_options import RoomOptions

if TYPE_CHECKING:
    from .serve_spec import ServeSpec

AUTO, SLOTS_MAX = "auto", 256
DEFAULT_CARD = "drive"


@takes(RoomOptions, EngineOptions, JournalOptions, KeepOptions, AccessOptions, NetworkOptions, AdapterOptions)
def serve(
    card: Annotated[list[str] | None, typer.Option(help="A world to serve; may be given several times.")] = None,
    host: Annotated[str, typer.Option(help="Address of the HTTP server; 0.0.0.0 for other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="TCP port; 0 picks a free one.")] = 8080,
    slots: Annotated[
        str, typer.Option(help="Sessions to allocate memory for, 1 to 256 or what fits; auto: 16 or what fits.")
    ] = AUTO,
    steps: Annotated[int | None, typer.Option(help="Denoise steps per chunk; the card's recipe allows some.")] = None,
    compiled: Annotated[bool, typer.Option("--compiled", help="Run blocks compiled, where the recipe allows.")] = False,
    invariant: Annotated[bool, typer.Option("--invariant", help="Shared passes, each world keeps its bits.")] = False,
    inexact: Annotated[
        bool, typer.Option(help="Let the card skip steps whose result it can foresee, where its recipe allows it.")
    ] = False,
    precision: Annotated[str | None, typer.Option(help="fp32, bf16, bf16-kv8, fp8, ...: as the recipe has it.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder of a card's published weights, as `worldroom cards pull` leaves it.")
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="json: a line a record, for machines.")] = LogFormat.TEXT,
    option: OptionFlag = None,
    *,
    rooms: RoomOptions,
    engine: EngineOptions,
    journal_options: JournalOptions,
    keep: KeepOptions,
    access: AccessOptions,
    network: NetworkOptions,
    adapters: AdapterOptions,
) -> None:
    """Start the server and print the URL to open. Ctrl-C stops it and everything it started."""
    from .serve_spec import ServeSpec

    spec = ServeSpec(
        cards=_cards(card, checkpoint),
        host=host,
        port=port,
        journal=journal_options.place(keep.journal),
        retention=keep.retention(),
        latents=keep.latents(),
        record_all=keep.record is RecordWhat.ALL,
        devices=_devices(engine),
        engine=_engine_spec(engine, slots),
        steps=steps,
        precision=precision,
        inexact=inexact,
        compiled=compiled,
        invariant=invariant,
        checkpoint=checkpoint,
        lease_seconds=rooms.lease,
        seats=rooms.seats,
        drivers=rooms.rule,
        loopback=network.loopback,
        udp_ports=network.ports(),
        media_address=network.media_address,
        ice=network.ice(),
        livekit=network.livekit(),
        access=access.spec(host),
        log_format=log_format,
        tls=access.tls(),
        options=options_of(option),
        adapters=adapters.checked(),
    )
    run_until_stopped(spec)


def run_until_stopped(spec: "ServeSpec") -> None:
    """Serve until Ctrl-C. Fails with one line when it cannot start."""
    from .assemble import run_server
    from .serve_spec import UserFault

    with listen(spec.host, spec.port) as listener:
        try:
            asyncio.run(run_server(spec, listener))
        except UserFault as fault:
            raise fail(str(fault)) from None
        except KeyboardInterrupt:
            pass


def _cards(named: list[str] | None, checkpoint: Path | None) -> tuple[str, ...]:
    cards = tuple(dict.fromkeys(named or [DEFAULT_CARD]))
    if len(cards) > 1 and checkpoint is not None:
        raise fail("--checkpoint is the folder of one card: `worldroom cards pull` puts each where it is found")
    return cards


def _devices(options: EngineOptions) -> tuple[WorkerDevice, ...]:
    try:
        return named(options.devices, options.workers)
    except BadDevice as error:
        raise fail(str(error)) from None


def _engine_spec(options: EngineOptions, slots: str) -> EngineSpec:
    if slots != AUTO and not (slots.isdigit() and 1 <= int(slots) <= SLOTS_MAX):
        raise fail(f"--slots '{slots}' is neither {AUTO} nor 1 to {SLOTS_MAX}")
    try:
        return options.spec(SLOTS_AUTO if slots == AUTO else int(slots))
    except ValueError as error:
        raise fail(str(error)) from None


def listen(host: str, port: int) -> socket.socket:
    """Bind before anything slow starts, so that a taken port is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends small answers at once (TCP_NODELAY) on sockets that say TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise fail(f"cannot listen on {host}:{port}: {error.strerror}. Try another --port.") from None
    return listener
