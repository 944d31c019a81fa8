"""A worker process without an engine: lets everybody in with one step, and takes nobody over but says how many steps
were asked for. Run as a worker is: the last argument is its end of the socket."""

import asyncio
import socket
import sys

from worldroom.engine import api
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.worker import ipc
from worldroom.tests.fake_door import CARD


async def serve(end: socket.socket) -> None:
    gone = asyncio.Event()
    link: ipc.IpcLink[ipc.ToWorker]

    def hear(message: ipc.ToWorker) -> None:
        match message:
            case ipc.Request(id=id, asked=api.Open(session=session)):
                link.send(ipc.Reply(id, api.Opened(session, CARD, steps=1)))
            case ipc.Request(id=id, asked=ResumeState() as state):
                detail = f"asked for {state.opening.steps} steps"
                refused = api.Refused(state.opening.session, api.RefusalReason.CONFLICT, detail, 0, 0.0)
                link.send(ipc.Reply(id, refused))
            case ipc.Stop():
                gone.set()
            case _:
                pass

    link = await ipc.worker_end(end, hear, gone.set)
    while not gone.is_set():
        link.send(ipc.Heartbeat(True, (CARD,), (), 0.0, 0.0))
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[-1]))))
