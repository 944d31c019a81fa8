"""The checks a Wan card owes, on a twin of it: the same plan with tiny sizes and random weights.

C0           transformer, autoencoder and tiny decoder against diffusers or an independent golden
C1           rollouts of at least three windows against whole-sequence masked forwards; prompt cut, blend, recache
interleave   mixed batches against solo runs, rows with a pass each and in the invariant form
precision    narrow numbers, and compiled blocks, against the plain run
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...contract.card import ModelCard
from ...parity.interleave import interleave_check
from ...parity.ladder import Pair, ParityCheck, ParityLevel
from ...shared.random_weights import draw
from ...shared.video.rope import rotation
from ...shared.video.vae import WanVae
from ...shared.video.vae_footprint import VaeSizes
from .. import random_weights, weights
from ..card import TINY_VAE, wan_card
from ..rows import Policy, Sharing
from ..spec import Clip, Positions, Rollout, WanSpec
from ..tiny_decoder import TinyDecoder
from ..transformer import NoPast
from . import golden
from .precision import compiled_check, precision_checks
from .rollout import SEED, SMALL, clip, context_rollout, loaded, reference, replaced, rollout, twin, unipc_clip

ROUNDING = 2e-4  # float32 against float64, many steps deep; values are of order 1


def checks(spec: WanSpec, card: ModelCard) -> tuple[ParityCheck, ...]:
    small = twin(spec)
    checks = [
        ParityCheck(
            ParityLevel.C0, "transformer against diffusers' WanTransformer3DModel", 5e-5, partial(_once, _transformer)
        ),
        ParityCheck(
            ParityLevel.C0, "streaming decode against diffusers' AutoencoderKLWan", 5e-5, partial(_once, _decode)
        ),
        ParityCheck(ParityLevel.C0, "encode against diffusers' AutoencoderKLWan", 5e-5, partial(_once, _encode)),
        ParityCheck(
            ParityLevel.C0, "tiny decoder, streamed against frame by frame", 1e-5, partial(_once, _tiny_decoder)
        ),
    ]
    if isinstance(spec.plan, Clip):
        checks += [
            ParityCheck(ParityLevel.C1, f"clip, guidance '{policy}'", ROUNDING, partial(clip, small, policy))
            for policy in Policy
        ]
        checks.append(
            ParityCheck(ParityLevel.C1, "clip, UniPC against diffusers' scheduler", ROUNDING, lambda: unipc_clip(small))
        )
    elif spec.plan.context:
        checks.append(
            ParityCheck(ParityLevel.C1, "context rebuilt before each chunk", ROUNDING, lambda: context_rollout(small))
        )
    else:
        chunks = 3 * (spec.plan.window // spec.plan.chunk)
        switches = ["cut", "blend", *(["recache"] if spec.plan.recache_frames else [])]
        checks += [
            ParityCheck(
                ParityLevel.C1, f"{chunks} chunks, prompt {switch}", ROUNDING,
                partial(rollout, replaced(small, recache=False), chunks, switch),
            )
            for switch in switches
        ]  # fmt: skip
        if spec.plan.sink:
            window = replace(small, plan=replace(small.rollout, recache=False, positions=Positions.WINDOW))
            checks.append(
                ParityCheck(
                    ParityLevel.C1,
                    f"{chunks} chunks, positions in the window",
                    ROUNDING,
                    lambda: rollout(window, chunks, "recache"),
                )
            )
    if isinstance(spec.plan, Rollout):
        checks += precision_checks(small, card.recipe.narrow)
        if card.recipe.compiled is not None:
            checks.append(compiled_check(small, card.recipe.compiled))
    return (*checks, *(_interleaved(small, sharing) for sharing in (Sharing.ALONE, Sharing.INVARIANT)))


def _interleaved(spec: WanSpec, sharing: Sharing) -> ParityCheck:
    """The gate for rows that have a pass each, and for rows that share passes and keep their bits."""
    check = interleave_check(wan_card(spec), lambda: loaded(spec, sharing))
    return replace(check, subject=f"{check.subject}, rows {sharing}")


@lru_cache(maxsize=8)
def _once(component: Callable[[], Iterator[Pair]]) -> tuple[Pair, ...]:
    """These networks do not depend on the card, so a run over all cards makes them once."""
    return tuple(component())


# ---- C0 -------------------------------------------------------------------------------------------------------------


def _transformer() -> Iterator[Pair]:
    """Two rows at different noise levels, no past, per-frame timesteps all equal within a row."""
    made = reference("WanTransformer3DModel")
    s, spec = SMALL, WanSpec("c0", "", SMALL, TINY_VAE, Rollout((1.0,)))
    ours = random_weights.networks(replace(spec, random=True), torch.float32).transformer
    theirs = made(
        num_attention_heads=s.heads, attention_head_dim=s.head_width, text_dim=s.text_dim, freq_dim=s.freq_dim,
        ffn_dim=s.ffn, num_layers=s.layers,
    ).eval()  # fmt: skip
    keys = weights.DIFFUSERS_TRANSFORMER
    theirs.load_state_dict({keys.to_public(name): value for name, value in ours.state_dict().items()})
    x_BCFHW, text_BLC = _random((2, 16, 3, 4, 4), 0), _random((2, s.text_length, s.text_dim), 1)
    timestep_B = torch.tensor([937.5, 20.0])
    turn = rotation(s.head_width, s.rows // 2, s.columns // 2, 0, 3, torch.device("cpu"))
    with torch.no_grad():
        done = ours(
            x_BCFHW, timestep_B[:, None].expand(2, 3), [ours.text_kv(text) for text in text_BLC],
            (turn.cos_T1P[:, 0].expand(2, -1, -1), turn.sin_T1P[:, 0].expand(2, -1, -1)), NoPast(),
        )  # fmt: skip
        expected = theirs(x_BCFHW, timestep_B, text_BLC).sample
    yield Pair(0, "transformer", "velocity", _numpy(done), expected.numpy())


def _decode() -> Iterator[Pair]:
    return _vae(decodes=True)


def _encode() -> Iterator[Pair]:
    return _vae(decodes=False)


def _vae(decodes: bool) -> Iterator[Pair]:
    """Nine latent frames in threes, one by one, and at once; diffusers goes one by one."""
    sizes = VaeSizes(width=8)
    ours, theirs = WanVae(sizes), reference("AutoencoderKLWan")(base_dim=8).eval()
    draw(ours, SEED)
    keys = weights.diffusers_vae(sizes)
    theirs.load_state_dict({keys.to_public(name): value for name, value in ours.state_dict().items()})
    mean, std = (torch.tensor(values).view(1, -1, 1, 1, 1) for values in _moments(theirs.config))
    with torch.no_grad():
        if not decodes:
            picture = _random((1, 3, 9, 32, 48), 0).clamp(-1, 1)
            expected = (theirs.encode(picture).latent_dist.mean - mean) / std
            yield Pair(0, "vae", "latent", ours.encode(picture).numpy(), expected.numpy())
            return
        latent = _random((1, 16, 9, 4, 6), 0)
        expected = theirs.decode(latent * std + mean).sample
        for size in (3, 1, 9):
            features: tuple[Tensor, ...] = ()
            parts = []
            for part in torch.split(latent, size, 2):
                picture, features = ours.decode(part, features)
                parts.append(picture)
            yield Pair(size, "vae", "picture", torch.cat(parts, 2).clamp(-1, 1).numpy(), expected.numpy())


def _tiny_decoder() -> Iterator[Pair]:
    widths = (8, 8, 8, 8)
    ours = TinyDecoder(16, widths)
    draw(ours, SEED)
    latent = _random((1, 16, 6, 4, 4), 0)
    with torch.no_grad():
        first, features = ours.decode(latent[:, :, :3], ())
        second, _ = ours.decode(latent[:, :, 3:], features)
        expected = golden.tiny_decoder(dict(ours.state_dict()), latent[0])
    yield Pair(0, "tiny decoder", "picture", torch.cat((first, second), 2)[0].numpy(), expected.numpy())


def _random(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _moments(config: Mapping[str, Sequence[float]]) -> tuple[Sequence[float], Sequence[float]]:
    return config["latents_mean"], config["latents_std"]


def _numpy(value: Tensor | None) -> npt.NDArray[np.float32]:
    if value is None:
        raise ValueError("the pass made no velocity")
    return np.asarray(value.numpy(), np.float32)
