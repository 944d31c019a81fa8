"""The text part of the drive card: evidence per word for every value of a look, distilled from a sentence encoder.

    lexicon phrases (phrases.py) and common neutral words -> sentence vectors -> kernel ridge -> evidence [12]
    the same for every word of an English vocabulary; words that say something go to weights/text.safetensors

The fit is closed-form and takes seconds; embedding the vocabulary takes minutes once and is kept in `vectors.npz`.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from ...models.drive.look import ATTRIBUTES, LOOK
from ...models.drive.text import STEP, TextEncoder, load_text
from .held_out import HELD_OUT
from .minilm import load_encoder, package_file
from .phrases import PAIRS, WORDS, Phrase, make

Array = NDArray[np.float32]
SHARPNESS = 2.0  # of the kernel exp(SHARPNESS * (cosine - 1))
RIDGE = 0.1
NEUTRAL, NEUTRAL_WEIGHT = 2000, 0.25
FAR = 0.5  # a neutral word's largest cosine to any lexicon phrase
QUIET = 0.15  # evidence below this is not worth a row
PROPER_NAMES = 60_000  # of the list sorted by frequency


@dataclass(frozen=True, slots=True)
class Fit:
    """Kernel ridge: evidence of unit vectors x is k(x, anchors) @ alpha."""

    centre: Array
    anchors: Array
    alpha: Array

    def evidence(self, vectors: Array) -> Array:
        parts = [
            np.exp(SHARPNESS * (_unit(part - self.centre) @ self.anchors.T - 1)) @ self.alpha
            for part in np.array_split(vectors, max(1, len(vectors) // 4096))
        ]
        return np.asarray(np.concatenate(parts), np.float32)


def lexicon() -> dict[str, dict[int, str]]:
    """Every taught phrase and the attributes it says: {phrase: {attribute: value}}."""
    taught: dict[str, dict[int, str]] = {}
    for value, text in WORDS.items():
        for phrase in _split(text):
            taught.setdefault(phrase, {})[_attribute(value)] = value
    for pair, text in PAIRS.items():
        for phrase in _split(text):
            taught[phrase] = {_attribute(value): value for value in pair}
    return taught


def vocabulary() -> list[str]:
    """Dictionary words and frequent names, from two installed word lists (both MIT)."""
    ranked = (
        gzip.decompress(package_file("wordninja", "wordninja/wordninja_words.txt.gz").read_bytes()).decode().split()
    )
    listed = package_file("symspellpy", "frequency_dictionary_en_82_765.txt").read_text("utf-8-sig").splitlines()
    words = [*ranked[:PROPER_NAMES], *(line.split()[0].lower().replace("'", "") for line in listed)]
    return [word for word in dict.fromkeys(words) if re.fullmatch("[a-z]{2,14}", word)]


def vectors_of(phrases: list[str], kept: Path) -> Array:
    """Sentence vectors, taken from and added to the file `kept`."""
    known: dict[str, Array] = {}
    if kept.exists():
        with np.load(kept) as saved:
            known = dict(zip(saved["words"].tolist(), saved["vectors"], strict=True))
    missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known]
    if missing:
        known |= dict(zip(missing, load_encoder().embed(missing).astype(np.float16), strict=True))
        np.savez(kept, words=np.array(list(known)), vectors=np.stack(list(known.values())))
    return np.stack([known[phrase] for phrase in phrases]).astype(np.float32)


def fit(taught: dict[str, dict[int, str]], taught_vectors: Array, words: list[str], word_vectors: Array) -> Fit:
    """Closed form; neutral words are frequent ones that are far from everything taught."""
    centre = word_vectors[:20_000].mean(0)
    near = _unit(taught_vectors - centre)
    common = _unit(word_vectors[900:9000] - centre)
    used = {word for phrase in taught for word in phrase.split()}
    quiet = (common @ near.T).max(1) < FAR
    candidates = [i for i in np.flatnonzero(quiet) if words[900 + i] not in used]
    neutral = common[np.random.default_rng(0).permutation(candidates)[:NEUTRAL]]
    anchors = np.concatenate([near, neutral])
    wanted = np.zeros((len(anchors), LOOK), np.float64)
    for row, said in enumerate(taught.values()):
        for attribute, value in said.items():
            wanted[row, _column(attribute, value)] = 1
    slack = np.full(len(anchors), RIDGE / NEUTRAL_WEIGHT)
    slack[: len(near)] = RIDGE
    kernel = np.exp(SHARPNESS * (anchors @ anchors.T - 1)).astype(np.float64)
    alpha = np.linalg.solve(kernel + np.diag(slack), wanted)
    return Fit(centre, anchors, alpha.astype(np.float32))


def train(folder: Path, file: Path) -> TextEncoder:
    """Distil, write `file` and read it back; `folder` keeps the vocabulary's vectors."""
    taught, words = lexicon(), vocabulary()
    word_vectors, taught_vectors = (vectors_of(names, folder / "vectors.npz") for names in (words, list(taught)))
    fitted = fit(taught, taught_vectors, words, word_vectors)
    evidence = dict(zip(words, fitted.evidence(word_vectors), strict=True))
    for phrase, row in zip(taught, fitted.evidence(taught_vectors), strict=True):
        evidence[phrase] = row
    loud = {phrase: row for phrase, row in sorted(evidence.items()) if phrase in taught or row.max() > QUIET}
    table = np.clip(np.round(np.stack(list(loud.values())) / STEP), -127, 127).astype(np.int8)
    names = np.frombuffer("\n".join(loud).encode("ascii"), np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file({"phrases": names, "evidence": table}, file, {"recipe": "drive-1", "source": "all-MiniLM-L6-v2"})
    return load_text(file)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of mentioned attributes that are heard right: time, biome, weather; and how many were judged."""

    shares: tuple[float, float, float]
    judged: tuple[int, int, int]


def held_out_accuracy(encoder: TextEncoder) -> Accuracy:
    return _accuracy([(encoder.look(row.text), (row.time, row.biome, row.weather)) for row in HELD_OUT])


def trained_accuracy(encoder: TextEncoder, phrases: int = 2000, seed: int = 1) -> Accuracy:
    """On generated sentences of taught words."""
    dice = np.random.default_rng(seed)
    made = [make(dice) for _ in range(phrases)]
    return _accuracy([(encoder.look(phrase.text), _wanted(phrase)) for phrase in made])


def heard(look_L: Array) -> tuple[str, str, str]:
    """The strongest value of each attribute."""
    at, values = 0, []
    for names in ATTRIBUTES:
        values.append(names[int(look_L[at : at + len(names)].argmax())])
        at += len(names)
    return values[0], values[1], values[2]


def _accuracy(pairs: list[tuple[Array, tuple[str | None, str | None, str | None]]]) -> Accuracy:
    right, judged = [0, 0, 0], [0, 0, 0]
    for look_L, wanted in pairs:
        for attribute, value in enumerate(wanted):
            if value is not None:
                judged[attribute] += 1
                right[attribute] += heard(look_L)[attribute] == value
    shares = [r / max(1, n) for r, n in zip(right, judged, strict=True)]
    return Accuracy((shares[0], shares[1], shares[2]), (judged[0], judged[1], judged[2]))


def _wanted(phrase: Phrase) -> tuple[str | None, str | None, str | None]:
    time, biome, weather = heard(phrase.target_L)
    said = phrase.said
    return time if said[0] else None, biome if said[1] else None, weather if said[2] else None


def _split(text: str) -> list[str]:
    return [" ".join(re.findall("[a-z0-9]+", phrase.lower().replace("'", ""))) for phrase in text.split(",")]


def _attribute(value: str) -> int:
    return next(i for i, values in enumerate(ATTRIBUTES) if value in values)


def _column(attribute: int, value: str) -> int:
    return sum(map(len, ATTRIBUTES[:attribute])) + ATTRIBUTES[attribute].index(value)


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)
