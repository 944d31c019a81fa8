"""One connection of one participant: messages in, acts on the session out; every refusal is a typed `Problem`.

Knows the rules of steering (who may, how often); the room knows who holds the wheel, the session does the work.
"""

from dataclasses import dataclass
from typing import Protocol, assert_never

from ...clock import Clock
from ...engine.api import Frame
from ..audience import Sink
from ..counters import RoomsCounters
from ..journal.events import InputReceived
from ..messages import (
    Accepted,
    ClientMessage,
    Feedback,
    Input,
    Leave,
    PassWheel,
    PauseWorld,
    Ping,
    Pong,
    Problem,
    Prompt,
    RefuseWheel,
    ResetWorld,
    ResumeWorld,
    Role,
    ServerMessage,
    Shown,
)
from ..session.session import Session
from .rate import Rate


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection may send, per second and at once. More is dropped, counted and answered now and then."""

    input_per_s: float = 250.0
    input_burst: int = 250
    control_per_s: float = 20.0
    control_burst: int = 40
    prompt_per_s: float = 2.0
    prompt_burst: int = 5
    uploads_per_s: float = 0.5
    uploads_burst: int = 3
    problems_per_s: float = 20.0
    problems_burst: int = 40


class ParticipantRoom(Protocol):
    """What a member needs of its room."""

    @property
    def session(self) -> Session: ...

    def holds_wheel(self, participant: str) -> bool: ...

    def pass_wheel(self, participant: str, message: PassWheel | RefuseWheel) -> Problem | None: ...

    def left_for_good(self, member: "Participant") -> None: ...

    def fresh_seed(self) -> int: ...

    def left(self, member: "Participant") -> None: ...


class Participant:
    """A participant while it is connected. After `detach` (taken over, gone, room closed) every call does nothing."""

    def __init__(
        self,
        participant: str,
        token: str,
        room: ParticipantRoom,
        sink: Sink,
        clock: Clock,
        counters: RoomsCounters,
        limits: Limits,
    ) -> None:
        self.participant = participant
        self.token = token
        self.inbox = room.session.new_inbox()
        self._room = room
        self._sink: Sink | None = sink
        self._clock = clock
        self._counters = counters
        self._inputs = Rate(limits.input_per_s, limits.input_burst)
        self._controls = Rate(limits.control_per_s, limits.control_burst)
        self._prompts = Rate(limits.prompt_per_s, limits.prompt_burst)
        self._uploads = Rate(limits.uploads_per_s, limits.uploads_burst)
        self._problems = Rate(limits.problems_per_s, limits.problems_burst)
        self._input_problems = Rate(per_s=1.0, burst=1)
        self.steered_at = clock.now()
        """When this participant did something last; who holds the wheel and does nothing is idle."""

    @property
    def role(self) -> Role:
        return Role.DRIVER if self._room.holds_wheel(self.participant) else Role.SPECTATOR

    @property
    def connected(self) -> bool:
        return self._sink is not None

    # ---- from the edge --------------------------------------------------------------------------------------------

    def receive(self, message: ClientMessage) -> None:
        """Act on one message."""
        if self._sink is None:
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

    def may_upload(self) -> bool:
        """Whether another first frame is not too soon; asking counts."""
        return self._uploads.allows(self._clock.now())

    def request_key(self, joined: bool = False) -> None:
        """The viewer cannot decode without a key frame; `joined`: it has just subscribed."""
        if self._sink is not None:
            self._room.session.request_key(joined)

    def leave(self) -> None:
        """The connection is gone; the place is kept for the lease."""
        if self._sink is not None:
            self._sink = None
            self._room.left(self)

    # ---- from the room --------------------------------------------------------------------------------------------

    def send(self, message: ServerMessage) -> None:
        if self._sink is not None:
            self._sink.send(message)

    def show(self, frame: Frame, hold_us: int) -> None:
        if self._sink is not None:
            self._sink.frame(frame, hold_us)

    def detach(self, last: Problem) -> None:
        """End the connection with a problem that says why."""
        self.send(last)
        self._sink = None

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _input(self, message: Input) -> None:
        now = self._clock.now()
        if not self._inputs.allows(now):
            self._counters.inputs_dropped += 1
            if self._input_problems.allows(now):
                self._problem("too_fast", "too many inputs: some were dropped", None)
            return
        self._counters.inputs += 1
        news = self.inbox.receive(message, now)
        if news or message.held:
            self.steered_at = now
        if self.role is Role.DRIVER:
            if news:
                self._room.session.record(
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
        session, name = self._room.session, self.participant
        if not isinstance(message, Shown | Ping):
            self.steered_at = self._clock.now()
        match message:
            case Prompt() | PauseWorld() | ResumeWorld() | ResetWorld() if self.role is not Role.DRIVER:
                self._problem("not_driving", "only the driver steers", message.id)
            case Prompt():
                if not message.text.strip():
                    self._problem("empty_prompt", "a prompt needs words", message.id)
                elif not self._prompts.allows(self._clock.now()):
                    self._counters.messages_dropped += 1
                    self._problem("too_fast", "too many prompts: slow down", message.id)
                else:
                    session.prompt(message, name, self.send)
            case PauseWorld():
                session.pause(message, self.send)
            case ResumeWorld():
                session.resume(message, self.send)
            case ResetWorld():
                session.reset(message, self._room.fresh_seed(), name, self.send)
            case Feedback():
                session.feedback(message, name, self.send)
            case PassWheel() | RefuseWheel():
                problem = self._room.pass_wheel(name, message)
                if problem is not None:
                    self._problem(problem.code, problem.detail, problem.id)
            case Leave():
                self.send(Accepted(id=message.id))
                self._room.left_for_good(self)
            case Shown():
                self._counters.frames_shown += len(message.frames)
            case Ping():
                self.send(Pong(id=message.id, sent_ms=message.sent_ms))
            case Input():
                self._input(message)
            case _:
                assert_never(message)

    def _problem(self, code: str, detail: str, id: int | None) -> None:
        if self._problems.allows(self._clock.now()):
            self._counters.problems += 1
            self.send(Problem(code=code, detail=detail, id=id))


def _id_of(message: ClientMessage) -> int | None:
    return None if isinstance(message, Input | Shown) else message.id
