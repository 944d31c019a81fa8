"""A published card from the hub to the person who plays it: pull, check, serve, drive, each by its own command.

The checkpoint has LongLive's published layout in small: torch files with their wrappers and prefixes, a LoRA, the VAE
and the prompt encoder from repositories of their own. All weights are drawn.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Generator, Tensor, nn, randn
from worldroom.clients.bench.server import command, served
from worldroom.clients.python.room import join
from worldroom.models.checkpoints.manifest import ComponentManifest
from worldroom.models.shared.random_weights import draw
from worldroom.models.shared.video.vae import WanVae
from worldroom.models.wan import weights
from worldroom.models.wan.card import SPECS, Decoder
from worldroom.models.wan.transformer import WanTransformer
from worldroom.tests.exported import export_component
from worldroom.tests.fake_hub import hub_of

transformers = pytest.importorskip("transformers")

CARD = "longlive-small"
SPEC = replace(SPECS["wan-tiny-random"], name="longlive-1.3b", random=False, lora_rank=4, decoder=Decoder.VAE)
PACKAGE = f'''
from dataclasses import replace

from worldroom.models.family import Family
from worldroom.models.wan import footprint, weights
from worldroom.models.wan.card import SPECS, Decoder, wan_card

SPEC = replace(SPECS["wan-tiny-random"], name="longlive-1.3b", random=False, lora_rank=4, decoder=Decoder.VAE)


def load(card, choice, checkpoint):
    from worldroom.models.wan.load import load

    return load(SPEC, card, choice, checkpoint)


FAMILY = Family(
    name="small",
    cards=(replace(wan_card(SPEC), name="{CARD}", family="small"),),
    load=load,
    checks=lambda card: (),
    manifest=lambda card: replace(weights.manifest(SPEC), card=card.name),
    account=lambda card: footprint.account(SPEC),
)
'''
"""The family of another package, as pip leaves it: Wan's code, the published names and layouts, tiny sizes."""


def install(folder: Path) -> None:
    info = folder / "small_world-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: small-world\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[worldroom.families]\nsmall = small_world:FAMILY\n")
    (folder / "small_world.py").write_text(PACKAGE)


def tensors(component: ComponentManifest) -> dict[str, Tensor]:
    """What a component holds, drawn; a LoRA so small that the network stays one."""
    networks: dict[str, Callable[[], nn.Module]] = {
        "transformer": lambda: WanTransformer(SPEC.shape),
        "vae": lambda: WanVae(SPEC.vae),
    }
    if component.name == "lora":
        random = Generator().manual_seed(5)
        return {key: randn(shape, generator=random) / 1000 for key, shape in component.expects().items()}
    network = networks[component.name]()
    draw(network, 1)
    return dict(network.state_dict())


def prompts(folder: Path) -> None:
    """A T5 tokenizer of single letters and an encoder of two layers, saved as transformers saves them."""
    special = ("<pad>", "</s>", "<unk>")
    vocabulary = [*((word, 0.0) for word in special), *((letter, -3.0) for letter in "▁abcdefghijklmnopqrstuvwxyz,")]
    transformers.T5Tokenizer(vocab=vocabulary, extra_ids=0).save_pretrained(folder / "tokenizer")
    sizes = transformers.UMT5Config(
        vocab_size=len(vocabulary), d_model=SPEC.shape.text_dim, d_kv=8, d_ff=64, num_layers=2, num_heads=4
    )
    transformers.UMT5EncoderModel(sizes).save_pretrained(folder / "text_encoder")


def published(root: Path) -> dict[str, dict[str, bytes]]:
    """Every repository that the card is pulled from, with what it holds."""
    manifest = weights.manifest(SPEC)
    assert manifest is not None
    for component in manifest.components:
        layout = component.layouts[0]
        export_component(component, layout, tensors(component), root / layout.repo)
    prompts(root / manifest.folders[0].repo)
    repos: dict[str, dict[str, bytes]] = {}
    for file in (path for path in root.rglob("*") if path.is_file()):
        owner, name, *path = file.relative_to(root).parts
        repos.setdefault(f"{owner}/{name}", {})["/".join(path)] = file.read_bytes()
    return repos


def cards(*arguments: str) -> str:
    done = subprocess.run([command(), "cards", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def frames(base: str, count: int) -> list[NDArray[np.uint8]]:
    seen: list[NDArray[np.uint8]] = []
    async with asyncio.timeout(60), join(f"{base}/r/fox", loopback=True, patience=20.0) as room:
        async for frame in room.frames():
            assert frame.picture is not None
            seen.append(frame.picture.to_ndarray(format="rgb24"))
            if len(seen) == count:
                break
    return seen


def test_a_published_card_is_pulled_checked_served_and_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("WORLDROOM_DATA", str(tmp_path / "data"))
    with hub_of(published(tmp_path / "hub")) as hub:
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        pulled = json.loads(cards("pull", CARD, "--endpoint", hub.endpoint, "--json"))
        assert {file["repo"] for file in pulled["files"]} == set(hub.repos)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    report = json.loads(cards("check", CARD, "--json"))
    assert report["ok"] and report["path"] == str(tmp_path / "data" / "checkpoints" / CARD)
    names = {part["component"] for part in report["components"]}
    assert names == {"transformer", "vae", "lora", "text_encoder", "tokenizer"}

    with served(CARD) as server:
        seen = asyncio.run(frames(server.base, 12))
    assert {frame.shape for frame in seen} == {(SPEC.height * SPEC.scale, SPEC.width * SPEC.scale, 3)}
    assert (seen[0] != seen[-1]).any() and seen[-1].std() > 1, "a picture that moves"
