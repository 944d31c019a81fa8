"""Cards by name: a typo gets a suggestion, a choice outside the recipe is refused before any weight is read."""

import pytest
from worldroom.models import catalog
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
from worldroom.models.family import BadOption, packed
from worldroom.models.toy.card import ToySpec


def test_every_card_is_sound() -> None:
    for name in catalog.names():
        card = catalog.card(name)
        assert card.name == name and card.suggestions
        assert (card.cache is None) == (card.loops[0].name == "diffusion_denoise")
        card.recipe.check(card.recipe.default)
        keys = [key for control in card.controls for key in control.keys]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("tyo", "no card 'tyo': did you mean 'toy'?"),
        ("TOY", "no card 'TOY': did you mean 'toy'?"),
        ("drvie", "no card 'drvie': did you mean 'drive'?"),
        ("quake", f"no card 'quake': cards are {', '.join(catalog.names())}"),
    ],
)
def test_unknown_card_suggests_the_nearest(asked: str, says: str) -> None:
    with pytest.raises(catalog.UnknownCard) as error:
        catalog.load(asked)
    assert str(error.value) == says


@pytest.mark.parametrize("name", ["toy", "drive"])
def test_recipe_mismatch_at_load(name: str) -> None:
    with pytest.raises(RecipeMismatch, match="does not allow steps '9'"):
        catalog.load(name, RuntimeChoice(catalog.card(name).recipe.sampler, 9, Precision.INT))


def test_toy_spec_shapes_the_card() -> None:
    spec = ToySpec(step_seconds=0.03, fps=30, per_chunk=12, sleeps=False)
    loaded = catalog.load("toy", options=packed(spec))
    assert (loaded.card.frame.fps, loaded.card.frame.per_chunk) == (30, 12)
    assert loaded.choice == RuntimeChoice("integer", 2, Precision.INT)
    assert loaded.weights == "none"
    assert loaded.card.cache is not None and loaded.card.cache.bytes_per_session == 5 * 64


def test_options_are_the_familys_own_and_are_named_when_they_are_wrong() -> None:
    blob = catalog.options("toy", {"fps": "30", "step_seconds": "0.5"})
    assert catalog.card("toy", blob).frame.fps == 30
    assert catalog.options("toy", {}) == b"" and catalog.card("toy").frame.fps == 24
    for name, given, says in (
        ("toy", {"speed": "9"}, "family 'toy' has no option speed: there are step_seconds, fps, per_chunk, sleeps"),
        ("toy", {"fps": "many"}, "options of family 'toy': Expected `int`, got `str` - at `$.fps`"),
        ("toy", {"fps": "0"}, "options of family 'toy': step_seconds >= 0, fps >= 1"),
        ("drive", {"fps": "30"}, "family 'drive' has no options"),
    ):
        with pytest.raises(BadOption) as refused:
            catalog.options(name, given)
        assert says in str(refused.value)
    with pytest.raises(BadOption):
        catalog.load("toy", options=b"\x93")
