"""A script played again: the same seed, prompts and conditions through the engine's door, chunks compared.

script -> the same chunks in a new session, chunk by chunk                  -> Replayed: which differ (`compare.py`)
script -> under other words, steps or weights: a counterfactual, uncompared -> Replayed: what was made
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from ...engine import api
from .compare import Comparison, KeptLatents
from .compare import Mismatch as Mismatch
from .script import CommittedChunk as CommittedChunk
from .script import EpochScript as EpochScript
from .script import MadeBy as MadeBy
from .script import ReplayError as ReplayError
from .script import Script as Script
from .script import read as read
from .script import read_session as read_session

REDACTED = "redacted:"
"""What a text begins with that was taken out of a journal (`redact.py`)."""
ENCODED_KEPT = 16
"""Embeddings that are taken as still kept by the engine, which keeps 32 per session."""
LAST_FRAMES_S = 1.0


@dataclass(frozen=True, slots=True)
class ReplayAsk:
    """`first`: chunks before that are made again unseen. `prompt`, `steps`, `any_weights`: what is to be different; the
    replay is a counterfactual then.
    """

    first: int = 0
    prompt: str | None = None
    steps: int | None = None
    any_weights: bool = False

    def differs(self, opened: MadeBy, here: MadeBy) -> str:
        """How it differs from what was recorded; '' = not at all."""
        words = [] if self.prompt is None else ["other words"]
        if self.steps is not None and self.steps != opened.steps:
            words.append(f"{self.steps} steps for {opened.steps}")
        if self.any_weights and here.weights != opened.weights:
            words.append(f"weights '{here.weights}' for '{opened.weights}'")
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Replayed:
    """`counterfactual`: how it differs from what was recorded, '' = not meant to. `unseen`: chunks that were only made
    again, or that are of a part made by other weights. `within`, `largest`, `unjudged`, `vouched`: see `Comparison`.
    """

    chunks: int
    mismatches: tuple[Mismatch, ...]
    counterfactual: str = ""
    unseen: int = 0
    within: int = 0
    largest: float = 0.0
    unjudged: int = 0
    vouched: bool = True


async def replay(
    door: api.EngineClient,
    script: Script,
    session: str,
    show: Callable[[api.Frame], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
    engine: api.SuspendableEngine | None = None,
    ask: ReplayAsk | None = None,
    kept: KeptLatents | None = None,
) -> Replayed:
    """Play a script in a new session of that name, as background work; raises `ReplayError` when it cannot.

    `show` gets the frames as they were encoded this time, `say` what a person should know before it starts.
    `engine`: needed for sessions that went back to a moment, and for those that are not played from their beginning.
    `kept`: the recorded latents, for a card that owes a tolerance.
    """
    ask = ask or ReplayAsk()
    inbox: asyncio.Queue[api.Event] = asyncio.Queue()
    opening = script.opening(script.first, session, api.LatencyClass.BACKGROUND)
    if ask.steps is not None:
        opening = msgspec.structs.replace(opening, steps=ask.steps)
    answer = await door.open(opening, inbox.put_nowait)
    if isinstance(answer, api.Refused):
        raise ReplayError(f"the engine refused a session: {answer.detail}")
    comparison = Comparison(answer.card.tolerance, script.opened.latents)
    if kept is not None:
        comparison.kept = kept
    player = _Player(door, script, session, inbox, show, engine, ask, MadeBy.of(answer), comparison)
    try:
        player.check()
        if (line := other_machine(player.recorded.machine, answer.machine)) is not None:
            say(line)
        return await player.play()
    finally:
        player.close()


def other_machine(recorded: str, here: str) -> str | None:
    """One line where the chunks were computed with other instructions than this machine has; None where not."""
    if not recorded or recorded == here:
        return None
    return f"recorded with {recorded}, this machine has {here or 'another one'}: last bits of chunks may differ"


class _Player:
    """One replay: posts what the journal says and waits for what the engine says."""

    def __init__(
        self,
        door: api.EngineClient,
        script: Script,
        session: str,
        inbox: "asyncio.Queue[api.Event]",
        show: Callable[[api.Frame], None] | None,
        engine: api.SuspendableEngine | None,
        ask: ReplayAsk,
        here: MadeBy,
        comparison: Comparison,
    ) -> None:
        self._comparison = comparison
        self._door, self._engine, self._ask, self._here = door, engine, ask, here
        self._name = self._session = session
        self._script, self._inbox, self._show = script, inbox, show
        made = [script.made(each) for each in script.epochs if each.chunks]
        self.recorded = next((each for each in made if self._fits(each)), made[0] if made else MadeBy.of(script.opened))
        self._different = ask.differs(self.recorded, here)
        self._asked_for: int | None = None
        self._encoded: deque[str] = deque(maxlen=ENCODED_KEPT)
        self._keys: dict[str, str] = {}
        """Of prompts here, where other weights give them other keys."""
        self._version = 0

    def check(self) -> None:
        """Raise `ReplayError` when nothing of the script was made by what is here."""
        if not any(self._fits(self._script.made(each)) for each in self._script.epochs):
            raise ReplayError(f"recorded with {self.recorded}; this server has {self._here}")

    def close(self) -> None:
        self._door.post(api.Close(session=self._session))

    async def play(self) -> Replayed:
        compared, chunks, first = self._comparison, 0, self._script.first
        playing = first
        for epoch in self._script.epochs:
            recorded = [each for each in epoch.chunks if each.chunk >= self._ask.first]
            if not recorded or not self._fits(self._script.made(epoch)):
                continue
            whole = len(recorded) == len(epoch.chunks)
            begins = epoch.epoch == first
            straight = epoch.turned is None and (not epoch.fresh or begins) and playing == epoch.after
            straight = straight and not (begins and self._script.parent)
            if not whole or not straight:
                await self._turn(epoch, recorded[0].chunk)
            elif not begins:
                again = api.Supersede(self._session, epoch.epoch, True, epoch.seed, epoch.first_frames)
                self._door.post(again)
            playing = epoch.epoch
            for each in recorded:
                made = await self._chunk(each)
                chunks += 1
                if not self._different:
                    await compared.take(epoch.epoch, each.digest, made)
        await self._last_frames()
        every = sum(len(epoch.chunks) for epoch in self._script.epochs)
        figures = compared.within, compared.largest, compared.unjudged, compared.vouched
        return Replayed(chunks, tuple(compared.mismatches), self._different, every - chunks, *figures)

    def _fits(self, made: MadeBy) -> bool:
        """Whether chunks that were made so can be played here."""
        here, ask = self._here, self._ask
        weights = here.weights if ask.any_weights else made.weights
        steps = here.steps if ask.steps is not None else made.steps
        return MadeBy(weights, steps, made.precision, made.mode).same_as(here)

    async def _turn(self, script: EpochScript, chunk: int) -> None:
        """Make the world before a chunk of that epoch, unseen, and play on from there."""
        if self._engine is None:
            raise ReplayError("this session went back to a moment, and this engine only goes forward")
        name = f"{self._name}-{script.epoch}"
        opening = self._script.opening(script.epoch, name, api.LatencyClass.BACKGROUND)
        if self._ask.steps is not None:
            opening = msgspec.structs.replace(opening, steps=self._ask.steps)
        history = await self._made_here(self._script.history(script.epoch, opening.session, chunk))
        self.close()
        progress = api.Progress(epoch=script.epoch, chunk=chunk)
        world = self._script.written_down(self._engine, opening, history, progress)
        self._session, self._asked_for = opening.session, None
        self._encoded.clear()
        answer = await self._engine.restore(world, self._inbox.put_nowait)
        if isinstance(answer, api.Refused):
            raise ReplayError(f"the engine refused another future: {answer.detail}")

    async def _chunk(self, recorded: CommittedChunk) -> api.ChunkDone:
        conditions = await self._conditions(recorded)
        while self._asked_for is None:
            await self._event()
        if self._asked_for != recorded.chunk:
            raise ReplayError(f"the journal goes on with chunk {recorded.chunk}, the world with {self._asked_for}")
        self._asked_for = None
        self._door.post(api.Begin(self._session, recorded.chunk, conditions, self._comparison.wants_latents))
        while True:
            event = await self._event()
            if isinstance(event, api.ChunkDone) and event.chunk == recorded.chunk:
                return event

    async def _conditions(self, recorded: CommittedChunk) -> api.Conditions:
        """What steers a chunk, with the embeddings of its prompts in the engine."""
        if self._ask.prompt is not None:
            key = await self._encode(self._ask.prompt)
            mix = (api.PromptShare(key, 1.0),)
            return msgspec.structs.replace(recorded.conditions, prompts=mix, recache=False)
        for share in recorded.conditions.prompts:
            if share.key not in self._encoded:
                await self._hold(share.key)
        return self._renamed(recorded.conditions)

    def _renamed(self, conditions: api.Conditions) -> api.Conditions:
        """With the keys that its prompts have here."""
        if not self._keys:
            return conditions
        mix = tuple(api.PromptShare(self._keys.get(share.key, share.key), share.weight) for share in conditions.prompts)
        return msgspec.structs.replace(conditions, prompts=mix)

    async def _made_here(self, history: tuple[api.HistoryStep, ...]) -> tuple[api.HistoryStep, ...]:
        """A history as it can be made with other weights, where that is asked for."""
        if not self._ask.any_weights:
            return history
        steps: list[api.HistoryStep] = []
        for step in history:
            if isinstance(step, api.Begin):
                for share in step.conditions.prompts:
                    if share.key not in self._encoded and share.key not in self._keys:
                        await self._hold(share.key)
                step = msgspec.structs.replace(step, conditions=self._renamed(step.conditions))
            steps.append(step)
        return tuple(steps)

    async def _hold(self, key: str) -> None:
        """Have the embedding of a recorded prompt ready; the engine keeps the most recent ones."""
        text, embedding = self._script.texts.get(key), self._script.embeddings.get(key)
        if embedding is not None:
            self._version += 1
            self._door.post(api.HoldPrompt(self._session, self._version, key, embedding))
            held = await self._answered()
        elif text is None or text.startswith(REDACTED):
            raise ReplayError(f"neither text nor embedding of the prompt with key {key} is kept")
        else:
            held = await self._encode(text)
        if held != key and not self._ask.any_weights:
            raise ReplayError("this server's text encoder differs: a prompt has another key here")
        if held != key:
            self._keys[key] = held
        self._encoded.append(key)

    async def _encode(self, text: str) -> str:
        """The key of a text whose embedding the engine has."""
        self._version += 1
        self._door.post(api.EncodePrompt(session=self._session, version=self._version, text=text))
        return await self._answered()

    async def _answered(self) -> str:
        while True:
            event = await self._event()
            if isinstance(event, api.PromptEncoded) and event.version == self._version:
                return event.key

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
        if isinstance(event, api.ChunkDone) and event.chunk == self._asked_for:
            self._asked_for = None  # the engine was interrupted while it waited, and asked again
        return event
