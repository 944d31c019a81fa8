"""The judge: a small network that reads off a picture what the simulator knows of it.

It measures dreamed frames (quality.py), so it is validated on held-out simulator frames, also on ones whose
road was faded away. It sees pictures alone and knows nothing of the transformer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from ...models.shared.road.look import BIOMES, TIMES, WEATHERS
from .simulator.labels import CENTRE_ROWS
from .simulator.world import TOP_SPEED

SIZES = (1, len(CENTRE_ROWS), 1, len(TIMES), len(BIOMES), len(WEATHERS), 1)
OBJECT_UNIT = 5.0  # objects are predicted in fives


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge reads off N pictures."""

    road_N: Tensor  # logit: > 0 means there is a road
    centre_NR: Tensor  # columns of the road's middle at CENTRE_ROWS
    speed_N: Tensor  # m/s
    time_NT: Tensor  # logits
    biome_NB: Tensor
    weather_NW: Tensor
    objects_N: Tensor  # count, not rounded

    def attributes(self) -> Tensor:
        """Time, biome and weather indices [N, 3]."""
        return torch.stack([self.time_NT.argmax(1), self.biome_NB.argmax(1), self.weather_NW.argmax(1)], 1)


class Judge(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(48, 48, 1),
            nn.ReLU(),
            nn.Conv2d(48, 64, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(64, 96, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(96, 96, 3, 2, 1),
            nn.ReLU(),
        )
        self.hidden = nn.Linear(96 * 40, 160)
        self.heads = nn.Linear(160, sum(SIZES))

    def forward(self, picture_N3HW: Tensor) -> Verdict:
        """Pictures [N, 3, 80, 128] in [-1, 1]."""
        x = self.body(F.pixel_unshuffle(picture_N3HW, 4)).flatten(1)
        road, centre, speed, time, biome, weather, objects = self.heads(F.relu(self.hidden(x))).split(SIZES, 1)
        return Verdict(
            road[:, 0], 64 + 64 * centre, TOP_SPEED * speed[:, 0], time, biome, weather, OBJECT_UNIT * objects[:, 0]
        )


def load_judge(path: Path) -> Judge:
    judge = Judge()
    judge.load_state_dict({name: tensor.float() for name, tensor in load_file(path).items()})
    return judge.eval().requires_grad_(False)


def save_judge(judge: Judge, path: Path, metadata: dict[str, str]) -> None:
    save_file({name: tensor.half().contiguous() for name, tensor in judge.state_dict().items()}, path, metadata)
