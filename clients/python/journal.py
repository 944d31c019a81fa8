"""Reads what sessions wrote down: `async for entry in journal(url, group="reward", types=("preference",))`.

A group has read up to a number in each session; that is kept in a file of its own, written when the next entry is asked
for. So an entry is given once: who died while working on one gets that one again, and its number says which it is.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import msgspec

PAGE = 200


class JournalEntry(msgspec.Struct, frozen=True):
    """One entry; `event` as docs/EVENTS.md has it, its `type` first."""

    version: int
    session: str
    number: int
    at: float
    event: dict[str, object]
    epoch: int = 0
    branch: int = 0
    cause: int = 0


class JournalUnreadable(ConnectionError):
    """The server does not give its journals; one line."""


async def journal(
    url: str,
    group: str,
    types: Sequence[str] = (),
    folder: Path | None = None,
    key: str | None = None,
    follow: bool = True,
    every_s: float = 1.0,
) -> AsyncIterator[JournalEntry]:
    """Entries of all sessions, the oldest session first; with `follow` also what comes. Raises `JournalUnreadable`.

    `types`: whole names or groups (`preference`); `folder`: of the group's file, by default the current one.
    """
    path = (folder or Path()) / f"{group}.cursor.json"
    read: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=30) as http:
        while True:
            for session in await _sessions(http):
                async for entry in _entries(http, session, read.get(session, 0), types):
                    yield entry
                    read[session] = entry.number
                    _keep(path, read)
            if not follow:
                return
            await asyncio.sleep(every_s)


async def latents(url: str, session: str, digests: Sequence[str], key: str | None = None) -> list[bytes]:
    """What the server keeps of the chunks that these digests name, as .npy files, in their order; others are left out.
    Raises `JournalUnreadable`."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=30) as http:
        found = [await _get(http, f"/v1/library/{session}/latents/{digest}", {}, missing=True) for digest in digests]
    return [answer.content for answer in found if answer.status_code == 200]


async def _sessions(http: httpx.AsyncClient) -> list[str]:
    names: list[str] = []
    while True:
        page = (await _get(http, "/v1/library", {"offset": str(len(names)), "limit": str(PAGE)})).json()
        names += [each["session"] for each in page["sessions"]]
        if len(names) >= page["total"] or not page["sessions"]:
            return names[::-1]


async def _entries(
    http: httpx.AsyncClient, session: str, after: int, types: Sequence[str]
) -> AsyncIterator[JournalEntry]:
    while True:
        asked = {"after": str(after), "types": ",".join(types), "most": str(PAGE)}
        lines = (await _get(http, f"/v1/library/{session}/entries", asked)).content.splitlines()
        for line in lines:
            entry = msgspec.json.decode(line, type=JournalEntry)
            yield entry
            after = entry.number
        if len(lines) < PAGE:
            return


async def _get(http: httpx.AsyncClient, path: str, query: dict[str, str], missing: bool = False) -> httpx.Response:
    """`missing`: 404 is an answer, too."""
    try:
        answer = await http.get(path, params=query)
    except httpx.HTTPError as error:
        raise JournalUnreadable(f"no answer from {http.base_url}: {type(error).__name__}") from None
    if answer.status_code != 200 and not (missing and answer.status_code == 404):
        raise JournalUnreadable(f"{http.base_url}{path} answers {answer.status_code}: {answer.text[:200]}")
    return answer


def _keep(path: Path, read: dict[str, int]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(read))
    os.replace(fresh, path)
