"""What the edge keeps of one session so that a new worker can take it over: its history since the last checkpoint.

    Begin(n) sent -> [begun] -> ChunkDone(n) -> [history] -> CheckpointKept(n + 1) -> forgotten
    Supersede(restart) sent -> [restarts] -> before the first done chunk of its epoch -> [history]

A chunk that was begun and not done when the worker died is cancelled: the session begins it again. Pure.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

import msgspec

from .. import api
from ..session.resume_state import ResumeState

HISTORY_MAX = 4096
TEXTS_MAX = 32

Step = TypeVar("Step", bound=api.HistoryStep)


class SessionLog:
    """One session. `lost` = its history grew too long without a checkpoint: it cannot be taken over."""

    def __init__(self, opening: api.Open, events: Callable[[api.Event], None], now: float) -> None:
        self.opening, self.events = opening, events
        self.opened = False
        self.lost = False
        self.deaths = 0
        """Workers that ended since this session's last finished chunk."""
        self._begun: dict[tuple[int, int], api.Begin] = {}
        self._history: list[api.HistoryStep] = []
        self._timeline: deque[api.HistoryStep] = deque(maxlen=HISTORY_MAX)
        """The same, whatever was checkpointed: for going back."""
        self.known_from = 0
        """The chunk before which the world was when this began; 0 = its opening."""
        self._restarts: list[api.Supersede] = []
        self._asked: OrderedDict[int, api.EncodePrompt | api.HoldPrompt] = OrderedDict()
        self._texts: OrderedDict[str, None] = OrderedDict()
        self._embeddings: OrderedDict[str, bytes] = OrderedDict()
        self._progress, self._at = api.Progress(), now

    @classmethod
    def resumed(cls, state: ResumeState, events: Callable[[api.Event], None], now: float) -> "SessionLog":
        """A session that lived under another edge, whose clock was another one."""
        log = cls(state.opening, events, now)
        log.opened = True
        log._history, log._texts = [*state.history], OrderedDict.fromkeys(state.texts)
        log._embeddings = OrderedDict(state.embeddings)
        log._timeline.extend(state.history)
        begun = (step.chunk for step in state.history if isinstance(step, api.Begin))
        log.known_from = next(begun, state.progress.chunk)
        log._progress = state.progress
        return log

    def sent(self, command: api.Command) -> None:
        """Remember a command that changes what the session is."""
        match command:
            case api.Begin():
                self._begun[command.chunk, command.conditions.epoch] = command
                self._now(epoch=max(self._progress.epoch, command.conditions.epoch))
            case api.EncodePrompt() | api.HoldPrompt():
                self._asked[command.version] = command
            case api.Supersede():
                self._now(epoch=max(self._progress.epoch, command.epoch))
                if command.restart:
                    self._restarts = [_without_opening(restart) for restart in self._restarts]
                    self._history = [_without_opening(step) for step in self._history]
                    self._restarts.append(command)
            case api.Pause() | api.Resume():
                self._now(paused=isinstance(command, api.Pause))
            case api.SetBitrate(rendition=api.Rendition.H264):
                self._now(kbps=command.kbps)
            case _:
                pass

    def heard(self, event: api.Event, now: float) -> None:
        match event:
            case api.ChunkDone():
                self._done(event)
            case api.ChunkCancelled():
                self._begun.pop((event.chunk, event.epoch), None)
            case api.PromptEncoded():
                self._learn(self._asked.pop(event.version, None))
            case api.Fault():
                self._asked.pop(event.prompt_version, None)
                if event.prompt_version == 0:
                    self._begun.clear()
                self._now(paused=self._progress.paused or event.fatal)
            case api.Frame():
                self._now(frame=event.frame + 1, pts=event.pts)
                self._at = now
            case _:
                pass

    def checkpointed(self, chunk: int, epoch: int) -> None:
        """A checkpoint holds the world before `chunk`."""
        self._history = [
            step
            for step in self._history
            if (step.epoch > epoch if isinstance(step, api.Supersede) else step.chunk >= chunk)
        ]
        # One whose first chunk is still to come is in the checkpoint, but whoever goes back from there meets it.
        self._timeline.extend(restart for restart in self._restarts if restart.epoch <= epoch)
        self._restarts = [restart for restart in self._restarts if restart.epoch > epoch]

    def resume_state(self) -> ResumeState:
        return ResumeState(
            opening=self.opening,
            history=(*self._history, *self._restarts),
            texts=tuple(self._texts),
            embeddings=tuple(self._embeddings.items()),
            progress=self._progress,
            at=self._at,
        )

    @property
    def earliest(self) -> int:
        """The first chunk from which on every step is known; 0 = from the opening."""
        if len(self._timeline) < HISTORY_MAX:
            return self.known_from
        return next((step.chunk for step in self._timeline if isinstance(step, api.Begin)), self.known_from)

    @property
    def progress(self) -> api.Progress:
        return self._progress

    def forked(
        self, into: str, mark: int, chunk: int, branch: int, epoch: int, shown: api.Progress
    ) -> ResumeState | None:
        """The world before `chunk` under another name, from its snapshot before chunk `mark` on (0: its opening).

        None when the chunks in between are not known any more.
        """
        steps: list[api.HistoryStep] = []
        for step in self._timeline:
            if isinstance(step, api.Begin) and step.chunk >= chunk:
                break
            if isinstance(step, api.Supersede) or step.chunk >= mark:
                steps.append(step)
        made = [step.chunk for step in steps if isinstance(step, api.Begin)]
        if made != list(range(mark, chunk)):
            return None
        return ResumeState(
            opening=msgspec.structs.replace(self.opening, session=into),
            history=(*steps, api.Branched(into, chunk, branch)),
            texts=tuple(self._texts),
            embeddings=tuple(self._embeddings.items()),
            progress=api.Progress(epoch=epoch, chunk=chunk, kbps=shown.kbps, frame=shown.frame, pts=shown.pts),
            at=self._at,
        )

    def shown_by(self, shown: api.Progress) -> None:
        """What another session's frames showed up to now was this one too: it goes on behind them."""
        self._now(frame=max(self._progress.frame, shown.frame), pts=max(self._progress.pts, shown.pts))

    def worker_ended(self) -> tuple[api.Event, ...]:
        """The worker died: what the session is told, so that it does its part again."""
        self.deaths += 1
        begun, self._begun = self._begun, {}
        return tuple(api.ChunkCancelled(self.opening.session, chunk, epoch) for chunk, epoch in begun)

    def unanswered(self) -> tuple[api.Command, ...]:
        """Prompts that were being encoded, to be asked for once more."""
        return tuple(self._asked.values())

    def _done(self, event: api.ChunkDone) -> None:
        begun = self._begun.pop((event.chunk, event.epoch), None)
        self._now(chunk=event.chunk + 1)
        self.deaths = 0
        if begun is None:
            self.lost = True
            return
        while self._restarts and self._restarts[0].epoch <= event.epoch:
            restart = self._restarts.pop(0)
            self._history.append(restart)
            self._timeline.append(restart)
        self._history.append(begun)
        self._timeline.append(begun)
        self.lost = self.lost or len(self._history) > HISTORY_MAX

    def _now(self, **changed: int | bool) -> None:
        """What was asked for counts from when it was sent: the worker may end before it hears of it."""
        self._progress = msgspec.structs.replace(self._progress, **changed)

    def _learn(self, asked: api.EncodePrompt | api.HoldPrompt | None) -> None:
        match asked:
            case api.EncodePrompt():
                self._texts[asked.text] = None
                self._texts.move_to_end(asked.text)
                if len(self._texts) > TEXTS_MAX:
                    self._texts.popitem(last=False)
            case api.HoldPrompt():
                self._embeddings[asked.key] = asked.embedding
                self._embeddings.move_to_end(asked.key)
                if len(self._embeddings) > TEXTS_MAX:
                    self._embeddings.popitem(last=False)
            case None:
                pass


def _without_opening(step: Step) -> Step:
    """A world that has been restarted since needs no pictures to be passed through again, and they are large."""
    if isinstance(step, api.Supersede) and step.first_frames is not None:
        return msgspec.structs.replace(step, first_frames=None)
    return step
