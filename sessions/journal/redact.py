"""Takes out of an archived session what people wrote: each text becomes a salted hash, the same text the same hash.

The salt is made for the session and thrown away, so nobody can try texts against the hashes. Blocking.
"""

import hashlib
import secrets
from collections.abc import Iterator

import msgspec

from .archive import Archive, ArchiveError
from .entry import Entry, Stamp, decode, encode
from .events import PromptAsked
from .store import StoredEntry

MARK = "redacted:"


def redacted(archive: Archive, session: str) -> int:
    """Rewrite the session's parts; how many texts were taken out. Raises `ArchiveError`, `JournalVersion`."""
    index = archive.index(session)
    if index is None:
        raise ArchiveError(f"nothing of session {session} is archived")
    salt, taken = secrets.token_bytes(16), 0

    def rewritten() -> Iterator[list[StoredEntry]]:
        nonlocal taken
        for info in index.parts:
            rows = []
            for row in archive.part(session, info):
                entry = decode(session, row.number, row.at, row.body)
                hidden = _hidden(entry, salt)
                taken += hidden is not entry
                rows.append(row if hidden is entry else _stored(hidden))
            yield rows

    archive.replace(index, rewritten())
    return taken


def _hidden(entry: Entry, salt: bytes) -> Entry:
    event = entry.event
    if not isinstance(event, PromptAsked) or event.text.startswith(MARK):
        return entry
    digest = hashlib.blake2b(event.text.encode(), key=salt, digest_size=12).hexdigest()
    return msgspec.structs.replace(entry, event=msgspec.structs.replace(event, text=MARK + digest))


def _stored(entry: Entry) -> StoredEntry:
    body = encode(entry.event, Stamp(entry.epoch, entry.branch, entry.cause))
    return StoredEntry(entry.session, entry.number, entry.at, body)
