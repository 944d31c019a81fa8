"""Weights run only as their recipe says; the refusal names what was asked and what is allowed."""

from dataclasses import replace

import pytest
from worldroom.models.contract.recipe import Consistency, Method, Precision, RecipeMismatch, RecipeSpec, RuntimeChoice

RECIPE = RecipeSpec(
    name="drive-1",
    sampler="flow-x0",
    sigmas=((1.0,), (1.0, 0.5)),
    precisions=(Precision.FP32, Precision.BF16),
    default=RuntimeChoice("flow-x0", 2, Precision.BF16),
    parents=("drive-base-1",),
    data="simulator",
    command="worldroom train drive",
    method=Method.DISTILLED,
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


def test_weights_are_run_by_the_loop_they_were_made_for() -> None:
    RECIPE.check_loop("chunk_rollout")
    says = "recipe 'drive-1' does not allow loop 'diffusion_denoise': it allows chunk_rollout"
    with pytest.raises(RecipeMismatch, match=says):
        RECIPE.check_loop("diffusion_denoise")


def test_distilled_weights_know_one_sampler() -> None:
    assert replace(RECIPE, method=Method.FLOW, samplers=("euler",)).samplers == ("euler",)
    with pytest.raises(RecipeMismatch, match="does not allow samplers of distilled weights 'euler': it allows flow-x0"):
        replace(RECIPE, samplers=("euler",))


@pytest.mark.parametrize(
    ("choice", "asked"),
    [
        (RuntimeChoice("flow-x0", 2, Precision.BF16, exact=False), "inexact"),
        (RuntimeChoice("flow-x0", 2, Precision.BF16, compiled=True), "compiled"),
        (RuntimeChoice("flow-x0", 2, Precision.FP8), "fp8"),
    ],
)
def test_weights_that_need_every_bit_refuse_faster_and_narrower_modes(choice: RuntimeChoice, asked: str) -> None:
    precisions = (Precision.FP32, Precision.BF16, Precision.FP8)
    tolerant = replace(RECIPE, inexact=0.1, compiled=0.1, precisions=precisions, narrow=((Precision.FP8, 0.1),))
    tolerant.check(choice)
    exact = replace(tolerant, consistency_required=Consistency.EXACT)
    exact.check(RuntimeChoice("flow-x0", 2, Precision.BF16, invariant=False))
    with pytest.raises(RecipeMismatch, match=f"does not allow consistency '{asked}': it allows exact"):
        exact.check(choice)


def test_a_recipe_whose_default_it_does_not_allow_cannot_be_written() -> None:
    with pytest.raises(RecipeMismatch, match="does not allow steps '5'"):
        replace(RECIPE, default=RuntimeChoice("flow-x0", 5, Precision.BF16))
