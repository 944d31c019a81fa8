"""Weights run only as their recipe says; the refusal names what was asked and what is allowed."""

from dataclasses import replace

import pytest
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RecipeSpec, RuntimeChoice

RECIPE = RecipeSpec(
    name="drive-1",
    sampler="flow-x0",
    sigmas=((1.0,), (1.0, 0.5)),
    precisions=(Precision.FP32, Precision.BF16),
    default=RuntimeChoice("flow-x0", 2, Precision.BF16),
    parents=("drive-base-1",),
    data="simulator",
    command="worldroom train drive",
)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_allows_every_choice_it_lists(steps: int, precision: Precision) -> None:
    RECIPE.check(RuntimeChoice("flow-x0", steps, precision))


def test_levels_belong_to_the_step_count() -> None:
    assert RECIPE.levels(1) == (1.0,) and RECIPE.levels(2) == (1.0, 0.5)
    assert RECIPE.steps_allowed() == (1, 2)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (
            RuntimeChoice("euler", 2, Precision.BF16),
            "recipe 'drive-1' does not allow sampler 'euler': it allows flow-x0",
        ),
        (RuntimeChoice("flow-x0", 3, Precision.BF16), "recipe 'drive-1' does not allow steps '3': it allows 1, 2"),
        (RuntimeChoice("flow-x0", 0, Precision.BF16), "recipe 'drive-1' does not allow steps '0': it allows 1, 2"),
        (
            RuntimeChoice("flow-x0", 2, Precision.INT),
            "recipe 'drive-1' does not allow precision 'int': it allows fp32, bf16",
        ),
    ],
)
def test_refuses_everything_else_and_names_both(choice: RuntimeChoice, says: str) -> None:
    with pytest.raises(RecipeMismatch) as refusal:
        RECIPE.check(choice)
    assert str(refusal.value) == says


def test_a_mode_is_written_into_journals_and_read_back() -> None:
    usual = RuntimeChoice("flow-x0", 1, Precision.FP32)
    assert usual.mode == "" and usual.in_mode("") == usual
    fast = replace(usual, exact=False, compiled=True)
    assert fast.mode == "inexact+compiled" and usual.in_mode("inexact+compiled") == fast
    assert usual.in_mode("invariant") == replace(usual, invariant=True)
    with pytest.raises(ValueError, match="unknown mode 'faster': there are inexact, compiled, invariant"):
        usual.in_mode("faster")
