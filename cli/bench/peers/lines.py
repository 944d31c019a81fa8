"""What a sending process hears and says, a JSON object a line: offers in, answers out; and CPU seconds when asked."""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable

from aioice import ice

from .picture import PictureSpec

LINE_MAX = 1 << 20


def spec_of_arguments() -> PictureSpec:
    parser = argparse.ArgumentParser()
    for name in ("scale", "fps", "kbps"):
        parser.add_argument(name, type=int)
    said = parser.parse_args()
    return PictureSpec(said.scale, said.fps, said.kbps)


def stay_on_loopback() -> None:
    """aioice leaves 127.0.0.1 out."""
    ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]


async def talk(answer: Callable[[str], Awaitable[str]]) -> None:
    """Until the other side closes its end. `answer`: SDP of an offer to that of its answer."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    reader = asyncio.StreamReader(limit=LINE_MAX)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    answers.write('{"ready": true}\n')
    while line := await reader.readline():
        offer = json.loads(line).get("offer")
        said = {"cpu": time.process_time()} if offer is None else {"answer": await answer(offer)}
        answers.write(json.dumps(said) + "\n")
