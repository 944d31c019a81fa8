"""The dream's rollout as one straight line, for tests: no loop, no runtime, no slab, no ring, none of their code
but the noise.

Keeps every committed K and V in a list, oldest first, and hands the last `window` of them to the networks. Given the
same networks it makes the same bits as the loop, which commits in the pass of the next frame.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ...kernels.philox import NoiseKey, gaussian
from ..shared.road.autoencoder import DriveAutoencoder
from ..shared.road.blocks import CommittedKV, KVView
from .transformer import CondB, DreamTransformer

SIGMAS = {1: (1.0,), 2: (1.0, 0.5), 4: (1.0, 0.75, 0.5, 0.25)}


@dataclass(frozen=True, slots=True)
class GoldenFrame:
    latent_PC: NDArray[np.float32]
    digest: str
    frame_HWC: NDArray[np.uint8]


@torch.inference_mode()
def rollout(
    transformer: DreamTransformer,
    autoencoder: DriveAutoencoder,
    opening_3PC: NDArray[np.float32],
    seed: int,
    branch: int,
    steps: int,
    controls_FK: NDArray[np.float32],
    looks_FL: NDArray[np.float32],
) -> list[GoldenFrame]:
    """Frames 0.. of a world that starts from `opening` (newest picture first)."""
    shape, pictures = transformer.shape, opening_3PC.shape[1]
    past = [torch.from_numpy(opening_3PC[i]) for i in range(3)]
    kept: list[CommittedKV] = []
    before: CondB | None = None
    state: torch.Tensor | None = None
    frames = []
    for frame in range(len(controls_FK)):
        drawn = gaussian(NoiseKey(seed, branch, frame, 0), (pictures * shape.channels + shape.noise,))
        x = torch.from_numpy(drawn[: -shape.noise].reshape(pictures, shape.channels))
        parts = (controls_FK[frame], looks_FL[frame], drawn[-shape.noise :])
        keys, look, luck = (torch.tensor(part, dtype=torch.float32)[None] for part in parts)
        history = torch.stack(past)[None]
        state = transformer.onward(transformer.read(history, look) if state is None else state, keys, luck)
        cond = CondB(keys, look, luck, state)
        if before is not None:
            kept.append(transformer.commit(history, before))
        view, clean = _window(kept, transformer), x
        for step, sigma in enumerate(SIGMAS[steps]):
            clean = transformer.denoise(x[None], history[:, :2], torch.tensor([sigma]), cond, view)[0]
            if step + 1 < steps:
                now, then = torch.tensor(sigma), torch.tensor(SIGMAS[steps][step + 1])
                x = (1 - then) * clean + then * ((x - (1 - now) * clean) / now)
        past, before = [clean, *past[:2]], cond
        picture = autoencoder.decode(clean[None])[0]
        pixels = ((picture.clamp(-1, 1) + 1) * 127.5 + 0.5).to(torch.uint8).permute(1, 2, 0).numpy()
        latent = clean.numpy()
        frames.append(GoldenFrame(latent, hashlib.sha256(latent.tobytes()).hexdigest(), np.ascontiguousarray(pixels)))
    return frames


def _window(kept: list[CommittedKV], transformer: DreamTransformer) -> KVView:
    """Zeros, then the newest `window` entries, oldest first: window + 2 in all."""
    shape = transformer.shape
    seen = kept[-shape.window :]
    blank = torch.zeros(1, shape.temporal, shape.tokens, shape.heads, shape.width // shape.heads)
    blanks = [blank] * (shape.window + 2 - len(seen))
    k = torch.stack([*blanks, *(pair.k_BLNHD for pair in seen)], 4)
    v = torch.stack([*blanks, *(pair.v_BLNHD for pair in seen)], 4)
    ages = [0] * len(blanks) + [len(seen) - i for i in range(len(seen))]
    return KVView(k, v, torch.tensor([ages]))
