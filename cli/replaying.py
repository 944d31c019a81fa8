"""A journaled session played again, chunk by chunk, and whether every latent came out the same; behind `replay`."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path

import msgspec
from rich.table import Table

from ..clients.python.recorder import Recorder
from ..clock import SystemClock
from ..engine import api
from ..engine.spec import EngineSpec
from ..engine.worker.client import WorkerClient, WorkerFailed
from ..engine.worker.spec import WorkerSpec
from ..models import catalog
from ..models.contract.recipe import Precision, RuntimeChoice
from ..sessions.journal import replay as again
from ..sessions.journal.redis_embedded import EmbeddedRedis, RedisUnreachable, connect
from ..sessions.journal.streams import StreamError, Streams
from .assemble import JOURNAL_KEEP_S
from .checkpoints import checkpoint_of
from .errors import did_you_mean
from .output import progress

SHOWN_MOST = 20


class DivergedChunk(msgspec.Struct, frozen=True):
    """The first chunk whose latents are not what was recorded."""

    epoch: int
    chunk: int
    recorded: str
    replayed: str


class Journaled(msgspec.Struct, frozen=True):
    """A session in the journal; `opened`: Unix seconds."""

    session: str
    room: str
    card: str
    opened: float
    events: int


class JournaledSessions(msgspec.Struct, frozen=True):
    sessions: tuple[Journaled, ...]


class ReplayReport(msgspec.Struct, frozen=True):
    """`same`: every chunk had the recorded digest. `movie`: the MP4 that was written."""

    session: str
    card: str
    epochs: int
    chunks: int
    same: bool
    different: int
    first_divergence: DivergedChunk | None
    frames: int
    movie: str | None


FAULTS = (RedisUnreachable, StreamError, again.ReplayError, api.UnknownContract, WorkerFailed, *catalog.REFUSALS)
"""What the person who asked can put right; one line each."""


async def sessions(redis: str | None, data: Path) -> JournaledSessions:
    """What the journal holds, newest first. Raises `FAULTS`."""
    async with _journal(redis, data) as streams:
        known = await streams.sessions()
    return JournaledSessions(
        tuple(Journaled(e.session, e.opened.room, e.opened.card, round(e.at, 3), e.events) for e in known)
    )


async def play(
    session: str,
    redis: str | None,
    data: Path,
    out: Path | None,
    checkpoint: Path | None,
    given: Mapping[str, str],
) -> ReplayReport:
    """Play it with a worker of its own. Raises `FAULTS`."""
    async with _journal(redis, data) as streams:
        names = [entry.session for entry in await streams.sessions()]
        if session not in names:
            raise again.ReplayError(f"no session '{session}' in this journal{did_you_mean(session, names)}")
        script = await again.read(event async for _, _, event in streams.read(session))
    engine = WorkerClient(_serving(script, checkpoint, given), SystemClock())
    movie = None if out is None else Recorder(out, catalog.card(script.opened.card).frame.fps)

    with progress("chunks") as bar:
        task = bar.add_task("replaying", total=sum(len(epoch.chunks) for epoch in script.epochs))

        def keep(frame: api.Frame) -> None:
            bar.update(task, completed=chunks_until(script, frame))
            if movie is not None:
                movie.frame(frame.pts, frame.data, frame.key)

        try:
            await engine.start()
            result = await again.replay(engine, script, f"replay-{secrets.token_hex(4)}", keep)
        finally:
            await engine.close()
            if movie is not None:
                movie.close()
    first = next(iter(result.mismatches), None)
    return ReplayReport(
        session=session,
        card=script.opened.card,
        epochs=len(script.epochs),
        chunks=result.chunks,
        same=first is None,
        different=len(result.mismatches),
        first_divergence=None
        if first is None
        else DivergedChunk(first.epoch, first.chunk, first.recorded, first.replayed),
        frames=movie.frames if movie is not None else 0,
        movie=str(out) if out is not None else None,
    )


def chunks_until(script: again.Script, frame: api.Frame) -> int:
    """How many chunks of a script are played when that frame is shown: all of earlier epochs, its own with it."""
    return sum(len(epoch.chunks) for epoch in script.epochs if epoch.epoch < frame.epoch) + frame.chunk + 1


def _serving(script: again.Script, checkpoint: Path | None, given: Mapping[str, str]) -> WorkerSpec:
    opened = script.opened
    options = catalog.options(opened.card, given)
    sampler = catalog.card(opened.card, options).recipe.default.sampler
    choice = RuntimeChoice(sampler, opened.steps, Precision(opened.precision)).in_mode(opened.mode)
    checkpoint = checkpoint_of(opened.card, checkpoint)
    return WorkerSpec((opened.card,), choice, EngineSpec(slots=1), None, checkpoint, options={opened.card: options})


@asynccontextmanager
async def _journal(redis: str | None, data: Path) -> AsyncIterator[Streams]:
    """The journal of a Redis, of the server that runs on `data`, or of that folder when no server does."""
    own = EmbeddedRedis(data / "redis")
    with ExitStack() as stack:
        try:
            client = await connect(redis or own.url)
        except RedisUnreachable:
            if redis is not None:
                raise
            if not (data / "redis").is_dir():
                raise RedisUnreachable(f"there is no journal in {data}; give --data or --redis") from None
            stack.callback(own.stop)
            own.start()
            client = await connect(own.url)
        streams = Streams(client, JOURNAL_KEEP_S)
        try:
            yield streams
        finally:
            await streams.close()


def table(listed: JournaledSessions) -> Table:
    view = Table(title=f"{len(listed.sessions)} journaled sessions, the newest first", title_justify="left")
    for heading in ("session", "room", "card", "opened", "events"):
        view.add_column(heading)
    for entry in listed.sessions[:SHOWN_MOST]:
        opened = datetime.fromtimestamp(entry.opened).isoformat(" ", "seconds")
        view.add_row(entry.session, entry.room, entry.card, opened, str(entry.events))
    return view
