"""Bytes to messages: strict, bounded, and never anything but a message or a WireError."""

import contextlib
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worldroom.rtc.http import docs
from worldroom.rtc.wire import (
    Channel,
    Input,
    KeyEdge,
    Ping,
    Prompt,
    WireError,
    decode_client,
    encode,
)
from worldroom.sessions.rooms.names import valid_room
from worldroom.tests.paths import ROOT

DOCS = ROOT / "docs"


def test_an_input_as_a_browser_sends_it() -> None:
    text = '{"type":"input","seq":3,"held":["ArrowUp"],"edges":[{"seq":3,"key":"ArrowUp","down":true}],"sent_ms":12.5}'
    assert decode_client(text, Channel.INPUT) == Input(
        seq=3, held=("ArrowUp",), edges=(KeyEdge(3, "ArrowUp", True),), sent_ms=12.5
    )


def test_messages_come_back_as_they_went() -> None:
    for message in (Prompt(1, "snow"), Ping(2, 3.5), Input(1, ("KeyA",), (), (0.5, -0.25), 1.0)):
        channel = Channel.INPUT if isinstance(message, Input) else Channel.CONTROL
        assert decode_client(encode(message), channel) == message


@pytest.mark.parametrize(
    ("text", "code", "id"),
    [
        ("", "not_json", None),
        ("nonsense", "not_json", None),
        ("[]", "invalid", None),
        ("{}", "invalid", None),
        ('{"type":"fly","id":4}', "invalid", 4),
        ('{"type":"prompt","id":5,"text":""}', "invalid", 5),
        ('{"type":"prompt","id":6,"text":"snow","extra":1}', "invalid", 6),
        ('{"type":"prompt","id":-1,"text":"snow"}', "invalid", -1),
        ('{"type":"prompt","id":7,"text":"snow","seconds":11}', "invalid", 7),
        ('{"type":"feedback","id":8,"chunk":1,"value":2}', "invalid", 8),
        ('{"type":"ping","id":9,"sent_ms":NaN}', "not_json", 9),
        ('{"type":"input","seq":1,"held":[]}', "wrong_channel", None),
        ('{"type":"prompt","id":1,"text":"' + "a" * 20_000 + '"}', "too_large", None),
        ("[" * 16_000, "invalid", None),
    ],
)
def test_what_is_no_message_is_a_typed_error(text: str, code: str, id: int | None) -> None:
    with pytest.raises(WireError) as caught:
        decode_client(text, Channel.CONTROL)
    assert (caught.value.code, caught.value.id) == (code, id)
    assert len(caught.value.detail) <= 200


def test_an_unpaired_surrogate_is_no_crash() -> None:
    with pytest.raises(WireError):
        decode_client('{"type":"prompt","id":1,"text":"\ud800"', Channel.CONTROL)


def test_receipts_take_nothing_from_a_client() -> None:
    with pytest.raises(WireError, match="wrong_channel"):
        decode_client('{"type":"ping","id":1,"sent_ms":0}', Channel.RECEIPTS)


SEEDS = [
    b'{"type":"input","seq":3,"held":["ArrowUp"],"edges":[{"seq":3,"key":"ArrowUp","down":true}],"sent_ms":12.5}',
    b'{"type":"prompt","id":1,"text":"snowy night","transition":"blend","seconds":0.5}',
    b'{"type":"feedback","id":8,"chunk":1,"value":1}',
    b'{"type":"shown","frames":[[1,2.5],[2,3.5]]}',
]


def test_ten_thousand_mutilated_messages_are_messages_or_wire_errors() -> None:
    dice = random.Random(7)
    refused = 0
    for _ in range(10_000):
        raw = bytearray(dice.choice(SEEDS))
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(raw))
            match dice.randrange(4):
                case 0:
                    raw[at] = dice.randrange(256)
                case 1:
                    del raw[at : at + dice.randint(1, 8)]
                case 2:
                    raw[at:at] = dice.randbytes(dice.randint(1, 8))
                case _:
                    raw[at:at] = b'{"[' * dice.randint(1, 4)
            raw = raw or bytearray(b"{")
        try:
            decode_client(bytes(raw), dice.choice(list(Channel)))
        except WireError:
            refused += 1
    assert refused > 9_000


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=400))
def test_arbitrary_bytes_and_texts(data: bytes | str) -> None:
    with contextlib.suppress(WireError):
        decode_client(data, Channel.CONTROL)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["input", "prompt", "ping", "shown", "passwheel", "x"]),
    st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=4),
)
def test_arbitrary_json_under_a_known_type(kind: str, fields: dict[str, object]) -> None:
    try:
        text = msgspec.json.encode({**fields, "type": kind})
    except msgspec.MsgspecError:
        return
    with contextlib.suppress(WireError):
        decode_client(text, Channel.INPUT)


@pytest.mark.parametrize(
    ("name", "fine"),
    [
        ("blue-otter-12", True),
        ("a", True),
        ("A_1", True),
        ("x" * 64, True),
        ("", False),
        ("-a", False),
        ("a b", False),
        ("ä", False),
        ("x" * 65, False),
        ("a/b", False),
        ("..", False),
    ],
)
def test_names_of_rooms(name: str, fine: bool) -> None:
    assert valid_room(name) is fine


def test_the_documents_are_current() -> None:
    hint = "run: python -m worldroom.rtc.http.docs docs"
    assert (DOCS / "PROTOCOL.md").read_text() == docs.protocol_markdown(), hint
    assert (DOCS / "protocol.schema.json").read_bytes() == docs.json_schema(), hint


def test_the_schema_names_every_message() -> None:
    schema = msgspec.json.decode(docs.json_schema())
    for kind in (*docs.client_types(), *docs.server_types()):
        assert kind.__name__ in schema["$defs"]


def test_case_54_half_of_a_surrogate_pair_is_answered_with_its_id() -> None:
    with pytest.raises(WireError) as refused:
        decode_client('{"type":"prompt","text":"a \\ud83d","id":7}', Channel.CONTROL)
    assert (refused.value.code, refused.value.id) == ("not_json", 7)
