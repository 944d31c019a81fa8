"""The toy world written as one straight line, for tests: no loop, no steps, no slab, no code of the toy's own.

`run` plays a list of chunks from the start of a world and tells what each must be. Lists of Python integers only;
the recipe's noise levels are written out, the noise itself comes from numpy's Philox as the contract words it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

P = 2147483647
LEVELS = {1: (1000,), 2: (1000, 500), 3: (1000, 670, 330), 4: (1000, 750, 500, 250)}


@dataclass(frozen=True, slots=True)
class GoldenInput:
    """One chunk's steering: control values (left, right, up, down), and (text, weight) per prompt share. `second`: the
    controls of another player, who has a ship of their own.
    """

    controls: tuple[float, float, float, float]
    prompts: tuple[tuple[str, float], ...]
    input_seq: int = 0
    second: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class GoldenChunk:
    latent: tuple[int, ...]
    digest: str
    ships: tuple[tuple[int, int], ...]
    marker_rows: tuple[str, ...]


def run(
    seed: int,
    branch: int,
    steps: int,
    fps: int,
    per_chunk: int,
    inputs: list[GoldenInput],
    first_chunk: int = 0,
    narrated: bool = False,
) -> list[GoldenChunk]:
    """What chunks `first_chunk`.. of a world that starts there must be. Ships are in pixels.

    `narrated`: every fourth chunk a text is begun that steers from the next fourth chunk on.
    """
    last = _words(seed, branch, 0, 4)
    x, y, vx, vy = 5120, 2048, 0, 0
    entries: list[list[int]] = []
    chunks: list[GoldenChunk] = []
    text, memory, written = "", 0, [0] * 8
    for number, given in enumerate(inputs, first_chunk):
        keys = [round(value * 1000) for value in (*given.controls, *given.second)]
        steering = [sum(key * (31 + 7 * i + c) for i, key in enumerate(keys)) for c in range(8)]
        prompt = [0] * 8
        for said, weight in given.prompts:
            for c, word in enumerate(_hashed(said)):
                prompt[c] += word * round(weight * 1000)
        if narrated and number % 4 == 0:
            written = _hashed(text) if text else written
            text, memory = _narrate(seed, branch, number // 4, memory, list(last) if chunks else [0] * 8)
        prompt = [(prompt[c] // 1000 + 3 * written[c]) % P if any(written) else prompt[c] // 1000 for c in range(8)]

        window = entries[-4:]
        context = [len(window) + sum((2 + age) * window[-1 - age][c] for age in range(len(window))) for c in range(8)]
        context = [value % P for value in context]
        latent = _words(seed, branch, number, 0)
        for step in range(steps):
            if step > 0:
                level, noise = LEVELS[steps][step], _words(seed, branch, number, step)
                latent = [(latent[c] * (1000 - level) + noise[c] * level) % P for c in range(8)]
            latent = [
                (latent[c] * 48271 + context[c] * 3 + prompt[c] * 5 + last[c] * 11 + steering[c]) % P for c in range(8)
            ]
        entries.append([(latent[c] * 69621 + context[c] * 13 + steering[c]) % P for c in range(8)])
        last = latent

        ships, rows = [], []
        for frame in range(per_chunk):
            vx = (vx * 7 + (keys[1] - keys[0]) * 192 // 1000) // 8 + latent[0] % 3 - 1
            vy = (vy * 7 + (keys[3] - keys[2]) * 192 // 1000) // 8 + latent[1] % 3 - 1
            x, y = min(max(x + vx, 0), 10176), min(max(y + vy, 0), 4032)
            ships.append((x // 64, 32 + y // 64))
            body = f"{number:024b}{given.input_seq:024b}{(number * per_chunk + frame) * 1000 // fps:024b}"
            check = 0
            for at in range(0, 72, 8):
                check ^= int(body[at : at + 8], 2)
            rows.append(f"{body}{check:08b}")
        packed = b"".join(value.to_bytes(8, "little") for value in latent)
        chunks.append(GoldenChunk(tuple(latent), hashlib.sha256(packed).hexdigest(), tuple(ships), tuple(rows)))
    return chunks


def clip(seed: int, branch: int, number: int, text: str) -> list[int]:
    """The last latent of one clip of 50 steps."""
    latent, prompt = _words(seed, branch, number, 0), _hashed(text)
    for step in range(50):
        level, noise = 1000 - 20 * step, _words(seed, branch, number, step + 1)
        latent = [
            (latent[c] * (1000 - level) + noise[c] * level + latent[c] * 48271 + prompt[c] * 5) % P for c in range(8)
        ]
    return latent


def _narrate(seed: int, branch: int, run: int, memory: int, seen: list[int]) -> tuple[str, int]:
    """Six words, and the memory that they leave."""
    tokens: list[int] = []
    for step in range(6):
        said = sum((2 + place) * token for place, token in enumerate(tokens))
        total = sum(seen) * 31 + said * 48271 + memory * 7 + _words(seed, branch, run, 512 + step)[0]
        tokens.append(total % P % 8)
    words = ["calm", "red", "storm", "glass", "slow", "violet", "deep", "bright"]
    return " ".join(words[token] for token in tokens), (memory + sum(tokens)) % P


def _hashed(text: str) -> list[int]:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return [int.from_bytes(digest[4 * c : 4 * c + 4], "little") % P for c in range(8)]


def _words(seed: int, branch: int, chunk: int, step: int) -> list[int]:
    """Eight words of Philox with key [seed | branch] and counter [0 | 0 | chunk | step + 1], below P."""
    bits = np.random.Philox(key=seed + (branch << 64), counter=(chunk << 128) + (step + 1 << 192))
    return [int(word) % P for word in bits.random_raw(8)]
