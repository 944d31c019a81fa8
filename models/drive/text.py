"""Free text to a look: a table of word vectors, distilled from a sentence encoder, and a small head on top.

    words [T] -> vectors [T, D] (int8) -> relu([word | word before] A) O, summed over words -> a softmax per attribute

Runs on numpy in well under a millisecond, downloads nothing and knows no picture. Words it has no vector for are
split or ignored; a text without any known word gives the default look. Legend: V vocabulary, D width, L look.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ..weights import WeightsError, load_tensors
from .look import ATTRIBUTES, LOOK

LONGEST = 400  # characters of a prompt
MOST_WORDS = 64
_WORD = re.compile(r"[a-z0-9]+")

Array = NDArray[np.float32]


class PromptTooLong(ValueError):
    """A prompt over `LONGEST` characters."""


@dataclass(frozen=True, slots=True)
class Head:
    """first [2D, H], first_bias [H], second [H, L], second_bias [L]."""

    first: Array
    first_bias: Array
    second: Array
    second_bias: Array

    def logits(self, vectors_TD: Array) -> Array:
        before_TD = np.concatenate([np.zeros_like(vectors_TD[:1]), vectors_TD[:-1]])
        hidden = np.maximum(np.concatenate([vectors_TD, before_TD], 1) @ self.first + self.first_bias, 0)
        return np.asarray((hidden @ self.second).sum(0) + self.second_bias, np.float32)


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """`index` maps a word to its row of `table_VD` (int8, times `scale_D`)."""

    index: dict[str, int]
    table_VD: NDArray[np.int8]
    scale_D: Array
    head: Head

    def look(self, text: str) -> Array:
        """The 12-d look of a text, each attribute's shares summing to 1; raises `PromptTooLong`."""
        if len(text) > LONGEST:
            raise PromptTooLong(f"a prompt may have {LONGEST} characters, this one has {len(text)}")
        look_L = self.head.logits(self.vectors(self.known(text)))
        at = 0
        for values in ATTRIBUTES:
            part = look_L[at : at + len(values)]
            part[:] = np.exp(part - part.max())
            part /= part.sum()
            at += len(values)
        return look_L

    def known(self, text: str) -> list[int]:
        """Table rows of the text's words, in order."""
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower().replace("'", "")
        rows = (row for word in _WORD.findall(plain) for row in self._rows(word))
        return [row for row, _ in zip(rows, range(MOST_WORDS), strict=False)]

    def vectors(self, rows: list[int]) -> Array:
        return np.asarray(self.table_VD[rows].astype(np.float32) * self.scale_D, np.float32).reshape(len(rows), -1)

    def _rows(self, word: str) -> list[int]:
        """The word, its singular, or the two known words it is made of."""
        for form in (word, word.removesuffix("s"), word.removesuffix("es")):
            if form in self.index:
                return [self.index[form]]
        for cut in range(len(word) - 2, 1, -1):
            if word[:cut] in self.index and word[cut:] in self.index:
                return [self.index[word[:cut]], self.index[word[cut:]]]
        return []


def load_text(file: Path) -> TextEncoder:
    """Raises `WeightsError`."""
    try:
        with safe_open(file, framework="pt") as opened:
            sizes = {key: tuple(opened.get_slice(key).get_shape()) for key in opened.keys()}  # noqa: SIM118
    except (SafetensorError, FileNotFoundError):
        sizes = {}
    words, width, hidden = (sizes.get(key, (0, 0))[axis] for key, axis in (("table", 0), ("table", -1), ("first", -1)))
    expected: dict[str, tuple[int, ...]] = {
        "words": (sizes.get("words", (0,))[0],),
        "table": (words, width),
        "scale": (width,),
        "first": (2 * width, hidden),
        "first_bias": (hidden,),
        "second": (hidden, LOOK),
        "second_bias": (LOOK,),
    }
    tensors = load_tensors(file, expected, (torch.uint8, torch.int8, torch.float32))
    vocabulary = bytes(tensors["words"].numpy()).decode("ascii").split("\n")
    if len(vocabulary) != words:
        raise WeightsError(file, f"key 'words' names {len(vocabulary)} words, the table has {words}")
    head = Head(*(tensors[key].numpy() for key in ("first", "first_bias", "second", "second_bias")))
    index = {word: row for row, word in enumerate(vocabulary)}
    return TextEncoder(index, tensors["table"].numpy(), tensors["scale"].numpy(), head)
