"""Keys and values of the prompt mixes in use, per layer: what cross attention needs of a prompt.

A pure function of the mix, so they are made once and kept for the few mixes that live sessions have.
"""

from collections import OrderedDict

import torch

from .rows import Prompt
from .transformer import KV, WanTransformer

KEPT = 8  # keys and values of prompts, all layers: 94 MB each at 1.3B in bf16


class PromptKeys:
    """The mix used longest ago is dropped first."""

    def __init__(self, transformer: WanTransformer, device: torch.device) -> None:
        self._transformer, self._device = transformer, device
        self._made: OrderedDict[str, tuple[KV, ...]] = OrderedDict()

    def of(self, prompt: Prompt) -> tuple[KV, ...]:
        """Of every layer."""
        if prompt.key in self._made:
            self._made.move_to_end(prompt.key)
            return self._made[prompt.key]
        shares = [embedding.to(self._device).float() * weight for embedding, weight in prompt.shares]
        made = self._transformer.text_kv(torch.stack(shares).sum(0) if len(shares) > 1 else shares[0])
        self._made[prompt.key] = made
        while len(self._made) > KEPT:
            self._made.popitem(last=False)
        return made
