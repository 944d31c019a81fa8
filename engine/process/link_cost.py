"""What the socket of a worker adds to a message: `python -m worldroom.engine.process.link_cost`. Prints microseconds.

Both ends on one loop, so the figure is the work of both processes together: encode, write, read, decode.
"""

import asyncio
import os
import socket

from ...clock import SystemClock
from .. import api
from . import link

COUNT = 2000
FRAME_BYTES = 12_000


async def measure(message: link.ToWorker | link.ToEdge, to_edge: bool) -> tuple[float, float, float]:
    """(min, median, max) microseconds from `send` to `hear`, one message at a time."""
    clock, heard = SystemClock(), asyncio.Event()
    one, other = socket.socketpair()
    edge = await link.edge_end(one, lambda _: heard.set(), lambda: None)
    worker = await link.worker_end(other, lambda _: heard.set(), lambda: None)
    took = []
    for _ in range(COUNT):
        heard.clear()
        started = clock.now()
        (worker if to_edge else edge).send(message)
        await heard.wait()
        took.append((clock.now() - started) * 1e6)
    edge.close()
    worker.close()
    took.sort()
    return took[0], took[COUNT // 2], took[-1]


def main() -> None:
    conditions = api.Conditions(0, (0.0, 1.0, 0.0, 0.0), (0.0, 0.0), (api.PromptShare("k" * 32, 1.0),), 1, 42)
    timings = api.Timings(100, 5000, 2000, 900)
    frame = api.Frame(
        "0123456789abcdef",
        7,
        7,
        0,
        26250,
        False,
        os.urandom(FRAME_BYTES),
        42,
        1,
        (0.0, 1.0, 0.0, 0.0),
        1.0,
        timings,
    )
    for name, message, to_edge in (
        ("Begin", api.Begin("0123456789abcdef", 7, conditions), False),
        (f"Frame of {FRAME_BYTES} bytes", frame, True),
        ("ChunkDue", api.ChunkDue("0123456789abcdef", 7, 1.0), True),
    ):
        low, median, high = asyncio.run(measure(message, to_edge))
        print(f"{name}: {low:.0f} / {median:.0f} / {high:.0f} us (min / median / max of {COUNT})")


if __name__ == "__main__":
    main()
