"""An export for who asks a server by HTTP: `worldroom export` in a process of its own, behind those of frames."""

import asyncio
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..rtc.http.library import ExportFailed
from .journal_place import JournalPlace

EXPORT_S = 600.0
CODE = "import os; os.nice(19); from worldroom.cli.main import main; main()"


async def export_tar(place: JournalPlace, sessions: Sequence[str], kind: str) -> Path:
    """A tar in a folder of its own, which is the caller's to remove. Raises `ExportFailed`."""
    folder = Path(tempfile.mkdtemp(prefix="worldroom-export-"))
    command = [sys.executable, "-c", CODE, "export", *sessions, "--format", kind, "--json"]
    command += ["--data", str(place.data), "--out", str(folder / "export")]
    command += ["--archive", place.archive] if place.archive is not None else []
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | ({} if place.redis is None else {"WORLDROOM_REDIS_URL": place.redis}),
        )
        try:
            async with asyncio.timeout(EXPORT_S):
                _, said = await process.communicate()
        except BaseException:
            if process.returncode is None:
                process.kill()
            raise
        if process.returncode:
            raise ExportFailed(
                said.decode(errors="replace").strip().splitlines()[-1] if said else "it was not exported"
            )
        await asyncio.to_thread(_pack, folder)
        return folder / "export.tar"
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, TimeoutError | OSError):
            raise ExportFailed(f"the export was not made: {type(error).__name__}") from None
        raise


def _pack(folder: Path) -> None:
    with tarfile.open(folder / "export.tar", "w") as tar:
        tar.add(folder / "export", "export")
    shutil.rmtree(folder / "export")
