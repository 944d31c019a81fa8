"""Fetching a card's published files from the Hugging Face hub: resumable, with the hub's progress bars, verified.

Every file is checked against the digest the hub states for it (sha256 of a large file, git's own of a small one); one
that does not fit is deleted and said. What was pulled is written down in `pulled.json` beside it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from huggingface_hub import HfApi, RepoFile, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.file_download import http_get
from huggingface_hub.utils._headers import build_hf_headers

from .manifest import CheckpointLayout, Manifest

RECORD = "pulled.json"
_WANTED = (".safetensors", ".safetensors.index.json", ".json", ".model", ".txt")
_TORCH = (".bin", ".pt", ".pth", ".bin.index.json")
_BLOCK = 1 << 20
_TRANSPORT: type[BaseException] = HfHubHTTPError.__bases__[0]  # the base error of the HTTP library the hub uses


class PullError(RuntimeError):
    """The files could not be fetched; one line that names the repository and the file."""


class Pulled(msgspec.Struct, frozen=True):
    """One file as it lies on disk; `revision` is the commit it came from."""

    repo: str
    revision: str
    file: str
    bytes: int
    digest: str


class Record(msgspec.Struct, frozen=True):
    card: str
    licence: str
    files: tuple[Pulled, ...]


@dataclass(frozen=True, slots=True)
class Hub:
    """Where to pull from; None = the public hub with the user's own token, if there is one."""

    endpoint: str | None = None


def pull(manifest: Manifest, folder: Path, hub: Hub, say: Callable[[str], None]) -> Record:
    """Fetch every component's first published layout into `folder`; what is there and whole is not fetched again.

    Raises `PullError`; what was fetched before stays and the next call goes on from there.
    """
    wanted: dict[str, list[str]] = {}
    folders = ((part.name, part.repo) for part in manifest.folders)
    for path, repo in (*((layout.file, layout.repo) for layout in _published(manifest)), *folders):
        wanted.setdefault(repo, []).append(path)
    api = HfApi(endpoint=hub.endpoint)
    pulled: list[Pulled] = []
    for repo, paths in wanted.items():
        try:
            commit = api.repo_info(repo, revision=manifest.revision).sha or manifest.revision
            for file in _files(api, repo, commit, paths):
                say(f"{repo}: {file.path}, {file.size:,} bytes")
                pulled.append(_fetch(hub, repo, commit, file, folder))
        except (_TRANSPORT, OSError) as error:
            reason = " ".join(str(error).split())[:300]
            raise PullError(f"cannot pull {repo}: {reason}") from error
    record = Record(manifest.card, manifest.licence, tuple(pulled))
    (folder / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2))
    return record


def _published(manifest: Manifest) -> list[CheckpointLayout]:
    """Every component's first layout that has a repository; raises `PullError` when one has none."""
    layouts = []
    for component in manifest.components:
        layout = next((layout for layout in component.layouts if layout.repo), None)
        if layout is None:
            raise PullError(f"card '{manifest.card}': component '{component.name}' is published nowhere")
        layouts.append(layout)
    return layouts


def _files(api: HfApi, repo: str, commit: str, paths: list[str]) -> list[RepoFile]:
    """The files behind the paths; a folder gives its configuration and its safetensors, else its torch files."""
    found: list[RepoFile] = []
    for path in paths:
        infos = api.get_paths_info(repo, path, revision=commit)
        if not infos:
            raise PullError(f"{repo} at {commit[:12]} has no '{path}'")
        if isinstance(infos[0], RepoFile):
            found.append(infos[0])
            continue
        inside = [entry for entry in api.list_repo_tree(repo, path, revision=commit) if isinstance(entry, RepoFile)]
        safe = any(entry.path.endswith(".safetensors") for entry in inside)
        found += [e for e in inside if e.path.endswith(_WANTED) or (not safe and e.path.endswith(_TORCH))]
    return found


def _fetch(hub: Hub, repo: str, commit: str, file: RepoFile, folder: Path) -> Pulled:
    """One file, whole and verified. A download that was cut goes on in `<file>.<digest>.part`, also in a later run."""
    stated = file.lfs.sha256 if file.lfs else file.blob_id
    local = folder / file.path
    if not (local.is_file() and local.stat().st_size == file.size and _digest(local, file) == stated):
        part = local.with_name(f"{local.name}.{stated[:16]}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        url = hf_hub_url(repo, file.path, revision=commit, endpoint=hub.endpoint)
        with part.open("ab") as opened:
            http_get(
                url,
                opened,
                resume_size=opened.tell(),
                headers=build_hf_headers(library_name="worldroom"),
                expected_size=file.size,
                displayed_filename=file.path,
            )
        actual, size = _digest(part, file), part.stat().st_size
        if actual != stated:
            part.unlink()
            raise PullError(f"{repo}: {file.path} arrived damaged ({size} bytes, {actual[:16]}, stated {stated[:16]})")
        part.replace(local)
    return Pulled(repo, commit, file.path, file.size, stated)


def _digest(local: Path, file: RepoFile) -> str:
    """sha256 of a large file; of a small one sha1 over git's header and contents."""
    total = hashlib.sha256() if file.lfs else hashlib.sha1(f"blob {local.stat().st_size}\0".encode())
    with local.open("rb") as opened:
        while block := opened.read(_BLOCK):
            total.update(block)
    return total.hexdigest()
