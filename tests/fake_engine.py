"""A fake device in virtual time and a person who answers the engine: what engine and session tests play with."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from worldroom.clock import LoopClock
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.output.encode import H264Encoder
from worldroom.engine.spec import EngineSpec
from worldroom.models import catalog
from worldroom.models.contract.conditions import AdapterShare, Conditions, PlayerInput, PromptShare
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.placement import Placement, realtime
from worldroom.models.family import packed
from worldroom.models.toy.card import ToySpec
from worldroom.simulation.device import SimulatedDevice
from worldroom.simulation.encoder import BlankEncoder


class FakeDevice(SimulatedDevice):
    """A simulated device whose batches may return something else (`change`). `ran`: kind and rows of each."""

    def __init__(self, cost: Callable[[Batch], float]) -> None:
        super().__init__(cost, "fake")
        self.ran: list[tuple[StepKind, int]] = []
        self.change: Callable[[Batch, list[Any]], list[Any]] = lambda batch, results: results

    def perform(self, batch: Batch) -> list[Any]:
        self.ran.append((batch.kind, len(batch.rows)))
        return self.change(batch, super().perform(batch))


@dataclass(slots=True)
class BadSteps:
    """A device's `fail`: the next `left` steps of a kind come to numbers that are not finite."""

    kind: StepKind
    left: int = 0

    def __call__(self, batch: Batch) -> None:
        if self.left and batch.kind is self.kind:
            self.left -= 1
            raise FloatingPointError("latents of 1 row are not finite")


def toy(fps: int = 24, per_chunk: int = 1, decode: Placement = Placement.DEVICE) -> LoadedCard:
    loaded = catalog.load("toy", options=packed(ToySpec(fps=fps, per_chunk=per_chunk, sleeps=False)))
    return replace(loaded, card=replace(loaded.card, program=realtime(decode)))


def narrated(fps: int = 24, decode: Placement = Placement.DEVICE) -> LoadedCard:
    """The toy with a second loop on the same instance, which writes a prompt every four chunks."""
    loaded = catalog.load("toy-narrated", options=packed(ToySpec(fps=fps, sleeps=False)))
    program = loaded.card.program
    nodes = tuple(replace(node, where=decode) if node.name == "decode" else node for node in program.nodes)
    return replace(loaded, card=replace(loaded.card, program=replace(program, nodes=nodes)))


def steady(seconds: float) -> Callable[[Batch], float]:
    return lambda batch: 0.0 if batch.kind is StepKind.PROMPT_ENCODE else seconds


@dataclass(slots=True)
class Person:
    """Answers every `ChunkDue` at once with the same keys, and keeps what came."""

    engine: api.EngineClient
    session: str
    prompt: str = "a calm blue sea"
    controls: Callable[[int], tuple[float, ...]] = lambda chunk: (0.0, float(chunk % 2), 0.0, 0.0)
    answers: bool = True
    epoch: int = 0
    key: str = ""
    adapters: tuple[AdapterShare, ...] = ()
    others: Callable[[int], tuple[PlayerInput, ...]] = lambda chunk: ()
    conditions: dict[int, Conditions] = field(default_factory=dict)
    """Of the chunks that were begun."""
    due: api.ChunkDue | None = None
    dues: list[tuple[float, int]] = field(default_factory=list)
    frames: list[tuple[float, api.Frame]] = field(default_factory=list)
    done: list[tuple[float, api.ChunkDone]] = field(default_factory=list)
    cancelled: list[tuple[float, api.ChunkCancelled]] = field(default_factory=list)
    faults: list[api.Fault] = field(default_factory=list)
    heard: list[api.Event] = field(default_factory=list)

    @property
    def overlapped(self) -> int | None:
        """The chunk whose pictures are still being made while the next one, asked for some time ago, is too."""
        if not self.dues or self.dues[-1][0] >= asyncio.get_running_loop().time():
            return None
        following = self.done[-1][1].chunk + 1 if self.done else 0
        return following if self.dues[-1][1] == following + 1 else None

    async def open(self, card: str = "toy", **more: Any) -> api.Opened | api.Refused:
        answer = await self.engine.open(api.Open(self.session, card, **{"seed": 1, **more}), self.hear)
        if isinstance(answer, api.Opened):
            self.engine.post(api.EncodePrompt(self.session, 1, self.prompt))
        return answer

    def hear(self, event: api.Event) -> None:
        now = asyncio.get_running_loop().time()
        self.heard.append(event)
        match event:
            case api.PromptEncoded():
                self.key = event.key
                self.answer()
            case api.ChunkDue():
                self.dues.append((now, event.chunk))
                self.due = event
                self.answer()
            case api.Frame():
                self.frames.append((now, event))
            case api.ChunkDone():
                self.done.append((now, event))
            case api.ChunkCancelled():
                self.cancelled.append((now, event))
            case api.Fault():
                self.faults.append(event)

    def answer(self) -> None:
        if self.due is None or not self.key or not self.answers:
            return
        due, self.due = self.due, None
        share = (PromptShare(self.key, 1.0),)
        conditions = Conditions(
            self.epoch,
            self.controls(due.chunk),
            (0.0, 0.0),
            share,
            1,
            due.chunk,
            adapters=self.adapters,
            others=self.others(due.chunk),
        )
        self.conditions[due.chunk] = conditions
        self.engine.post(api.Begin(self.session, due.chunk, conditions))

    def supersede(self, restart: bool = False, seed: int = 0) -> None:
        self.epoch += 1
        self.engine.post(api.Supersede(self.session, self.epoch, restart, seed))

    def digests(self) -> list[str]:
        return [done.digest for _, done in self.done]

    def intervals(self) -> list[float]:
        times = [at for at, _ in self.frames]
        return [b - a for a, b in itertools.pairwise(times)]


async def until(condition: Callable[[], object], within: float = 10.0) -> None:
    """Let time pass until the condition holds; looks every half millisecond."""
    for _ in range(int(within / 0.0005)):
        if condition():
            return
        await asyncio.sleep(0.0005)
    raise AssertionError(f"not so within {within} s")


def engine_on(
    device: FakeDevice,
    cards: tuple[LoadedCard, ...] | None = None,
    spec: EngineSpec | None = None,
    encoder: type[H264Encoder] = BlankEncoder,
    **more: Any,
) -> Engine:
    """An engine that is not started yet; the running loop should be virtual. `more`: as `Engine` takes it."""
    clock = LoopClock(asyncio.get_running_loop())
    return Engine(cards or (toy(),), clock, spec or EngineSpec(), device, encoder, **more)


async def started(
    cost: Callable[[Batch], float] | None = None,
    cards: tuple[LoadedCard, ...] | None = None,
    spec: EngineSpec | None = None,
    encoder: type[H264Encoder] = BlankEncoder,
    **more: Any,
) -> tuple[Engine, FakeDevice]:
    """`engine_on` a device whose batches take `cost`, warm."""
    device = FakeDevice(cost or steady(0.002))
    engine = engine_on(device, cards, spec, encoder, **more)
    await engine.start()
    return engine, device


async def driven(
    cost: Callable[[Batch], float] | None = None,
    cards: tuple[LoadedCard, ...] | None = None,
    spec: EngineSpec | None = None,
    **more: Any,
) -> tuple[Engine, FakeDevice, Person]:
    """`started`, and the driver of its only world, "a"."""
    engine, device = await started(cost, cards, spec, **more)
    driver = Person(engine, "a")
    assert isinstance(await driver.open(), api.Opened)
    return engine, device, driver
