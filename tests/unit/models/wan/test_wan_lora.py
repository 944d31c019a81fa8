"""LoRA weights: merged by the formula, refused by name when they do not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from worldroom.models.checkpoints import load
from worldroom.models.checkpoints.check import find
from worldroom.models.contract.adapters import BadAdapter
from worldroom.models.shared import lora_file as lora
from worldroom.models.shared.random_weights import draw
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.parity.rollout import SMALL
from worldroom.models.wan.transformer import WanTransformer
from worldroom.models.wan.weights import manifest
from worldroom.models.weights import WeightsError
from worldroom.tests.exported import export_component

LAYER = "blocks.1.self_attn.q"
WRAPPED = f"base_model.model.model.{LAYER}"
PUBLIC = f"base_model.model.{LAYER}"


def network() -> WanTransformer:
    made = WanTransformer(SMALL)
    draw(made, 1)
    return made


def table(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
    return {f"{WRAPPED}.lora_A.default.weight": a, f"{WRAPPED}.lora_B.default.weight": b}


def test_merge_is_the_formula() -> None:
    made, a, b = network(), torch.full((4, 48), 0.5), torch.full((48, 4), 0.25)
    plain = made.get_parameter(f"{LAYER}.weight").clone()
    lora.merge(made, lora.read_table(table(a, b), lora.layers_of(made), alpha=8.0))
    torch.testing.assert_close(made.get_parameter(f"{LAYER}.weight"), plain + 2.0 * 4 * 0.5 * 0.25)


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
    with pytest.raises(BadAdapter, match=says):
        lora.read_table(given, lora.layers_of(network()), 8.0)


def test_a_published_lora_is_checked_read_and_merged(tmp_path: Path) -> None:
    """As training tools save it: names behind `base_model.model.`, inside `generator_lora`; no code of it runs."""
    spec = replace(SPECS["longlive-1.3b"], shape=SMALL, lora_rank=4, lora_alpha=8.0)
    made = manifest(spec)
    assert made is not None
    component = made.component("lora")
    keys = component.expects()
    assert len(keys) == 2 * SMALL.layers * 10, "q, k, v, o of two attentions and two layers of the feed forward"
    assert keys["blocks.1.ffn.2.lora_A.weight"] == (4, 96)
    values = {key: torch.randn(shape, dtype=torch.bfloat16) for key, shape in keys.items()}
    export_component(component, component.layouts[0], values, tmp_path)
    stored = torch.load(tmp_path / "models/lora.pt", weights_only=True)
    assert f"{PUBLIC}.lora_A.weight" in stored["generator_lora"]
    found = find(component, tmp_path)
    net = network()
    plain = {name: value.clone() for name, value in net.named_parameters()}
    lora.merge(net, lora.read_table(load.read(found), lora.layers_of(net), spec.lora_alpha))
    weight = f"{LAYER}.weight"
    a, b = (values[f"{LAYER}.lora_{side}.weight"].float() for side in "AB")
    torch.testing.assert_close(net.get_parameter(weight), plain[weight] + 2.0 * b @ a)
    assert torch.equal(net.get_parameter("blocks.1.modulation"), plain["blocks.1.modulation"])
    del stored["generator_lora"][f"{PUBLIC}.lora_B.weight"]
    torch.save(stored, tmp_path / "models/lora.pt")
    with pytest.raises(
        WeightsError, match=r"key 'base_model\.model\.blocks\.1\.self_attn\.q\.lora_B\.weight' is missing"
    ):
        find(component, tmp_path)
