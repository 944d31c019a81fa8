"""Free text to a look: taught words are heard, words never taught find their nearest look, odd text harms nobody."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file
from worldroom.models.drive.card import WEIGHTS, drive_card
from worldroom.models.shared.road.look import ATTRIBUTES
from worldroom.models.shared.road.look import PROMPT_CHARS as LONGEST
from worldroom.models.shared.road.text import PromptTooLong, TextEncoder, load_text, plain_words
from worldroom.models.weights import WeightsError
from worldroom.training.drive.held_out import HELD_OUT
from worldroom.training.drive.phrases import HINTS, NEGATED, PAIRS, WORDS, make
from worldroom.training.drive.text import fit, heard, held_out_accuracy

ENCODER = load_text(WEIGHTS / "text.safetensors")


@pytest.mark.parametrize(
    ("text", "look"),
    [
        ("snowy night", ("night", "snow", "clear")),
        ("sunset in the desert", ("dusk", "desert", "clear")),
        ("a sunny coast road", ("day", "coast", "clear")),
        ("neon city at night in the rain", ("night", "city", "rain")),
        ("desert at sunset", ("dusk", "desert", "clear")),
        ("snowy mountains at dawn", ("dawn", "snow", "clear")),
        ("misty forest in the morning", ("dawn", "forest", "fog")),
        ("make it rain", ("day", "coast", "rain")),
        ("Foggy.", ("day", "forest", "fog")),
        ("NIGHT!!!", ("night", "city", "clear")),
        ("no rain please", ("day", "coast", "clear")),
        ("a forest without fog", ("day", "forest", "clear")),
        ("not at night, in the city", ("day", "city", "clear")),
        ("the fog lifts over the desert", ("day", "desert", "clear")),
    ],
)
def test_taught_words(text: str, look: tuple[str, str, str]) -> None:
    assert heard(ENCODER.look(text)) == look


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blizzard at midnight", {"night", "snow"}),
        ("sahara under a blazing sun", {"day", "desert", "clear"}),
        ("cyberpunk alley in a thunderstorm", {"city", "rain"}),
        ("hawaii at sundown", {"dusk", "coast"}),
    ],
)
def test_words_never_taught_find_the_nearest_look(text: str, said: set[str]) -> None:
    assert said <= set(heard(ENCODER.look(text)))


def test_figures_on_held_out_and_on_taught_phrases() -> None:
    dice = np.random.default_rng(1)
    said = []
    for phrase in (make(dice) for _ in range(1000)):
        right = zip(heard(ENCODER.look(phrase.text)), heard(phrase.target_L), phrase.said, strict=True)
        said += [ours == wanted for ours, wanted, mentioned in right if mentioned]
    assert sum(said) >= 0.99 * len(said) and len(said) >= 1000
    held_out = held_out_accuracy(ENCODER)
    assert min(held_out.shares) >= 0.80, held_out
    assert min(held_out.judged) >= 50


def test_held_out_words_are_not_taught() -> None:
    taught = set(plain_words(" ".join([*WORDS.values(), *PAIRS.values(), *HINTS.values(), *NEGATED.values()])))
    shared = {word for row in HELD_OUT for word in plain_words(row.text)} & taught
    assert shared <= set(COMMON.split()), shared - set(COMMON.split())
    assert all(re.fullmatch("[ -~]+", row.text) for row in HELD_OUT) and len(HELD_OUT) >= 120


# Words of many meanings: none of them names an attribute by itself.
COMMON = (
    "the a at in and of sun is under high weather black new by light sky cruise office glow highway heat valley water "
    "red soft road roads deep white traffic rises time up hour hours after break coming it full on air clouds summer "
    "not low"
)


@given(st.text(max_size=LONGEST))
def test_any_text_gives_shares_that_sum_to_1(text: str) -> None:
    look_L = ENCODER.look(text)
    assert look_L.shape == (12,) and look_L.dtype == np.float32 and np.isfinite(look_L).all()
    at = 0
    for values in ATTRIBUTES:
        assert abs(float(look_L[at : at + len(values)].sum()) - 1) < 1e-5
        at += len(values)


@pytest.mark.parametrize("text", ["", "   ", "🚀🚀", "雪の夜", "\x00\ud800", "a" * LONGEST, "???", "' OR 1=1 --"])
def test_odd_text_gives_the_default_look(text: str) -> None:
    assert heard(ENCODER.look(text)) == ("day", "coast", "clear")


def test_accents_and_case_do_not_matter() -> None:
    assert np.array_equal(ENCODER.look("Désert à minuit, SNÖW"), ENCODER.look("desert a minuit, snow"))


def test_too_long_is_refused_with_both_numbers() -> None:
    with pytest.raises(PromptTooLong, match="may have 400 characters, this one has 401"):
        ENCODER.look("x" * 401)


def test_two_places_at_once_are_shared() -> None:
    look_L = ENCODER.look("snow forest")
    snow, forest = float(look_L[4 + 2]), float(look_L[4 + 1])
    assert snow > 0.1 and forest > 0.1 and snow + forest > 0.95


def test_longest_phrase_wins_and_parts_are_found() -> None:
    rows = np.zeros((3, 12), np.int8)
    rows[0, 4], rows[1, 5], rows[2, 6] = 64, 64, 64
    tiny = TextEncoder({"green": 0, "green hill": 1, "snow": 2}, rows)
    assert heard(tiny.look("green"))[1] == "desert"
    assert heard(tiny.look("green hill"))[1] == "forest"
    assert heard(tiny.look("snows"))[1] == "snow"
    assert heard(tiny.look("greensnow"))[1] in ("desert", "snow")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "text.safetensors"
    with pytest.raises(WeightsError, match="is missing"):
        load_text(file)
    file.write_bytes((WEIGHTS / "text.safetensors").read_bytes()[:1000])
    with pytest.raises(WeightsError, match="is truncated or damaged"):
        load_text(file)
    save_file({"phrases": np.frombuffer(b"a\nb", np.uint8), "evidence": np.zeros((3, 12), np.int8)}, file)
    with pytest.raises(WeightsError, match="names 2 phrases, the table has 3"):
        load_text(file)
    save_file({"evidence": np.zeros((3, 12), np.int8)}, file)
    with pytest.raises(WeightsError, match="key 'phrases' is missing"):
        load_text(file)


def test_the_fit_gives_near_words_the_evidence_of_what_they_are_near_to() -> None:
    dice = np.random.default_rng(0)
    dunes, pines, nothing = (dice.standard_normal(16).astype(np.float32) for _ in range(3))
    around = lambda point, count: (point + 0.1 * dice.standard_normal((count, 16))).astype(np.float32)  # noqa: E731
    desert, forest = 4, 5
    taught: dict[str, dict[int, float]] = {"dunes": {desert: 1.0}, "pines": {forest: 1.0}}
    fitted = fit(taught, (np.stack([dunes, pines]),), (around(nothing, 40),))
    evidence = fitted.evidence((np.concatenate([around(dunes, 1), around(pines, 1), around(nothing, 1)]),))
    assert evidence[0].argmax() == desert and evidence[0, desert] > 0.5
    assert evidence[1].argmax() == forest and evidence[1, forest] > 0.5
    assert evidence[2].max() < 0.4


@pytest.mark.parametrize(
    ("text", "understood", "missed"),
    [
        ("snowy night", ("snowy", "night"), ()),
        ("snowy night with a dinosaur", ("snowy", "night"), ("dinosaur",)),
        ("noche nevada", ("nevada",), ("noche",)),
        ("雪の夜", (), ("雪の夜",)),
        ("🚀🚀 at dawn", ("dawn",), ("🚀🚀",)),
        ("qwzx the flurb", (), ("qwzx", "flurb")),
        ("", (), ()),
    ],
)
def test_case_50_words_that_count_and_words_that_are_not_known_are_told_apart(
    text: str, understood: tuple[str, ...], missed: tuple[str, ...]
) -> None:
    meaning = ENCODER.meaning(text)
    assert (meaning.understood, meaning.missed) == (understood, missed)


def test_case_50_every_suggestion_of_the_card_is_understood() -> None:
    for text in drive_card().suggestions:
        meaning = ENCODER.meaning(text)
        assert meaning.understood and not meaning.missed, (text, meaning)
