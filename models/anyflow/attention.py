"""The transformer's self-attention over a cache, without flex_attention: that one, uncompiled, writes down every score
(8 GiB a pass of the 1.3B card) and is traced anew for every length of history.

    denoise   all tokens of the chunk see [ compressed | full | the chunk itself | zeros ]
    commit    chunk after chunk, each sees itself and what stands before it: no mask is needed

The zeros are diffusers': it fills a pass up to 128 tokens, and a pass without a mask sees what it was filled up with;
weights are used as their pipeline uses them. Each row is attended alone, so it keeps its bits beside others.
Legend: B rows, N heads, T tokens, D head width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from diffusers.models.transformers.transformer_anyflow_far import apply_rotary_emb
from torch import Tensor
from torch.nn import functional as F

FILLED_UP_TO = 128


class CachedAttention:
    """A processor of diffusers' `AnyFlowAttention`. What it is handed as a mask is where each chunk ends, in tokens;
    None in a denoise pass.
    """

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        attention_mask: Sequence[int] | None,
        rotary_emb: Mapping[str, Tensor],
        kv_cache: Mapping[str, Tensor],
        kv_cache_flag: Mapping[str, int],
    ) -> Tensor:
        q, k, v = attn.to_q(hidden_states), attn.to_k(hidden_states), attn.to_v(hidden_states)
        q, k = attn.norm_q(q).to(v.dtype), attn.norm_k(k).to(v.dtype)
        q, k, v = (x.unflatten(2, (attn.heads, -1)).transpose(1, 2) for x in (q, k, v))
        if attention_mask is None:
            k, v = _after_cached((k, v), kv_cache, kv_cache_flag)
        else:
            _keep((k, v), kv_cache, kv_cache_flag)
        q, k = apply_rotary_emb(q, rotary_emb["query"]), apply_rotary_emb(k, rotary_emb["key"])
        if attention_mask is None:
            zeros = -q.shape[2] % FILLED_UP_TO
            out = _seen(q, F.pad(k, (0, 0, 0, zeros)), F.pad(v, (0, 0, 0, zeros)))
        else:
            chunks = pairwise((0, *attention_mask))
            out = torch.cat([_seen(q[:, :, a:b], k[:, :, :b], v[:, :, :b]) for a, b in chunks], 2)
        made: Tensor = attn.to_out[0](out.transpose(1, 2).flatten(2, 3))
        return made


def _after_cached(
    own: tuple[Tensor, Tensor], cache: Mapping[str, Tensor], flag: Mapping[str, int]
) -> tuple[Tensor, Tensor]:
    """Keys, values [B, N, T, D] of the kept chunks and then of this one; keys are kept without their rotation."""
    old, new = flag["num_cached_compressed_tokens"], flag["num_cached_full_tokens"]
    k, v = (
        torch.cat((cache["compressed_cache"][at][:, :, :old], cache["full_cache"][at][:, :, :new], fresh), 2)
        for at, fresh in enumerate(own)
    )
    return k, v


def _keep(own: tuple[Tensor, Tensor], cache: Mapping[str, Tensor], flag: Mapping[str, int]) -> None:
    old, new = flag["num_compressed_tokens"], flag["num_full_tokens"]
    for at, fresh in enumerate(own):
        cache["compressed_cache"][at][:, :, :old] = fresh[:, :, :old]
        cache["full_cache"][at][:, :, :new] = fresh[:, :, old:]


def _seen(q_BNTD: Tensor, k_BNTD: Tensor, v_BNTD: Tensor) -> Tensor:
    rows = zip(*(x.unbind() for x in (q_BNTD, k_BNTD, v_BNTD)), strict=True)
    return torch.stack([F.scaled_dot_product_attention(q[None], k[None], v[None])[0] for q, k, v in rows])
