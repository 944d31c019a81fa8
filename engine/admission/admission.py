"""Who comes in, who waits and in which place, who is sent away: admission as it runs, for all cards of one device.

    look: fits beside all that is in and all that waits in front? -> admitted, with fewer steps if only those fit | No
    wait: in line -> look whenever something is freed             -> admitted | No, as soon as the place has moved

Knows no devices and no events.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Set
from dataclasses import replace

import msgspec

from ...clock import Clock
from ...models.contract.recipe import RecipeMismatch
from .. import api
from ..api import Shortage, Unit
from ..card import CardRuntime
from ..session.session import EngineSession
from ..spec import EngineSpec
from ..weights.residency import Residency
from .rules import Demand, Headroom, Refusal, choices, refuse
from .wait_queue import WaitQueue

HOLD = 5.0
"""Seconds after which a client that waits in line is answered, so that it sees that it still waits."""
AGAIN = 0.2
RETRY_AFTER = 3.0
"""Seconds after which a client without a place in line should come again."""
LOOK = 0.25


class Admission:
    """`sessions` and `going`: who is in and who is just leaving, kept by the engine. `ready` once cards are priced."""

    def __init__(
        self,
        spec: EngineSpec,
        clock: Clock,
        weights: Residency,
        served: Mapping[str, CardRuntime],
        sessions: Mapping[str, EngineSession],
        going: Set[EngineSession],
    ) -> None:
        self._spec, self._clock, self._weights = spec, clock, weights
        weights.changed = self.stir
        self._served, self._sessions, self._going = served, sessions, going
        self._line = WaitQueue()
        self._freed = asyncio.Event()
        self._coming: set[str] = set()
        self.ready = False

    async def admit(self, command: api.Open) -> api.Open | Refusal:
        """The command as it may come in now; at once, or after its wait in line. Enter it before anything else runs."""
        self._coming.add(command.session)
        try:
            answer = self.look(command)
            while isinstance(answer, Refusal) and answer.figures is not None and self._going:
                await next(iter(self._going)).gone.wait()
                answer = self._look_again(command)
            if isinstance(answer, Refusal) and answer.figures is not None:
                answer = await (self._wait(command, answer) if command.line else self._come(command, answer))
        finally:
            self._coming.discard(command.session)
        if isinstance(answer, api.Open):
            self._leave(command.line)
            self._served[command.card].counters.degraded += answer.steps != self._steps(command)
        return answer

    def look(self, command: api.Open) -> api.Open | Refusal:
        """Whether it fits now."""
        no = self._impossible(command)
        if no is not None:
            return no
        served, first = self._served[command.card], None
        for steps in self._choices(command):
            no = refuse(self._need(served, command.latency_class, steps), self._room(served, command.line))
            if no is None:
                return self._not_its_turn(command) or msgspec.structs.replace(command, steps=steps)
            first = first or no
        assert first is not None, "there is always one choice"
        return first

    def refused(self, command: api.Open, no: Refusal) -> api.Refused:
        """The answer to who is not let in, with a time to come again."""
        now, again = self._clock.now(), RETRY_AFTER
        place = self._line.place(command.line, now) if no.figures is not None else 0
        if place:
            again = AGAIN
        elif no.figures is not None:
            again *= 1 + min(self._line.length(now), 9)
        return api.Refused(command.session, no.reason, no.detail, place, again, no.figures)

    def give_up(self, session: str) -> None:
        """It was closed; if it waits, it stops."""
        self._coming.discard(session)
        self.stir()

    def stir(self) -> None:
        """Something was freed: who waits looks again, the first in line first."""
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()

    def fits(self, session: EngineSession) -> bool:
        """Whether one that is suspended can come back; it has been in before, so it passes the line."""
        need = self._need(session.served, session.latency_class, session.steps, session.world.work)
        return refuse(need, self._room(session.served, None)) is None and self._there(session.opening.card)

    def too_much(self, session: EngineSession, work: float) -> str | None:
        """Why the chunks of one that is in cannot take `work` times a plain one's; None = they can."""
        now, then = self.share(session), self._need(session.served, session.latency_class, session.steps, work).share
        used = self._room(session.served, None).share_used - (0.0 if session.suspended else now)
        if then <= now or used + then <= self._spec.share_cap:
            return None
        return f"it takes {then:.0%} of the device beside {used:.0%} of others, {self._spec.share_cap:.0%} may be given"

    def refuses_branches(self, session: EngineSession, count: int) -> Refusal | None:
        """Why so many other futures of a session have no place, if they have none. They share what it has committed:
        for good what never falls out of a window, so of that they need nothing of their own.
        """
        served, spec = session.served, session.served.pool.spec
        shared = spec.sink * spec.bytes_per_entry if served.loaded.shares else 0
        need = self._need(served, session.latency_class, session.steps, session.world.work)
        room = self._room(served, None)
        need = replace(need, chunk_price=need.share * count * need.chunk_seconds, bytes=(need.bytes - shared) * count)
        return refuse(need, replace(room, slots_used=room.slots_used + count - 1))

    def share(self, session: EngineSession) -> float:
        return self._need(session.served, session.latency_class, session.steps, session.world.work).share

    def sessions_max(self, served: CardRuntime) -> int:
        """Interactive sessions that fit at today's price, alone on the device; an empty one takes one at any price."""
        share = self._need(served, api.LatencyClass.INTERACTIVE, served.default_steps).share
        places = self._weights.places(served.loaded.card.name)
        return places if share <= 0 else min(places, max(1, int(self._spec.share_cap / share + 1e-9)))

    @property
    def waiting(self) -> int:
        return self._line.length(self._clock.now())

    # ---- inside ----------------------------------------------------------------------------------------------------

    async def _wait(self, command: api.Open, no: Refusal) -> api.Open | Refusal:
        name, began = command.line, self._clock.now()
        place, answer = self._line.place(name, began), no
        if not place:
            need = self._need(self._served[command.card], command.latency_class, self._choices(command)[-1])
            self._line.take(name, command.card, need, began)
            return no
        self._line.attach(name)
        try:
            while (now := self._clock.now()) < began + HOLD and self._line.place(name, now) == place:
                freed = self._freed
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await freed.wait()
                looked = self._look_again(command)
                if isinstance(looked, api.Open) or looked.figures is None:
                    return looked
                answer = looked
        finally:
            self._line.detach(name, self._clock.now())
        return answer

    async def _come(self, command: api.Open, no: Refusal) -> api.Open | Refusal:
        """Without a line: only a card that can come to the device at once is waited for."""
        if not self._weights.awake(command.card) and await self._weights.wake(command.card):
            return self._look_again(command)
        return no

    def _there(self, card: str) -> bool:
        """Whether the card is on the device; if not, it is wanted there."""
        if not self._weights.awake(card):
            self._weights.want(card)
        return self._weights.awake(card)

    def _not_its_turn(self, command: api.Open) -> Refusal | None:
        """Why the card has to wait for the device's memory: it is elsewhere, or one that somebody in front waits for
        could not come as long as people come to this one.
        """
        card, weights, turns = command.card, self._weights, self._weights.turns
        ahead = [other for other, _ in self._line.before(command.line, self._clock.now())] if command.line else []
        others = [other for other in ahead if not weights.awake(other) and not turns.together(card, other)]
        if not others and self._there(card):
            return None
        needed = turns.missing(others[0] if others else card)
        detail = f"it is the turn of card '{others[0]}'" if others else f"card '{card}' is on its way to the device"
        if not others and (lived_in := weights.in_the_way(card)):
            detail = f"the device is taken by worlds of {', '.join(lived_in)}"
        figures = Shortage(needed, turns.used, turns.budget, Unit.BYTES)
        return Refusal(api.RefusalReason.NO_MEMORY, detail, figures)

    def _look_again(self, command: api.Open) -> api.Open | Refusal:
        if command.session in self._coming:
            return self.look(command)
        self._leave(command.line)
        return Refusal(api.RefusalReason.CONFLICT, "closed while it was opening")

    def _leave(self, name: str) -> None:
        self._line.leave(name)
        self.stir()

    def _impossible(self, command: api.Open) -> Refusal | None:
        if not self.ready:
            return Refusal(api.RefusalReason.NOT_READY, "the engine is warming up or closing")
        served = self._served.get(command.card)
        if served is None:
            return Refusal(api.RefusalReason.UNKNOWN_CARD, f"no card '{command.card}' here: {', '.join(self._served)}")
        if command.session in self._sessions:
            return Refusal(api.RefusalReason.CONFLICT, f"session '{command.session}' is open already")
        try:
            served.loaded.card.recipe.levels(self._steps(command))
        except RecipeMismatch as mismatch:
            return Refusal(api.RefusalReason.RECIPE, str(mismatch))
        return None

    def _steps(self, command: api.Open) -> int:
        return command.steps or self._served[command.card].default_steps

    def _choices(self, command: api.Open) -> tuple[int, ...]:
        served = self._served[command.card]
        return choices(command.steps, served.default_steps, served.loaded.card.recipe.steps_allowed())

    def _need(self, served: CardRuntime, latency_class: api.LatencyClass, steps: int, work: float = 1.0) -> Demand:
        price = served.load(steps) * work
        return Demand(latency_class, price, served.chunk_seconds, served.pool.spec.bytes_per_session)

    def _room(self, served: CardRuntime, line: str | None) -> Headroom:
        """What is there for that name in line; None = as if nobody waited."""
        ahead = [] if line is None else list(self._line.before(line, self._clock.now()))
        card = served.loaded.card.name
        places = self._weights.places(card)
        return Headroom(
            share_used=sum(self.share(session) for session in self._sessions.values() if not session.suspended)
            + sum(need.share for _, need in ahead),
            share_cap=self._spec.share_cap,
            slots_used=served.pool.taken + sum(other == card for other, _ in ahead),
            slots=places,
            bytes_used=sum(other.pool.bytes_used for other in self._served.values())
            + sum(need.bytes for other, need in ahead if self._weights.awake(other)),
            bytes_budget=sum(other.pool.bytes_budget for other in self._served.values())
            + (places - served.pool.slots) * served.pool.spec.bytes_per_session,
        )
