"""The HTTP server of the edge: ends on SIGINT or SIGTERM and then lets its caller take everything else down.

uvicorn alone raises the signal again once it has stopped, which would kill the process in the middle of that.
"""

import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

GRACE_S = 1


class EdgeServer(uvicorn.Server):
    """Serves one application; open requests get a second to finish."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=GRACE_S)
        )

    async def until_signal(self, listener: socket.socket) -> None:
        """Serve on the listener until a signal comes or `should_exit` is set."""
        await self.serve(sockets=[listener])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._captured_signals.clear()
