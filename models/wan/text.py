"""Prompts to embeddings [L, text_dim]: UMT5 through transformers for published weights, drawn ones for the tiny card.

Wan pads every prompt to a fixed length and sets the padding to zero after encoding. The transformers library is
imported when an encoder is made (extra `diffusers`); no text is kept or logged.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ...kernels.philox import raw
from .spec import WanShape

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, UMT5EncoderModel


class TextEncoder(Protocol):
    @property
    def network(self) -> nn.Module | None:
        """What has weights on the device."""
        ...

    def encode(self, text: str) -> Tensor:
        """[text_length, text_dim], zeros after the last token."""
        ...


class DrawnText:
    """Every word a vector drawn from its hash: no meaning, but equal words are equal and order matters."""

    def __init__(self, shape: WanShape) -> None:
        self._shape, self.network = shape, None

    def encode(self, text: str) -> Tensor:
        out = np.zeros((self._shape.text_length, self._shape.text_dim), np.float32)
        for place, word in enumerate(text.split()[: self._shape.text_length]):
            seed = hashlib.sha256(f"{place}\0{word}".encode("utf-8", "replace")).digest()
            low, high = (int.from_bytes(part, "little") for part in (seed[:8], seed[8:16]))
            words = raw(low, high, 0, self._shape.text_dim)
            out[place] = (words >> np.uint64(40)).astype(np.float32) / 2**23 - 1
        return torch.from_numpy(out)


class Umt5Text:
    """UMT5 (2304.09151) as transformers has it."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", model: "UMT5EncoderModel", length: int) -> None:
        self._tokenizer, self._model, self._length = tokenizer, model, length
        self.network: nn.Module = model
        model.train(False)

    @classmethod
    def load(cls, tokenizer: Path, model: Path, shape: WanShape, dtype: torch.dtype) -> "Umt5Text":
        """From a transformers folder of each; raises ImportError without the extra `diffusers`."""
        from transformers import AutoTokenizer, UMT5EncoderModel

        words = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
        encoder = UMT5EncoderModel.from_pretrained(model, dtype=dtype, local_files_only=True)
        return cls(words, encoder, shape.text_length)

    def to(self, device: torch.device) -> None:
        torch.nn.Module.to(self._model, device)

    @torch.no_grad()
    def encode(self, text: str) -> Tensor:
        clean = " ".join(text.split())
        tokens = self._tokenizer(
            [clean], padding="max_length", max_length=self._length, truncation=True, add_special_tokens=True,
            return_attention_mask=True, return_tensors="pt",
        )  # fmt: skip
        device = next(self._model.parameters()).device
        ids, mask = tokens["input_ids"].to(device), tokens["attention_mask"].to(device)
        hidden: Tensor = self._model(ids, attention_mask=mask).last_hidden_state
        first: Tensor = (hidden * mask[..., None].to(hidden.dtype))[0]
        return first
