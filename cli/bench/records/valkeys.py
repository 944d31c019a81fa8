"""Redis servers of our own on loopback ports, to be killed, frozen and started again."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ....clients.bench.server import free_port

ANSWERS_S = 10.0


class Valkey:
    """One server with an append-only file, for as long as the block lasts."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.port, self._options = folder, free_port(), options
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        """Blocking: until it answers."""
        from ....sessions.journal.redis_embedded import binary

        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", "always", *self._options]
        with open(self.folder / "log", "ab") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        answering(self.port)

    def signal(self, number: int) -> None:
        assert self._process is not None, "it was started"
        os.kill(self._process.pid, number)

    def ended(self) -> None:
        """Blocking: until it has."""
        assert self._process is not None, "it was started"
        self._process.wait()


@contextmanager
def sentinel(config: Path, primary: int) -> Iterator[int]:
    """Watches one primary, called worlds, and lets its replica take over within two seconds; the port."""
    from ....sessions.journal.redis_embedded import binary

    port = free_port()
    config.write_text(
        f"port {port}\nsentinel monitor worlds 127.0.0.1 {primary} 1\n"
        "sentinel down-after-milliseconds worlds 500\nsentinel failover-timeout worlds 2000\n"
    )
    with open(config.with_suffix(".log"), "wb") as out:
        process = subprocess.Popen([str(binary()), str(config), "--sentinel"], stdout=out, stderr=out)
    try:
        answering(port)
        yield port
    finally:
        process.kill()
        process.wait()


def answering(port: int) -> None:
    """Blocking; raises `TimeoutError`."""
    for _ in range(round(ANSWERS_S / 0.01)):
        with socket.socket() as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(("127.0.0.1", port))
                probe.sendall(b"PING\r\n")
                if probe.recv(64).startswith(b"+PONG"):
                    return
            except OSError:
                pass
        time.sleep(0.01)
    raise TimeoutError(f"no Redis answers on port {port}")
