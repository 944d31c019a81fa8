"""The journal's events as documents, generated from their types: `python -m worldroom.sessions.journal.docs [docs]`.

Writes EVENTS.md and events.schema.json; a test asserts that the ones in the repository are current.
"""

import sys
from pathlib import Path
from typing import get_args

import msgspec

from ..schema_text import section
from .entry import VERSION, Entry
from .events import JournalEvent

INTRODUCTION = f"""# Events

This page and `events.schema.json` are generated from the event types (`python -m worldroom.sessions.journal.docs docs`).

Everything that happens to a world is an entry of its session's journal. `worldroom journal show SESSION` prints one
entry a line:

    {{"version":{VERSION},"session":"5f..","number":12,"at":1796083200.25,"event":{{"type":"prompt.ready",..}},"cause":11}}

| field | |
|---|---|
| `version` | of the journal's format; this Worldroom writes and reads {VERSION}, another one is refused by its number |
| `session` | the world through time; outlives connections and restarts |
| `number` | counts from 1 in its session, without gaps; a reader that has seen n goes on after n |
| `at` | Unix seconds, never earlier than those of the entry before |
| `epoch`, `branch` | of the world when it happened; 0 is left out |
| `cause` | the number of the entry that led to it: the input that a chunk took, the begin of a chunk that is committed, the asking of a prompt that is ready; left out where it is none of these |
| `event` | one of the types below; `type` is a group and a word |

## Where it lies, and for how long

    record -> shared memory -> hot store (Redis, or files with --journal=disk) -> archive (--archive)

| part | bound |
|---|---|
| shared memory | 8 MiB a server: what is not stored yet outlives a server that is killed |
| hot store | a session's last 1 MiB of entries in normal running and never more than 4 MiB, whatever its age: beyond that the journal goes to its spool on disk |
| spool | what neither store nor archive take for now; the disk's size |
| archive | compressed parts of 1 MiB of entries each and an index a session; `--keep-days` (7), `--keep-entries` (all) |
| latents | beside a session's archived parts, as `.npy` files by the digests that `chunk.committed` and `preference.chosen` name: of the first chunk of every future and of each `--keep-latents` later (16 of cards that are not exact, else none), `--latents-mb` (1024) a session at most; gone with the session |

What retention gives up is counted in the session's index (`cut`) and said by every reader. A session that kept ones go on
from does not grow too old.

## What is kept of people

What people write stands in the journal, in the record of a room that waits suspended (an hour at most), and nowhere
else: not in logs, films or what lies beside films. `consent` of `session.joined` says whether what they do may be used
to train models; `worldroom export --consented` takes only sessions in which everybody who acted said so, and every data
card counts them.

`worldroom journal redact SESSION` replaces each text by a salted hash, and its key too, because a key is a hash without
salt. The salt is thrown away. The embeddings stay (`prompt.ready`), so the pictures can still be made again bit for
bit; who has the model can learn something of the words from an embedding, and `--forget` keeps none. Pictures that
somebody uploaded as first frames stay. A suspended world of the session is removed, and an embedded Redis writes its
file anew.

`worldroom journal delete SESSION` removes journal, archive, suspended world and films, and says how much of each. One
that other sessions go on from is refused with their names, because they cannot be replayed without it; `--force` removes
it all the same (`?force=1` of the library's `DELETE`, which answers `has_children` without). What was exported,
downloaded or backed up before is out of reach, and so is the append-only file of a Redis that was given with `--redis`.
"""  # noqa: E501


def event_types() -> tuple[type[msgspec.Struct], ...]:
    return get_args(JournalEvent)


def json_schema() -> bytes:
    """JSON Schema of an entry."""
    (_,), components = msgspec.json.schema_components([Entry], ref_template="#/$defs/{name}")
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Worldroom journal",
        "$ref": "#/$defs/Entry",
        "$defs": components,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def events_markdown() -> str:
    """EVENTS.md."""
    parts, group = [INTRODUCTION], ""
    for kind in event_types():
        name = str(kind.__struct_config__.tag).partition(".")[0]
        if name != group:
            group = name
            parts.append(f"## {group}\n")
        parts.append(section(kind))
    return "\n".join(parts)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    (folder / "EVENTS.md").write_text(events_markdown())
    (folder / "events.schema.json").write_bytes(json_schema())


if __name__ == "__main__":
    main()
