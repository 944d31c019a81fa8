"""Takes out of an archived session what people wrote: each text becomes a salted hash, the same text the same hash.

    prompt.asked   text -> hash                  prompt.ready    key -> hash, and the embedding, so that replay goes on
    session.fault  the words it quotes are left out      chunk.begun     keys -> hashes

A key is a hash of its text without salt, so whoever guesses a text could try it: keys are replaced too. The salt is
made for the session and thrown away. Blocking.
"""

import hashlib
import secrets
from collections.abc import Iterator, Mapping

import msgspec

from .archive import Archive, ArchiveError
from .entry import Entry, Stamp, decode, encode
from .events import ChunkBegun, Faulted, JournalEvent, PromptAsked, PromptReady
from .replay import REDACTED
from .store import StoredEntry

QUOTING = frozenset({"not_understood", "bad_prompt"})
"""Faults whose detail may repeat words of a prompt."""


def redacted(archive: Archive, session: str, embeddings: Mapping[str, bytes]) -> int:
    """Rewrite the session's parts; how many texts were taken out. `embeddings` by key: kept in the journal in place of
    the texts; one that is missing ends replay of what it steered. Raises `ArchiveError`, `JournalVersion`."""
    index = archive.index(session)
    if index is None:
        raise ArchiveError(f"nothing of session {session} is archived")
    hidden, taken = _Hidden(secrets.token_bytes(16), embeddings), 0

    def rewritten() -> Iterator[list[StoredEntry]]:
        nonlocal taken
        for info in index.parts:
            rows = []
            for row in archive.part(session, info):
                entry = decode(session, row.number, row.at, row.body)
                event = hidden.event(entry.event)
                taken += isinstance(event, PromptAsked) and event is not entry.event
                rows.append(row if event is entry.event else _stored(entry, event))
            yield rows

    archive.replace(index, rewritten())
    return taken


class _Hidden:
    """One session's events without words."""

    def __init__(self, salt: bytes, embeddings: Mapping[str, bytes]) -> None:
        self._salt, self._embeddings = salt, embeddings

    def event(self, event: JournalEvent) -> JournalEvent:
        """The same object where there is nothing to hide."""
        match event:
            case PromptAsked() if not event.text.startswith(REDACTED):
                return msgspec.structs.replace(event, text=self._hash(event.text))
            case PromptReady() if not event.key.startswith(REDACTED):
                embedding = self._embeddings.get(event.key, b"")
                return msgspec.structs.replace(event, key=self._hash(event.key), embedding=embedding)
            case ChunkBegun() if any(not share.key.startswith(REDACTED) for share in event.conditions.prompts):
                shares = tuple(
                    share
                    if share.key.startswith(REDACTED)
                    else msgspec.structs.replace(share, key=self._hash(share.key))
                    for share in event.conditions.prompts
                )
                conditions = msgspec.structs.replace(event.conditions, prompts=shares)
                return msgspec.structs.replace(event, conditions=conditions)
            case Faulted() if event.code in QUOTING and event.detail:
                return msgspec.structs.replace(event, detail="")
            case _:
                return event

    def _hash(self, text: str) -> str:
        return REDACTED + hashlib.blake2b(text.encode(), key=self._salt, digest_size=12).hexdigest()


def _stored(entry: Entry, event: JournalEvent) -> StoredEntry:
    body = encode(event, Stamp(entry.epoch, entry.branch, entry.cause))
    return StoredEntry(entry.session, entry.number, entry.at, body)
