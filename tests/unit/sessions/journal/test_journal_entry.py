"""Entries: what was written is what is read, by version, with place and cause."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worldroom.sessions.journal import events
from worldroom.sessions.journal.docs import events_markdown, json_schema
from worldroom.sessions.journal.entry import VERSION, Entry, JournalVersion, Stamp, decode, encode, type_of

PROMPT = events.PromptReady(number=3, key="k")


def test_an_entry_has_session_number_time_epoch_branch_and_cause() -> None:
    body = encode(PROMPT, Stamp(epoch=2, branch=1, cause=7))
    assert decode("s", 9, 1.5, body) == Entry(VERSION, "s", 9, 1.5, PROMPT, epoch=2, branch=1, cause=7)
    assert type_of(body) == "prompt.ready"


def test_every_type_is_a_group_and_a_word() -> None:
    groups = {"session", "input", "prompt", "segment", "chunk", "frame", "preference", "weights", "adapters"}
    tags = [kind.__struct_config__.tag for kind in events.JournalEvent.__args__]
    assert {tag.partition(".")[0] for tag in tags} == groups
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"type":"opened","room":"r"}', "was written by journal version 1; this Worldroom reads 2"),
        (b'{"version":99,"event":{"type":"prompt.ready"},"more":1}', "was written by journal version 99"),
        (b'{"version":2,"event":{"type":"prompt.ready","number":1}}', "cannot be read"),
        (b"\xff\x00", "is no journal entry"),
    ],
)
def test_what_another_version_wrote_is_refused_by_its_number(body: bytes, why: str) -> None:
    with pytest.raises(JournalVersion, match=f"entry 5 of session s {why}"):
        decode("s", 5, 0.0, body)


@given(st.binary(max_size=80))
def test_no_bytes_are_misread(body: bytes) -> None:
    with pytest.raises(JournalVersion):
        decode("s", 1, 0.0, body)


def test_a_body_is_small() -> None:
    assert encode(PROMPT, Stamp()) == b'{"version":2,"event":{"type":"prompt.ready","number":3,"key":"k"}}'
    assert msgspec.json.decode(encode(PROMPT, Stamp(cause=1)))["cause"] == 1


def test_the_documents_are_current() -> None:
    docs = Path(__file__).resolve().parents[4] / "docs"
    assert (docs / "EVENTS.md").read_text() == events_markdown()
    assert (docs / "events.schema.json").read_bytes() == json_schema()
