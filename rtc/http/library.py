"""What was: sessions with their films and timelines, page by page; what an export makes of them; and their end.

A recorder's token opens the past of its room; deleting and exporting ask for a key (`access/needs.py`).
"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, StreamingResponse

from ...sessions.erasing import Eraser, HasChildren, NotEnded
from ...sessions.journal.history import NoSession, SessionSummary
from ...sessions.library.library import LIBRARY_FAULTS, Library, NoFilm
from ...sessions.rooms.past import PastRooms
from ...sessions.rooms.suspend_store import SuspendStoreError
from .answers import BUSY_RETRY_S, ApiFault, access_of, json_answer

LIMIT_MOST = 200
EXPORT_MOST = 200
FILM = re.compile(r"(\d{1,9})(\.mp4|\.jsonl|\.json|\.jpg|-sheet\.jpg|\.timeline)")
SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
DIGEST = re.compile(r"[0-9a-f]{64}(-[0-9a-f]{64}){0,63}")
MEDIA = {".mp4": "video/mp4", ".jsonl": "application/x-ndjson", ".json": "application/json"}
FORMATS = ("webdataset", "parquet", "pairs", "lerobot")
BLOCK = 1 << 18

ExportTo = Callable[[Sequence[str], str], Awaitable[Path]]
"""Makes a tar of those sessions in that format, for whoever asked, who removes it; raises `ExportFailed`."""


class ExportFailed(RuntimeError):
    """Why there is no export; one line."""


@dataclass(frozen=True, slots=True)
class Past:
    """What a server has of ended and running sessions, and what may be done with them. `rooms`: that go on from one."""

    library: Library
    eraser: Eraser
    export: ExportTo
    rooms: PastRooms | None = None


def add_library(app: FastAPI, past: Past) -> None:
    library = past.library
    _add_changes(app, past)  # first: `export` is no session's name

    @app.get("/v1/library")
    async def page(request: Request) -> Response:
        offset, limit = _whole(request, "offset", 0, 10**9), _whole(request, "limit", 50, LIMIT_MOST)
        card = request.query_params.get("card")
        with _faults():
            return json_answer(await library.page(offset, limit, card, _room(request)))

    @app.get("/v1/library/{session}")
    async def detail(session: str, request: Request) -> Response:
        summary = await known(library, session, request)
        with _faults():
            return json_answer(await library.detail(summary))

    @app.get("/v1/library/{session}/entries")
    async def entries(session: str, request: Request) -> Response:
        """One JSON object a line; `after` is the number of the last entry that the reader has."""
        await known(library, session, request)
        after, most = _whole(request, "after", 0, 10**12), _whole(request, "most", 1000, 10_000)
        types = tuple(filter(None, request.query_params.get("types", "").split(",")))
        with _faults():
            found = await library.entries(session, after, types, most)
        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in found)
        return Response(lines, media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})

    @app.get("/v1/library/{session}/latents/{digest}")
    async def latents(session: str, digest: str, request: Request) -> Response:
        """Of a chunk whose digest the journal has, as a .npy file."""
        await known(library, session, request)
        with _faults():
            found = await library.latents(session, digest) if DIGEST.fullmatch(digest) else None
        if found is None:
            raise ApiFault(404, "no_latents", "no latents of that digest were kept")
        return Response(found, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})

    @app.get("/v1/library/{session}/{file}")
    async def film(session: str, file: str, request: Request) -> Response:
        """A film or what lies beside it; parts of it, where the client asks for a range. `1.timeline`: what happened in
        the session, with its place in film 1."""
        match = FILM.fullmatch(file)
        if match is None:
            raise ApiFault(404, "no_film", "there is no film of that name")
        summary = await known(library, session, request)
        if match[2] == ".timeline":
            with _faults():
                return json_answer(await library.timeline(summary, match[1]))
        path = library.recordings.path(session, match[1], match[2])
        if path is None:
            raise ApiFault(404, "no_film", "there is no film of that name")
        return FileResponse(path, media_type=MEDIA.get(match[2], "image/jpeg"), filename=f"{session}-{file}")


def _add_changes(app: FastAPI, past: Past) -> None:
    """What asks for a key."""
    exporting = asyncio.Lock()

    @app.get("/v1/library/export")
    async def exported(request: Request) -> Response:
        """A tar of the sessions that are named, one at a time for the whole server."""
        names, kind = request.query_params.getlist("session"), request.query_params.get("format", FORMATS[0])
        if not 0 < len(names) <= EXPORT_MOST or kind not in FORMATS or not all(map(SESSION.fullmatch, names)):
            raise ApiFault(400, "bad_query", f"1 to {EXPORT_MOST} sessions, as {', '.join(FORMATS)}")
        for name in names:
            await known(past.library, name, request)
        if exporting.locked():
            raise ApiFault(503, "busy", "another export is being made", BUSY_RETRY_S)
        async with exporting:
            try:
                path = await past.export(names, kind)
            except ExportFailed as error:
                raise ApiFault(422, "not_exported", str(error)) from None
        headers = {"Content-Disposition": f'attachment; filename="worldroom-{kind}.tar"', "Cache-Control": "no-store"}
        headers["Content-Length"] = str(path.stat().st_size)
        return StreamingResponse(_sent(path), headers=headers, media_type="application/x-tar")

    @app.delete("/v1/library/{session}")
    async def delete(session: str, request: Request) -> Response:
        """Of a session that has ended; the answer says what was removed. `force=1`: also one that others go on from."""
        await known(past.library, session, request)
        force = bool(_whole(request, "force", 0, 1))
        try:
            removed = await past.eraser.delete(session, running=True, force=force)
        except NoSession as error:
            raise ApiFault(404, "no_session", str(error)) from None
        except NotEnded as error:
            raise ApiFault(409, "not_ended", str(error)) from None
        except HasChildren as error:
            raise ApiFault(409, "has_children", str(error)) from None
        except (*LIBRARY_FAULTS, SuspendStoreError, OSError) as error:
            raise _away(error) from None
        if past.rooms is not None:
            past.rooms.forget(session)
        return json_answer(removed)


async def known(library: Library, session: str, request: Request) -> SessionSummary:
    """The session, if there is one for who asks."""
    with _faults():
        found = await library.summary(session, _room(request)) if SESSION.fullmatch(session) else None
    if found is None:
        raise ApiFault(404, "no_session", "there is no session of that name")
    return found


def _room(request: Request) -> str | None:
    """The room whose past is open to who asks; None = all of them."""
    access = access_of(request)
    return None if access.lists else access.room or ""


@contextmanager
def _faults() -> Iterator[None]:
    """Of reading, as API faults."""
    try:
        yield
    except NoFilm as error:
        raise ApiFault(404, "no_film", str(error)) from None
    except LIBRARY_FAULTS as error:
        raise _away(error) from None


def _away(error: Exception) -> ApiFault:
    return ApiFault(503, "journal", str(error), BUSY_RETRY_S)


async def _sent(path: Path) -> AsyncIterator[bytes]:
    """The file's bytes; its folder is gone afterwards, however that ends."""
    try:
        with path.open("rb") as file:
            while block := await asyncio.to_thread(file.read, BLOCK):
                yield block
    finally:
        with suppress(OSError):
            shutil.rmtree(path.parent)


def _whole(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name, str(default))
    if not given.isdecimal() or not 0 <= int(given) <= most:
        raise ApiFault(400, "bad_query", f"{name} is a whole number from 0 to {most}")
    return int(given)
