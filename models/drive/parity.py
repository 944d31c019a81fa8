"""The drive's rungs, on drawn weights: the streamed passes, the rollout bit by bit against the golden, the gate."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import torch

from ..contract.loaded import LoadedCard
from ..contract.recipe import Precision, RuntimeChoice
from ..parity.interleave import interleave_trial, made_up_inputs
from ..parity.ladder import Pair, Rung, Trial
from ..parity.session import Session
from . import golden
from .autoencoder import DriveAutoencoder
from .card import RECIPE, drive_card
from .look import ONE_HOT
from .loop import DriveLoop
from .openings import SHAPE, Openings
from .runtime import SHAPE as NETWORK
from .runtime import DriveRuntime, dtype_of
from .transformer import DriveTransformer

SEED, CHUNKS = 7, 26  # twice the window and more


def drive_trials() -> tuple[Trial, ...]:
    """Bit-equal in both precisions: the golden commits in passes of its own and keeps no ring."""
    rollouts = [
        Trial(Rung.C1, f"rollout in {precision}: {CHUNKS} frames, a prompt switch, golden", 0.0, _run(precision))
        for precision in (Precision.FP32, Precision.BF16)
    ]  # fmt: skip
    gate = interleave_trial(drive_card(), lambda: loaded(Precision.FP32), seeds=1, sessions=3)
    return (*rollouts, gate)


def loaded(precision: Precision) -> LoadedCard:
    """The card with drawn weights on the CPU."""
    transformer, autoencoder = _networks(precision)
    choice = RuntimeChoice(RECIPE.sampler, RECIPE.default.steps, precision)
    runtime = DriveRuntime(transformer, autoencoder, lambda text: ONE_HOT[len(text) % len(ONE_HOT)], precision)
    return LoadedCard(drive_card(precision), choice, "drawn", DriveLoop(_openings()), runtime)


def _networks(precision: Precision) -> tuple[DriveTransformer, DriveAutoencoder]:
    """Random weights without the zeros that training starts from, so that every part matters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        transformer, autoencoder = DriveTransformer(NETWORK), DriveAutoencoder()
        for parameter in transformer.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.03)
    kind = dtype_of(precision)
    transformer, autoencoder = transformer.eval().requires_grad_(False), autoencoder.eval().requires_grad_(False)
    transformer.to(kind)
    autoencoder.to(kind)
    return transformer, autoencoder


def _openings() -> Openings:
    return Openings(np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32))


def _run(precision: Precision) -> Callable[[], Iterator[Pair]]:
    """A trial's body for one precision."""

    def run() -> Iterator[Pair]:
        made = loaded(precision)
        made.runtime.allocate(1)
        inputs = made_up_inputs(made, CHUNKS, random.Random(4))
        session = Session(made, 0, SEED, inputs, made.runtime.encode_prompt)
        looks = np.stack([ONE_HOT[len(given.prompt) % len(ONE_HOT)] for given in inputs]).astype(np.float32)
        controls = np.array([given.controls for given in inputs], np.float32)
        opening, networks = _openings().pick(looks[0], SEED), _networks(precision)
        frames = golden.rollout(*networks, opening, SEED, 0, made.choice.steps, controls, looks, fused=False)
        for chunk, (outcome, want) in enumerate(zip(session.run(), frames, strict=True)):
            yield Pair(chunk, "transformer", "latent", outcome.carry.history_3NC[0], want.latent_NC)
            yield Pair(chunk, "autoencoder", "frame", outcome.frames_FHWC[0], want.frame_HWC)

    return run
