"""Free text to a look: evidence per word and phrase, distilled from a sentence encoder, summed over the text.

    "a blizzard at midnight"  ->  [blizzard] + [midnight]  ->  softmax per attribute; what is not said takes a default

Longest known phrases first; a negation turns weather to clear and night to day. Runs in well under a millisecond on
numpy and downloads nothing. Words without evidence are ignored. Legend: P phrases, L look.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from ...contract.conditions import BadPrompt, PromptMeaning
from ...weights import WeightsError, load_tensors
from .look import BIOMES, LOOK, PROMPT_CHARS, TIMES, WEATHERS

STEP = 1 / 64  # evidence of one integer step in the table
LONGEST_PHRASE = 6  # words
SAID = 0.15  # an attribute with less evidence than this was not said
CERTAIN = 8.0  # softmax sharpness per unit of evidence
BEFORE = frozenset(["no", "not", "without", "never", "stop", "stopped", "isnt", "dont", "nor", "avoid", "lose"])
BETWEEN = frozenset("a an the more longer any so too very single is it at".split())  # noqa: SIM905
AFTER = frozenset(
    ["lifts", "lifted", "gone", "stops", "stopped", "clears", "ends", "ended", "vanishes", "disappears", "leaves"]
)
FILLER = (
    BETWEEN
    | BEFORE
    | AFTER
    | frozenset(
        "and or but of in on with to from over under by for into i you we my your this that be are was has have".split()  # noqa: SIM905
    )
)
_WORD = re.compile(r"[a-z0-9]+")
_SIGNS = re.compile(r"[^\s.,;:!?()\"]+")
_TIME, _BIOME = slice(0, len(TIMES)), slice(len(TIMES), len(TIMES) + len(BIOMES))
_WEATHER = slice(len(TIMES) + len(BIOMES), LOOK)
_DAY, _NIGHT = TIMES.index("day"), TIMES.index("night")
_CLEAR, _FOG = WEATHERS.index("clear"), WEATHERS.index("fog")

Array = NDArray[np.float32]


class PromptTooLong(BadPrompt):
    """A prompt over `PROMPT_CHARS` characters."""


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """`index` maps a known phrase (words joined by one blank) to its row of `evidence_PL` (int8, times STEP)."""

    index: dict[str, int]
    evidence_PL: NDArray[np.int8]

    def look(self, text: str) -> Array:
        """The 12-d look of a text, each attribute's shares summing to 1; raises `PromptTooLong`."""
        if len(text) > PROMPT_CHARS:
            raise PromptTooLong(f"a prompt may have {PROMPT_CHARS} characters, this one has {len(text)}")
        said_L = np.zeros(LOOK, np.float32)
        for evidence_L in self._heard(plain_words(text)):
            said_L += np.maximum(evidence_L, 0)
        look_L = np.zeros(LOOK, np.float32)
        look_L[_TIME] = _shares(said_L[_TIME], _DAY)
        look_L[_WEATHER] = _shares(said_L[_WEATHER], _CLEAR)
        look_L[_BIOME] = _shares(said_L[_BIOME], _suiting_biome(look_L))
        return look_L

    def meaning(self, text: str) -> PromptMeaning:
        """Which words say something about the look, and which are not known at all."""
        words = plain_words(text)
        understood, known, at = [], set(words) & FILLER, 0
        while at < len(words):
            length, rows = self._longest(words, at)
            phrase = words[at : at + length]
            known.update(phrase if rows else ())
            if any(int(self.evidence_PL[row].max()) * STEP >= SAID for row in rows):
                understood.append(" ".join(phrase))
            at += length
        missed = [
            word for word in _SIGNS.findall(text) if not (plain_words(word) and known.issuperset(plain_words(word)))
        ]
        return PromptMeaning(tuple(dict.fromkeys(understood)), tuple(dict.fromkeys(missed)))

    def _heard(self, words: list[str]) -> Iterator[Array]:
        """Evidence of each known phrase, turned where it is negated."""
        at = 0
        while at < len(words):
            length, rows = self._longest(words, at)
            negated = _negated(words, at, at + length)
            for row in rows:
                evidence_L = self.evidence_PL[row].astype(np.float32) * np.float32(STEP)
                yield _turned(evidence_L) if negated else evidence_L
            at += length

    def _longest(self, words: list[str], at: int) -> tuple[int, list[int]]:
        """How many words the longest known phrase at `at` takes, and its rows."""
        for length in range(min(LONGEST_PHRASE, len(words) - at), 0, -1):
            row = self.index.get(" ".join(words[at : at + length]))
            if row is not None:
                return length, [row]
        return 1, self._parts(words[at])

    def _parts(self, word: str) -> list[int]:
        """An unknown word's stem, or the two known words it is made of."""
        for ending in ("s", "es", "y", "ly", "ed", "ing", "like"):
            stem = word.removesuffix(ending)
            if stem != word and len(stem) > 2 and stem in self.index:
                return [self.index[stem]]
        for cut in range(len(word) - 3, 2, -1):
            if word[:cut] in self.index and word[cut:] in self.index:
                return [self.index[word[:cut]], self.index[word[cut:]]]
        return []


def plain_words(text: str) -> list[str]:
    """Lower-case ASCII words; accents and apostrophes are dropped."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _WORD.findall(plain.replace("'", ""))


def _negated(words: list[str], start: int, end: int) -> bool:
    before = start - 1
    while before >= 0 and words[before] in BETWEEN:
        before -= 1
    after = end
    while after < len(words) and words[after] in BETWEEN | {"has", "have"}:
        after += 1
    return (before >= 0 and words[before] in BEFORE) or (after < len(words) and words[after] in AFTER)


def _turned(evidence_L: Array) -> Array:
    """What a negated phrase says: no rain and no fog are clear, not night is day; other things are not said at all."""
    turned_L = np.zeros_like(evidence_L)
    weather, night = evidence_L[_WEATHER], evidence_L[_TIME][_NIGHT]
    turned_L[_WEATHER][_CLEAR] = max(float(np.delete(weather, _CLEAR).max()), 0.0)
    turned_L[_TIME][_DAY] = max(float(night), 0.0)
    return turned_L


def _shares(said: Array, default: int) -> Array:
    if said.max() < SAID:
        return np.asarray(np.eye(len(said), dtype=np.float32)[default], np.float32)
    shares = np.exp(CERTAIN * (said - said.max()))
    return np.asarray(shares / shares.sum(), np.float32)


def _suiting_biome(look_L: Array) -> int:
    """Where nothing is said: night is of the city, fog of the forest, all else of the coast."""
    if look_L[_TIME].argmax() == _NIGHT:
        return BIOMES.index("city")
    return BIOMES.index("forest") if look_L[_WEATHER].argmax() == _FOG else BIOMES.index("coast")


def load_text(file: Path) -> TextEncoder:
    """Raises `WeightsError`."""
    letters, phrases = 0, 0
    if file.is_file():
        try:
            with safe_open(file, framework="pt") as opened:
                known = set(opened.keys())
                letters = opened.get_slice("phrases").get_shape()[0] if "phrases" in known else 0
                phrases = opened.get_slice("evidence").get_shape()[0] if "evidence" in known else 0
        except SafetensorError as error:
            raise WeightsError(file, f"is truncated or damaged ({error})") from error
    expected = {"phrases": (letters,), "evidence": (phrases, LOOK)}
    tensors = load_tensors(file, expected, (torch.uint8, torch.int8))
    names = tensors["phrases"].numpy().tobytes().decode("ascii").split("\n")
    if len(names) != phrases:
        raise WeightsError(file, f"key 'phrases' names {len(names)} phrases, the table has {phrases}")
    return TextEncoder({name: row for row, name in enumerate(names)}, tensors["evidence"].numpy())
