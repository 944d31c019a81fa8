"""What a session is opened with, and what a suspended one is restored from. Pure."""

import hashlib
from dataclasses import dataclass

import msgspec

from ...engine.api import CardInfo, LatencyClass, Open, Opened
from ..drivers import TURNS, DriversRule, Driving
from ..journal import events
from ..messages import AdapterChoice
from .adapters import AdaptersRecord
from .prompt_versions import PromptsRecord

SHOWN_MAX = 1024
"""Chunks that can be rated at most: the last ones that were shown."""


class ShownChunk(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk that people have seen. `frame`: the last one of it that was shown, -1 = only a killed server knew."""

    chunk: int
    epoch: int
    frame: int


class SessionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`journaled`: the number of its last event. `paused`: the driver had stopped the world. `noise`: the branch its
    noise is of, -1 = `branch`. `branches`, `epochs`: the highest that there were. `shown`: what can be rated.
    `apart_s`: so long there have been futures that nobody has chosen between, -1 = there are none."""

    name: str
    card: str
    weights: str
    seed: int
    epoch: int
    chunk: int
    paused: bool
    journaled: int
    prompts: PromptsRecord
    world: str = ""
    branch: int = 0
    noise: int = -1
    branches: int = 0
    epochs: int = 0
    adapters: AdaptersRecord = AdaptersRecord()
    shown: tuple[ShownChunk, ...] = ()
    apart_s: float = -1.0


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What a session is opened with. `prompt` None = the card's first suggestion, if it has one. `adapters`: the stack
    it begins with. `drivers`: how several people drive. `origin`: the moment that it goes on from. `replays`: the
    session that it shows again, '' = none; nobody steers such a one, and nothing of it is kept. `replay_chunks`: so
    many that has; `counterfactual`: how it differs from what was recorded.
    """

    name: str
    room: str
    card: str
    seed: int
    prompt: str | None = None
    steps: int | None = None
    latency_class: LatencyClass = LatencyClass.INTERACTIVE
    adapters: tuple[AdapterChoice, ...] = ()
    drivers: DriversRule = TURNS
    origin: events.Origin | None = None
    replays: str = ""
    replay_chunks: int = 0
    counterfactual: str = ""

    @property
    def votes(self) -> bool:
        return self.drivers.driving is Driving.VOTE

    def first_text(self, card: CardInfo) -> str | None:
        """The words that its world begins with."""
        return self.prompt if self.prompt is not None else next(iter(card.suggestions), None)

    def seed_of(self, epoch: int) -> int:
        """A seed of 48 bits for an epoch that asks for none, drawn from the session's own."""
        drawn = hashlib.sha256(f"{self.seed}:{epoch}".encode()).digest()
        return int.from_bytes(drawn[:6], "little")

    def ask(self) -> Open:
        """In line under the room's name."""
        return Open(
            session=self.name,
            card=self.card,
            seed=self.seed,
            latency_class=self.latency_class,
            steps=self.steps,
            line=self.room,
        )

    def opened(self, answer: Opened, latents: int = 0) -> events.SessionOpened:
        """`latents`: so many chunks apart they are kept."""
        return events.SessionOpened(
            room=self.room,
            card=answer.card.name,
            version=answer.card.version,
            weights=answer.weights,
            steps=answer.steps,
            precision=answer.precision,
            seed=self.seed,
            branch=0,
            mode=answer.mode,
            contract=answer.contract,
            machine=answer.machine,
            drivers="" if self.drivers == TURNS else str(self.drivers),
            latents=latents,
            origin=self.origin,
        )
