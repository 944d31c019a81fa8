"""The toy's chunk_rollout loop: n denoise steps, one commit step that writes the slab, one decode.

    x_0 = noise(0)        x0 = denoise(x_i; cache, controls, prompt, last)        x_(i+1) = mix(x0, noise(i+1), level)
    entry = commit(x0; cache, controls)     ship moves by the controls and by x0     frames = decode(ship, x0)

All numbers are integers below `MODULUS`. Every part (cache order, noise, controls, prompt, last chunk) changes the
latent, so a wrong commit, rollback or batch changes every later chunk. Knows neither slots nor time.
"""

from __future__ import annotations

from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...kernels.philox import NoiseKey, integers
from ..contract.latents import Latents
from ..contract.loop import Ask, Commit, Committed, Done, Outcome, StepKind, WorkPlan
from .card import CHANNELS, HEIGHT, RECIPE, WIDTH, ToySpec
from .markers import BAND, Marker

MODULUS = 2**31 - 1
ONE = 1000  # integer 1.0 of controls, shares and noise levels
TRAIL = 16
SUB = 64  # ship units per pixel

CONTROLS = 4  # of one player

Latent = NDArray[np.int64]


class Ship(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Place and speed in 1/SUB pixels; the y axis starts below the marker band."""

    x: int
    y: int
    vx: int
    vy: int


START = Ship(WIDTH * SUB // 2, (HEIGHT - BAND) * SUB // 2, 0, 0)


class ToyCarry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a chunk hands on. `trail` holds the last ships, oldest first, at most TRAIL of them. `second`: another
    player's ship."""

    last_C: Latent
    ship: Ship
    trail: tuple[Ship, ...]
    second: Ship | None = None


class ToyState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One chunk under way. `step` counts denoise steps done; `x_C` is x_i, after the last step x0. `controls`: of all
    players, one after another; `second`: the way of the second one's ship.
    """

    seed: int
    branch: int
    chunk: int
    steps: int
    input_seq: int
    controls: tuple[int, ...]
    prompt_C: Latent
    carry: ToyCarry
    step: int
    x_C: Latent
    committed: bool
    path: tuple[Ship, ...]
    frames_FHWC: NDArray[np.uint8] | None
    second: tuple[Ship, ...] = ()


class DenoiseRow(msgspec.Struct, frozen=True):
    x_C: Latent
    last_C: Latent
    prompt_C: Latent
    controls: tuple[int, ...]


class CommitRow(msgspec.Struct, frozen=True):
    x_C: Latent
    controls: tuple[int, ...]


class DecodeRow(msgspec.Struct, frozen=True):
    """One ship and one marker per frame; `trail` before the first frame."""

    x_C: Latent
    prompt_C: Latent
    trail: tuple[Ship, ...]
    path: tuple[Ship, ...]
    markers: tuple[Marker, ...]
    second: tuple[Ship, ...] = ()


ToyRow = DenoiseRow | CommitRow | DecodeRow


class Denoised(msgspec.Struct, frozen=True):
    x_C: Latent


class Decoded(msgspec.Struct, frozen=True):
    frames_FHWC: NDArray[np.uint8]


ToyResult = Denoised | Committed | Decoded


class ToyLoop:
    """Stateless; `spec` gives frames per chunk and their rate."""

    def __init__(self, spec: ToySpec) -> None:
        self._spec = spec

    def init(self, ask: Ask[ToyCarry]) -> ToyState:
        RECIPE.levels(ask.steps)
        carry = _opening(ask.seed, ask.branch) if ask.carry is None else ask.carry
        return ToyState(
            seed=ask.seed,
            branch=ask.branch,
            chunk=ask.chunk,
            steps=ask.steps,
            input_seq=ask.conditions.input_seq,
            controls=tuple(round(value * ONE) for value in ask.conditions.pressed),
            prompt_C=_steered(mix_prompts(ask.features), ask.written),
            carry=carry,
            step=0,
            x_C=_noise(ask.seed, ask.branch, ask.chunk, 0),
            committed=False,
            path=(),
            frames_FHWC=None,
        )

    def next(self, state: ToyState) -> WorkPlan[ToyRow] | Done:
        if state.step < state.steps:
            denoise = DenoiseRow(state.x_C, state.carry.last_C, state.prompt_C, state.controls)
            return WorkPlan(StepKind.DENOISE, (CHANNELS,), denoise)
        if not state.committed:
            commit = CommitRow(state.x_C, state.controls)
            return WorkPlan(StepKind.COMMIT, (CHANNELS,), commit, Commit.CHUNK)
        if state.frames_FHWC is None:
            markers = self._markers(state)
            decode = DecodeRow(state.x_C, state.prompt_C, state.carry.trail, state.path, markers, state.second)
            return WorkPlan(StepKind.DECODE, (self._spec.per_chunk, HEIGHT, WIDTH), decode)
        return Done()

    def advance(self, state: ToyState, result: ToyResult) -> ToyState:
        match result:
            case Denoised(x0_C):
                return self._denoised(state, x0_C)
            case Committed():
                return msgspec.structs.replace(state, committed=True)
            case Decoded(frames_FHWC):
                return msgspec.structs.replace(state, frames_FHWC=frames_FHWC)
            case _:
                assert_never(result)

    def finalize(self, state: ToyState) -> Outcome[ToyCarry]:
        if state.frames_FHWC is None:
            raise ValueError(f"chunk {state.chunk} is not decoded yet (denoise step {state.step} of {state.steps})")
        return Outcome(state.frames_FHWC, self._carry(state), Latents.of(state.x_C))

    def early_carry(self, state: ToyState) -> ToyCarry:
        return self._carry(state)

    def rebase(self, state: ToyState, carry: ToyCarry) -> ToyState:
        return state  # pictures are made from latents alone

    def _carry(self, state: ToyState) -> ToyCarry:
        second = state.second[-1] if state.second else None
        return ToyCarry(state.x_C, state.path[-1], (*state.carry.trail, *state.path)[-TRAIL:], second)

    def _denoised(self, state: ToyState, x0_C: Latent) -> ToyState:
        step = state.step + 1
        if step == state.steps:
            first, other = state.controls[:CONTROLS], state.controls[CONTROLS:]
            path = _fly(state.carry.ship, first, x0_C, self._spec.per_chunk)
            second = _fly(state.carry.second or START, other, x0_C, self._spec.per_chunk) if other else ()
            return msgspec.structs.replace(state, step=step, x_C=x0_C, path=path, second=second)
        level = round(RECIPE.levels(state.steps)[step] * ONE)
        noise_C = _noise(state.seed, state.branch, state.chunk, step)
        x_C = (x0_C * (ONE - level) + noise_C * level) % MODULUS
        return msgspec.structs.replace(state, step=step, x_C=x_C)

    def _markers(self, state: ToyState) -> tuple[Marker, ...]:
        first = state.chunk * self._spec.per_chunk
        times = ((first + i) * 1000 // self._spec.fps for i in range(self._spec.per_chunk))
        return tuple(Marker(state.chunk, state.input_seq, time_ms) for time_ms in times)


def _noise(seed: int, branch: int, chunk: int, step: int) -> Latent:
    return integers(NoiseKey(seed, branch, chunk, step), (CHANNELS,), MODULUS)


def _opening(seed: int, branch: int) -> ToyCarry:
    """The ship rests in the middle of the sky; the last latent is the seed's own."""
    return ToyCarry(_noise(seed, branch, 0, RECIPE.steps_allowed()[-1]), START, ())


def _steered(mixed_C: Latent, written: object | None) -> Latent:
    """The person's prompts, and what the card's narrator wrote."""
    if written is None:
        return mixed_C
    return (mixed_C + 3 * mix_prompts(((written, 1.0),))) % MODULUS


def mix_prompts(features: tuple[tuple[object, float], ...]) -> Latent:
    mixed = np.zeros(CHANNELS, np.int64)
    for embedding, weight in features:
        if not isinstance(embedding, np.ndarray) or embedding.shape != (CHANNELS,):
            raise TypeError(f"a toy prompt embedding is an int64 array of {CHANNELS}, got {type(embedding).__name__}")
        mixed = mixed + embedding * round(weight * ONE)
    return mixed // ONE


def _fly(ship: Ship, controls: tuple[int, ...], x0_C: Latent, frames: int) -> tuple[Ship, ...]:
    """Thrust by the controls, a breath of wind from the latent, drag 7/8, soft walls."""
    left, right, up, down = controls
    wind_x, wind_y = int(x0_C[0]) % 3 - 1, int(x0_C[1]) % 3 - 1
    width, height = (WIDTH - 1) * SUB, (HEIGHT - BAND - 1) * SUB
    path = []
    for _ in range(frames):
        vx = (ship.vx * 7 + (right - left) * SUB * 3 // ONE) // 8 + wind_x
        vy = (ship.vy * 7 + (down - up) * SUB * 3 // ONE) // 8 + wind_y
        ship = Ship(min(max(ship.x + vx, 0), width), min(max(ship.y + vy, 0), height), vx, vy)
        path.append(ship)
    return tuple(path)
