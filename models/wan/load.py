"""A Wan card made ready: networks filled from a checkpoint or drawn, then loop and runtime around them."""

import hashlib
from dataclasses import replace
from pathlib import Path

import torch

from ..checkpoints.check import find, find_folder
from ..checkpoints.load import digest, load_component, read
from ..checkpoints.manifest import Manifest
from ..contract.cache_key import card_key
from ..contract.card import ModelCard, Parity
from ..contract.loaded import LoadedCard
from ..contract.loop import CHUNK_ROLLOUT
from ..contract.recipe import RuntimeChoice
from ..shared import lora_file
from ..shared.captured import CapturedPasses, cuda_graph
from ..shared.compiled import CompileCache, require_compiler
from ..shared.components import TorchComponents
from ..shared.fp8 import narrow
from ..shared.video.pictures import frames_on
from ..shared.video.vae import WanVae
from ..weights import NotPulled
from . import random_weights, weights
from .card import cache_of
from .clips.loop import ClipCarry, ClipLoop, ClipState
from .loop import WanCarry, WanLoop
from .rows import Policy, Sharing
from .runtime import WanNetworks, WanRuntime
from .spec import Clip, Decoder, WanSpec
from .text import Umt5Text
from .tiny_decoder import TinyDecoder
from .transformer import WanTransformer


def load(spec: WanSpec, card: ModelCard, choice: RuntimeChoice, checkpoint: Path | None) -> LoadedCard:
    """Raises `WeightsError`, `NoCompiler`, or ImportError where a prompt encoder needs the extra `diffusers`."""
    dtype = torch.float32 if choice.precision.full else torch.bfloat16
    manifest = weights.manifest(spec)
    if manifest is None or spec.drawn:
        networks, total = random_weights.networks(spec, dtype), hashlib.sha256(f"drawn 1 {spec}".encode()).hexdigest()
    elif checkpoint is None:
        raise NotPulled(card.name)
    else:
        networks, total = _published(spec, manifest, checkpoint, dtype)
    device = next(networks.transformer.parameters()).device
    if choice.precision.narrow_weights:
        narrow(networks.transformer.blocks)
    card = replace(card, cache=cache_of(spec, choice.precision), frame=frames_on(card.frame, device))
    compiled = captured = None
    if choice.compiled and card.recipe.compiled is not None:
        require_compiler(device)
        key = card_key(card, choice, total)
        compiled = CompileCache(key, card.recipe.compiled)
        captured = CapturedPasses(key, cuda_graph, card.recipe.compiled) if device.type == "cuda" else None
    sharing = Sharing.ALONE if card.parity.exact else Sharing.PLAIN
    if choice.invariant:
        sharing, card = Sharing.INVARIANT, replace(card, parity=Parity(exact=True, tolerance=0.0))
    runtime = WanRuntime(spec, networks, dtype, sharing, choice.precision.narrow_kv, compiled, card.frame, captured)
    components = TorchComponents(
        {
            "transformer": networks.transformer,
            "vae": networks.vae,
            "tiny_decoder": networks.tiny,
            "text": networks.text.network,
        },
        prompts=("text",),
        moved=(lambda: None) if captured is None else captured.forget,
    )
    if isinstance(spec.plan, Clip):
        return LoadedCard(
            card,
            choice,
            total,
            {card.main_loop: ClipLoop(spec, card.recipe, sampler=choice.sampler)},
            runtime,
            ClipCarry,
            state=ClipState,
            adapters=runtime.adapters,
            components=components,
            guidance=f"{Policy.BATCHED} {spec.clip.guidance}",
        )
    loops = {CHUNK_ROLLOUT: WanLoop(spec, card.recipe)}
    made = card, choice, total, loops, runtime, WanCarry, runtime
    return LoadedCard(*made, adapters=runtime.adapters, components=components, shares=True)


def _published(spec: WanSpec, manifest: Manifest, root: Path, dtype: torch.dtype) -> tuple[WanNetworks, str]:
    """Everything on the GPU when there is one. The prompt encoder is a transformers folder beside the rest."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.device("meta"):
        transformer, vae = WanTransformer(spec.shape), WanVae(spec.vae)
        tiny = TinyDecoder(spec.vae.channels, spec.tiny_widths) if spec.decoder is Decoder.TINY else None
    transformer.in_precision(dtype)
    found = []
    for name, module in (("transformer", transformer), ("vae", vae.to(dtype)), ("tiny_decoder", tiny)):
        if module is not None:
            module.to_empty(device=device)
            found.append(load_component(manifest.component(name), root, module))
            module.eval().requires_grad_(False)
    if spec.lora_rank:
        adapter = find(manifest.component("lora"), root)
        low_rank = lora_file.read_table(read(adapter), lora_file.layers_of(transformer), spec.lora_alpha)
        lora_file.merge(transformer, low_rank)
        found.append(adapter)
    for folder in manifest.folders:
        find_folder(folder, root)
    text = Umt5Text.load(root / "tokenizer", root / "text_encoder", spec.shape, dtype)
    text.to(device)
    return WanNetworks(transformer, vae, text, tiny), digest(found)
