"""How the autoencoder is trained, whole or its decoder alone: what a batch is differs, all else does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...models.shared.road.autoencoder import DriveAutoencoder, MatrixConv, to_model
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from ..drive.stage_autoencoder import held_psnr, picture_loss

BATCH, REPORT_EVERY = 12, 100
SQUARED = 3.0  # weight of the squared error beside `picture_loss`

Report = Callable[[int, float, float], None]
"""Gets iteration, loss, and dB of held-out encoded pictures."""
Batch = Callable[[np.random.Generator], tuple[Tensor, Tensor]]
"""Pictures as they are drawn and as they should be."""


def train(
    model: DriveAutoencoder,
    trained: nn.Module,
    ends: Sequence[MatrixConv],
    batch: Batch,
    rates: Rates,
    held: NDArray[np.uint8],
    path: Path,
    total: int,
    seed: int,
    report: Report,
) -> DriveAutoencoder:
    """Train this part on (resuming from `path`) and return the averaged model; `ends` are not Muon's."""
    average = averaged_copy(model)
    hidden = [m.weight for m in trained.modules() if isinstance(m, MatrixConv) and m not in ends]
    optimiser = optimiser_for(hidden, trained, rates, (0.9, 0.98))
    first, losses = resume(path, model, average, optimiser), 0.0
    rng, held_x = np.random.default_rng([seed, first]), to_model(torch.from_numpy(held))
    for iteration in range(first, total):
        with torch.autocast("cpu", torch.bfloat16):
            drawn, picture = batch(rng)
        drawn = drawn.float()
        loss = picture_loss(drawn, picture) + SQUARED * (drawn - picture).square().mean()
        torch.autograd.backward(loss)
        optimiser.step(iteration, total)
        update_average(average, model, min(0.998, iteration / (iteration + 20)))
        losses += float(loss.detach())
        if (iteration + 1) % REPORT_EVERY == 0 or iteration + 1 == total:
            save_checkpoint(path, iteration + 1, model, average, optimiser)
            report(iteration + 1, losses / REPORT_EVERY, held_psnr(average, held_x))
            losses = 0.0
    return average.eval()
