"""A site with a page of a test's own and the modules that npm has installed for tests."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import worldroom.clients.web

MODULES = Path(worldroom.clients.web.__file__).parent / "node_modules"


def as_module(package: str, files: tuple[str, ...], names: tuple[str, ...]) -> str:
    """A CommonJS package as a module that a browser imports; the last file is its main one."""
    parts = ["const known = {};"]
    for file in files:
        text = (MODULES / package / file).read_text()
        name = Path(file).stem
        head = (
            "(() => { const module = { exports: {} }; let exports = module.exports;"
            " const require = (name) => known[name.split('/').pop()];"
        )
        parts.append(f"{head}\n{text}\nknown['{name}'] = module.exports; }})();")
    main = Path(files[-1]).stem
    parts += [f"export const {name} = known['{main}'].{name};" for name in names]
    return "\n".join(parts)


@contextmanager
def site(pages: dict[str, tuple[str, str]]) -> Iterator[str]:
    """`pages`: media type and text by path; everything else is a file of `node_modules`."""

    class Site(http.server.SimpleHTTPRequestHandler):
        extensions_map: ClassVar[dict[str, str]] = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".mjs": "text/javascript",
        }

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            if page is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", page[0])
            self.end_headers()
            self.wfile.write(page[1].encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=str(MODULES)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
