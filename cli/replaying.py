"""A journaled session played again, chunk by chunk, and whether every latent came out the same; behind `replay`."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from ..clock import SystemClock
from ..engine import api
from ..engine.caches.adapter_shelf import keys_in
from ..engine.spec import EngineSpec
from ..engine.worker.client import WorkerClient, WorkerFailed
from ..engine.worker.spec import WorkerSpec
from ..film import Film
from ..models import catalog
from ..models.contract.recipe import Precision, RuntimeChoice
from ..sessions.journal import replay as again
from ..sessions.journal.archive import Archive
from ..sessions.journal.history import History
from ..sessions.journal.latents import kept_latents
from ..sessions.journal.redis_url import RedisUnreachable
from ..sessions.journal.script import SCRIPT_FAULTS
from .checkpoints import checkpoint_of
from .errors import did_you_mean
from .journal_place import JournalPlace, reading
from .output import progress


class DivergedChunk(msgspec.Struct, frozen=True):
    """The first chunk whose latents are not what was recorded. `error`: beyond the card's tolerance, as a share of the
    recorded ones' range; None of a card that owes every bit."""

    epoch: int
    chunk: int
    recorded: str
    replayed: str
    error: float | None = None


class ReplayReport(msgspec.Struct, frozen=True):
    """`same`: every chunk is what the card owes (the recorded bits, or latents within its tolerance), None where that
    is no question. `counterfactual`: how it differs from what was recorded, '' = not meant to. `unseen`: chunks that
    were not compared, before the first one that was asked for or made by other weights. `within`: compared chunks with
    other bits that the tolerance allows, `largest_error` among them; `unjudged`: chunks with other bits behind the last
    one whose latents were kept. `movie`: the MP4 that was written.
    """

    session: str
    card: str
    epochs: int
    chunks: int
    same: bool | None
    different: int
    first_divergence: DivergedChunk | None
    frames: int
    movie: str | None
    counterfactual: str = ""
    unseen: int = 0
    within: int = 0
    largest_error: float = 0.0
    unjudged: int = 0
    vouched: bool = True


FAULTS = (
    RedisUnreachable,
    *SCRIPT_FAULTS,
    api.BadLatents,
    WorkerFailed,
    *catalog.REFUSALS,
)
"""What the person who asked can put right; one line each."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Folders of a card's published weights and of adapters; None = the card's own, and none."""

    checkpoint: Path | None = None
    adapters: Path | None = None


async def play(
    session: str,
    place: JournalPlace,
    out: Path | None,
    weights: Weights,
    given: Mapping[str, str],
    ask: again.ReplayAsk,
) -> ReplayReport:
    """Play it with a worker of its own. Raises `FAULTS`."""
    async with reading(place) as history:
        script = await read_script(history, session)
    kept = None if history.archive is None else partial(_kept, history.archive, session)
    check_adapters(script, weights.adapters)
    engine = WorkerClient(serving_spec(script, weights, given, ask.steps), SystemClock())
    movie = None if out is None else _film(out, catalog.card(script.opened.card).frame.fps)

    with progress("chunks") as bar:
        task = bar.add_task("replaying", total=sum(len(epoch.chunks) for epoch in script.epochs))

        def keep(frame: api.Frame) -> None:
            bar.update(task, completed=chunks_until(script, frame))
            if movie is not None:
                movie.frame(frame.pts, frame.data, frame.key)

        try:
            await engine.start()
            name, say = f"replay-{secrets.token_hex(4)}", bar.console.print
            result = await again.replay(engine, script, name, keep, say, engine, ask, kept)
            if movie is not None and result.counterfactual:
                movie.chapter(f"counterfactual: {result.counterfactual}")
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
        same=None if result.counterfactual else first is None,
        different=len(result.mismatches),
        first_divergence=None
        if first is None
        else DivergedChunk(first.epoch, first.chunk, first.recorded, first.replayed, first.error),
        frames=movie.frames if movie is not None else 0,
        movie=str(out) if out is not None else None,
        counterfactual=result.counterfactual,
        unseen=result.unseen,
        within=result.within,
        largest_error=result.largest,
        unjudged=result.unjudged,
        vouched=result.vouched,
    )


async def read_script(history: History, session: str) -> again.Script:
    """Raises `SCRIPT_FAULTS`."""
    names = await history.names()
    if session not in names:
        raise again.ReplayError(f"no session '{session}' in this journal{did_you_mean(session, names)}")
    return await again.read_session(history, session)


async def _kept(archive: Archive, session: str, digest: str) -> bytes | None:
    return await asyncio.to_thread(kept_latents, archive, session, digest)


def check_adapters(script: again.Script, folder: Path | None) -> None:
    """Raise `ReplayError` where a file is not there that some chunk was made with."""
    chunks = [chunk for epoch in script.epochs for chunk in epoch.chunks]
    wanted = {share.key for chunk in chunks for share in chunk.conditions.adapters}
    missing = sorted(wanted - (keys_in(folder) if folder is not None and wanted else frozenset()))
    if missing:
        named = ", ".join(key[:12] for key in missing)
        where = "give their folder as --adapters" if folder is None else f"not all of their files are in {folder}"
        raise again.ReplayError(f"it was made with {len(wanted)} adapters, {where}: missing are the sha256 {named}")


def _film(path: Path, fps: int) -> Film:
    try:
        return Film(path, fps)
    except OSError as error:
        raise again.ReplayError(f"cannot write a film to {path}: {error.strerror}") from None


def chunks_until(script: again.Script, frame: api.Frame) -> int:
    """How many chunks of a script are played when that frame is shown: all of earlier epochs, its own with it."""
    return sum(len(epoch.chunks) for epoch in script.epochs if epoch.epoch < frame.epoch) + frame.chunk + 1


def serving_spec(
    script: again.Script, weights: Weights, given: Mapping[str, str], steps: int | None = None
) -> WorkerSpec:
    """`steps`: others than were recorded."""
    opened = script.opened
    options = catalog.options(opened.card, given)
    sampler = catalog.card(opened.card, options).recipe.default.sampler
    choice = RuntimeChoice(sampler, steps or opened.steps, Precision(opened.precision)).in_mode(opened.mode)
    folder, engine = checkpoint_of(opened.card, weights.checkpoint), EngineSpec(slots=1)
    checkpoints = {} if folder is None else {opened.card: folder}
    named = {opened.card: options}
    return WorkerSpec((opened.card,), choice, engine, None, checkpoints, options=named, adapters=weights.adapters)
