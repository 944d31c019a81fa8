"""LoRA files for the tiny cards, drawn from a seed."""

from functools import cache
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from worldroom.models.matrix_game import spec as matrix_game
from worldroom.models.matrix_game.transformer import MatrixGameTransformer
from worldroom.models.shared.lora_file import layers_of
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.transformer import WanTransformer
from worldroom.models.waypoint import spec as waypoint
from worldroom.models.waypoint.transformer import WaypointTransformer

SPEC = SPECS["wan-tiny-random"]
WAN, MATRIX_GAME, WAYPOINT = SPEC.name, matrix_game.tiny().name, waypoint.tiny().name
CARDS = (WAN, MATRIX_GAME, WAYPOINT)
_WITHIN = ("blocks.", "layers.")


def _network(card: str) -> nn.Module:
    if card == WAN:
        return WanTransformer(SPEC.shape)
    if card == MATRIX_GAME:
        return MatrixGameTransformer(matrix_game.tiny())
    return WaypointTransformer(waypoint.tiny())


@cache
def layers(card: str = WAN) -> dict[str, tuple[int, ...]]:
    """Of the whole network, in blocks or not."""
    with torch.device("meta"):
        return layers_of(_network(card))


LAYERS = layers()


def pairs(seed: int, rank: int, card: str = WAN) -> dict[tuple[str, str], torch.Tensor]:
    """By layer and side, for every linear layer of the blocks."""
    dice, made = torch.Generator().manual_seed(seed), {}
    for layer, (out, inner) in layers(card).items():
        if layer.startswith(_WITHIN):
            made[layer, "A"] = torch.randn(rank, inner, generator=dice) / inner**0.5
            made[layer, "B"] = torch.randn(out, rank, generator=dice) / rank**0.5
    return made


def peft_file(file: Path, seed: int, rank: int, card: str = WAN) -> Path:
    table = {
        f"base_model.model.{layer}.lora_{side}.weight": value
        for (layer, side), value in pairs(seed, rank, card).items()
    }
    save_file(table, file)
    return file
