"""The interleave gate: sessions stepped in a random order and in mixed batches make the same frames as alone.

Fits every card: it reads the card's controls, makes up prompts and presses from a seed, and batches exactly what the
engine may batch (steps of equal loop, kind and shape). Values are compared chunk by chunk, latents by their digest.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..contract.card import ModelCard
from ..contract.conditions import PlayerInput
from ..contract.loaded import LoadedCard
from .ladder import Pair, ParityCheck, ParityLevel
from .prompts import ParityPrompts
from .session import ChunkInput, ParitySession


def interleave_check(
    card: ModelCard, load: Callable[[], LoadedCard], seeds: int = 2, sessions: int = 3, chunks: int = 0
) -> ParityCheck:
    """The card's interleave check; `chunks` 0 = two more than its window holds, so that the oldest fall out.

    Cards whose parity is exact must be bit-identical, frames and digests both.
    """
    chunks = chunks or (card.cache.window + 2 if card.cache else 2)
    tolerance = 0.0 if card.parity.exact else card.parity.tolerance * 255
    subject = f"{sessions} sessions x {chunks} chunks x {seeds} orders, mixed batches against alone"
    return ParityCheck(ParityLevel.INTERLEAVE, subject, tolerance, lambda: _pairs(load(), seeds, sessions, chunks))


def made_up_inputs(loaded: LoadedCard, chunks: int, rng: random.Random) -> list[ChunkInput]:
    """Presses at random, two prompts, and a switch of the prompt somewhere in the middle."""
    card = loaded.card
    rebuilds = card.cache is not None and card.cache.rebuild > 0
    switch = rng.randrange(1, chunks) if chunks > 1 else 0
    inputs = []
    for chunk in range(chunks):
        controls = tuple(rng.choice((0.0, 0.0, 1.0)) for _ in card.controls)
        pointer = (rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1))
        prompt = card.suggestions[0 if chunk < switch else -1] if card.suggestions else ""
        others = tuple(
            PlayerInput(tuple(rng.choice((0.0, 0.0, 1.0)) for _ in card.controls)) for _ in range(card.players - 1)
        )
        inputs.append(ChunkInput(controls, pointer, prompt, recache=rebuilds and chunk == switch, others=others))
    return inputs


def _pairs(loaded: LoadedCard, seeds: int, sessions: int, chunks: int) -> Iterator[Pair]:
    loaded.runtime.allocate(sessions)
    encoded: dict[str, object] = {}

    def features(text: str) -> object:
        if text not in encoded:
            encoded[text] = loaded.runtime.encode_prompt(text)
        return encoded[text]

    for seed in range(seeds):
        rng = random.Random(seed)
        worlds = [
            ParitySession(loaded, slot, rng.randrange(2**31), made_up_inputs(loaded, chunks, rng), features)
            for slot in range(sessions)
        ]
        run_together(worlds, rng)
        together = [list(world.outcomes) for world in worlds]
        for number, world in enumerate(worlds):
            alone = list(world.alone(sessions - 1 - number).run())
            for chunk, (mixed, solo) in enumerate(zip(together[number], alone, strict=True)):
                block = f"order {seed}, session {number}"
                yield Pair(chunk, block, "frames", mixed.frames, solo.frames)
                if loaded.card.parity.exact:
                    yield Pair(chunk, block, "digest", _bytes(mixed.digest), _bytes(solo.digest))


def run_together(worlds: Sequence[ParitySession], rng: random.Random) -> None:
    """Step the worlds to their end: pick one at random, batch with it whatever may share its step, some of the time."""
    while waiting := [world for world in worlds if not world.finished]:
        for world in waiting:
            if world.may_begin and rng.random() < 0.7:
                world.begin()
        steppers: list[ParitySession | ParityPrompts] = [*waiting, *(world.prompts for world in waiting)]
        ready = [stepper for stepper in steppers if stepper.plan is not None]
        if not ready:
            continue
        first = rng.choice(ready)
        batch = [first] + [w for w in ready if w is not first and _may_share(first, w) and rng.random() < 0.8]
        rng.shuffle(batch)
        plans = [world.plan for world in batch if world.plan is not None]
        results = first.loaded.runtime.execute(plans[0].kind, [p.row for p in plans], [w.view() for w in batch])
        for stepper, result in zip(batch, results, strict=True):
            stepper.advance(result)


def _may_share(a: ParitySession | ParityPrompts, b: ParitySession | ParityPrompts) -> bool:
    if a.plan is None or b.plan is None:
        return False
    return (a.name, a.plan.kind, a.plan.shape) == (b.name, b.plan.kind, b.plan.shape)


def _bytes(digest: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    return np.frombuffer(hashlib.sha256(digest.encode()).digest(), np.uint8)
