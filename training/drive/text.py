"""The text part of the drive card: evidence per word for every value of a look, distilled from a sentence encoder.

    lexicon phrases (phrases.py) and common neutral words -> sentence vectors -> kernel ridge -> evidence [12]
    the same for every word of an English vocabulary; words that say something go to weights/text.safetensors

Words that may be of time or weather are read in two contexts, alone and before "weather", with the mean of both
kernels. The fit is closed-form and takes seconds; embedding the vocabulary takes minutes once and is kept in
`vectors.npz`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from ...models.shared.road.look import ATTRIBUTES, BIOMES, LOOK, WEATHERS
from ...models.shared.road.text import STEP, TextEncoder, load_text
from .held_out import HELD_OUT
from .minilm import load_encoder, package_file
from .phrases import HINT, HINTS, PAIRS, WORDS

Array = NDArray[np.float32]
SHARPNESS = 2.0  # of the kernel exp(SHARPNESS * (cosine - 1))
RIDGE = 0.1
NEUTRAL, NEUTRAL_WEIGHT = 2000, 0.25
FAR = 0.5  # a neutral word's largest cosine to any lexicon phrase
CONTEXTS = ("{}", "{} weather")
MAYBE = 0.1  # evidence of time or weather from which a word is read in every context
QUIET = 0.12  # evidence below this is not worth a row
PROPER_NAMES = 60_000  # of the list sorted by frequency


@dataclass(frozen=True, slots=True)
class Fit:
    """Kernel ridge over several contexts: evidence of x is mean_c k(x_c, anchors_c) @ alpha."""

    centres: tuple[Array, ...]
    anchors: tuple[Array, ...]
    alpha: Array

    def evidence(self, vectors: tuple[Array, ...]) -> Array:
        """[N, 12] of N words given as one array of vectors [N, 384] per context."""
        parts = []
        for at in range(0, len(vectors[0]), 4096):
            kernel = np.mean(
                [
                    _kernel(_unit(v[at : at + 4096] - centre), anchors)
                    for v, centre, anchors in zip(vectors, self.centres, self.anchors, strict=True)
                ],
                axis=0,
            )
            parts.append(kernel @ self.alpha)
        return np.asarray(np.concatenate(parts), np.float32)


def fit(taught: dict[str, dict[int, float]], taught_vectors: tuple[Array, ...], neutral: tuple[Array, ...]) -> Fit:
    """Closed form; vectors are given once per context, the centre of each is the mean neutral word."""
    centres = tuple(np.asarray(vectors.mean(0), np.float32) for vectors in neutral)
    anchors = tuple(
        _unit(np.concatenate([near, far]) - centre)
        for near, far, centre in zip(taught_vectors, neutral, centres, strict=True)
    )
    wanted = np.zeros((len(anchors[0]), LOOK), np.float64)
    for row, said in enumerate(taught.values()):
        wanted[row, list(said)] = list(said.values())
    slack = np.full(len(wanted), RIDGE / NEUTRAL_WEIGHT)
    slack[: len(taught)] = RIDGE
    kernel = np.mean([_kernel(a, a) for a in anchors], axis=0).astype(np.float64)
    return Fit(centres, anchors, np.linalg.solve(kernel + np.diag(slack), wanted).astype(np.float32))


def lexicon() -> dict[str, dict[int, float]]:
    """Every taught phrase and how much it says of each column of a look: {phrase: {column: 0..1}}."""
    taught: dict[str, dict[int, float]] = {}
    for value, text in WORDS.items():
        for phrase in _split(text):
            taught.setdefault(phrase, {})[_column(value)] = 1.0
    for pair, text in PAIRS.items():
        for phrase in _split(text):
            taught[phrase] = {_column(value): 1.0 for value in pair}
    for value, text in HINTS.items():
        for phrase in _split(text):
            taught.setdefault(phrase, {})[_column(value)] = HINT
    return taught


def vocabulary() -> list[str]:
    """Dictionary words and frequent names, from two installed word lists (both MIT)."""
    ranked = (
        gzip.decompress(package_file("wordninja", "wordninja/wordninja_words.txt.gz").read_bytes()).decode().split()
    )
    listed = package_file("symspellpy", "frequency_dictionary_en_82_765.txt").read_text("utf-8-sig").splitlines()
    words = [*ranked[:PROPER_NAMES], *(line.split()[0].lower().replace("'", "") for line in listed)]
    return [word for word in dict.fromkeys(words) if re.fullmatch("[a-z]{2,14}", word)]


def vectors_of(phrases: list[str], kept: Path, add: Callable[[int], None] = lambda more: None) -> Array:
    """Sentence vectors, taken from and added to the file `kept`; `add` hears how many more are known."""
    known: dict[str, Array] = {}
    if kept.exists():
        with np.load(kept) as saved:
            known = dict(zip(saved["words"].tolist(), saved["vectors"], strict=True))
    missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in known]
    if missing:
        known |= dict(zip(missing, load_encoder().embed(missing, add=add).astype(np.float16), strict=True))
        np.savez(kept, words=np.array(list(known)), vectors=np.stack(list(known.values())))
    else:
        add(len(phrases))
    return np.stack([known[phrase] for phrase in phrases]).astype(np.float32)


def neutral_words(taught: list[str], taught_vectors: Array, words: list[str], vectors: Array) -> list[str]:
    """Frequent words that are far from everything taught; `words` are sorted by frequency."""
    centre = vectors[:20_000].mean(0)
    near, common = _unit(taught_vectors - centre), _unit(vectors[900:9000] - centre)
    used = {word for phrase in taught for word in phrase.split()}
    far = np.flatnonzero((common @ near.T).max(1) < FAR)
    candidates = [words[900 + i] for i in far if words[900 + i] not in used]
    return list(np.random.default_rng(0).permutation(candidates)[:NEUTRAL])


def train(folder: Path, file: Path, total: Callable[[int], None], add: Callable[[int], None]) -> TextEncoder:
    """Distil, write `file` and read it back; `folder` keeps the vocabulary's vectors.

    `total` and `add` hear of the vocabulary's words, which take nearly all of the time. Raises ModuleNotFoundError when
    the word lists or the sentence encoder are not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept, taught, words = folder / "vectors.npz", lexicon(), vocabulary()
    total(len(words))
    word_vectors, taught_vectors = vectors_of(words, kept, add), vectors_of(list(taught), kept)
    neutral = neutral_words(list(taught), taught_vectors, words, word_vectors)
    alone = fit(taught, (taught_vectors,), (vectors_of(neutral, kept),))
    evidence = dict(zip(words, alone.evidence((word_vectors,)), strict=True))
    time_and_weather = [*range(_column(BIOMES[0])), *range(_column(WEATHERS[0]), LOOK)]
    maybe = [word for word, row in evidence.items() if row[time_and_weather].max() > MAYBE]
    both = fit(taught, _in_contexts(list(taught), kept), _in_contexts(neutral, kept))
    for names in (maybe, list(taught)):
        evidence |= zip(names, both.evidence(_in_contexts(names, kept)), strict=True)
    _save(file, {phrase: row for phrase, row in evidence.items() if phrase in taught or row.max() > QUIET})
    return load_text(file)


def _in_contexts(names: list[str], kept: Path) -> tuple[Array, ...]:
    return tuple(vectors_of([context.format(name) for name in names], kept) for context in CONTEXTS)


def _save(file: Path, evidence: dict[str, Array]) -> None:
    ordered = dict(sorted(evidence.items()))
    table = np.clip(np.round(np.stack(list(ordered.values())) / STEP), -127, 127).astype(np.int8)
    names = np.frombuffer("\n".join(ordered).encode("ascii"), np.uint8)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file({"phrases": names, "evidence": table}, file, {"recipe": "drive-1", "source": "all-MiniLM-L6-v2"})


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of mentioned attributes that are heard right: time, biome, weather; and how many were judged."""

    shares: tuple[float, float, float]
    judged: tuple[int, int, int]


def held_out_accuracy(encoder: TextEncoder) -> Accuracy:
    return _accuracy([(encoder.look(row.text), (row.time, row.biome, row.weather)) for row in HELD_OUT])


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


def _split(text: str) -> list[str]:
    return [" ".join(re.findall("[a-z0-9]+", phrase.lower().replace("'", ""))) for phrase in text.split(",")]


def _column(value: str) -> int:
    return [name for names in ATTRIBUTES for name in names].index(value)


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


def _kernel(a: Array, b: Array) -> Array:
    return np.asarray(np.exp(SHARPNESS * (a @ b.T - 1)), np.float32)
