"""What the stages of `dream` leave to each other in a run's folder, and what a card is made of at the end."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from ...models.dream.card import WEIGHTS as SHIPPED
from ...models.dream.runtime import load_networks
from ...models.dream.shape import DreamShape
from ...models.dream.transformer import DreamTransformer
from ...models.drive.card import WEIGHTS as PAINTED
from ...models.shared.road.autoencoder import DriveAutoencoder
from ..drive.optimise import load_checkpoint, save_checkpoint
from . import stage_paint
from .data import Shard, read_shard
from .export import save_openings, save_weights
from .stage_reader import load_reader
from .stage_recurrence import Recurrence, load_recurrence
from .stage_teacher import still
from .windows import Store, store_of

HELD_SEED = 9001
KEPT = Path(__file__).parent / "checkpoints"


def export(out: Path, weights: Path, made_by: str) -> None:
    """Write transformer, autoencoder and openings as the card reads them; the text table is drive's.

    What moves tokens on and what reads them stay as they are while the rest is trained: each has its own file.
    """
    last = next(path for name in ("student", "teacher", "paint") if (path := out / f"{name}.pt").exists())
    autoencoder = autoencoder_of(out / "decoder.pt" if (out / "decoder.pt").exists() else out / "autoencoder.pt")
    metadata = {"recipe": "dream-1", "made_by": made_by}
    network = network_of(last)
    network.recurrent.load_state_dict(recurrence_of(out).recurrent.state_dict())
    network.reader.load_state_dict(load_reader(out / "reader.pt", network.shape).state_dict())
    save_weights(network, weights / "transformer.safetensors", metadata)
    save_weights(autoencoder, weights / "autoencoder.safetensors", metadata)
    save_openings(autoencoder, HELD_SEED, weights / "openings.safetensors")
    shutil.copyfile(PAINTED / "text.safetensors", weights / "text.safetensors")


def network_of(path: Path) -> DreamTransformer:
    """The averaged network of a checkpoint."""
    network = DreamTransformer(DreamShape())
    network.load_state_dict(load_checkpoint(path).average)
    return network


def autoencoder_of(path: Path) -> DriveAutoencoder:
    model = DriveAutoencoder()
    model.load_state_dict(load_checkpoint(path).average)
    return model.eval().requires_grad_(False)


def store_in(out: Path, name: str) -> Store:
    return store_of(shards_in(out, name), recurrence_of(out), 1)


def shards_in(out: Path, name: str) -> list[Shard]:
    return [read_shard(path) for path in sorted((out / "shards").glob(f"{name}-*.npz"))]


def recurrence_of(out: Path) -> Recurrence:
    """What moves recurrent tokens on, as far as it has been trained."""
    path = out / "lasting.pt"
    return load_recurrence(path if path.exists() else out / "recurrence.pt", DreamShape())


def take_up_shipped(out: Path) -> None:
    """Give a run's folder what it lacks of what training has come to: kept checkpoints, and parts of the shipped card.

    Optimisers begin anew and iterations at 0, so what is taken up is trained on by a whole budget.
    """
    out.mkdir(parents=True, exist_ok=True)
    network, _ = load_networks(SHIPPED)
    network.requires_grad_(True)
    for path in KEPT.glob("*.pt"):
        if not (out / path.name).exists():
            shutil.copyfile(path, out / path.name)
    for name, part in (("reader", network.reader), ("spread", network.spread)):
        if not (out / f"{name}.pt").exists():
            torch.save((0, part.state_dict()), out / f"{name}.pt")
    if not (out / "paint.pt").exists():
        optimiser = stage_paint.optimiser(still(network))
        save_checkpoint(out / "paint.pt", 0, network, network, optimiser)
