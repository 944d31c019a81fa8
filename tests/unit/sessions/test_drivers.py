"""How several people drive one world, in a word: what it says, and which places at the wheel it makes."""

import pytest
from worldroom.sessions.drivers import BadDrivers, DriversRule, PlaceSpec

ARROWS = ("left", "right", "up", "down")


def shares(text: str, controls: tuple[str, ...] = ARROWS, players: int = 1) -> list[tuple[int, set[int]]]:
    return [(place.player, set(place.controls)) for place in DriversRule.read(text).places(controls, players)]


def test_one_at_a_time_has_one_place_with_all_controls_for_each_player() -> None:
    assert DriversRule.read("turns").places(ARROWS, 2) == (
        PlaceSpec(0, frozenset({0, 1, 2, 3})),
        PlaceSpec(1, frozenset({0, 1, 2, 3})),
    )


def test_controls_are_shared_out_in_the_cards_order_or_by_name() -> None:
    assert shares("controls:2") == [(0, {0, 1}), (0, {2, 3})]
    assert shares("controls:3") == [(0, {0, 1}), (0, {2}), (0, {3})]
    assert shares("controls:up+down,left") == [(0, {2, 3, 1}), (0, {0, 1})], "nobody is named for `right`: both have it"


def test_the_first_who_come_are_on_different_players() -> None:
    assert shares("controls:2", players=2) == [(0, {0, 1}), (1, {0, 1}), (0, {2, 3}), (1, {2, 3})]


def test_a_vote_has_places_with_all_controls() -> None:
    assert shares("vote:3") == [(0, {0, 1, 2, 3})] * 3
    assert len(shares("vote")) == 8


@pytest.mark.parametrize("text", ["turns", "controls:2", "controls:left+right,up+down", "vote:5"])
def test_it_says_itself_as_it_was_said(text: str) -> None:
    assert str(DriversRule.read(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "none of"),
        ("democracy", "none of"),
        ("vote:1", "2 to 16 people drive together, not 1"),
        ("vote:99", "not 99"),
        ("controls:left", "none of"),
        ("controls:left,left", "belongs to one of them"),
        ("turns:2", "none of"),
        ("vote:5\n", "none of"),
        ("controls:" + "a," * 20 + "b", "belongs to one"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadDrivers, match=why):
        DriversRule.read(text)


def test_a_rule_that_this_world_cannot_have_says_why() -> None:
    with pytest.raises(BadDrivers, match="no control 'fire': it has left, right, up, down"):
        shares("controls:left,fire")
    with pytest.raises(BadDrivers, match="4 controls, which 5 people cannot share"):
        shares("controls:5")
