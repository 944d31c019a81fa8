"""What people see in a browser: lobby, library, room, and a page where there is nothing. Programs get JSON instead."""

import html
import random
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

from ...sessions.rooms.names import ROOM_NAME_RULE, fresh_room, valid_room
from ..wire import ApiError

TITLES = {400: "This is no name for a room", 404: "There is nothing here", 405: "This cannot be opened"}
ASKS_AGAIN = {"Cache-Control": "no-cache"}


def add_pages(app: FastAPI, web_root: Path) -> None:
    """`/`, `/library`, `/play`, `/r/{room}` and the files under `/web`."""
    names = random.SystemRandom()

    @app.get("/")
    async def lobby() -> Response:
        return FileResponse(web_root / "index.html", headers=ASKS_AGAIN)

    @app.get("/library")
    async def library() -> Response:
        return FileResponse(web_root / "library.html", headers=ASKS_AGAIN)

    @app.get("/play")
    async def play(card: str = "", drivers: str = "") -> Response:
        said = urlencode({name: value for name, value in (("card", card), ("drivers", drivers)) if value}, safe=",:")
        world = f"?{said}" if said else ""
        return RedirectResponse(f"r/{fresh_room(names)}{world}", 302, {"Cache-Control": "no-store"})

    @app.get("/r/{room}")
    async def page(room: str, request: Request) -> Response:
        if not valid_room(room):
            if wants_page(request):
                return missing_page(web_root, request, 400, ROOM_NAME_RULE)
            return Response(
                msgspec.json.encode(ApiError("bad_room", ROOM_NAME_RULE)), 400, media_type="application/json"
            )
        return FileResponse(web_root / "room.html", headers=ASKS_AGAIN)

    app.mount("/web", StaticFiles(directory=web_root, check_dir=False), name="web")


def wants_page(request: Request) -> bool:
    """Whether a person asks: browsers name text/html when somebody opens an address."""
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def missing_page(web_root: Path, request: Request, status: int, detail: str) -> Response:
    """A page that says what is wrong and leads back; its addresses are relative, so it works under any path."""
    back = "../" * (request.url.path.count("/") - 1) or "./"
    words = {"{title}": TITLES.get(status, "Something is wrong"), "{detail}": detail, "{base}": back}
    text = (web_root / "missing.html").read_text()
    for mark, word in words.items():
        text = text.replace(mark, html.escape(word))
    return Response(text, status, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")
