"""What `worldroom journal redact` and `delete` do, in a folder that nobody serves from."""

import asyncio
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec
from redis.asyncio import Redis

from ..clock import SystemClock
from ..engine.worker.client import WorkerClient
from ..sessions.erasing import Eraser, HasChildren, Removed
from ..sessions.journal import replay
from ..sessions.journal.embeddings import embeddings
from ..sessions.journal.redact import redacted
from ..sessions.recording.recordings import Recordings
from ..sessions.rooms.suspend_store import SuspendStoreError
from .changing import OpenJournal, changing
from .journal_place import JournalPlace, rewrite
from .journaling import FAULTS, known
from .replaying import FAULTS as REPLAY_FAULTS
from .replaying import Weights, serving_spec
from .stored_worlds import forget_checkpoints

ERASING_FAULTS = (*FAULTS, *REPLAY_FAULTS, SuspendStoreError, HasChildren)


class RedactReport(msgspec.Struct, frozen=True):
    """`texts`: prompts whose words are gone; `embeddings`: kept in their place. `worlds`: suspended ones, removed
    because they hold the words."""

    texts: int
    embeddings: int
    worlds: int


async def redact_now(
    place: JournalPlace, session: str, checkpoint: Path | None, given: Mapping[str, str], keep: bool
) -> RedactReport:
    """`keep`: make the embeddings first, with a worker of its own. Raises `ERASING_FAULTS`, and then nothing was
    changed."""
    async with changing(place) as opened:
        history, archiver = opened.history, opened.archiver
        await known(history, session)
        script = await replay.read_session(history, session) if keep else None
        kept = {} if script is None else await _embeddings(script, checkpoint, given)
        eraser = _eraser(place, opened)
        worlds, _ = await eraser.forget_world(await eraser.summary(session))
        await archiver.archive_whole(session)
        texts = await asyncio.to_thread(redacted, archiver.archive, session, kept)
        await _forget_traces(place, opened.redis)
        return RedactReport(texts, len(kept), worlds)


async def delete_now(place: JournalPlace, session: str, force: bool) -> Removed:
    """Raises `ERASING_FAULTS`."""
    async with changing(place) as opened:
        await known(opened.history, session)
        try:
            removed = await _eraser(place, opened).delete(session, force=force)
        except HasChildren as error:
            raise HasChildren(f"{error}; --force deletes it all the same") from None
        await _forget_traces(place, opened.redis)
        return removed


def _eraser(place: JournalPlace, opened: OpenJournal) -> Eraser:
    recordings = Recordings(place.data / "recordings", SystemClock())
    checkpoints = partial(forget_checkpoints, place.data)
    return Eraser(opened.archiver.store, opened.archiver.archive, recordings, opened.rooms, checkpoints)


async def _embeddings(script: replay.Script, checkpoint: Path | None, given: Mapping[str, str]) -> Mapping[str, bytes]:
    if not script.texts:
        return script.embeddings
    engine = WorkerClient(serving_spec(script, Weights(checkpoint), given), SystemClock())
    try:
        await engine.start()
        return await embeddings(engine, script, f"redact-{secrets.token_hex(4)}")
    finally:
        await engine.close()


async def _forget_traces(place: JournalPlace, redis: Redis | None) -> None:
    """The embedded Redis writes its file anew: what was deleted is still in the old one. A given Redis is its
    owner's."""
    if place.redis is None and redis is not None:
        await rewrite(redis)
