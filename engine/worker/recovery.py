"""What becomes of a worker's sessions when it ends: each hears of it, then goes on elsewhere or in the next process.

ended -> told what is void -> movable? -> move: another worker makes it again at once
                                       -> restore_all: the next process does, as soon as it serves
"""

import logging
from collections.abc import Callable, MutableMapping, Sequence

from .. import api
from ..caches.store import SnapshotFolder
from . import ipc
from .forks import Forks
from .process import WorkerProcess
from .replies import Replies
from .session_log import SessionLog

log = logging.getLogger(__name__)

DEATHS_MAX = 3


class Recovery:
    """`logs`, `snapshots`, `replies`, `forks`: those of one worker. `serving`: its process; None while there is none
    that sessions are in.
    """

    def __init__(
        self,
        logs: MutableMapping[str, SessionLog],
        snapshots: SnapshotFolder,
        replies: Replies[api.Opened],
        forks: Forks,
        serving: Callable[[], WorkerProcess | None],
    ) -> None:
        self._logs, self._snapshots, self._replies, self._forks = logs, snapshots, replies, forks
        self._serving = serving
        self._asleep: frozenset[str] = frozenset()

    def ended(self, sessions: Sequence[api.SessionInfo]) -> None:
        """The worker has ended; `sessions`: as it told of them last."""
        self._asleep = frozenset(info.session for info in sessions if info.asleep)
        log.error("the worker ended; %d sessions wait for a new one", len(self._logs))
        for events, event in [(each.events, event) for each in self._logs.values() for event in each.worker_ended()]:
            events(event)

    def movable(self) -> tuple[SessionLog, ...]:
        """Sessions that were awake when the worker ended and may go on elsewhere. Those that stand side by side stay,
        and so does one that has seen a second death since its last chunk: it may be what kills.
        """
        stay = self._asleep | self._forks.side_by_side_now()
        logs = (log for name, log in self._logs.items() if log.opened and name not in stay)
        return tuple(log for log in logs if not log.lost and log.deaths <= 1)

    def move(self, session_log: SessionLog, to: "Recovery") -> None:
        """Let another worker go on with a session of this one, which has ended."""
        session = session_log.opening.session
        del self._logs[session]
        self._snapshots.hand_over(session, to._snapshots)
        to._logs[session] = session_log
        if (process := to._serving()) is not None:
            to._restore(session_log, process)

    def restore_all(self, process: WorkerProcess) -> None:
        """Hand every session to the new process; commands that came meanwhile are part of their history."""
        for session_log in [*self._logs.values()]:
            if session_log.lost:
                self._give_up(session_log, "its history is not known any more")
            elif session_log.deaths > DEATHS_MAX:
                self._give_up(session_log, f"{session_log.deaths} workers ended while they made its next chunk")
            elif session_log.opened:
                self._restore(session_log, process)
        for together in self._forks.together():
            process.send(together)

    def _restore(self, session_log: SessionLog, process: WorkerProcess) -> None:
        resume_state = session_log.resume_state()
        session = resume_state.opening.session
        reply = self._replies.ask(session, lambda id: process.send(ipc.Request(id, resume_state)))
        reply.add_done_callback(lambda reply: self._restored(reply.result(), process, session_log))
        for command in session_log.unanswered():
            process.send(command)

    def _restored(self, answer: api.Opened | api.Refused, process: WorkerProcess, session_log: SessionLog) -> None:
        if isinstance(answer, api.Refused) and process is self._serving():
            self._give_up(session_log, answer.detail)

    def _give_up(self, session_log: SessionLog, detail: str) -> None:
        session = session_log.opening.session
        if self._logs.get(session) is session_log:
            session_log.events(api.Fault(session, "lost", detail, fatal=True))
