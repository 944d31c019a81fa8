"""A `worldroom serve` of our own for as long as a measurement or a test runs: free loopback port, own folders."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 15.0
POLL_S = 0.1


class ServerFailed(RuntimeError):
    """The server ended or never became ready; the message carries the end of its output."""


def command() -> str:
    """The `worldroom` command of this environment."""
    return str(Path(sys.executable).parent / "worldroom")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its address and the process of its edge."""

    base: str
    pid: int


@contextmanager
def serving(card: str, *options: str) -> Iterator[str]:
    """A ready server of `card`; gives its address and ends it afterwards. Raises `ServerFailed`."""
    with served(card, *options) as server:
        yield server.base


@contextmanager
def served(card: str, *options: str) -> Iterator[Served]:
    """`serving` for who also wants to know the process."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="worldroom-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [command(), "serve", "--card", card, "--port", str(port), "--data", folder, "--loopback", *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"WORLDROOM_CACHE": folder},
            )
        try:
            _wait_ready(process, f"http://127.0.0.1:{port}", log)
            yield Served(f"http://127.0.0.1:{port}", process.pid)
        finally:
            _stop(process)


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    pause = threading.Event()
    for _ in range(int(READY_TIMEOUT_S / POLL_S)):
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/readyz", timeout=2.0).status_code == 200:
                return
        except httpx.TransportError:
            pass
        pause.wait(POLL_S)
    said = log.read_text(errors="replace")[-2000:]
    state = "is not ready" if process.poll() is None else f"ended with {process.returncode}"
    raise ServerFailed(f"worldroom serve {state}:\n{said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
