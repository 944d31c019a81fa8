"""A reward model from preference pairs: which of two futures would a person keep?

    python -m worldroom.training.examples.reward_from_pairs --synthetic 2000
    python -m worldroom.training.examples.reward_from_pairs --url http://127.0.0.1:8080

Pairs come from the journal, read as group `reward`. A pair names its futures' latents by digest; the server that keeps
them (`worldroom serve --keep-latents 4`) gives them out. Model: a small network on the mean latent of a future, trained
by Bradley and Terry's likelihood (1952); ties count half.
"""

import argparse
import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ...clients.python.journal import journal, latents

HELD_OUT = 5
"""One pair in so many is never trained on."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Mean latents of two futures of one moment. `label`: 1 = the first was kept, 0 = the second, .5 = a tie."""

    first: np.ndarray
    second: np.ndarray
    label: float


class Reward(nn.Module):
    """Latent -> how much a person would like it."""

    def __init__(self, width: int, hidden: int = 128) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, 1, bias=False)

    def forward(self, latent_BC: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.out(self.net(latent_BC)).squeeze(-1)
        return scores


def synthetic(count: int, width: int = 16, seed: int = 0) -> list[Pair]:
    """Pairs of a person who likes one thing (a bright first half) and dislikes another (much change); 3 % slips."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        first, second = rng.normal(size=(2, width)).astype(np.float32)
        better = _liked(first) > _liked(second)
        slip = rng.random() < 0.03
        pairs.append(Pair(first, second, float(better != slip)))
    return pairs


def _liked(latent: np.ndarray) -> float:
    half = len(latent) // 2
    return float(latent[:half].mean() - 0.5 * np.abs(np.diff(latent[half:])).mean())


async def from_journal(url: str, key: str | None, folder: Path | None = None) -> list[Pair]:
    """Every choice so far of whose futures latents are kept; a skip is no pair. `folder`: of the group's cursor."""
    pairs = []
    async for entry in journal(url, "reward", ("preference.chosen",), folder, key, follow=False):
        choice = entry.event
        futures: dict[object, np.ndarray | None] = {}
        for branch in choice["branches"]:  # type: ignore[attr-defined]
            futures[branch["branch"]] = _mean(await latents(url, entry.session, branch["digests"], key))
        kept = futures.pop(choice["chosen"], None)
        if choice["verdict"] == "skip" or kept is None:
            continue
        label = 0.5 if choice["verdict"] == "tie" else 1.0
        pairs += [Pair(kept, other, label) for other in futures.values() if other is not None]
    return pairs


def _mean(packed: Sequence[bytes]) -> np.ndarray | None:
    found = [np.load(io.BytesIO(data)).astype(np.float32).reshape(-1) for data in packed]
    return np.mean(found, axis=0) if found else None


def train(pairs: Sequence[Pair], epochs: int = 40, seed: int = 0) -> tuple[Reward, float]:
    """The model, and its accuracy on the pairs it was not trained on (ties left out)."""
    torch.manual_seed(seed)
    held = [pair for index, pair in enumerate(pairs) if index % HELD_OUT == 0]
    taught = [pair for index, pair in enumerate(pairs) if index % HELD_OUT]
    first, second, label = _tensors(taught)
    model = Reward(first.shape[1])
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1.0)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.split(torch.randperm(len(taught), generator=generator), 128):
            margin = model(first[batch]) - model(second[batch])
            loss = nn.functional.binary_cross_entropy_with_logits(margin, label[batch])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    first, second, label = _tensors([pair for pair in held if pair.label != 0.5])
    with torch.no_grad():
        right = (model(first) > model(second)) == (label > 0.5)
    return model, float(right.float().mean())


def _tensors(pairs: Sequence[Pair]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    first = torch.from_numpy(np.stack([pair.first for pair in pairs]))
    second = torch.from_numpy(np.stack([pair.second for pair in pairs]))
    return first, second, torch.tensor([pair.label for pair in pairs])


def main() -> None:
    options = argparse.ArgumentParser(description="Train a reward model on preference pairs.")
    options.add_argument("--synthetic", type=int, default=0, help="so many pairs made by a known rule")
    options.add_argument("--url", help="a Worldroom server")
    options.add_argument("--key", help="its API key")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    if asked.synthetic:
        pairs = synthetic(asked.synthetic, seed=asked.seed)
    elif asked.url:
        pairs = asyncio.run(from_journal(asked.url, asked.key))
    else:
        options.error("say --synthetic N or --url")
    if len(pairs) < 2 * HELD_OUT:
        raise SystemExit(f"{len(pairs)} pairs are too few to learn from")
    _, accuracy = train(pairs, seed=asked.seed)
    print(f"{len(pairs)} pairs, held out {len(pairs) // HELD_OUT}: accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
