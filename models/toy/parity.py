"""The toy's checks: its rollout against the straight-line golden, and the interleave gate."""

import random
from collections.abc import Iterator

import numpy as np

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..parity.interleave import interleave_check, made_up_inputs
from ..parity.ladder import Pair, ParityCheck, ParityLevel
from ..parity.session import ParitySession
from . import golden
from .card import RECIPE, ToySpec, toy_card
from .loop import ToyLoop
from .runtime import ToyRuntime

CHUNKS = 40


def checks(card: ModelCard) -> tuple[ParityCheck, ...]:
    """C1 and interleave; the toy's one component is its arithmetic, which the golden writes anew."""
    return (
        ParityCheck(ParityLevel.C1, f"latents of {CHUNKS} chunks against the golden", 0.0, _rollout),
        interleave_check(card, _loaded, seeds=5),
    )


def _loaded() -> LoadedCard:
    spec = ToySpec(sleeps=False)
    return LoadedCard(
        toy_card(spec), RECIPE.default, "none", {CHUNK_ROLLOUT: ToyLoop(spec)}, ToyRuntime(spec, lambda seconds: None)
    )


def _rollout() -> Iterator[Pair]:
    loaded, steps = _loaded(), RECIPE.default.steps
    loaded.runtime.allocate(1)
    inputs = made_up_inputs(loaded, CHUNKS, random.Random(1))
    steering = []
    for given in inputs:
        left, right, up, down = given.controls
        steering.append(golden.GoldenInput((left, right, up, down), ((given.prompt, 1.0),)))
    expected = golden.run(7, 0, steps, 24, 1, steering)
    session = ParitySession(loaded, 0, 7, inputs, loaded.runtime.encode_prompt)
    for chunk, (outcome, want) in enumerate(zip(session.run(), expected, strict=True)):
        yield Pair(chunk, "arithmetic", "latent", outcome.carry.last_C, np.array(want.latent, np.int64))
