"""The AnyFlow rollout as one straight line over diffusers' classes: no loop, no steps, no slab, no code of the family.

`run` plays a world from its start and forgets exactly as the card says; `pipeline` lets diffusers' own pipeline make
the same chunks, as long as nothing is forgotten. `masked` is one pass of the whole sequence under the training mask.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from diffusers import AnyFlowFARPipeline, FlowMapEulerDiscreteScheduler
from torch import Tensor

from ...kernels.philox import NoiseKey, gaussian


def encode(text_encoder: Any, text: str, length: int) -> Tensor:
    ids = [*(byte + 3 for byte in text.encode()[: length - 1]), 1]
    padded = torch.tensor([ids + [0] * (length - len(ids))])
    hidden: Tensor = text_encoder(padded, (torch.arange(length) < len(ids)).long()[None]).last_hidden_state.clone()
    hidden[:, len(ids) :] = 0
    return hidden


@torch.no_grad()
def run(
    transformer: Any, prompts: Sequence[Tensor], seed: int, steps: int, history: int, shape: tuple[int, int, int]
) -> list[Tensor]:
    """Clean latents [1, F, C, H, W] of every chunk; `prompts` has one embedding [1, L, M] a chunk."""
    scheduler = FlowMapEulerDiscreteScheduler(shift=5.0)
    kept: list[Tensor] = []
    made: list[Tensor] = []
    caches = _caches(transformer, history, shape)
    for number, prompt in enumerate(prompts):
        partition = [chunk.shape[1] for chunk in kept] + [3 if number else 1]
        x = torch.from_numpy(gaussian(NoiseKey(seed, 0, number, 0), (partition[-1], *shape)))[None]
        scheduler.set_timesteps(steps)
        for i, t in enumerate(scheduler.timesteps):
            r = scheduler.sigmas[i + 1] * 1000
            flow = transformer(
                hidden_states=x, timestep=t.repeat(1, x.shape[1]), r_timestep=r.repeat(1, x.shape[1]),
                encoder_hidden_states=prompt, chunk_partition=partition, kv_cache=caches,
                kv_cache_flag={"num_cached_chunks": len(kept), "is_cache_step": False},
            ).sample  # fmt: skip
            x = scheduler.step(flow, t, x).prev_sample
        made.append(x)
        kept.append(x)
        if len(kept) > history:
            del kept[1]
        caches = _caches(transformer, history, shape)
        whole = torch.cat(kept, 1)
        zero = torch.zeros(1, whole.shape[1])
        transformer(
            hidden_states=whole, timestep=zero, r_timestep=zero, encoder_hidden_states=prompt, kv_cache=caches,
            chunk_partition=[chunk.shape[1] for chunk in kept],
            kv_cache_flag={"num_cached_chunks": len(kept) - 1, "is_cache_step": True},
        )  # fmt: skip
    return made


@torch.no_grad()
def pipeline(
    transformer: Any,
    vae: Any,
    prompt: Tensor,
    seed: int,
    steps: int,
    chunks: int,
    rows: int,
    columns: int,
    picture_HWC: np.ndarray[Any, Any] | None = None,
) -> Tensor:
    """Latents [1, F, C, H, W] of diffusers' pipeline from the same noise; nothing is forgotten, so few chunks.

    `picture_HWC`: uint8, what the video begins with.
    """
    video = None
    if picture_HWC is not None:
        video = torch.from_numpy(picture_HWC.astype(np.float32) / 255).permute(2, 0, 1)[None, None]
    made = AnyFlowFARPipeline(None, None, transformer, vae, FlowMapEulerDiscreteScheduler(shift=5.0))
    made.set_progress_bar_config(disable=True)
    partition = [1] + [3] * (chunks - 1)
    channels = transformer.config.in_channels
    shapes = [(frames, channels, rows, columns) for frames in partition]
    noises = [gaussian(NoiseKey(seed, 0, n, 0), shape) for n, shape in enumerate(shapes)]
    start = torch.from_numpy(np.concatenate(noises))
    out: Tensor = made(
        prompt_embeds=prompt, height=rows * 8, width=columns * 8, num_frames=4 * sum(partition) - 3,
        num_inference_steps=steps, latents=start.transpose(0, 1)[None], chunk_partition=partition, output_type="latent",
        video=video,
    ).frames  # fmt: skip
    return out.transpose(1, 2)


@torch.no_grad()
def masked(transformer: Any, x: Tensor, partition: Sequence[int], t: float, r: float, prompt: Tensor) -> Tensor:
    """Velocity of the last chunk from one pass over all chunks under the causal mask; earlier chunks are clean."""
    clean = x.shape[1] - partition[-1]
    times = [torch.cat((torch.zeros(1, clean), torch.full((1, partition[-1]), level * 1000.0)), 1) for level in (t, r)]
    out: Tensor = transformer(
        hidden_states=x, timestep=times[0], r_timestep=times[1], encoder_hidden_states=prompt,
        chunk_partition=list(partition),
    ).sample  # fmt: skip
    return out[:, -partition[-1] :]


def _caches(transformer: Any, history: int, shape: tuple[int, int, int]) -> dict[int, dict[str, Tensor]]:
    config, tokens = transformer.config, shape[1] * shape[2] // 4
    size = (2, 1, config.num_attention_heads)
    return {
        layer: {
            "full_cache": torch.zeros(*size, 3 * history * tokens, config.attention_head_dim),
            "compressed_cache": torch.zeros(*size, 3 * history * tokens, config.attention_head_dim),
        }
        for layer in range(config.num_layers)
    }


warnings.filterwarnings("ignore", message="flex_attention called without torch.compile", category=UserWarning)
