"""Processes that a measurement starts: none outlives it."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def ending(process: Process) -> AsyncIterator[None]:
    """Kill it, if it still runs when the block is left, and wait for its end."""
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
