"""A hub of weights on loopback that can break off, damage and forget files: what pulling is tested against."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

COMMIT = "0123456789012345678901234567890123456789"
LARGE = (".safetensors", ".pt", ".pth")
"""Files whose digest a hub states as sha256 of what is in them."""


@dataclass
class FakeHub:
    """Serves `repos`: name -> path -> contents. `stated` by path: what a file is said to be instead of what it is.
    `gets` lists every download with its Range header.
    """

    repos: dict[str, dict[str, bytes]]
    endpoint: str = ""
    stated: dict[str, bytes] = field(default_factory=dict)
    gets: list[tuple[str, str]] = field(default_factory=list)

    def info(self, repo: str, path: str) -> dict[str, object]:
        body = self.stated.get(path, self.repos[repo][path])
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(body), "oid": git_digest(body)}
        if path.endswith(LARGE):
            entry["lfs"] = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
        return entry

    def infos(self, repo: str, wanted: list[str]) -> list[dict[str, object]]:
        """Of files and of folders."""
        files = self.repos[repo]
        infos = [self.info(repo, path) for path in wanted if path in files]
        folders = {path.rpartition("/")[0] for path in files if "/" in path} & set(wanted)
        return infos + [{"type": "directory", "path": path, "oid": COMMIT} for path in sorted(folders)]


def git_digest(body: bytes) -> str:
    return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()


def routes(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Routes(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            wanted = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["paths"]
            owner, name = self.path.removeprefix("/api/models/").split("/")[:2]
            self.answer(json.dumps(hub.infos(f"{owner}/{name}", wanted)).encode())

        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            api = path.startswith("/api/models/")
            owner, name, *rest = path.removeprefix("/api/models").strip("/").split("/")
            repo = f"{owner}/{name}"
            if repo not in hub.repos:
                return self.answer(b"", 404, X_Error_Code="RepoNotFound")
            if api and rest[:1] == ["tree"]:
                inside = [hub.info(repo, file) for file in hub.repos[repo] if file.startswith("/".join(rest[2:]) + "/")]
                return self.answer(json.dumps(inside).encode())
            if api:
                return self.answer(json.dumps({"id": repo, "sha": COMMIT, "siblings": []}).encode())
            return self.download(repo, "/".join(rest[2:]))

        def download(self, repo: str, file: str) -> None:
            if file not in hub.repos[repo]:
                return self.answer(b"", 404, X_Error_Code="EntryNotFound")
            body = hub.repos[repo][file]
            asked = self.headers.get("Range", "")
            if self.command == "GET":
                hub.gets.append((file, asked))
            etag = hub.info(repo, file).get("lfs", {"oid": git_digest(body)})["oid"]  # type: ignore[index]
            start = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
            return self.answer(body[start:], 206 if start else 200, ETag=f'"{etag}"', X_Repo_Commit=COMMIT)

    return Routes


@contextmanager
def hub_of(repos: dict[str, dict[str, bytes]]) -> Iterator[FakeHub]:
    """A hub that answers at its `endpoint`."""
    fake = FakeHub(repos)
    server = ThreadingHTTPServer(("127.0.0.1", 0), routes(fake))
    fake.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
