"""A server process that is told to stop runs its own clean-up to the end."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import asyncio, socket
    from fastapi import FastAPI
    from worldroom.rtc.http.server import EdgeServer

    async def main():
        listener = socket.create_server(("127.0.0.1", 0))
        server = EdgeServer(FastAPI())
        try:
            task = asyncio.create_task(server.until_signal(listener))
            while not server.started:
                await asyncio.sleep(0.01)
            print("serving", flush=True)
            await task
        finally:
            await asyncio.sleep(0.05)
            print("cleaned up", flush=True)

    asyncio.run(main())
"""


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_clean_up_runs_to_its_end(sig: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        process.send_signal(sig)
        assert process.communicate(timeout=20)[0] == "cleaned up\n"
        assert process.returncode == 0
    finally:
        process.kill()
