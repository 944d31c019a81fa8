"""AnyFlow's checks on the tiny card: cached passes against the training mask, rollouts against diffusers' pipeline."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..parity.interleave import interleave_check
from ..parity.ladder import Pair, ParityCheck, ParityLevel
from ..parity.session import ChunkInput, ParitySession
from . import golden
from .card import anyflow_card
from .loop import AnyFlowLoop
from .networks import Networks, draw
from .runtime import AnyFlowRuntime, layers
from .spec import AnyFlowSpec, tiny

SEED = 11


def anyflow_checks(spec: AnyFlowSpec) -> tuple[ParityCheck, ...]:
    """Checks run on random weights alone; published sizes have none here."""
    if not spec.random:
        return ()
    forgetful = replace(spec, history=4)
    return (
        ParityCheck(ParityLevel.C0, "transformer: cached pass against one masked pass over all chunks", 2e-5, _masked),
        ParityCheck(ParityLevel.C0, "vae: streamed frames against a whole decode", 0.0, lambda: _decoder(spec)),
        ParityCheck(ParityLevel.C1, "rollout: 4 chunks against AnyFlowFARPipeline", 1e-6, lambda: _pipeline(spec)),
        ParityCheck(
            ParityLevel.C1, "rollout: the same from a picture", 1e-5, lambda: _pipeline(spec, from_picture=True)
        ),
        ParityCheck(
            ParityLevel.C1, "rollout: 7 chunks, 3 forgotten, prompt switch, golden", 1e-6, lambda: _golden(forgetful)
        ),
        interleave_check(anyflow_card(spec), lambda: loaded(forgetful), seeds=1, sessions=2, chunks=3),
    )


@lru_cache(maxsize=2)
def _networks(spec: AnyFlowSpec) -> Networks:
    return draw(spec)


@lru_cache(maxsize=2)
def _theirs(spec: AnyFlowSpec) -> Networks:
    """The same weights in diffusers' classes as they are."""
    return draw(spec, attend=False)


def loaded(spec: AnyFlowSpec) -> LoadedCard:
    """The card on the CPU with random weights."""
    card = anyflow_card(spec)
    runtime = AnyFlowRuntime(_networks(spec), torch.device("cpu"), card.frame)
    return LoadedCard(card, card.recipe.default, "random", {CHUNK_ROLLOUT: AnyFlowLoop(spec)}, runtime)


@torch.no_grad()
def _masked() -> Iterator[Pair]:
    """128 tokens a frame: what is no multiple of 128 diffusers pads, and cached passes alone see the padding."""
    spec = replace(tiny(), rows=16, columns=32, history=4)
    networks = _networks(spec)
    text = networks.encode("a cat")
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(10, spec.channels, spec.rows, spec.columns, generator=rng)
    runtime = AnyFlowRuntime(networks, torch.device("cpu"), anyflow_card(spec).frame)
    runtime.allocate(1)
    for chunks in (1, 2, 4):
        partition = (1, 3, 3, 3)[:chunks]
        frames = sum(partition)
        cache = layers(*runtime.caches([(0, chunks % 2)]))
        if chunks > 1:
            networks.commit(x[None, : frames - 3], text[None], cache, partition[:-1])
        ours = networks.denoise(x[None, frames - partition[-1] : frames], [(0.8, 0.4)], text[None], cache, partition)[0]
        reference = golden.masked(_theirs(spec).transformer, x[None, :frames], partition, 0.8, 0.4, text[None])
        yield Pair(chunks - 1, "transformer", "velocity", ours.numpy(), reference[0].numpy())


def _decoder(spec: AnyFlowSpec) -> Iterator[Pair]:
    session, latents = _played(spec, chunks=3)
    vae = _networks(spec).vae
    z = torch.from_numpy(np.concatenate(latents))[None].transpose(1, 2)
    mean = torch.tensor(vae.config.latents_mean).view(1, -1, 1, 1, 1)
    std = 1.0 / torch.tensor(vae.config.latents_std).view(1, -1, 1, 1, 1)
    with torch.no_grad():
        whole = vae.decode(z / std + mean).sample[0].permute(1, 2, 3, 0)
    reference = (whole * 127.5 + 127.5).round().clamp(0, 255).to(torch.uint8).numpy()
    first = 0
    for chunk, outcome in enumerate(session.outcomes):
        count = len(outcome.frames)
        yield Pair(chunk, "decoder", "frames", outcome.frames, reference[first : first + count])
        first += count


def _pipeline(spec: AnyFlowSpec, from_picture: bool = False) -> Iterator[Pair]:
    size = (8 * spec.rows, 8 * spec.columns, 3)
    picture = np.random.default_rng(SEED).integers(0, 256, size).astype(np.uint8) if from_picture else None
    _, latents = _played(spec, chunks=4, picture=picture)
    networks = _theirs(spec)
    with torch.no_grad():
        prompt = golden.encode(networks.text_encoder, "a cat", spec.text_length)
    made = golden.pipeline(networks.transformer, networks.vae, prompt, SEED, 4, 4, spec.rows, spec.columns, picture)
    reference = made[0].numpy()
    first = 0
    for chunk, ours in enumerate(latents):
        yield Pair(chunk, "rollout", "latent", ours, reference[first : first + len(ours)])
        first += len(ours)


def _golden(spec: AnyFlowSpec) -> Iterator[Pair]:
    prompts = ["a cat"] * 4 + ["rain at night"] * 3
    _, latents = _played(spec, chunks=7, prompts=prompts)
    networks = _theirs(spec)
    with torch.no_grad():
        embeddings = [golden.encode(networks.text_encoder, prompt, spec.text_length) for prompt in prompts]
    shape = (spec.channels, spec.rows, spec.columns)
    made = golden.run(networks.transformer, embeddings, SEED, 4, spec.history, shape)
    for chunk, (ours, reference) in enumerate(zip(latents, made, strict=True)):
        yield Pair(chunk, "rollout", "latent", ours, reference[0].numpy())


def _played(
    spec: AnyFlowSpec,
    chunks: int,
    prompts: list[str] | None = None,
    picture: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None" = None,
) -> "tuple[ParitySession, list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]":
    """A session played to its end, and the clean latents of each of its chunks."""
    card = loaded(spec)
    card.runtime.allocate(1)
    inputs = [ChunkInput((), (0.0, 0.0), text) for text in prompts or ["a cat"] * chunks]
    opening = None if picture is None else picture[None]
    session = ParitySession(card, 0, SEED, inputs, card.runtime.encode_prompt, opening)
    latents = []
    for outcome in session.run():
        latents.append(outcome.latents.values)
    return session, latents
