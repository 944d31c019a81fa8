"""The drive's rollout as one straight line, for tests: no loop, no runtime, no slab, no ring, none of their code
but the noise.

Keeps every committed K and V in a list, oldest first, and hands the last `window` of them to the networks. Given the
same networks it makes the same bits as the loop; `fused` False commits in a pass of its own,
which must make no difference.
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
from . import innovations
from .transformer import CondB, DriveTransformer

SIGMAS = {1: (1.0,), 2: (1.0, 0.5), 3: (1.0, 0.67, 0.33), 4: (1.0, 0.75, 0.5, 0.25)}


@dataclass(frozen=True, slots=True)
class GoldenFrame:
    latent_NC: NDArray[np.float32]
    digest: str
    frame_HWC: NDArray[np.uint8]


@torch.inference_mode()
def rollout(
    transformer: DriveTransformer,
    autoencoder: DriveAutoencoder,
    opening_3NC: NDArray[np.float32],
    seed: int,
    branch: int,
    steps: int,
    controls_FK: NDArray[np.float32],
    looks_FL: NDArray[np.float32],
    fused: bool = True,
) -> list[GoldenFrame]:
    """Frames 0.. of a world that starts from `opening` (newest latent first)."""
    shape = transformer.shape
    past = [torch.from_numpy(opening_3NC[i]) for i in range(3)]
    kept: list[CommittedKV] = []
    drawn, before, frames = innovations.start(seed, branch), None, []
    for frame in range(len(controls_FK)):
        new, drawn = innovations.draw(seed, branch, frame, drawn)
        cond = _cond(controls_FK[frame], looks_FL[frame], new)
        x = torch.from_numpy(gaussian(NoiseKey(seed, branch, frame, 0), (shape.tokens, shape.channels)))
        history = torch.stack(past)[None]
        for step, sigma in enumerate(SIGMAS[steps]):
            sigma_B, noisy = torch.tensor([sigma]), x[None]
            if step == 0 and before is not None and fused:
                view = _window(kept, shape.window + 1, transformer)
                pair, x0 = transformer.commit_denoise(history, before, noisy, sigma_B, cond, view)
                kept.append(pair)
            else:
                if step == 0 and before is not None:
                    kept.append(transformer.commit(history, before))
                x0 = transformer.denoise(
                    noisy, history[:, :2], sigma_B, cond, _window(kept, shape.window + 2, transformer)
                )
            clean = x0[0]
            if step + 1 < steps:
                now, then = torch.tensor(sigma), torch.tensor(SIGMAS[steps][step + 1])
                x = (1 - then) * clean + then * ((x - (1 - now) * clean) / now)
        past, before = [clean, *past[:2]], cond
        picture = autoencoder.decode(clean[:40][None])[0]
        pixels = ((picture.clamp(-1, 1) + 1) * 127.5 + 0.5).to(torch.uint8).permute(1, 2, 0).numpy()
        latent = clean.numpy()
        frames.append(GoldenFrame(latent, hashlib.sha256(latent.tobytes()).hexdigest(), np.ascontiguousarray(pixels)))
    return frames


def _cond(controls_K: NDArray[np.float32], look_L: NDArray[np.float32], new_I: NDArray[np.float32]) -> CondB:
    return CondB(*(torch.tensor(part, dtype=torch.float32)[None] for part in (controls_K, look_L, new_I)))


def _window(kept: list[CommittedKV], keys: int, transformer: DriveTransformer) -> KVView:
    """Zeros, then the newest `window` entries, oldest first: `keys` in all."""
    shape, like = transformer.shape, next(transformer.parameters())
    seen = kept[-shape.window :]
    blank = like.new_zeros(1, shape.temporal, shape.tokens, shape.heads, shape.width // shape.heads)
    blanks = [blank] * (keys - len(seen))
    k = torch.stack([*blanks, *(pair.k_BLNHD for pair in seen)], 4)
    v = torch.stack([*blanks, *(pair.v_BLNHD for pair in seen)], 4)
    ages = [0] * len(blanks) + [len(seen) - i for i in range(len(seen))]
    return KVView(k, v, torch.tensor([ages]))
