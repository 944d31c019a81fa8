"""Other futures of one session: back to a moment, and on from there in another branch; then one of the two is kept.

    0 .. n-1 | n .. m-1       branch 0, stands still in the engine      rewind to n
             | n ..           branch 1, plays                           choose: keep this, the other, a tie, or skip

Each future is a world of its own in the engine, under a name of its own; `world` is the one that plays. Going on in one
makes it again behind what was shown last, so frames' numbers and times never go back. Knows no viewer.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ...clock import Clock
from ...engine import api
from ..journal import events

KEPT = 4096


@dataclass(frozen=True, slots=True)
class MadeChunk:
    """A committed chunk of the world that plays."""

    chunk: int
    digest: str
    prompt_version: int
    controls: tuple[float, ...]


@dataclass(slots=True)
class Future:
    """A world in the engine from chunk `first` on; `epoch`: in which it was made."""

    world: str
    branch: int
    epoch: int
    first: int
    made: tuple[MadeChunk, ...] = ()

    def recorded(self, seed: int) -> events.BranchRecord:
        return events.BranchRecord(
            branch=self.branch,
            seed=seed,
            first=self.first,
            digests=tuple(chunk.digest for chunk in self.made),
            prompt_version=self.made[-1].prompt_version if self.made else 0,
            controls=tuple(chunk.controls for chunk in self.made),
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """Where the session goes on: `prompt_version` None = under the prompt of now."""

    future: Future
    base: int
    data: bytes
    prompt_version: int | None


class Futures:
    """`engine` None = worlds of this server only go forward."""

    def __init__(
        self, session: str, door: api.EngineClient, clock: Clock, engine: api.SuspendableEngine | None
    ) -> None:
        self._session, self._door, self._clock, self._engine = session, door, clock, engine
        self.now = Future(session, 0, 0, 0)
        self.other: Future | None = None
        self._made: deque[MadeChunk] = deque(maxlen=KEPT)
        self._branches, self._forked_at = 0, 0.0

    @property
    def world(self) -> str:
        return self.now.world

    @property
    def next_chunk(self) -> int:
        """Behind the last one that was committed."""
        return self._made[-1].chunk + 1 if self._made else self.now.first

    def committed(self, done: api.ChunkDone, conditions: api.Conditions) -> None:
        self._made.append(MadeChunk(done.chunk, done.digest, conditions.prompt_version, conditions.controls))

    def resumed(self, world: str, branch: int, epoch: int, chunk: int) -> None:
        """The session lived under an earlier server."""
        self.now, self._branches = Future(world, branch, epoch, chunk), branch

    def back(self, chunks: int, epoch: int) -> Turn | None:
        """Another future of the moment so many chunks ago, or as long ago as can be; None when it cannot."""
        if self._engine is None or not self._made:
            return None
        target = max(self.next_chunk - chunks, self._engine.earliest(self.world), self._made[0].chunk)
        future = Future(f"{self._session}.{epoch}", self._branches + 1, epoch, target)
        data = self._engine.fork(self.world, future.world, target, future.branch, epoch, self.world)
        if data is None:
            return None
        version = next((made.prompt_version for made in self._made if made.chunk == target), None)
        return Turn(future, self.now.epoch, data, version)

    def to_the_other(self, epoch: int) -> Turn | None:
        """On with the future that stands still; None when there is none, or it cannot be made again."""
        other, engine = self.other, self._engine
        if other is None or engine is None:
            return None
        chunk = other.made[-1].chunk + 1 if other.made else other.first
        future = Future(f"{self._session}.{epoch}", other.branch, epoch, chunk)
        data = engine.fork(other.world, future.world, chunk, other.branch, epoch, self.world)
        if data is None:
            return None
        return Turn(future, other.epoch, data, other.made[-1].prompt_version if other.made else None)

    async def take(self, turn: Turn, take: Callable[[api.Event], None]) -> api.Refused | None:
        """Make that world in the engine; the refusal when it has no place for it. Call `turn_to` before."""
        assert self._engine is not None, "there is a turn, so there is an engine that can fork"
        answer = await self._engine.restore(turn.data, take)
        return answer if isinstance(answer, api.Refused) else None

    def turn_to(self, turn: Turn, keep: bool) -> Future:
        """That future plays from now on; the one that did so far is the other one if it is kept. Returns it."""
        left = self._left(turn.future.first if keep else self.now.first)
        if self.other is not None:
            self._door.post(api.Close(session=self.other.world))
        self.other = left if keep else None
        self._branches = max(self._branches, turn.future.branch)
        self.now, self._forked_at = turn.future, self._clock.now()
        before = [made for made in self._made if made.chunk < turn.future.first]
        self._made = deque(before, maxlen=KEPT)
        return left

    def back_to(self, left: Future, other: Future | None) -> None:
        """The turn was refused: everything is as it was."""
        self.now, self.other = left, other
        self._made.extend(left.made)

    def compared(self, seed: int) -> tuple[tuple[events.BranchRecord, ...], int, str, float] | None:
        """Both futures as they were shown, the chunk they part at, what they share, and seconds since then."""
        if self.other is None:
            return None
        first = self.other.first
        shared = next((made.digest for made in reversed(self._made) if made.chunk == first - 1), "")
        branches = self.other.recorded(seed), self._left(first).recorded(seed)
        return branches, first, shared, round(self._clock.now() - self._forked_at, 3)

    def forget_other(self) -> None:
        if self.other is not None:
            self._door.post(api.Close(session=self.other.world))
            self.other = None

    def _left(self, first: int) -> Future:
        made = tuple(made for made in self._made if made.chunk >= first)
        return Future(self.now.world, self.now.branch, self.now.epoch, first, made)
