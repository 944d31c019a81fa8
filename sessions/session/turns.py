"""A session turns to another future: the world that plays stands still, the other is made, and it goes on in that one.

What the engine refuses leaves the session where it was, in a new epoch.
"""

import asyncio
from collections.abc import Callable

from ...engine import api
from ..audience import Audience
from ..journal import events
from ..messages import Accepted, Applied, Keep, Problem
from .ack import PendingAck
from .chronicle import Chronicle
from .futures import Future, Futures, Turn
from .inflight import InflightInputs
from .prompts import PromptMemory

VERDICTS = {
    Keep.THIS: events.Verdict.CHOSEN,
    Keep.OTHER: events.Verdict.CHOSEN,
    Keep.TIE: events.Verdict.TIE,
    Keep.SKIP: events.Verdict.SKIP,
}


class Turns:
    """Rewinds and choices of one session. `turned(epoch)`: its world is another one; `take`: that world's events."""

    def __init__(
        self,
        seed: int,
        futures: Futures,
        door: api.EngineClient,
        chronicle: Chronicle,
        prompts: PromptMemory,
        inflight: InflightInputs,
        audience: Audience,
        turned: Callable[[int], None],
        take: Callable[[api.Event], None],
    ) -> None:
        self._seed, self._futures, self._door, self._chronicle = seed, futures, door, chronicle
        self._prompts, self._inflight, self._audience = prompts, inflight, audience
        self._turned, self._take = turned, take
        self._turning: asyncio.Task[None] | None = None

    def rewind(self, seconds: float, card: api.CardInfo | None, epoch: int, participant: str, ack: PendingAck) -> None:
        """Another future of the moment `seconds` ago; the one that played so far stands still until one is chosen.

        `card` None: the world does not run.
        """
        turn = None
        if card is not None and self._turning is None:
            turn = self._futures.back(max(1, round(seconds * card.fps / card.frames_per_chunk)), epoch + 1)
        if turn is None:
            detail = "this world cannot go back now, or not that far"
            ack.reply(Problem(code="no_rewind", detail=detail, id=ack.id))
            return
        ack.reply(Accepted(id=ack.id))
        self._turn(turn, True, participant, ack)

    def choose(self, keep: Keep, epoch: int, participant: str, ack: PendingAck, weights: str) -> None:
        """Keep one of the two futures and journal the comparison."""
        compared, other, turn = self._futures.compared(self._seed), self._futures.other, None
        if keep is Keep.OTHER and self._turning is None:
            turn = self._futures.to_the_other(epoch + 1)
        if compared is None or other is None or self._turning or (turn is None and keep is Keep.OTHER):
            ack.reply(Problem(code="no_choice", detail="there are no two futures to choose from", id=ack.id))
            return
        branches, chunk, context, seconds = compared
        chosen = other.branch if turn is not None else self._futures.now.branch
        self._chronicle.record(
            events.PreferenceChosen(participant, chunk, context, weights, branches, chosen, VERDICTS[keep], seconds)
        )
        ack.reply(Accepted(id=ack.id))
        if turn is not None:
            self._turn(turn, False, participant, ack)
        else:
            self._futures.forget_other()
            ack.reply(Applied(id=ack.id, chunk=self._futures.next_chunk))

    def _turn(self, turn: Turn, keep: bool, participant: str, ack: PendingAck) -> None:
        future, before = turn.future, self._futures.other
        self._door.post(api.Pause(session=self._futures.world))
        left = self._futures.turn_to(turn, keep)
        self._turned(future.epoch)
        self._chronicle.branch = future.branch
        self._chronicle.record(events.WorldTurned(future.epoch, future.first, future.branch, turn.base, participant))
        version = self._prompts.turn_to(turn.prompt_version)
        if version is not None:
            self._audience.tell(version.changed())
        self._inflight.expect(ack)
        self._turning = asyncio.get_running_loop().create_task(self._make(turn, keep, left, before))

    async def _make(self, turn: Turn, keep: bool, left: Future, before: Future | None) -> None:
        futures = self._futures
        refused = await futures.take(turn, self._take)
        self._turning = None
        if refused is None:
            if not keep:
                self._door.post(api.Close(session=left.world))
            return
        futures.back_to(left, None if keep else before)
        self._chronicle.branch = left.branch
        self._chronicle.record(events.WorldTurned(turn.future.epoch, futures.next_chunk, left.branch, left.epoch, ""))
        self._audience.tell(Problem(code="no_place", detail=refused.detail))
        self._door.post(api.Resume(session=left.world))
