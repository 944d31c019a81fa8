"""Stage `autoencoder`: the autoencoder of drive is trained on, encoder and decoder, on frames it has not seen.

Same architecture and loss; it starts from drive's shipped weights, because they had few iterations. Frames lie far
apart in time, of many sessions, so that one batch holds many looks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...models.shared.road.autoencoder import DriveAutoencoder, to_model
from ..drive.optimise import Rates
from ..drive.simulator.driver import change_themes, new_driver
from ..drive.simulator.render import render
from ..drive.simulator.world import advance, first_world
from . import drawing
from .data import lead_in
from .dice import new_luck
from .drawing import BATCH

RATES = Rates(muon=0.008, adam=1.2e-3, warm_up=60, flat=0.35, floor=0.01)
LATENT_NOISE, APART = 0.12, 9


def frames(seed: int, sessions: int, count: int) -> NDArray[np.uint8]:
    """`count` times `sessions` pictures [N, 80, 128, 3], APART frames apart."""
    rng = np.random.default_rng([seed, 3])
    world, luck = first_world(rng, sessions), new_luck(rng, sessions)
    lead_in(world, luck, rng)
    driver, drawn = new_driver(rng, sessions), []
    for frame in range(count * APART):
        change_themes(world, rng)
        advance(world, driver.controls(world), luck.draw()[1])
        if frame % APART == 0:
            drawn.append(render(world))
    return np.concatenate(drawn)


def train(
    start: DriveAutoencoder,
    pictures: NDArray[np.uint8],
    held: NDArray[np.uint8],
    path: Path,
    total: int,
    seed: int,
    report: drawing.Report,
) -> DriveAutoencoder:
    """Train on (resuming from `path`) and return the averaged model."""
    torch.manual_seed(seed)
    model = start.train().requires_grad_(True)
    model.encoder.normal.register_forward_pre_hook(lambda _, given: (given[0].float(),))
    ends = (model.encoder.inward, model.encoder.outward, model.decoder.inward, model.decoder.outward)

    def batch(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        picture = to_model(torch.from_numpy(pictures[rng.integers(len(pictures), size=BATCH)]))
        latent = model.encoder(picture)
        return model.decoder(latent + LATENT_NOISE * torch.rand(BATCH, 1, 1, 1) * torch.randn_like(latent)), picture

    return drawing.train(model, model, ends, batch, RATES, held, path, total, seed, report)
