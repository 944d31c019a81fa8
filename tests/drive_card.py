"""The drive card with random weights, for tests that ask whose numbers meet, not whether they are pretty."""

import numpy as np
import torch
from worldroom.models.contract.loaded import LoadedCard
from worldroom.models.contract.loop import CHUNK_ROLLOUT
from worldroom.models.contract.recipe import Precision, RuntimeChoice
from worldroom.models.drive.card import RECIPE, drive_card
from worldroom.models.drive.loop import DriveCarry, DriveLoop
from worldroom.models.drive.runtime import SHAPE as NETWORK
from worldroom.models.drive.runtime import DriveRuntime
from worldroom.models.drive.transformer import DriveTransformer
from worldroom.models.shared.road.autoencoder import DriveAutoencoder
from worldroom.models.shared.road.initial_latents import Openings, shape_of
from worldroom.models.shared.road.look import ONE_HOT


def drive() -> LoadedCard:
    torch.manual_seed(11)
    transformer, autoencoder = DriveTransformer(NETWORK), DriveAutoencoder()
    with torch.no_grad():
        for parameter in transformer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.03)
    nets = (transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False))
    runtime = DriveRuntime(*nets, lambda text: ONE_HOT[len(text)])
    openings = Openings(
        np.random.default_rng(3).standard_normal(shape_of(NETWORK.tokens, NETWORK.channels)).astype(np.float32)
    )
    choice = RuntimeChoice(RECIPE.sampler, 2, Precision.FP32)
    return LoadedCard(
        drive_card(), choice, "random", {CHUNK_ROLLOUT: DriveLoop(openings)}, runtime, DriveCarry, runtime
    )
