"""LoRA weights: merged by the formula, switched off bit for bit, refused by name when they do not fit."""

import pytest
import torch
from worldroom.models.shared.drawn import draw
from worldroom.models.wan import lora
from worldroom.models.wan.parity_rollout import SMALL
from worldroom.models.wan.transformer import WanTransformer

LAYER = "blocks.1.self_attn.q"
WRAPPED = f"base_model.model.model.{LAYER}"


def network() -> WanTransformer:
    made = WanTransformer(SMALL)
    draw(made, 1)
    return made


def table(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    return {f"{WRAPPED}.lora_A.default.weight": a, f"{WRAPPED}.lora_B.default.weight": b}


def test_merge_and_switch() -> None:
    made, a, b = network(), torch.full((4, 48), 0.5), torch.full((48, 4), 0.25)
    plain = made.get_parameter(f"{LAYER}.weight").clone()
    read = lora.read(table(a, b), alpha=8.0, module=made)
    switch = lora.Switch(made, read)
    switch.turn(True)
    torch.testing.assert_close(made.get_parameter(f"{LAYER}.weight"), plain + 2.0 * 4 * 0.5 * 0.25)
    switch.turn(False)
    assert torch.equal(made.get_parameter(f"{LAYER}.weight"), plain)
    lora.merge(made, read)
    torch.testing.assert_close(made.get_parameter(f"{LAYER}.weight"), plain + 1.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"blocks.1.self_attn.q.weight": torch.zeros(1)}, "'blocks.1.self_attn.q.weight' is no LoRA weight"),
        ({"blocks.9.self_attn.q.lora_A.weight": torch.zeros(4, 48)}, "layer 'blocks.9.self_attn.q'"),
        ({f"{LAYER}.lora_A.weight": torch.zeros(4, 48)}, "has only side A"),
        (table(torch.zeros(4, 40), torch.zeros(48, 4)), "its LoRA is"),
        ({}, "holds no weights"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given: dict[str, torch.Tensor], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        lora.read(given, 8.0, network())
