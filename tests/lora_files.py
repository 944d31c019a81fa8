"""LoRA files for the tiny Wan card, drawn from a seed."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from worldroom.models.shared.lora_file import layers_of
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.transformer import WanTransformer

SPEC = SPECS["wan-tiny-random"]


def _layers() -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return layers_of(WanTransformer(SPEC.shape))


LAYERS = _layers()


def pairs(seed: int, rank: int) -> dict[tuple[str, str], torch.Tensor]:
    """By layer and side, for every linear layer of the blocks."""
    dice, made = torch.Generator().manual_seed(seed), {}
    for layer, (out, inner) in LAYERS.items():
        if layer.startswith("blocks."):
            made[layer, "A"] = torch.randn(rank, inner, generator=dice) / inner**0.5
            made[layer, "B"] = torch.randn(out, rank, generator=dice) / rank**0.5
    return made


def peft_file(file: Path, seed: int, rank: int) -> Path:
    table = {
        f"base_model.model.{layer}.lora_{side}.weight": value for (layer, side), value in pairs(seed, rank).items()
    }
    save_file(table, file)
    return file
