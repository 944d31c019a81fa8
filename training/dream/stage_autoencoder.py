"""Stage `autoencoder`: the autoencoder of drive is trained on, encoder and decoder, on frames it has not seen.

Same architecture and loss; it starts from drive's shipped weights, because they had few iterations. Frames lie far
apart in time, of many sessions, so that one batch holds many looks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...models.shared.road.autoencoder import DriveAutoencoder, MatrixConv, to_model
from ..drive.optimise import Rates, averaged_copy, optimiser_for, resume, save_checkpoint, update_average
from ..drive.simulator.driver import change_themes, new_driver
from ..drive.simulator.render import render
from ..drive.simulator.world import advance, first_world
from ..drive.stage_autoencoder import held_psnr, picture_loss
from .data import lead_in
from .dice import new_luck

RATES = Rates(muon=0.008, adam=1.2e-3, warm_up=60, flat=0.35, floor=0.01)
BATCH, LATENT_NOISE, APART = 12, 0.12, 9
SQUARED = 3.0  # weight of the squared error beside `picture_loss`
REPORT_EVERY = 100


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
    report: Callable[[int, float, float], None],
) -> DriveAutoencoder:
    """Train on (resuming from `path`) and return the averaged model; `report` gets iteration, loss, held-out dB."""
    torch.manual_seed(seed)
    model = start.train().requires_grad_(True)
    average = averaged_copy(model)
    model.encoder.normal.register_forward_pre_hook(lambda _, given: (given[0].float(),))
    ends = (model.encoder.inward, model.encoder.outward, model.decoder.inward, model.decoder.outward)
    hidden = [m.weight for m in model.modules() if isinstance(m, MatrixConv) and m not in ends]
    optimiser = optimiser_for(hidden, model, RATES, (0.9, 0.98))
    first, losses = resume(path, model, average, optimiser), 0.0
    rng, held_x = np.random.default_rng([seed, first]), to_model(torch.from_numpy(held))
    for iteration in range(first, total):
        picture = to_model(torch.from_numpy(pictures[rng.integers(len(pictures), size=BATCH)]))
        with torch.autocast("cpu", torch.bfloat16):
            latent = model.encoder(picture)
            noisy = latent + LATENT_NOISE * torch.rand(BATCH, 1, 1, 1) * torch.randn_like(latent)
            drawn = model.decoder(noisy)
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
