"""Names are compared as people see them."""

import pytest
from worldroom.sessions.rooms.names import as_seen, person_name


@pytest.mark.parametrize(
    ("wish", "there", "name"),
    [
        ("Ada", [], "Ada"),
        ("  Ada   Byron ", [], "Ada Byron"),
        ("Ada", ["Ada"], "Ada 2"),
        ("ada", ["Ada"], "ada 2"),
        ("Ada", ["Ada", "ada 2"], "Ada 3"),
        ("\N{CYRILLIC CAPITAL LETTER A}da", ["Ada"], "\N{CYRILLIC CAPITAL LETTER A}da 2"),
        ("A\N{ZERO WIDTH SPACE}da", ["Ada"], "Ada 2"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}adA", [], "adA"),
        ("Adá", ["Ada"], "Adá 2"),
        ("A d a", ["Ada"], "A d a 2"),
        ("B0b", ["Bob"], "B0b 2"),
        ("\N{FULLWIDTH LATIN CAPITAL LETTER A}da", ["Ada"], "\N{FULLWIDTH LATIN CAPITAL LETTER A}da 2"),
        ("Zoë", ["Ada"], "Zoë"),
        ("雪", ["火"], "雪"),
    ],
)
def test_a_name_that_people_would_take_for_another_gets_a_number(wish: str, there: list[str], name: str) -> None:
    assert person_name("0000", wish, there) == name


@pytest.mark.parametrize("wish", [None, "", "   ", "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH SPACE}"])
def test_a_name_that_cannot_be_seen_is_an_animals(wish: str | None) -> None:
    assert person_name("0003", wish, ()) == "Bison"


def test_what_is_seen_forgets_case_accents_and_alphabets() -> None:
    assert as_seen("РАУРАL") == as_seen("paypal")
