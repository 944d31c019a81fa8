"""The drive's checks, on random weights: the streamed passes, the rollout bit by bit against the golden, the gate."""

import random
from collections.abc import Iterator

import numpy as np
import torch

from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..parity.interleave import interleave_check, made_up_inputs
from ..parity.ladder import Pair, ParityCheck, ParityLevel
from ..parity.session import ParitySession
from ..shared.road.autoencoder import DriveAutoencoder
from ..shared.road.initial_latents import Openings, shape_of
from ..shared.road.look import ONE_HOT
from . import golden
from .card import RECIPE, TOKENS, drive_card
from .loop import DriveLoop
from .memory import CHANNELS
from .runtime import SHAPE as NETWORK
from .runtime import DriveRuntime
from .transformer import DriveTransformer

SEED, CHUNKS = 7, 26  # twice the window and more


def checks() -> tuple[ParityCheck, ...]:
    """Bit-equal: the golden commits in passes of its own and keeps no ring."""
    rollout = ParityCheck(ParityLevel.C1, f"rollout: {CHUNKS} frames, a prompt switch, golden", 0.0, _run)
    return rollout, interleave_check(drive_card(), loaded, seeds=1, sessions=3)


def loaded() -> LoadedCard:
    """The card with random weights on the CPU."""
    transformer, autoencoder = _networks()
    runtime = DriveRuntime(transformer, autoencoder, lambda text: ONE_HOT[len(text) % len(ONE_HOT)])
    return LoadedCard(drive_card(), RECIPE.default, "random", {CHUNK_ROLLOUT: DriveLoop(_openings())}, runtime)


def _networks() -> tuple[DriveTransformer, DriveAutoencoder]:
    """Random weights without the zeros that training starts from, so that every part matters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        transformer, autoencoder = DriveTransformer(NETWORK), DriveAutoencoder()
        for parameter in transformer.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.03)
    return transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False)


def _openings() -> Openings:
    return Openings(np.random.default_rng(3).standard_normal(shape_of(TOKENS, CHANNELS)).astype(np.float32))


def _run() -> Iterator[Pair]:
    made = loaded()
    made.runtime.allocate(1)
    inputs = made_up_inputs(made, CHUNKS, random.Random(4))
    session = ParitySession(made, 0, SEED, inputs, made.runtime.encode_prompt)
    looks = np.stack([ONE_HOT[len(given.prompt) % len(ONE_HOT)] for given in inputs]).astype(np.float32)
    controls = np.array([given.controls for given in inputs], np.float32)
    opening = _openings().pick(looks[0], SEED)
    frames = golden.rollout(*_networks(), opening, SEED, 0, made.choice.steps, controls, looks, fused=False)
    for chunk, (outcome, want) in enumerate(zip(session.run(), frames, strict=True)):
        yield Pair(chunk, "transformer", "latent", outcome.carry.history_3NC[0], want.latent_NC)
        yield Pair(chunk, "autoencoder", "frame", outcome.frames[0], want.frame_HWC)
