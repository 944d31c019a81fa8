"""The HTTP server of the edge: ends on SIGINT, SIGTERM or SIGHUP and then lets its caller take everything else down.

uvicorn alone raises the signal again once it has stopped, which would kill the process in the middle of that. It also
waits for ever for a request that does not end; here a connection has `HEAD_S` for each request's head.
"""

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...clock import Clock, SystemClock
from ...sessions.rate import Rate
from ..access.spec import Tls

log = logging.getLogger(__name__)

GRACE_S = 1
HEAD_S = 10.0
CONNECTIONS_MAX = 1024
BACKLOG = 128


class BoundedHttp(H11Protocol):
    """One HTTP connection. Who does not say what they want in time, or comes when all are taken, is hung up on."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head_has_come()
        elif self._head_timer is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_has_come()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S, self._too_slow)

    def _head_has_come(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


class AcceptFaults:
    """The loop reports each connection that it cannot accept with a traceback; at the limit of open files that is a
    hundred a second. Here it is a line a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._telling = Rate(per_s=1 / 60, burst=1)

    def heard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "accept" not in str(context.get("message")) or not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif self._telling.allows(self._clock.now()):
            log.error("connections cannot be accepted: %s; raise the limit of open files (ulimit -n)", error.strerror)


class EdgeServer(uvicorn.Server):
    """Serves one application; open requests get a second to finish."""

    def __init__(self, app: FastAPI, tls: Tls | None = None, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        config = uvicorn.Config(
            app,
            http=BoundedHttp,
            ws="none",
            log_level="warning",
            access_log=False,
            lifespan="on",
            backlog=BACKLOG,
            proxy_headers=False,  # the guard knows whom to believe
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else str(tls.key),
        )
        super().__init__(config)

    async def until_signal(self, listener: socket.socket) -> None:
        """Serve on the listener until a signal comes or `should_exit` is set."""
        asyncio.get_running_loop().set_exception_handler(AcceptFaults(self._clock).heard)
        await self.serve(sockets=[listener])

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A hang-up of the terminal ends it as the others do, unless the process was told to ignore it (nohup)."""
        hangup = getattr(signal, "SIGHUP", None)
        ours = threading.current_thread() is threading.main_thread()
        if hangup is None or not ours or signal.getsignal(hangup) is signal.SIG_IGN:
            hangup = None
        before = None if hangup is None else signal.signal(hangup, self.handle_exit)
        try:
            with super().capture_signals():
                yield
        finally:
            if hangup is not None:
                signal.signal(hangup, before)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()
