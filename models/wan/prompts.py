"""Keys and values of the prompt mixes in use, per layer: what cross attention needs of a prompt.

A pure function of the mix and of the adapters it passes through, so they are made once and kept for the few that live
sessions have.
"""

from collections import OrderedDict

import torch

from ..shared.adapters import Adapters, Stack
from .rows import Prompt
from .transformer import KV, WanTransformer

KEPT = 8  # keys and values of prompts, all layers: 94 MB each at 1.3B in bf16


class PromptKeys:
    """The mix used longest ago is dropped first."""

    def __init__(self, transformer: WanTransformer, device: torch.device, adapters: Adapters) -> None:
        self._transformer, self._device, self._adapters = transformer, device, adapters
        self._made: OrderedDict[tuple[str, Stack], tuple[KV, ...]] = OrderedDict()

    def of(self, prompt: Prompt) -> tuple[KV, ...]:
        """Of every layer."""
        kept = prompt.key, prompt.adapters
        if kept in self._made:
            self._made.move_to_end(kept)
            return self._made[kept]
        shares = [embedding.to(self._device).float() * weight for embedding, weight in prompt.shares]
        text_LC = torch.stack(shares).sum(0) if len(shares) > 1 else shares[0]
        with self._adapters.rows([prompt.adapters]):
            made = self._transformer.text_kv(text_LC)
        self._made[kept] = made
        while len(self._made) > KEPT:
            self._made.popitem(last=False)
        return made
