"""Keys and tokens: what is believed, and how everything else is refused."""

import json

import jwt
import pytest
from worldroom.rtc.access.keys import ApiKey, ApiKeys, BadKey
from worldroom.rtc.access.tokens import Access, TokenRefused, mint, read
from worldroom.sessions.drivers import DriversRule
from worldroom.sessions.messages import Grant
from worldroom.sessions.rooms.rights import Rights

KEY = ApiKey("studio", "s" * 40)
KEYS = ApiKeys([KEY])
NOW = 1_000_000.0


def signed(secret: str = KEY.secret, algorithm: str = "HS256", **claims: object) -> str:
    return raw({"iss": "studio", "exp": NOW + 60} | claims, secret, algorithm)


def raw(claims: object, secret: str = KEY.secret, algorithm: str = "HS256") -> str:
    """A signed token of anything, as no honest library would make it."""
    return jwt.api_jws.encode(json.dumps(claims).encode(), secret, algorithm, {"typ": "JWT"})


def refused(token: str, now: float = NOW) -> str:
    with pytest.raises(TokenRefused) as refusal:
        read(KEYS, token, now)
    assert token[:20] not in str(refusal.value) or not token
    return refusal.value.code


@pytest.mark.parametrize("grant", list(Grant))
def test_what_was_minted_is_read_back(grant: Grant) -> None:
    rights = Rights(grant, "ada-1", "Ada", '{"team": 3}')
    assert read(KEYS, mint(KEY, "blue-otter", rights, NOW), NOW) == Access("blue-otter", rights)


def test_a_token_may_say_how_several_drive() -> None:
    rule = DriversRule.read("controls:left,right")
    assert read(KEYS, mint(KEY, "cup", Rights(drivers=rule), NOW), NOW).rights.drivers == rule
    assert refused(signed(attributes={"drivers": "anarchy"})) == "bad_token"


def test_a_token_counts_from_its_beginning_to_its_end() -> None:
    token = mint(KEY, "r", Rights(), NOW, ttl_s=60)
    assert read(KEYS, token, NOW + 59.9).room == "r"
    assert refused(token, NOW + 60) == "token_expired"
    assert refused(token, NOW - 61) == "token_early"
    assert read(KEYS, token, NOW - 59).room == "r", "clocks differ a little"


def test_nothing_but_a_good_signature_of_a_known_key_is_believed() -> None:
    video = {"room": "r", "roomJoin": True}
    assert refused("") == "bad_token"
    assert refused("a.b.c") == "bad_token"
    assert refused(signed("x" * 40, video=video)) == "bad_token"
    assert refused(signed("s" * 64, algorithm="HS512", video=video)) == "bad_token"
    assert refused(jwt.encode({"iss": "studio", "exp": NOW + 60, "video": video}, None, "none")) == "bad_token"
    assert refused(signed(iss="another")) == "unknown_key"
    assert refused(signed(iss=["studio"])) == "unknown_key"
    assert refused(signed(video="all")) == "bad_token"
    assert refused(signed(attributes={"role": "king"})) == "bad_token"
    assert refused(raw({"iss": "studio", "video": video})) == "bad_token", "no expiry"
    assert refused(raw(["studio"])) == "bad_token"
    assert refused("x" * 5000) == "bad_token"


@pytest.mark.parametrize(
    ("claims", "grant"),
    [
        ({}, Grant.DRIVER),
        ({"video": {"canPublishData": True}}, Grant.DRIVER),
        ({"video": {"canPublishData": False}}, Grant.SPECTATOR),
        ({"video": {"recorder": True}}, Grant.RECORDER),
        ({"video": {"hidden": True, "canPublishData": True}}, Grant.RECORDER),
        ({"attributes": {"role": "co-driver"}}, Grant.CO_DRIVER),
        ({"attributes": {"role": "driver"}, "video": {"canPublishData": False}}, Grant.SPECTATOR),
    ],
)
def test_grants_of_other_makers_of_tokens_say_what_somebody_may_do(claims: dict[str, object], grant: Grant) -> None:
    assert read(KEYS, signed(**claims), NOW).rights.grant is grant


def test_a_token_opens_the_room_it_names_only_with_the_right_to_join_and_to_see() -> None:
    assert read(KEYS, signed(video={"room": "r", "roomJoin": True}), NOW).room == "r"
    assert read(KEYS, signed(video={"room": "r"}), NOW).room is None
    assert read(KEYS, signed(video={"room": "r", "roomJoin": True, "canSubscribe": False}), NOW).room is None
    back_end = read(KEYS, signed(video={"roomCreate": True}), NOW)
    assert (back_end.room, back_end.creates, back_end.lists) == (None, True, True)


def test_keys_are_read_as_livekit_writes_them() -> None:
    keys = ApiKeys.parse([f"one: {'a' * 32}, two:{'b' * 32}", f"three:{'c' * 32}\n"])
    assert keys.holds("one", "a" * 32) and keys.holds("two", "b" * 32) and keys.holds("three", "c" * 32)
    assert not keys.holds("one", "b" * 32) and not keys.holds("four", "")
    assert not ApiKeys.parse(["", " "])


@pytest.mark.parametrize("text", ["studio", ":" + "s" * 40, "stu dio:" + "s" * 40, "studio:short-secret"])
def test_a_bad_key_is_refused_without_showing_its_secret(text: str) -> None:
    with pytest.raises(BadKey) as error:
        ApiKey.parse(text)
    assert "short-secret" not in str(error.value) and "s" * 40 not in str(error.value)
    assert "s" * 40 not in repr(ApiKey("studio", "s" * 40))


def test_a_fresh_key_is_a_good_one() -> None:
    key = ApiKey.fresh()
    assert ApiKey.parse(f"{key.name}:{key.secret}") == key
