"""The toys' checks: rollouts against the straight-line golden, and the interleave gate."""

import random
from collections.abc import Iterator

import numpy as np

from ..contract.card import ModelCard
from ..contract.loaded import LoadedCard
from ..parity.interleave import interleave_check, made_up_inputs
from ..parity.ladder import Pair, ParityCheck, ParityLevel
from ..parity.session import ParitySession
from . import golden
from .card import ToySpec
from .clip import ToyClipLoop, ToyClipRuntime
from .load import toy_loaded
from .runtime import ToyRuntime

CHUNKS = 40
CLIPS = 3


def checks(card: ModelCard) -> tuple[ParityCheck, ...]:
    """C1 and interleave; a toy's one component is its arithmetic, which the golden writes anew."""
    if card.cache is None:
        return (
            ParityCheck(ParityLevel.C1, f"latents of {CLIPS} clips against the golden", 0.0, lambda: _clips(card)),
            interleave_check(card, lambda: _clip(card), seeds=2),
        )
    chunks = 12 if card.prompt_loop is not None else 0
    return (
        ParityCheck(ParityLevel.C1, f"latents of {CHUNKS} chunks against the golden", 0.0, lambda: _rollout(card)),
        interleave_check(card, lambda: _loaded(card), seeds=5, chunks=chunks),
    )


def _loaded(card: ModelCard) -> LoadedCard:
    return toy_loaded(card, card.recipe.default, ToyRuntime(ToySpec(sleeps=False), lambda seconds: None))


def _clip(card: ModelCard) -> LoadedCard:
    runtime = ToyClipRuntime(ToySpec(sleeps=False), lambda seconds: None)
    return LoadedCard(card, card.recipe.default, "none", {card.main_loop: ToyClipLoop()}, runtime)


def _rollout(card: ModelCard) -> Iterator[Pair]:
    loaded, steps = _loaded(card), card.recipe.default.steps
    loaded.runtime.allocate(1)
    inputs = made_up_inputs(loaded, CHUNKS, random.Random(1))
    steering = []
    for given in inputs:
        left, right, up, down = given.controls
        second = given.others[0].controls if given.others else ()
        steering.append(golden.GoldenInput((left, right, up, down), ((given.prompt, 1.0),), second=second))
    expected = golden.run(7, 0, steps, 24, 1, steering, narrated=card.prompt_loop is not None)
    session = ParitySession(loaded, 0, 7, inputs, loaded.runtime.encode_prompt)
    for chunk, (outcome, want) in enumerate(zip(session.run(), expected, strict=True)):
        yield Pair(chunk, "arithmetic", "latent", outcome.carry.last_C, np.array(want.latent, np.int64))


def _clips(card: ModelCard) -> Iterator[Pair]:
    loaded = _clip(card)
    session = ParitySession(loaded, 0, 7, made_up_inputs(loaded, CLIPS, random.Random(1)), loaded.runtime.encode_prompt)
    session.begin()
    while not session.finished:
        plan, clip, x_C = session.plan, len(session.outcomes), session.state.x_C
        assert plan is not None, "a clip is under way"
        (result,) = loaded.runtime.execute(plan.kind, [plan.row], [None])
        if session.advance(result) is None:
            continue
        want = golden.clip(7, 0, clip, session.inputs[clip].prompt)
        yield Pair(clip, "arithmetic", "latent", x_C, np.array(want, np.int64))
        if not session.finished:
            session.begin()
