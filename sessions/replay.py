"""A journal played again: the same seed, prompts and conditions through the engine's door, digests compared.

read():   stream -> Script          what was committed, epoch by epoch
replay(): Script -> Replayed        the same chunks in a new session, chunk by chunk
"""

import asyncio
from collections.abc import AsyncIterable
from dataclasses import dataclass

from ..engine import api
from . import events


@dataclass(frozen=True, slots=True)
class CommittedChunk:
    chunk: int
    conditions: api.Conditions
    digest: str


@dataclass(frozen=True, slots=True)
class EpochScript:
    """One start of the world and the chunks that were committed from there."""

    epoch: int
    seed: int
    chunks: tuple[CommittedChunk, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """What a session did. `texts`: by prompt version."""

    opened: events.Opened
    texts: tuple[tuple[int, str], ...]
    epochs: tuple[EpochScript, ...]


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
    """The script in a session's events; raises `ReplayError` when the session was never opened."""
    opened: events.Opened | None = None
    seeds: dict[int, int] = {}
    texts: dict[int, str] = {}
    begun: dict[tuple[int, int], api.Conditions] = {}
    done: dict[int, list[CommittedChunk]] = {}
    async for event in journal:
        match event:
            case events.Opened():
                opened = event
                seeds[0] = event.seed
            case events.EpochStarted():
                seeds[event.epoch] = event.seed
            case events.PromptAsked():
                texts[event.number] = event.text
            case events.ChunkBegun():
                begun[event.conditions.epoch, event.chunk] = event.conditions
            case events.ChunkDone():
                conditions = begun[event.epoch, event.chunk]
                done.setdefault(event.epoch, []).append(CommittedChunk(event.chunk, conditions, event.digest))
            case _:
                pass
    if opened is None:
        raise ReplayError("this journal does not hold the opening of a session")
    epochs = tuple(EpochScript(epoch, seed, tuple(done.get(epoch, ()))) for epoch, seed in sorted(seeds.items()))
    return Script(opened, tuple(sorted(texts.items())), epochs)


async def replay(door: api.Door, script: Script, session: str) -> Replayed:
    """Play a script in a new session of that name, as background work; raises `ReplayError` when it cannot."""
    inbox: asyncio.Queue[api.Event] = asyncio.Queue()
    opened = script.opened
    answer = await door.open(
        api.Open(
            session=session,
            card=opened.card,
            seed=opened.seed,
            latency_class=api.LatencyClass.BACKGROUND,
            branch=opened.branch,
            steps=opened.steps or None,
        ),
        inbox.put_nowait,
    )
    if isinstance(answer, api.Refused):
        raise ReplayError(f"the engine refused a place: {answer.detail}")
    try:
        if (answer.weights, answer.steps, answer.precision) != (opened.weights, opened.steps, opened.precision):
            raise ReplayError(
                f"recorded with weights '{opened.weights}', {opened.steps} steps, {opened.precision}; this server has "
                f"'{answer.weights}', {answer.steps} steps, {answer.precision}"
            )
        return await _play(door, script, session, inbox)
    finally:
        door.post(api.Close(session=session))


async def _play(door: api.Door, script: Script, session: str, inbox: "asyncio.Queue[api.Event]") -> Replayed:
    due = await _encode_prompts(door, script, session, inbox)
    mismatches: list[Mismatch] = []
    chunks = 0
    for epoch in script.epochs:
        if epoch.epoch > 0:
            door.post(api.Supersede(session=session, epoch=epoch.epoch, restart=True, seed=epoch.seed))
            due = None
        for recorded in epoch.chunks:
            while due != recorded.chunk:
                event = await inbox.get()
                due = event.chunk if isinstance(event, api.ChunkDue) else due
                _stop_at_fault(event)
            door.post(api.Begin(session=session, chunk=recorded.chunk, conditions=recorded.conditions))
            due = None
            digest = await _digest(inbox, epoch.epoch, recorded.chunk)
            chunks += 1
            if digest != recorded.digest:
                mismatches.append(Mismatch(epoch.epoch, recorded.chunk, recorded.digest, digest))
    return Replayed(chunks, tuple(mismatches))


async def _encode_prompts(
    door: api.Door, script: Script, session: str, inbox: "asyncio.Queue[api.Event]"
) -> int | None:
    """Have every prompt's embedding ready; the chunk that fell due meanwhile."""
    due: int | None = None
    missing = {number for number, _ in script.texts}
    for number, text in script.texts:
        door.post(api.EncodePrompt(session=session, version=number, text=text))
    while missing:
        event = await inbox.get()
        match event:
            case api.PromptEncoded():
                missing.discard(event.version)
            case api.Fault():
                missing.discard(event.prompt_version)  # it failed then as well, or its chunk will not match
            case api.ChunkDue():
                due = event.chunk
            case _:
                pass
    return due


async def _digest(inbox: "asyncio.Queue[api.Event]", epoch: int, chunk: int) -> str:
    while True:
        event = await inbox.get()
        _stop_at_fault(event)
        if isinstance(event, api.ChunkDone) and (event.epoch, event.chunk) == (epoch, chunk):
            return event.digest


def _stop_at_fault(event: api.Event) -> None:
    if isinstance(event, api.Fault):
        raise ReplayError(f"the engine failed during replay: {event.code}: {event.detail}")
