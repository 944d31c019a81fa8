"""Worlds as bytes, forks on their way through the worker, and worlds that stand side by side in it: the edge's part.

Each future gets a `SessionLog` of its own as soon as the worker says where it parts: from then on a death takes it no
further back than any other session. Knows no process.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, MutableMapping

from .. import api
from ..caches.parts import PartLost
from ..caches.store import SnapshotFolder
from . import ipc, suspended
from .replies import Replies
from .session_log import SessionLog

log = logging.getLogger(__name__)

Events = Callable[[api.Event], None]


class Forks:
    """`logs`, `snapshots`: those of all sessions of this worker."""

    def __init__(self, logs: MutableMapping[str, SessionLog], snapshots: SnapshotFolder, ids: Iterator[int]) -> None:
        self._logs, self._snapshots = logs, snapshots
        self._replies = Replies[api.Forked](ids)
        self._asked: dict[int, tuple[api.ForkSession, Events]] = {}
        self._together: dict[str, api.ShowBeside] = {}

    def aside(self, session: str) -> bytes | None:
        """See `api.SuspendableEngine.suspend`."""
        session_log = self._logs.get(session)
        if session_log is None or not session_log.opened or session_log.lost:
            return None
        try:
            aside = self._snapshots.set_aside(session)
        except (OSError, PartLost) as problem:
            log.warning("session %s is made again from its history: %s", session, problem)
            aside = None
        name, snapshot = (session, b"") if aside is None else aside
        return suspended.dumps(suspended.SuspendedSession(session_log.resume_state(), snapshot, name))

    def adopt(self, session_log: SessionLog, world: suspended.SuspendedSession) -> None:
        """Have the checkpoint that a suspended world came with. Raises `PartLost`, unless its history does without."""
        session = session_log.opening.session
        try:
            self._snapshots.adopt(session, world.snapshot, world.parts_of, session_log.known_from)
        except PartLost as problem:
            if not world.resume_state.complete:
                raise
            log.warning("session %s is made again from its opening: %s", session, problem)

    def earliest(self, session: str) -> int:
        """The earliest chunk that a session can go back to."""
        mine = self._logs.get(session)
        begins = 0 if mine is None else mine.earliest
        marks = self._snapshots.marks(session) if begins else []
        return min([mark for mark in marks if mark >= begins], default=begins)

    def before(self, session: str, into: str, chunk: int, branch: int, epoch: int, shown: str) -> bytes | None:
        """See `api.SuspendableEngine.fork`."""
        mine, shown_log = self._logs.get(session), self._logs.get(shown)
        if mine is None or shown_log is None or not mine.opened or mine.lost:
            return None
        mark, snapshot = self._snapshots.marked(session, chunk) or (0, b"")
        state = mine.forked(into, mark, chunk, branch, epoch, shown_log.progress)
        return None if state is None else suspended.dumps(suspended.SuspendedSession(state, snapshot, session))

    def ask(
        self, fork: api.ForkSession, events: Events, send: Callable[[ipc.Request], None]
    ) -> "asyncio.Future[api.Forked | api.Refused]":
        def asked(id: int) -> None:
            self._asked[id] = fork, events
            send(ipc.Request(id, fork))

        return self._replies.ask(fork.session, asked)

    def answered(self, id: int, forked: api.Forked | api.Refused, now: float) -> None:
        """At once, because the next message may be of one of the new worlds."""
        asked = self._asked.pop(id, None)
        if asked is None:
            return
        fork, events = asked
        if isinstance(forked, api.Forked) and fork.session in self._logs:
            for branch in fork.branches:
                self._log(self._logs[fork.session], branch, forked, events, now)
        self._replies.heard(id, forked)

    def fail(self, detail: str) -> None:
        """The worker ended."""
        self._asked.clear()
        self._replies.fail(detail)

    def side_by_side(self, command: api.ShowBeside) -> None:
        """Remember it for the next worker. Who is alone again goes on behind what the stream has shown."""
        if command.others:
            self._together[command.session] = command
            return
        for leads, together in [*self._together.items()]:
            if command.session in (leads, *together.others):
                del self._together[leads]
                mine, shown = self._logs.get(command.session), self._logs.get(leads)
                if mine is not None and shown is not None:
                    mine.shown_by(shown.progress)

    def together(self) -> tuple[api.ShowBeside, ...]:
        return tuple(self._together.values())

    def side_by_side_now(self) -> frozenset[str]:
        return frozenset(name for beside in self._together.values() for name in (beside.session, *beside.others))

    def _log(self, source: SessionLog, branch: api.Branch, forked: api.Forked, events: Events, now: float) -> None:
        """From the source's last snapshot on, or from its opening."""
        shown = source.progress
        state = source.forked(branch.session, forked.mark, forked.chunk, branch.noise, branch.epoch, shown)
        made = SessionLog(source.opening, events, now) if state is None else SessionLog.resumed(state, events, now)
        made.opened, made.lost = True, state is None
        self._logs[branch.session] = made
