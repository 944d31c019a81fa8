"""Other futures of one session: back to a moment, and on from there in another branch; then one of the two is kept.

    0 .. n-1 | n .. m-1       branch 0, stands still in the engine      rewind to n
             | n ..           branch 1, plays                           choose: keep this, the other, a tie, or skip

Each future is a world of its own in the engine, under a name of its own; `world` is the one that plays. Going on in one
makes it again behind what was shown last, so frames' numbers and times never go back. Knows no viewer.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from ...clock import Clock
from ...engine import api
from ..journal import events

KEPT = 4096


@dataclass(frozen=True, slots=True)
class MadeChunk:
    """A committed chunk of the world that plays."""

    chunk: int
    epoch: int
    digest: str
    prompt_version: int
    controls: tuple[float, ...]


@dataclass(slots=True)
class Future:
    """A world in the engine from chunk `first` on; made in `epoch`, with the noise of branch `noise`.

    `remake(into, progress)`: its bytes, where no world of this engine is it because an earlier server showed it.
    """

    world: str
    branch: int
    epoch: int
    first: int
    noise: int
    made: tuple[MadeChunk, ...] = ()
    remake: Callable[[str, api.Progress], Awaitable[bytes]] | None = None
    judged: bool = False
    """Somebody has said already which is better, and what they wanted could not be had."""

    @property
    def next_chunk(self) -> int:
        """Behind the last one that was made."""
        return self.made[-1].chunk + 1 if self.made else self.first

    @property
    def foreign_noise(self) -> int:
        """The branch its noise is of; -1 = its own."""
        return -1 if self.noise == self.branch else self.noise

    def recorded(self, seed: int, made: tuple[MadeChunk, ...] | None = None) -> events.BranchRecord:
        """`made`: other chunks than its own."""
        chunks = self.made if made is None else made
        return events.BranchRecord(
            branch=self.branch,
            seed=seed,
            first=self.first,
            digests=tuple(chunk.digest for chunk in chunks),
            prompt_version=chunks[-1].prompt_version if chunks else 0,
            controls=tuple(chunk.controls for chunk in chunks),
            noise=self.foreign_noise,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the session goes on: `prompt_version` None = under the prompt of now. `data`: the world, or what makes it;
    that raises ValueError when it cannot."""

    future: Future
    base: int
    data: bytes | Callable[[], Awaitable[bytes]]
    prompt_version: int | None


class Futures:
    """`engine` None = worlds of this server only go forward."""

    def __init__(
        self, session: str, door: api.EngineClient, clock: Clock, engine: api.SuspendableEngine | None
    ) -> None:
        self._session, self._door, self._clock, self.engine = session, door, clock, engine
        self.now = Future(session, 0, 0, 0, 0)
        self.other: Future | None = None
        self._made: deque[MadeChunk] = deque(maxlen=KEPT)
        self.weights = ""
        """Of the world that plays."""
        self.branches = self.epochs = 0
        """The highest that there were."""
        self._forked_at = 0.0

    @property
    def world(self) -> str:
        return self.now.world

    @property
    def next_chunk(self) -> int:
        """Behind the last one that was committed."""
        return self._made[-1].chunk + 1 if self._made else self.now.first

    def committed(self, done: api.ChunkDone, conditions: api.Conditions) -> None:
        self._made.append(MadeChunk(done.chunk, done.epoch, done.digest, conditions.prompt_version, conditions.pressed))

    def resumed(self, now: Future, branches: int, epochs: int) -> None:
        """The session lived under an earlier server."""
        self.now, self.branches, self.epochs = now, max(branches, now.branch), max(epochs, now.epoch)

    def recorded(self) -> tuple[str, tuple[int, int, int, int]]:
        """World, branch and noise of the one that plays, and the highest branch and epoch there were: for `resumed`."""
        return self.now.world, (self.now.branch, self.now.foreign_noise, self.branches, self.epochs)

    def new_epoch(self) -> int:
        self.epochs += 1
        return self.epochs

    def start_anew(self) -> int:
        """The world that plays begins anew in another epoch, which is returned."""
        self.now = replace(self.now, epoch=self.new_epoch())
        return self.now.epoch

    def elsewhere(self) -> Future:
        """The same world, begun anew under a name and in an epoch of its own."""
        epoch = self.new_epoch()
        self._made.clear()
        self.now = replace(self.now, world=f"{self._session}.{epoch}", epoch=epoch, first=0, made=())
        return self.now

    def beside(self, noise: int | None) -> Future:
        """A future to be forked off, whose first chunk is not known yet. `noise` None = of its own branch."""
        self.branches += 1
        epoch = self.new_epoch()
        own = self.branches if noise is None else noise
        return Future(f"{self._session}.{epoch}", self.branches, epoch, 0, own)

    def parted(self, since_s: float = 0.0) -> None:
        """There are several futures, from now on or for so many seconds already."""
        self._forked_at = self._clock.now() - since_s

    def shown_before(self, made: Iterable[MadeChunk], still: Future | None) -> None:
        """An earlier server had made that of the world that plays, and another future that stands still."""
        self._made.extend(made)
        self.other = still

    @property
    def seconds(self) -> float:
        """Since there were two."""
        return round(self._clock.now() - self._forked_at, 3)

    def shared(self, first: int) -> str:
        """The digest of the last chunk before that."""
        return next((made.digest for made in reversed(self._made) if made.chunk == first - 1), "")

    def go_on_as(self, future: Future, made: tuple[MadeChunk, ...]) -> None:
        """One that played beside is the one that plays."""
        self._lived(future.first, made)
        self.now = future

    def since_words(self) -> int:
        """How many chunks were made under the present words, in this future."""
        count = 0
        for made in reversed(self._made):
            if made.prompt_version != self._made[-1].prompt_version or made.chunk < self.now.first:
                break
            count += 1
        return count

    def back(self, chunks: int) -> Turn | None:
        """Another future of the moment so many chunks ago, or as long ago as can be; None when it cannot."""
        if self.engine is None or not self._made:
            return None
        target = max(self.next_chunk - chunks, self.engine.earliest(self.world), self._made[0].chunk)
        epoch, branch = self.epochs + 1, self.branches + 1
        future = Future(f"{self._session}.{epoch}", branch, epoch, target, branch)
        data = self.engine.fork(self.world, future.world, target, future.noise, epoch, self.world)
        if data is None:
            return None
        there = next((made for made in self._made if made.chunk == target), None)
        if there is None:
            return Turn(future, self.now.epoch, data, None)
        return Turn(future, there.epoch, data, there.prompt_version)

    def to_the_other(self) -> Turn | None:
        """On with the future that stands still; None when there is none, or it cannot be made again."""
        other, engine = self.other, self.engine
        if other is None or engine is None:
            return None
        epoch, chunk, remake = self.epochs + 1, other.next_chunk, other.remake
        future = Future(f"{self._session}.{epoch}", other.branch, epoch, chunk, other.noise)
        data: bytes | Callable[[], Awaitable[bytes]] | None
        if remake is None:
            data = engine.fork(other.world, future.world, chunk, other.noise, epoch, self.world)
        else:
            shown = msgspec.structs.replace(engine.progress(self.world), epoch=epoch, chunk=chunk, paused=False)
            data = partial(remake, future.world, shown)
        if data is None:
            return None
        return Turn(future, other.epoch, data, other.made[-1].prompt_version if other.made else None)

    async def take(self, turn: Turn, take: Callable[[api.Event], None]) -> api.Refused | None:
        """Make that world in the engine; the refusal when it has no place for it, or lost what it is made of. Call
        `turn_to` before.
        """
        assert self.engine is not None, "there is a turn, so there is an engine that can fork"
        try:
            data = turn.data if isinstance(turn.data, bytes) else await turn.data()
            answer = await self.engine.restore(data, take)
        except ValueError as problem:
            return api.Refused(turn.future.world, api.RefusalReason.CONFLICT, str(problem), 0, 0.0)
        return answer if isinstance(answer, api.Refused) else None

    def turn_to(self, turn: Turn, keep: bool) -> Future:
        """That future plays from now on; the one that did so far is the other one if it is kept. Returns it.

        If it is not, the turn is to the other one: that is made of its parts, so close it when it is made.
        """
        other = None if keep else self.other
        parted = turn.future.first if other is None else other.first
        left = self.leading(parted)
        if keep:
            self.forget_other()
        self.other = left if keep else None
        self.branches, self.epochs = max(self.branches, turn.future.branch), max(self.epochs, turn.future.epoch)
        self.now, self._forked_at = turn.future, self._clock.now()
        self._lived(parted, () if other is None else other.made)
        return left

    def _lived(self, until: int, made: tuple[MadeChunk, ...]) -> None:
        """The world that plays had this past: what it shares before that chunk, and its own from there on."""
        before = [each for each in self._made if each.chunk < until]
        self._made = deque((*before, *made), maxlen=KEPT)

    def back_to(self, left: Future, other: Future | None) -> None:
        """The turn was refused: everything is as it was, but for the epoch."""
        self.now, self.other = replace(left, epoch=self.now.epoch, made=()), other
        self._lived(left.first, left.made)

    def compared(self, seed: int) -> tuple[tuple[events.BranchRecord, ...], int, str, float] | None:
        """Both futures as they were shown, the chunk they part at, what they share, and seconds since then."""
        if self.other is None:
            return None
        first = self.other.first
        branches = self.other.recorded(seed), self.leading(first).recorded(seed)
        return branches, first, self.shared(first), self.seconds

    def forget_other(self) -> None:
        if self.other is not None:
            self._door.post(api.Close(session=self.other.world))
            self.other = None

    def leading(self, first: int) -> Future:
        """The one that plays, by what it made from that chunk on."""
        made = tuple(made for made in self._made if made.chunk >= first)
        return replace(self.now, first=first, made=made)
