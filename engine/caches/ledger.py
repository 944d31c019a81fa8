"""How many bytes several processes keep together: one number in a file, changed under a lock. Blocking, microseconds.

Whoever writes takes the bytes first and gives back what it removes, so that a budget is one for all, however many they
are. The file is made by the first of them, with what is there already. Knows nothing of what is kept.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

WIDTH = 8


class ByteLedger:
    """`file` None: this process is alone. `there`: counts what is kept, when the ledger begins."""

    def __init__(self, file: Path | None, there: Callable[[], int]) -> None:
        self._file, self._alone = file, 0
        if file is None:
            self._alone = there()
        elif not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            with self._open(os.O_CREAT) as descriptor:
                if not os.fstat(descriptor).st_size:
                    _write(descriptor, there())

    @property
    def used(self) -> int:
        if self._file is None:
            return self._alone
        with self._open() as descriptor:
            return _read(descriptor)

    def add(self, size: int) -> None:
        """So many more, or fewer, whatever the budget is."""
        self.take(size, None)

    def take(self, size: int, most: int | None) -> bool:
        """So many more, if all of them stay within `most`; False = nothing was taken."""
        if self._file is None:
            fits = most is None or self._alone + size <= most
            self._alone += size if fits else 0
            return fits
        with self._open() as descriptor:
            used = _read(descriptor)
            fits = most is None or used + size <= most
            if fits and size:
                _write(descriptor, used + size)
            return fits

    @contextmanager
    def _open(self, flags: int = 0) -> Iterator[int]:
        assert self._file is not None
        try:
            descriptor = os.open(self._file, os.O_RDWR | flags)
        except FileNotFoundError:  # its server is gone, and with it all that was counted
            descriptor = os.open(os.devnull, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> int:
    return int.from_bytes(os.pread(descriptor, WIDTH, 0), "little")


def _write(descriptor: int, size: int) -> None:
    os.pwrite(descriptor, max(0, size).to_bytes(WIDTH, "little"), 0)
