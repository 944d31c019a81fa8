"""A journal played again: the same seed, prompts and conditions through the engine's door, digests compared.

read():   stream -> Script          what was committed, epoch by epoch
replay(): Script -> Replayed        the same chunks in a new session, chunk by chunk
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from ...engine import api
from . import events

REDACTED = "redacted:"
"""What a text begins with that was taken out of a journal (`redact.py`)."""
ENCODED_KEPT = 16
"""Embeddings that are taken as still kept by the engine, which keeps 32 per session."""
LAST_FRAMES_S = 1.0


@dataclass(frozen=True, slots=True)
class CommittedChunk:
    chunk: int
    conditions: api.Conditions
    digest: str


@dataclass(frozen=True, slots=True)
class EpochScript:
    """One start of the world, or another future of it (`turned`), and the chunks that were committed from there."""

    epoch: int
    seed: int
    chunks: tuple[CommittedChunk, ...]
    first_frames: api.FirstFrames | None = None
    turned: events.WorldTurned | None = None
    after: int = 0
    """The epoch that played until then."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a session did. `texts`: every prompt by its embedding key; `embeddings`: those whose text was redacted.
    `playing`: the epoch that goes on.
    """

    opened: events.SessionOpened
    texts: Mapping[str, str]
    epochs: tuple[EpochScript, ...]
    embeddings: Mapping[str, bytes] = field(default_factory=dict)
    playing: int = 0

    def of(self, epoch: int) -> EpochScript:
        return next(each for each in self.epochs if each.epoch == epoch)

    def branch(self, epoch: int) -> int:
        """Of the world that an epoch plays."""
        script = self.of(epoch)
        if script.turned is not None:
            return script.turned.branch
        return self.branch(script.after) if epoch else self.opened.branch

    def history(self, epoch: int, session: str) -> tuple[api.HistoryStep, ...]:
        """All that made the world with which an epoch ends, from the opening on."""
        script = self.of(epoch)
        return (
            *self.before(script, session),
            *(api.Begin(session, each.chunk, each.conditions) for each in script.chunks),
        )

    def before(self, script: EpochScript, session: str) -> tuple[api.HistoryStep, ...]:
        """All that made the world with which an epoch begins."""
        turned = script.turned
        if turned is None:
            again = api.Supersede(session, script.epoch, True, script.seed, script.first_frames)
            return (*self.history(script.after, session), again) if script.epoch else ()
        steps = []
        for step in self.history(turned.base, session):
            if isinstance(step, api.Begin) and step.chunk >= turned.chunk:
                break
            steps.append(step)
        return (*steps, api.Branched(session, turned.chunk, turned.noise_of))


@dataclass(frozen=True, slots=True)
class Mismatch:
    epoch: int
    chunk: int
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True)
class Replayed:
    chunks: int
    mismatches: tuple[Mismatch, ...]


class ReplayError(RuntimeError):
    """The journal cannot be played again here, and why."""


async def read(journal: AsyncIterable[events.JournalEvent]) -> Script:
    """The script in a session's events; raises `ReplayError` when it was never opened, or `UnknownContract`."""
    opened: events.SessionOpened | None = None
    seeds: dict[int, int] = {}
    first_frames: dict[int, api.FirstFrames | None] = {}
    turned: dict[int, events.WorldTurned] = {}
    after: dict[int, int] = {}
    playing = 0
    asked: dict[int, str] = {}
    texts: dict[str, str] = {}
    embeddings: dict[str, bytes] = {}
    begun: dict[tuple[int, int], api.Conditions] = {}
    done: dict[int, list[CommittedChunk]] = {}
    async for event in journal:
        match event:
            case events.SessionOpened():
                api.check_contract("this journal", event.contract, since=api.JOURNALS_SINCE)
                opened = event
                seeds[0] = event.seed
            case events.EpochStarted():
                seeds[event.epoch] = event.seed
                first_frames[event.epoch] = event.first_frames
                after[event.epoch], playing = playing, event.epoch
            case events.WorldTurned():
                seeds[event.epoch] = seeds[event.base]
                turned[event.epoch] = event
                playing = playing if event.beside else event.epoch
            case events.PreferenceChosen():
                beside = [each.epoch for each in turned.values() if each.beside and each.branch == event.chosen]
                playing = beside[-1] if beside else playing
            case events.PromptAsked():
                asked[event.number] = event.text
            case events.PromptReady():
                if event.embedding:
                    embeddings[event.key] = event.embedding
                else:
                    texts[event.key] = asked[event.number]
            case events.ChunkBegun():
                begun[event.conditions.epoch, event.chunk] = event.conditions
            case events.ChunkCommitted():
                conditions = begun[event.epoch, event.chunk]
                done.setdefault(event.epoch, []).append(CommittedChunk(event.chunk, conditions, event.digest))
            case _:
                pass
    if opened is None:
        raise ReplayError("this journal does not hold how its session was opened")
    epochs = tuple(
        EpochScript(
            epoch, seed, tuple(done.get(epoch, ())), first_frames.get(epoch), turned.get(epoch), after.get(epoch, 0)
        )
        for epoch, seed in sorted(seeds.items())
    )
    return Script(opened, texts, epochs, embeddings, playing)


async def replay(
    door: api.EngineClient,
    script: Script,
    session: str,
    show: Callable[[api.Frame], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
    engine: api.SuspendableEngine | None = None,
) -> Replayed:
    """Play a script in a new session of that name, as background work; raises `ReplayError` when it cannot.

    `show` gets the frames as they were encoded this time, `say` what a person should know before it starts.
    `engine`: needed for sessions that went back to a moment.
    """
    inbox: asyncio.Queue[api.Event] = asyncio.Queue()
    opened = script.opened
    opening = api.Open(
        session=session,
        card=opened.card,
        seed=opened.seed,
        latency_class=api.LatencyClass.BACKGROUND,
        branch=opened.branch,
        steps=opened.steps or None,
    )
    answer = await door.open(opening, inbox.put_nowait)
    if isinstance(answer, api.Refused):
        raise ReplayError(f"the engine refused a session: {answer.detail}")
    try:
        if made_by(answer) != made_by(opened):
            raise ReplayError(f"recorded with {made_by(opened)}; this server has {made_by(answer)}")
        if (line := other_machine(opened, answer.machine)) is not None:
            say(line)
        player = _Player(door, opening, script, inbox, show, engine)
        return await player.play()
    finally:
        door.post(api.Close(session=session))


def other_machine(opened: events.SessionOpened, here: str) -> str | None:
    """One line where the chunks were computed with other instructions than this machine has; None where not."""
    if not opened.machine or opened.machine == here:
        return None
    return f"recorded with {opened.machine}, this machine has {here or 'another one'}: last bits of chunks may differ"


def made_by(opened: api.Opened | events.SessionOpened) -> str:
    return f"weights '{opened.weights}', {opened.steps} steps, {opened.precision} {opened.mode or 'as usual'}"


class _Player:
    """One replay: posts what the journal says and waits for what the engine says."""

    def __init__(
        self,
        door: api.EngineClient,
        opening: api.Open,
        script: Script,
        inbox: "asyncio.Queue[api.Event]",
        show: Callable[[api.Frame], None] | None,
        engine: api.SuspendableEngine | None,
    ) -> None:
        self._door, self._engine = door, engine
        self._opening, self._session = opening, opening.session
        self._script = script
        self._inbox = inbox
        self._show = show
        self._asked_for: int | None = None
        self._encoded: deque[str] = deque(maxlen=ENCODED_KEPT)
        self._version = 0

    async def play(self) -> Replayed:
        mismatches: list[Mismatch] = []
        chunks = 0
        playing = 0
        for epoch in [each for each in self._script.epochs if each.chunks]:
            if epoch.turned is not None or playing != epoch.after:
                await self._turn(epoch)
            elif epoch.epoch > 0:
                again = api.Supersede(self._session, epoch.epoch, True, epoch.seed, epoch.first_frames)
                self._door.post(again)
            playing = epoch.epoch
            for recorded in epoch.chunks:
                digest = await self._chunk(recorded)
                chunks += 1
                if recorded.digest and digest != recorded.digest:
                    mismatches.append(Mismatch(epoch.epoch, recorded.chunk, recorded.digest, digest))
        await self._last_frames()
        self._door.post(api.Close(session=self._session))
        return Replayed(chunks, tuple(mismatches))

    async def _turn(self, script: EpochScript) -> None:
        """Make the world that another future goes on from, unseen, and play that one."""
        if self._engine is None:
            raise ReplayError("this session went back to a moment, and this engine only goes forward")
        self._door.post(api.Close(session=self._session))
        opening = msgspec.structs.replace(self._opening, session=f"{self._opening.session}-{script.epoch}")
        history = self._script.before(script, opening.session)
        progress = api.Progress(epoch=script.epoch, chunk=script.chunks[0].chunk)
        texts, embeddings = tuple(self._script.texts.values()), tuple(self._script.embeddings.items())
        world = self._engine.written_down(opening, history, texts, progress, embeddings)
        self._session, self._asked_for = opening.session, None
        self._encoded.clear()
        answer = await self._engine.restore(world, self._inbox.put_nowait)
        if isinstance(answer, api.Refused):
            raise ReplayError(f"the engine refused another future: {answer.detail}")

    async def _chunk(self, recorded: CommittedChunk) -> str:
        for share in recorded.conditions.prompts:
            if share.key not in self._encoded:
                await self._encode(share.key)
        while self._asked_for is None:
            await self._event()
        if self._asked_for != recorded.chunk:
            raise ReplayError(f"the journal goes on with chunk {recorded.chunk}, the world with {self._asked_for}")
        self._asked_for = None
        begin = api.Begin(session=self._session, chunk=recorded.chunk, conditions=recorded.conditions)
        self._door.post(begin)
        while True:
            event = await self._event()
            if isinstance(event, api.ChunkDone) and event.chunk == recorded.chunk:
                return event.digest

    async def _encode(self, key: str) -> None:
        """Have the embedding of a prompt ready; the engine keeps the most recent ones."""
        text, embedding = self._script.texts.get(key), self._script.embeddings.get(key)
        self._version += 1
        if embedding is not None:
            self._door.post(api.HoldPrompt(self._session, self._version, key, embedding))
        elif text is None or text.startswith(REDACTED):
            raise ReplayError(f"neither text nor embedding of the prompt with key {key} is kept")
        else:
            self._door.post(api.EncodePrompt(session=self._session, version=self._version, text=text))
        self._encoded.append(key)
        while True:
            event = await self._event()
            if isinstance(event, api.PromptEncoded) and event.version == self._version:
                if event.key != key:
                    raise ReplayError("this server's text encoder differs: a prompt has another key here")
                return

    async def _last_frames(self) -> None:
        """Those of the last chunks are still to come."""
        if self._show is None:
            return
        with contextlib.suppress(TimeoutError):
            while True:
                await asyncio.wait_for(self._event(), LAST_FRAMES_S)

    async def _event(self) -> api.Event:
        event = await self._inbox.get()
        while event.session != self._session:
            event = await self._inbox.get()
        if isinstance(event, api.Frame) and self._show is not None:
            self._show(event)
        if isinstance(event, api.Fault):
            raise ReplayError(f"the engine failed during replay: {event.code}: {event.detail}")
        if isinstance(event, api.ChunkDue):
            self._asked_for = event.chunk
        return event
