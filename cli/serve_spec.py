"""What a server is asked to be, as the command line took it; and whether its cards can be that, before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..engine.spec import EngineSpec
from ..engine.worker.devices import WorkerDevice
from ..models import catalog
from ..models.contract.recipe import Precision, RuntimeChoice
from ..models.family import BadOption
from ..rtc.access.spec import AccessSpec, Tls
from ..rtc.livekit.spec import LiveKitSpec
from ..rtc.media.ice_servers import IceServersSpec
from ..sessions.drivers import TURNS, DriversRule
from ..sessions.journal.archiver import ArchiveSpec
from ..sessions.journal.latents import LatentsSpec
from .adapter_options import AdaptersSpec
from .journal_place import JournalPlace
from .logs import LogFormat


class UserFault(Exception):
    """Something the person who started the server can put right; one line."""


@dataclass(frozen=True, slots=True)
class ReplayWish:
    """A session to show again, from chunk `first` on, under other `words` where there are any."""

    session: str
    first: int = 0
    words: str | None = None


@dataclass(frozen=True, slots=True)
class ServeSpec:
    """Options of one server, as the command line took them. `cards`: its worlds; a room of which nobody says which has
    the first. `shows`: what it is started for.
    """

    cards: tuple[str, ...]
    host: str
    port: int
    journal: JournalPlace
    retention: ArchiveSpec
    latents: LatentsSpec
    devices: tuple[WorkerDevice, ...]
    engine: EngineSpec
    steps: int | None
    precision: str | None
    inexact: bool
    compiled: bool
    invariant: bool
    lease_seconds: float
    loopback: bool
    udp_ports: tuple[int, int] | None
    options: Mapping[str, str]
    checkpoint: Path | None = None
    record_all: bool = False
    access: AccessSpec = field(default_factory=AccessSpec)
    tls: Tls | None = None
    ice: IceServersSpec = field(default_factory=IceServersSpec)
    livekit: LiveKitSpec | None = None
    media_address: str | None = None
    seats: int = 32
    drivers: DriversRule = TURNS
    log_format: LogFormat = LogFormat.TEXT
    adapters: AdaptersSpec = field(default_factory=AdaptersSpec)
    shows: ReplayWish | None = None


def options_of(spec: ServeSpec) -> dict[str, bytes]:
    """By card. What is asked for has to mean something to one family at least. Raises `UserFault`."""
    options, problem = {}, None
    for card in spec.cards:
        try:
            catalog.card(card)
            options[card] = catalog.options(card, spec.options)
        except BadOption as error:
            problem = error
        except catalog.REFUSALS as error:
            raise UserFault(str(error)) from None
    if problem is not None and not options:
        raise UserFault(str(problem))
    return options


def choice_of(spec: ServeSpec, options: Mapping[str, bytes]) -> RuntimeChoice | None:
    """What the options ask for, checked before anything starts; None = the recipe's default. Raises `UserFault`."""
    plain = not (spec.inexact or spec.compiled or spec.invariant)
    if spec.steps is None and spec.precision is None and plain:
        return None
    if len(spec.cards) > 1:
        raise UserFault("--steps, --precision, --compiled, --invariant and --inexact are of one card: name one --card")
    try:
        recipe = catalog.card(spec.cards[0], options.get(spec.cards[0], b"")).recipe
        precision = recipe.default.precision if spec.precision is None else _precision(spec.precision)
        steps, exact = spec.steps or recipe.default.steps, not spec.inexact
        choice = RuntimeChoice(recipe.default.sampler, steps, precision, exact, spec.compiled, spec.invariant)
        recipe.check(choice)
    except catalog.REFUSALS as error:
        raise UserFault(str(error)) from None
    return choice


def _precision(name: str) -> Precision:
    try:
        return Precision(name)
    except ValueError:
        raise UserFault(f"no precision '{name}': there are {', '.join(Precision)}") from None
