"""One connection of one participant: messages in, acts on the session out; every refusal is a typed `Problem`.

Knows how often somebody may act and what only the driver may; the wheel knows who drives, the session does the work.
"""

from collections.abc import Callable
from typing import assert_never

import msgspec

from ...clock import Clock
from ...engine.api import Rendition
from ..audience import Audience, Sink
from ..counters import RoomsCounters
from ..journal.events import FramesShown, InputReceived
from ..messages import (
    Accepted,
    Adapt,
    Choose,
    ClientMessage,
    Feedback,
    Fork,
    Grant,
    Input,
    Leave,
    PassWheel,
    PauseWorld,
    Ping,
    Pong,
    Problem,
    Prompt,
    RefuseWheel,
    Regenerate,
    ResetWorld,
    ResumeWorld,
    Rewind,
    Role,
    Seek,
    ServerMessage,
    Shown,
)
from ..rate import Rate
from ..session.session import Session
from .rights import REPLAY, REPLAY_WHY
from .seats import Seat
from .wheel import Wheel

POINTER_MOST = 1e9


class Participant:
    """A connected participant. Once a newer connection takes over, or this one is gone, every call does nothing.

    `left` is told when the connection ends by itself, and whether for good.
    """

    def __init__(
        self,
        seat: Seat,
        sink: Sink,
        session: Session,
        wheel: Wheel,
        audience: Audience,
        clock: Clock,
        counters: RoomsCounters,
        left: Callable[[Seat, bool], None],
    ) -> None:
        self._seat = seat
        self._sink = sink
        self._inbox = seat.inbox
        self._session = session
        self._wheel = wheel
        self._audience = audience
        self._clock = clock
        self._counters = counters
        self._left = left
        # What comes faster is dropped, counted and answered now and then.
        self._inputs = Rate(per_s=250.0, burst=250)
        self._controls = Rate(per_s=20.0, burst=40)
        self._prompts = Rate(per_s=2.0, burst=5)
        self._problems = Rate(per_s=20.0, burst=40)
        self._input_problems = Rate(per_s=1.0, burst=1)
        seat.active_at = clock.now()

    @property
    def participant(self) -> str:
        return self._seat.participant

    @property
    def token(self) -> str:
        """Takes the same seat again, from another connection."""
        return self._seat.token

    @property
    def role(self) -> Role:
        return self._wheel.role(self.participant)

    @property
    def connected(self) -> bool:
        return self._audience.is_current(self.participant, self._sink)

    def receive(self, message: ClientMessage) -> None:
        """Act on one message."""
        if not self.connected:
            return
        if isinstance(message, Input):
            self._input(message)
        elif not self._controls.allows(self._clock.now()):
            self._counters.messages_dropped += 1
            self._problem("too_fast", "too many messages: slow down", _id_of(message))
        else:
            self._act(message)

    def malformed(self, detail: str, id: int | None) -> None:
        """A message that could not be read: counted, and answered while the answers are not a flood themselves."""
        self._counters.malformed += 1
        self._problem("malformed", detail, id)

    def request_key(self, joined: bool = False, rendition: Rendition = Rendition.H264) -> None:
        """The viewer cannot decode without a key frame; `joined`: it has just subscribed."""
        if self.connected:
            self._session.request_key(joined, rendition)

    def leave(self) -> None:
        """The connection is gone; the seat is kept for the lease."""
        if self.connected:
            self._audience.disconnect(self.participant)
            self._left(self._seat, False)

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _send(self, message: ServerMessage) -> None:
        if self.connected:
            self._sink.send(message)

    def _input(self, message: Input) -> None:
        now = self._clock.now()
        message = msgspec.structs.replace(message, pointer=bounded(message.pointer))
        if not self._inputs.allows(now):
            self._counters.inputs_dropped += 1
            if self._input_problems.allows(now):
                self._problem("too_fast", "too many inputs: some were dropped", None)
            return
        self._counters.inputs += 1
        if self._session.spec.replays:
            if message.held and self._input_problems.allows(now):
                self._problem(REPLAY, REPLAY_WHY, None)
            return
        news = self._inbox.receive(message, now)
        if news or message.held:
            self._seat.active_at = now
        if self.role is Role.DRIVER:
            if news:
                self._session.record(
                    InputReceived(
                        participant=self.participant,
                        seq=message.seq,
                        held=message.held,
                        edges=message.edges,
                        pointer=message.pointer,
                        levels=message.levels,
                    )
                )
        elif news and self._input_problems.allows(now):
            self._problem("not_driving", "only the driver steers", None)

    def _act(self, message: ClientMessage) -> None:
        session, name = self._session, self.participant
        if not isinstance(message, Shown | Ping):
            self._seat.active_at = self._clock.now()
        match message:
            case Prompt() | Adapt() | ResetWorld() | Rewind() | Fork() | Regenerate() | Choose() | Feedback() if (
                session.spec.replays
            ):
                self._problem(REPLAY, REPLAY_WHY, message.id)
            case (
                Prompt()
                | Adapt()
                | PauseWorld()
                | ResumeWorld()
                | ResetWorld()
                | Rewind()
                | Fork()
                | Regenerate()
                | Choose()
                | Seek()
            ) if self.role is not Role.DRIVER:
                self._problem("not_driving", "only the driver steers", message.id)
            case Prompt():
                if not all(text.strip() for text in (message.text, *(other.text for other in message.others))):
                    self._problem("empty_prompt", "a prompt needs words", message.id)
                elif not self._prompts.allows(self._clock.now()):
                    self._counters.messages_dropped += 1
                    self._problem("too_fast", "too many prompts: slow down", message.id)
                else:
                    session.prompt(message, name, self._send)
            case Adapt():
                session.adapters.adapt(message, session.card, name, self._send)
            case PauseWorld():
                session.pause(message, self._send)
            case ResumeWorld():
                session.resume(message, self._send)
            case ResetWorld():
                session.reset(message, name, self._send)
            case Rewind():
                session.turns.rewind(message, name, self._send)
            case Fork():
                session.turns.fork(message, name, self._send)
            case Regenerate():
                session.turns.regenerate(message, name, self._send)
            case Choose():
                session.turns.choose(message, name, self._send)
            case Seek():
                session.seek(message, self._send)
            case Feedback() if self._seat.rights.grant is Grant.RECORDER:
                self._problem("may_not_judge", "a recorder only watches", message.id)
            case Feedback():
                session.feedback(message, name, self._send)
            case PassWheel():
                self._answer(self._wheel.pass_on(name, message))
            case RefuseWheel():
                self._answer(self._wheel.refuse(name, message))
            case Leave():
                self._leave_for_good(message)
            case Shown():
                self._shown(message)
            case Ping():
                self._send(Pong(id=message.id, sent_ms=message.sent_ms))
            case Input():
                self._input(message)
            case _:
                assert_never(message)

    def _leave_for_good(self, message: Leave) -> None:
        self._send(Accepted(id=message.id))
        self._send(Problem(code="left", detail="you have left the room"))
        self._audience.disconnect(self.participant)
        self._left(self._seat, True)

    def _answer(self, problem: Problem | None) -> None:
        if problem is not None:
            self._problem(problem.code, problem.detail, problem.id)

    def _shown(self, message: Shown) -> None:
        self._counters.frames_shown += len(message.frames)
        if message.frames:
            frames = [frame for frame, _ in message.frames]
            self._session.record(FramesShown(self.participant, first=min(frames), last=max(frames)))

    def _problem(self, code: str, detail: str, id: int | None) -> None:
        if self._problems.allows(self._clock.now()):
            self._counters.problems += 1
            self._send(Problem(code=code, detail=detail, id=id))


def bounded(pointer: tuple[float, float]) -> tuple[float, float]:
    """Motion sums beyond what a hand makes would overflow a difference, and JSON has no infinity."""
    x, y = (min(max(value, -POINTER_MOST), POINTER_MOST) for value in pointer)
    return x, y


def _id_of(message: ClientMessage) -> int | None:
    return None if isinstance(message, Input | Shown) else message.id
