"""The interleave gate itself, for any card: people share a device and change their minds while it works.

    together   N sessions of mixed classes come at random phase, steer at random, and while a batch is on the device
               somebody redirects, restarts, turns to another prompt, pauses (and may lose the slot) or joins
    alone      the same chunks in one straight line on a twin of the card: one slot, one row, nobody else

Every chunk must have the digest, and every frame shown the pixels, that it has alone.
"""

import asyncio
import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.engine.engine import Engine
from worldroom.engine.output.encode import EncodedFrame
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.conditions import Conditions, PromptShare
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import Ask, Commit, Done, Outcome, PromptAsk
from worldroom.tests.fake_engine import BlankEncoder, started, steady

CLASSES = (api.LatencyClass.INTERACTIVE,) * 3 + (api.LatencyClass.STREAM, api.LatencyClass.BACKGROUND)
QUICK = 0.0002  # seconds a batch takes while everybody comes in: they must fit


def fingerprint(rgb_HWC: npt.NDArray[np.uint8]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(rgb_HWC)).digest()[:16]


class Fingerprints(BlankEncoder):
    """Packets that say which pixels they were."""

    def encode(self, rgb_HWC: npt.NDArray[np.uint8], pts: int, key: bool) -> EncodedFrame:
        return EncodedFrame(fingerprint(rgb_HWC), BlankEncoder.encode(self, rgb_HWC, pts, key).key)


@dataclass(slots=True)
class Wanderer:
    """Answers every `ChunkDue`, at once or a little later, with keys of its own, and notes what was made of what."""

    engine: Engine
    session: str
    card: LoadedCard
    steps: int
    dice: random.Random
    worlds: list[tuple[int, int]]
    """(epoch it began with, seed), one more for each restart."""
    chunks: int
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    epoch: int = 0
    texts: list[str] = field(default_factory=list)
    keys: dict[int, str] = field(default_factory=dict)
    due: api.ChunkDue | None = None
    begun: dict[tuple[int, int], Conditions] = field(default_factory=dict)
    made: list[tuple[api.ChunkDone, Conditions]] = field(default_factory=list)
    shown: list[tuple[int, bytes]] = field(default_factory=list)
    running: bool = False
    cancelled: int = 0
    acts: int = 0
    faults: list[api.Fault] = field(default_factory=list)

    @property
    def in_flight(self) -> bool:
        """A chunk of its own is being made."""
        return self.running and not self.over

    @property
    def over(self) -> bool:
        return len(self.made) >= self.chunks

    async def open(self) -> None:
        latency_class = self.dice.choice(CLASSES)
        opening = api.Open(self.session, self.card.card.name, self.worlds[0][1], latency_class, steps=self.steps)
        answer = await self.engine.open(opening, self.hear)
        assert isinstance(answer, api.Opened), answer
        self.turn_to(self.dice.choice(self.card.card.suggestions))

    def hear(self, event: api.Event) -> None:
        match event:
            case api.PromptEncoded():
                self.keys[event.version] = event.key
                self.answer()
            case api.ChunkDue():
                self.due = event
                wait = self.dice.choice((0.0, 0.0, 0.0, 0.005))
                asyncio.get_running_loop().call_later(wait, self.answer)
            case api.ChunkDone():
                self.running = False
                self.made.append((event, self.begun[event.chunk, event.epoch]))
                if self.over:
                    self.engine.post(api.Close(self.session))
                    self.finished.set()
            case api.ChunkCancelled():
                self.running = False
                self.cancelled += 1
            case api.Frame():
                self.shown.append((event.chunk, event.data))
            case api.Fault():
                self.faults.append(event)

    def answer(self) -> None:
        if self.due is None or not self.keys or self.over:
            return
        due, self.due = self.due, None
        controls = tuple(self.dice.choice((0.0, 0.0, 0.5, 1.0)) for _ in self.card.card.controls)
        newest, before = max(self.keys), max([v for v in self.keys if v < max(self.keys)], default=None)
        shares = [PromptShare(self.keys[newest], 1.0)]
        if before is not None and self.dice.random() < 0.3:
            shares = [PromptShare(self.keys[before], 0.75), PromptShare(self.keys[newest], 0.25)]
        conditions = Conditions(self.epoch, controls, (0.0, 0.0), tuple(shares), newest, due.chunk + 1)
        self.begun[due.chunk, self.epoch], self.running = conditions, True
        self.engine.post(api.Begin(self.session, due.chunk, conditions))

    def act(self) -> None:
        """Do something, now; nothing before the door is open."""
        if self.over or not self.texts:
            return
        self.acts += 1
        match self.dice.choice("rrrrwwppzk"):
            case "r":
                self.redirect(restart=False)
            case "w":
                self.redirect(restart=True)
            case "p":
                self.turn_to(self.dice.choice(self.card.card.suggestions))
            case "z":
                self.engine.post(api.Pause(self.session))
                asyncio.get_running_loop().call_later(self.dice.uniform(0.0, 0.2), self.go_on)
            case "k":
                self.engine.post(api.RequestKey(self.session, joined=True))

    def redirect(self, restart: bool) -> None:
        self.epoch += 1
        seed = self.dice.randrange(2**31)
        if restart:
            self.worlds.append((self.epoch, seed))
        self.engine.post(api.Supersede(self.session, self.epoch, restart, seed))

    def turn_to(self, text: str) -> None:
        self.texts.append(text)
        self.engine.post(api.EncodePrompt(self.session, len(self.texts), text))

    def go_on(self) -> None:
        self.engine.post(api.Resume(self.session))

    def lived(self) -> Iterator[tuple[int, list[tuple[api.ChunkDone, Conditions]]]]:
        """Seed and chunks of each world that got as far as a chunk."""

        def world(done: tuple[api.ChunkDone, Conditions]) -> int:
            return max(n for n, (epoch, _) in enumerate(self.worlds) if epoch <= done[0].epoch)

        for number, made in itertools.groupby(self.made, world):
            yield self.worlds[number][1], [*made]

    def texts_of(self, conditions: Conditions) -> tuple[tuple[str, float], ...]:
        known = {self.keys[version]: self.texts[version - 1] for version in self.keys}
        return tuple((known[share.key], share.weight) for share in conditions.prompts)


@dataclass(slots=True)
class Narrator:
    """The prompt loop of a world on its own: each run whole, when the chunk it begins with begins."""

    twin: LoadedCard
    seed: int
    text: str = ""
    carry: object = None
    written: object = None

    def before(self, chunk: int, seen: object) -> object:
        loop, runtime = self.twin.prompt_loop, self.twin.runtime
        if loop is None or chunk % self.twin.card.prompt_every:
            return self.written
        if self.text:
            self.written = runtime.encode_prompt(self.text)
        state = loop.init(PromptAsk(self.seed, 0, chunk // self.twin.card.prompt_every, self.carry, seen))
        while not isinstance(plan := loop.next(state), Done):
            (result,) = runtime.execute(plan.kind, [plan.row], [None])
            state = loop.advance(state, result)
        outcome = loop.finalize(state)
        self.text, self.carry = outcome.text, outcome.carry
        return self.written


def alone(
    twin: LoadedCard,
    seed: int,
    steps: int,
    first: int,
    given: Sequence[tuple[Conditions, tuple[tuple[str, float], ...]]],
) -> list[Outcome[object]]:
    """Chunks `first`.. of a world that starts there, one step after the other, without the engine."""
    cache, loop, runtime = twin.card.cache, twin.loop, twin.runtime
    assert cache is not None
    runtime.allocate(1)
    committed: tuple[int, ...] = ()
    commits, carry, outcomes = 0, None, []
    narrator = Narrator(twin, seed)
    for number, (conditions, texts) in enumerate(given, first):
        features = tuple((runtime.encode_prompt(text), weight) for text, weight in texts)
        written = narrator.before(number, carry)
        state = loop.init(Ask(seed, 0, number, steps, conditions, features, carry, commits, written=written))
        staged: tuple[int, ...] = ()
        while not isinstance(plan := loop.next(state), Done):
            free = next(entry for entry in range(cache.ring) if entry not in committed)
            (result,) = runtime.execute(plan.kind, [plan.row], [CacheView(0, committed, free)])
            if plan.commit is Commit.PREVIOUS:
                committed, commits = cache.kept(committed, (), (free,)), commits + 1
            elif plan.commit is Commit.CHUNK:
                staged = (free,)
            state = loop.advance(state, result)
        outcomes.append(outcome := loop.finalize(state))
        committed, commits, carry = cache.kept(committed, (), staged), commits + len(staged), outcome.carry
    return outcomes


def restless(people: Sequence[Wanderer], times: Sequence[float], dice: random.Random) -> Callable[[Batch], float]:
    """What a batch takes; in one of six somebody acts before it is over, mostly one whose chunk is being made."""

    def cost(batch: Batch) -> float:
        seconds = dice.choice(times)
        if dice.random() < 1 / 6:
            in_flight = [person for person in people if person.in_flight]
            person = dice.choice(in_flight if in_flight and dice.random() < 0.7 else people)
            asyncio.get_running_loop().call_later(seconds * dice.random(), person.act)
        return seconds

    return cost


async def together(
    card: LoadedCard, seed: int, sessions: int, chunks: int, steps: Sequence[int], times: Sequence[float]
) -> list[Wanderer]:
    """Everybody until they have their chunks; the engine is empty and whole afterwards."""
    dice = random.Random(f"{seed} {sessions}")
    spec = EngineSpec(
        slots=sessions, max_rows=dice.choice((1, 2, 4)), share_cap=1.0, ageing=0.2, suspend_after=0.05, seed=seed
    )
    engine, device = await started(steady(QUICK), (card,), spec, Fingerprints)
    people = [
        Wanderer(engine, f"s{n}", card, dice.choice(steps), random.Random(f"{seed} {n}"), [(0, 100 * seed + n)], chunks)
        for n in range(sessions)
    ]
    guest = Wanderer(engine, "guest", card, steps[0], random.Random(seed), [(0, 5)], chunks)
    await guest.open()
    await asyncio.sleep(dice.uniform(0.1, 0.3))
    engine.post(api.Close("guest"))  # leaves a used slot behind, perhaps in the middle of a step
    for person in people:
        await person.open()
        await asyncio.sleep(dice.uniform(0.0, 0.03))
    device.cost = restless(people, times, dice)
    async with asyncio.timeout(400):
        await asyncio.gather(*(person.finished.wait() for person in people))
    await asyncio.sleep(1)
    assert engine.capacity()[0].pool_bytes_used == 0
    engine.check_integrity()
    await engine.close()
    return people


def check(person: Wanderer, twin: LoadedCard) -> None:
    """Chunk for chunk what it is alone."""
    assert not person.faults
    assert [done.chunk for done, _ in person.made] == list(range(len(person.made)))
    pixels: dict[int, set[bytes]] = {}
    for seed, made in person.lived():
        first = made[0][0].chunk
        given = [(conditions, person.texts_of(conditions)) for _, conditions in made]
        solo = alone(twin, seed, person.steps, first, given)
        assert [done.digest for done, _ in made] == [outcome.digest for outcome in solo]
        for chunk, outcome in enumerate(solo, first):
            pixels[chunk] = {fingerprint(frame) for frame in outcome.frames}
    assert all(data in pixels[chunk] for chunk, data in person.shown)
    assert person.shown
