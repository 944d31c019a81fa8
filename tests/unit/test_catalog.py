"""Cards by name: a typo gets a suggestion, a choice outside the recipe is refused before any weight is read."""

import pytest
from worldroom.models import catalog
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
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
    loaded = catalog.load("toy", toy=ToySpec(step_seconds=0.03, fps=30, per_chunk=12, sleeps=False))
    assert (loaded.card.frame.fps, loaded.card.frame.per_chunk) == (30, 12)
    assert loaded.choice == RuntimeChoice("integer", 2, Precision.INT)
    assert loaded.weights == "none"
    assert loaded.card.cache is not None and loaded.card.cache.bytes_per_session == 5 * 64
