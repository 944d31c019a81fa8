"""A person who does anything at any moment, to a server whose workers and whose self may die; then all of it again.

One seed is one session: keys, words, restarts, rewinds, forks, choices, pauses, absences, deaths of the worker, ends
and kills of the server, other weights. Virtual time, the real engine and edge, arithmetic as it is.

    drawn     so many acts, each at random: keys often, a death of the worker now and then; no mixes
    shuffled  every kind of act once, in random order: for cards that take their time
"""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from worldroom.clock import LoopClock
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loaded import LoadedCard
from worldroom.sessions import messages
from worldroom.sessions.journal import events
from worldroom.sessions.journal.history import History
from worldroom.sessions.journal.journal import Journal
from worldroom.sessions.journal.replay import replay
from worldroom.sessions.journal.script import Script, read
from worldroom.sessions.rooms.opener import RoomsSpec
from worldroom.sessions.rooms.participant import Participant
from worldroom.sessions.rooms.rooms import Rooms
from worldroom.sessions.rooms.suspend import RoomSuspension
from worldroom.sessions.rooms.suspend_store import SuspendStore
from worldroom.tests.fake_door import Screen
from worldroom.tests.local_worker import LocalClient, ready, relabelled

WORDS = ("a red desert", "snowy mountains at dawn", "misty forest in the morning", "neon city at night in the rain")
ACTS = ("keys",) * 6 + (
    "words", "words", "reset", "rewind", "rewind", "regenerate", "fork", "fork", "fork", "choose", "choose", "choose",
    "pause", "absence", "worker", "restart", "kill", "weights",
)  # fmt: skip
KINDS = (*dict.fromkeys(ACTS), "mix", "sudden")
"""Of acts: those that are drawn, prompts that are mixes and wait for their chunk, and a kill soon after a start."""


class DictRedis:
    """As much of Redis as suspended rooms need."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def set(self, name: str, value: bytes, ex: int) -> None:
        self._kept[name] = value

    async def get(self, name: str) -> bytes | None:
        return self._kept.get(name)

    async def delete(self, name: str) -> None:
        self._kept.pop(name, None)


@dataclass
class Ledger:
    """What all servers of a scene have journaled, in order; and the journal of the one that lives."""

    session: str = ""
    before: list[events.JournalEvent] = field(default_factory=list)
    journal: Journal | None = None

    def all(self) -> list[events.JournalEvent]:
        now = [] if self.journal is None else self.journal.buffered(self.session)
        return [*self.before, *now]

    async def events(self, session: str) -> AsyncIterator[events.JournalEvent]:
        """As `History.events`."""
        for event in self.all():
            yield event

    async def last(self, session: str) -> int:
        return len(self.all())

    def close(self) -> None:
        self.before, self.journal = self.all(), None


class Scene:
    """`told`: what was done, for whoever reads a failure. `fps`: as in `EngineSpec`."""

    def __init__(self, card: LoadedCard, seed: int, disk: Path, fps: int | None = None) -> None:
        self._card, self._dice, self._disk, self._fps = card, random.Random(seed), disk, fps
        self._redis, self.ledger = DictRedis(), Ledger()
        self._weights, self._ids, self._seq = 0, 0, 0
        self._token: str | None = None
        self.told: list[str] = []

    @property
    def chunk(self) -> int:
        """The one that begins next."""
        return self._rooms.views()[0].chunk

    def drawn(self, acts: int) -> Iterator[str]:
        for _ in range(acts):
            yield self._dice.choice(ACTS)

    def shuffled(self) -> Iterator[str]:
        yield from self._dice.sample(KINDS, k=len(KINDS))

    async def play(self, acts: Iterator[str]) -> Script:
        await self._open()
        for act in acts:
            self.told.append(act)
            await getattr(self, f"do_{act}")()
            await asyncio.sleep(self._dice.uniform(0.05, 0.5))
        await self._close()
        return await read(self.ledger.events(""))

    async def replayed(self, script: Script) -> tuple[int, list[str]]:
        """Chunks that came out the same, and what did not; by every set of weights there was."""
        same, wrong = 0, []
        for weights in dict.fromkeys(script.made(each).weights for each in script.epochs):
            client = await self._client_of(weights, EngineSpec(slots=4, fps=self._fps))
            try:
                again = await replay(client, script, "again", engine=client)
            finally:
                await client.close()
            same += again.chunks - len(again.mismatches)
            wrong += [f"{weights}: epoch {each.epoch}, chunk {each.chunk}" for each in again.mismatches]
        return same, wrong

    # ---- the server ------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        clock, card = LoopClock(asyncio.get_running_loop()), self._card
        spec = EngineSpec(slots=5, share_cap=1.0, suspend_after=2.0, fps=self._fps)
        self._client = await self._client_of(f"w{self._weights}", spec, self._disk / "worlds")
        journal = Journal(clock)
        store = SuspendStore(cast(Any, self._redis), keep_s=3600)
        suspension = RoomSuspension(store, self._client, cast(History, self.ledger))
        spec = RoomsSpec(card=card.card.name, lease_s=600.0)
        self._rooms = Rooms(self._client, journal, clock, spec, suspension=suspension, futures=self._client)
        self._noting = asyncio.create_task(suspension.keep_noting(self._rooms.open_rooms))
        await self._join()
        welcome = self._screen.messages[0]
        assert isinstance(welcome, messages.Welcome)
        assert self.ledger.session in ("", welcome.session), f"another session after {self.told}"
        self.ledger.session, self.ledger.journal = welcome.session, journal
        await asyncio.sleep(0.5)

    async def _client_of(self, weights: str, spec: EngineSpec, disk: Path | None = None) -> LocalClient:
        return await ready(LocalClient(relabelled(self._card, weights), spec, disk, self._disk / "prices"))

    async def _join(self) -> None:
        self._screen = Screen()
        joined = await self._rooms.join("lobby", self._screen, self._token, None)
        assert isinstance(joined, Participant), (joined, self.told)
        self._driver, self._token = joined, joined.token

    async def _close(self) -> None:
        """Suspended, as a server does that is told to stop."""
        self._noting.cancel()
        self._driver.leave()
        await self._rooms.close()
        self.ledger.close()
        await self._client.close()

    async def do_restart(self) -> None:
        await self._close()
        await self._open()

    async def do_kill(self) -> None:
        """The whole server: what was journaled is there, and a note of a second ago."""
        await asyncio.sleep(1.5)
        await self._killed()

    async def do_sudden(self) -> None:
        """The same twice, with no more time in between than a start takes."""
        await self._killed()
        await self._killed()

    async def _killed(self) -> None:
        self._noting.cancel()
        self.ledger.close()
        await self._client.close()
        await self._open()

    async def do_weights(self) -> None:
        self._weights += 1
        await self.do_restart()

    async def do_worker(self) -> None:
        self._client.kill()
        await asyncio.sleep(0.5)

    async def do_wait(self, seconds: float = 1.0) -> None:
        await asyncio.sleep(seconds)

    # ---- the person ------------------------------------------------------------------------------------------------

    def say(self, message: messages.ClientMessage) -> None:
        self._driver.receive(message)

    def id(self) -> int:
        self._ids += 1
        return self._ids

    async def do_keys(self) -> None:
        self._seq += 1
        keys = [key for control in self._client.cards()[0].controls for key in control.keys[:1]]
        held = tuple(self._dice.sample(keys, self._dice.randint(0, 2)))
        self.say(messages.Input(seq=self._seq, held=held))

    async def do_words(self) -> None:
        blend = self._dice.random() < 0.5
        how = messages.Transition.BLEND if blend else messages.Transition.CUT
        self.say(messages.Prompt(self.id(), self._dice.choice(WORDS), how, self._dice.choice((0.2, 1.0))))

    async def do_mix(self) -> None:
        """Of two to four texts, over some chunks, now or a little later."""
        others = tuple(messages.WeighedText(text, 1.0) for text in self._dice.sample(WORDS, self._dice.randint(1, 3)))
        at, over = self._dice.choice((None, self.chunk + self._dice.randint(4, 60))), self._dice.randint(0, 12)
        self.say(messages.Prompt(self.id(), self._dice.choice(WORDS), others=others, at=at, over=over))

    async def do_reset(self) -> None:
        self.say(messages.ResetWorld(self.id(), self._dice.choice((None, self._dice.randint(0, 1 << 40)))))

    async def do_rewind(self) -> None:
        self.say(messages.Rewind(self.id(), self._dice.choice((0.3, 1.0, 5.0))))

    async def do_regenerate(self) -> None:
        self.say(messages.Regenerate(self.id()))

    async def do_fork(self) -> None:
        keys = self._client.cards()[0].controls[0].keys[:1]
        ways = (messages.Way(), messages.Way(self._dice.choice(WORDS)), messages.Way(held=keys))
        self.say(messages.Fork(self.id(), tuple(self._dice.choices(ways, k=self._dice.randint(1, 3)))))
        await asyncio.sleep(0.6)

    async def do_choose(self) -> None:
        keep = self._dice.choice(tuple(messages.Keep))
        self.say(messages.Choose(self.id(), keep, self._dice.choice((None, 0, 1, 2, 3))))

    async def do_pause(self) -> None:
        self.say(messages.PauseWorld(self.id()))
        await asyncio.sleep(self._dice.choice((0.2, 4.0)))
        self.say(messages.ResumeWorld(self.id()))
        await asyncio.sleep(0.2)

    async def do_absence(self) -> None:
        self._driver.leave()
        await asyncio.sleep(self._dice.choice((0.3, 5.0)))
        await self._join()


@dataclass(frozen=True, slots=True)
class Played:
    """A session of which every chunk in every branch came out the same again, and what was done in it."""

    chunks: int
    epochs: int
    acts: tuple[str, ...]


async def session(card: LoadedCard, seed: int, acts: int | None, fps: int | None = None) -> Played:
    """AssertionError with what was done, where a chunk did not come out the same. `acts` None = shuffled."""
    with tempfile.TemporaryDirectory() as disk:
        scene = Scene(card, seed, Path(disk), fps)
        script = await scene.play(scene.shuffled() if acts is None else scene.drawn(acts))
        same, wrong = await scene.replayed(script)
    every = sum(len(epoch.chunks) for epoch in script.epochs)
    assert (same, wrong) == (every, []), f"seed {seed}: {wrong[:3]} of {every} after {scene.told}"
    return Played(every, len(script.epochs), tuple(scene.told))
