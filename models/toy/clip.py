"""The toy's clip: one run of 50 steps makes 12 frames, and shows what they will look like long before it is done.

    denoise x 10 -> preview -> denoise x 10 -> preview -> .. -> denoise x 10 -> decode        every state can be saved

The state is all there is: no cache, no carry but a count. So a clip that loses its worker goes on from the last state
that was written down. Integers below `MODULUS`, as in the rest of the toy. The published twin is `models/wan/clips`.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...kernels.philox import NoiseKey, integers
from ..contract.cache import CacheView
from ..contract.latents import Latents
from ..contract.loop import Ask, Done, Outcome, Preview, StepKind, WorkPlan
from .card import CHANNELS, CLIP_FRAMES, CLIP_RECIPE, HEIGHT, PREVIEW_EVERY, WIDTH, ToySpec
from .loop import MODULUS, ONE, Latent, mix_prompts
from .pictures import sky, stars


class ToyClipCarry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Clips do not follow from one another."""

    clips: int


class ToyClipState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`step` counts denoise steps done, `shown` the previews made, of which `preview_FHWC` is the newest."""

    seed: int
    branch: int
    chunk: int
    steps: int
    prompt_C: Latent
    clips: int
    x_C: Latent
    step: int = 0
    shown: int = 0
    preview_FHWC: NDArray[np.uint8] | None = None
    frames_FHWC: NDArray[np.uint8] | None = None


class ClipDenoiseRow(msgspec.Struct, frozen=True):
    """`level` in thousandths."""

    x_C: Latent
    prompt_C: Latent
    noise_C: Latent
    level: int


class ClipPictureRow(msgspec.Struct, frozen=True):
    """`frames` pictures of a latent, finished or not."""

    x_C: Latent
    prompt_C: Latent
    frames: int


ClipRow = ClipDenoiseRow | ClipPictureRow


class ClipMoved(msgspec.Struct, frozen=True):
    x_C: Latent


class ClipPictures(msgspec.Struct, frozen=True):
    frames_FHWC: NDArray[np.uint8]


ClipResult = ClipMoved | ClipPictures


class ToyClipLoop:
    """Stateless."""

    def init(self, ask: Ask[ToyClipCarry]) -> ToyClipState:
        CLIP_RECIPE.levels(ask.steps)
        return ToyClipState(
            seed=ask.seed,
            branch=ask.branch,
            chunk=ask.chunk,
            steps=ask.steps,
            prompt_C=mix_prompts(ask.features),
            clips=0 if ask.carry is None else ask.carry.clips,
            x_C=_noise(ask.seed, ask.branch, ask.chunk, 0),
        )

    def next(self, state: ToyClipState) -> WorkPlan[ClipRow] | Done:
        if state.step == state.steps:
            if state.frames_FHWC is not None:
                return Done()
            row = ClipPictureRow(state.x_C, state.prompt_C, CLIP_FRAMES)
            return WorkPlan(StepKind.DECODE, (CLIP_FRAMES, HEIGHT, WIDTH), row)
        if state.step // PREVIEW_EVERY > state.shown:
            return WorkPlan(StepKind.PREVIEW, (1, HEIGHT, WIDTH), ClipPictureRow(state.x_C, state.prompt_C, 1))
        level = round(CLIP_RECIPE.levels(state.steps)[state.step] * ONE)
        noise_C = _noise(state.seed, state.branch, state.chunk, state.step + 1)
        return WorkPlan(StepKind.DENOISE, (CHANNELS,), ClipDenoiseRow(state.x_C, state.prompt_C, noise_C, level))

    def advance(self, state: ToyClipState, result: ClipResult) -> ToyClipState:
        match result:
            case ClipMoved(x_C):
                return msgspec.structs.replace(state, x_C=x_C, step=state.step + 1, preview_FHWC=None)
            case ClipPictures(frames_FHWC) if state.step == state.steps:
                return msgspec.structs.replace(state, frames_FHWC=frames_FHWC)
            case ClipPictures(frames_FHWC):
                return msgspec.structs.replace(state, shown=state.shown + 1, preview_FHWC=frames_FHWC)
            case _:
                assert_never(result)

    def finalize(self, state: ToyClipState) -> Outcome[ToyClipCarry]:
        if state.frames_FHWC is None:
            raise ValueError(f"clip {state.chunk} is not decoded yet (step {state.step} of {state.steps})")
        return Outcome(state.frames_FHWC, ToyClipCarry(state.clips + 1), Latents.of(state.x_C))

    def early_carry(self, state: ToyClipState) -> ToyClipCarry:
        return ToyClipCarry(state.clips + 1)

    def rebase(self, state: ToyClipState, carry: ToyClipCarry) -> ToyClipState:
        return state  # clips know nothing of each other

    def preview(self, state: ToyClipState) -> Preview | None:
        if state.preview_FHWC is None:
            return None
        return Preview(state.preview_FHWC, first=0, done=state.step / state.steps)


class ToyClipRuntime:
    """The clip's steps. Rows never see each other. `sleep` spends the spec's step cost, as in `ToyRuntime`."""

    def __init__(self, spec: ToySpec, sleep: Callable[[float], None]) -> None:
        self._spec, self._sleep = spec, sleep

    def allocate(self, slots: int) -> None:
        """It keeps nothing."""

    def execute(self, kind: StepKind, rows: Sequence[ClipRow], views: Sequence[CacheView | None]) -> list[ClipResult]:
        if self._spec.sleeps and self._spec.step_seconds > 0:
            self._sleep(self._spec.step_seconds)
        return [_one(row) for row in rows]

    def encode_prompt(self, text: str) -> Latent:
        """A hash of the text."""
        words = np.frombuffer(hashlib.sha256(text.encode("utf-8", "replace")).digest(), "<u4")
        return words.astype(np.int64) % MODULUS

    def warm_up_rows(self, kind: StepKind, count: int) -> list[tuple[ClipRow, CacheView | None]]:
        x_C = np.arange(CHANNELS, dtype=np.int64)
        row: ClipRow = ClipDenoiseRow(x_C, x_C, x_C, ONE)
        if kind is not StepKind.DENOISE:
            row = ClipPictureRow(x_C, x_C, CLIP_FRAMES if kind is StepKind.DECODE else 1)
        return [(row, None)] * count


def _one(row: ClipRow) -> ClipResult:
    match row:
        case ClipDenoiseRow(x_C, prompt_C, noise_C, level):
            return ClipMoved((x_C * (ONE - level) + noise_C * level + x_C * 48271 + prompt_C * 5) % MODULUS)
        case ClipPictureRow(x_C, prompt_C, frames):
            return ClipPictures(_pictures(x_C, prompt_C, frames))
        case _:
            assert_never(row)


def _pictures(x_C: Latent, prompt_C: Latent, frames: int) -> NDArray[np.uint8]:
    """[frames, HEIGHT, WIDTH, 3]: a sky whose hue turns a little with every frame, and the latent's stars."""
    frames_FHWC = np.empty((frames, HEIGHT, WIDTH, 3), np.uint8)
    for number in range(frames):
        frames_FHWC[number] = sky(int(prompt_C[0] + number * 3) % 360)
        stars(frames_FHWC[number], x_C + number)
    return frames_FHWC


def _noise(seed: int, branch: int, chunk: int, step: int) -> Latent:
    return integers(NoiseKey(seed, branch, chunk, step), (CHANNELS,), MODULUS)
