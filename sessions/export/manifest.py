"""What an export has written: every file by its digest, every session by that of its journal. Written after each one,
so that an export that was stopped goes on where it was, and one that is repeated does only what is new.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

VERSION = 1
NAME = "manifest.json"


class ManifestMismatch(ValueError):
    """The folder holds an export of another kind; one line."""


class ExportedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`digest`: of its journal. `files`: sha256 by name. `place`: its number in the data set. `rows`: of its table.
    `consented`: everybody who acted in it said that they may be used."""

    session: str
    digest: str
    card: str
    weights: str
    place: int
    rows: int
    pairs: int
    seconds: float
    complete: bool
    redacted: bool
    files: Mapping[str, str]
    consented: bool = False


class ExportManifest(msgspec.Struct, forbid_unknown_fields=True):
    """`sessions` by name; `skipped`: why others are not in it."""

    version: int
    format: str
    sessions: dict[str, ExportedSession] = {}
    skipped: dict[str, str] = {}

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.sessions.values())

    @property
    def places(self) -> int:
        """Sessions of which something was written."""
        return sum(each.rows > 0 for each in self.sessions.values())

    @property
    def digest(self) -> str:
        """Of everything in it: two exports with the same digest hold the same."""
        files = [(each.session, *item) for each in self.sessions.values() for item in sorted(each.files.items())]
        return hashlib.sha256(repr(sorted(files)).encode()).hexdigest()

    def has(self, session: str, digest: str, folder: Path) -> bool:
        """Whether it is here as it is now; a file that is gone or was cut is written again."""
        done = self.sessions.get(session)
        if done is None or done.digest != digest:
            return False
        return all(file_digest(folder / name) == wanted for name, wanted in done.files.items())

    def write(self, folder: Path) -> None:
        fresh = folder / f"{NAME}.new"
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1))
        os.replace(fresh, folder / NAME)


def opened(folder: Path, format: str) -> ExportManifest:
    """The manifest of a folder, a new one where there is none. Raises `ManifestMismatch`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    if not path.exists():
        return ExportManifest(VERSION, format)
    try:
        found = msgspec.json.decode(path.read_bytes(), type=ExportManifest)
    except msgspec.MsgspecError as error:
        raise ManifestMismatch(f"{path} is no manifest of an export: {error}") from None
    if (found.version, found.format) != (VERSION, format):
        raise ManifestMismatch(f"{folder} holds an export as {found.format} of version {found.version}")
    return found


def file_digest(path: Path) -> str:
    """'' for a file that is not there."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        return ""
    return digest.hexdigest()
