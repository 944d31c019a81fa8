"""The toy's second loop: six tokens, one a step, write the prompt that steers the world a little later.

    seen (the last latent), memory (what it wrote before)  ->  token, token, ..  ->  "slow deep violet .."

Integers again: every token depends on all before it, so a wrong order, row or batch changes the text, and with it every
later latent. Knows no session and no time.
"""

import hashlib

import msgspec
import numpy as np

from ...kernels.philox import NoiseKey, integers
from ..contract.loop import Done, PromptAsk, PromptOutcome, StepKind, WorkPlan
from .card import CHANNELS
from .loop import MODULUS, Latent, ToyCarry

WORDS = ("calm", "red", "storm", "glass", "slow", "violet", "deep", "bright")
TOKENS = 6
NOISE_STEP = 512  # the main loop's steps stay below


class NarratorCarry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one text leaves to the next: the sum of its tokens, and of those before."""

    memory: int


class NarratorState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seed: int
    branch: int
    run: int
    seen_C: Latent
    memory: int
    tokens: tuple[int, ...]


class TokenRow(msgspec.Struct, frozen=True):
    """One more token: `noise` is the step's own."""

    seen_C: Latent
    memory: int
    tokens: tuple[int, ...]
    noise: int


class Token(msgspec.Struct, frozen=True):
    number: int


class NarratorLoop:
    """Stateless."""

    def init(self, ask: PromptAsk[NarratorCarry]) -> NarratorState:
        seen_C = ask.seen.last_C if isinstance(ask.seen, ToyCarry) else np.zeros(CHANNELS, np.int64)
        memory = 0 if ask.carry is None else ask.carry.memory
        return NarratorState(ask.seed, ask.branch, ask.run, seen_C, memory, ())

    def next(self, state: NarratorState) -> WorkPlan[TokenRow] | Done:
        step = len(state.tokens)
        if step == TOKENS:
            return Done()
        key = NoiseKey(state.seed, state.branch, state.run, NOISE_STEP + step)
        noise = int(integers(key, (1,), MODULUS)[0])
        return WorkPlan(StepKind.TOKEN, (TOKENS,), TokenRow(state.seen_C, state.memory, state.tokens, noise))

    def advance(self, state: NarratorState, result: Token) -> NarratorState:
        return msgspec.structs.replace(state, tokens=(*state.tokens, result.number))

    def finalize(self, state: NarratorState) -> PromptOutcome[NarratorCarry]:
        text = " ".join(WORDS[token] for token in state.tokens)
        carry = NarratorCarry((state.memory + sum(state.tokens)) % MODULUS)
        return PromptOutcome(text, carry, hashlib.sha256(text.encode()).hexdigest())


def token(row: TokenRow) -> Token:
    """The step itself: which of the words comes next."""
    said = sum((2 + place) * number for place, number in enumerate(row.tokens))
    total = int(row.seen_C.sum()) * 31 + said * 48271 + row.memory * 7 + row.noise
    return Token(total % MODULUS % len(WORDS))
