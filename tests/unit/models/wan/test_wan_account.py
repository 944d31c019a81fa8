"""A Wan card's figures come from its sizes; here they are held against the modules and against published figures."""

from dataclasses import replace

import pytest
import torch
from worldroom.models.shared.video.vae import WanVae
from worldroom.models.wan import footprint
from worldroom.models.wan.card import SPECS, wan_card
from worldroom.models.wan.parity.rollout import twin
from worldroom.models.wan.spec import Decoder
from worldroom.models.wan.tiny_decoder import TinyDecoder
from worldroom.models.wan.transformer import WanTransformer


@pytest.mark.parametrize("name", list(SPECS))
def test_parameters_are_counted_exactly(name: str) -> None:
    spec = SPECS[name]
    with torch.device("meta"):
        transformer, vae = WanTransformer(spec.shape), WanVae(spec.vae)
        tiny = TinyDecoder(spec.vae.channels, spec.tiny_widths)
    parts = {part.name: part.parameters for part in footprint.parts(spec)}
    assert parts["transformer"] == sum(p.numel() for p in transformer.parameters())
    assert parts["vae"] == sum(p.numel() for p in vae.parameters())
    assert footprint.tiny_parameters(spec) == sum(p.numel() for p in tiny.parameters())


def test_features_of_both_streaming_decoders_are_counted_exactly() -> None:
    spec = twin(SPECS["longlive-1.3b"])
    tiny = replace(spec, decoder=Decoder.TINY)
    latent = torch.zeros(1, 16, 3, 4, 4)
    with torch.no_grad():
        _, features = WanVae(spec.vae).decode(latent, ())
        _, memories = TinyDecoder(16, spec.tiny_widths).decode(latent, ())
    assert footprint.decoder_elements(spec) == sum(feature.numel() for feature in features) == 62_720
    assert footprint.decoder_elements(tiny) == sum(memory.numel() for memory in memories) == 8_064


def test_public_sizes() -> None:
    """1.3B keeps 32,760 tokens (21 frames of 1,560): 30 layers x keys and values x 1536 x 2 bytes = 6.04 GB."""
    cards = {name: wan_card(spec).cache for name, spec in SPECS.items()}
    forcing, longlive, krea = cards["self-forcing-1.3b"], cards["longlive-1.3b"], cards["krea-realtime-14b"]
    assert forcing is not None and longlive is not None and krea is not None
    assert forcing.ring * forcing.bytes_per_entry == 32_760 * 30 * 2 * 1536 * 2 == 6_038_323_200
    assert (longlive.window, longlive.sink, longlive.rebuild, longlive.ring) == (3, 1, 2, 6)
    assert (krea.ring, krea.window) == (1, 0)
    assert footprint.carry_elements(SPECS["longlive-1.3b"]) * 2 == 2_396_160
    assert footprint.transformer_parameters(SPECS["self-forcing-1.3b"]) == 1_418_996_800
    assert footprint.transformer_parameters(SPECS["krea-realtime-14b"]) == 14_288_491_584
    assert [wan_card(spec).frame.frames(opens) for spec in [SPECS["longlive-1.3b"]] for opens in (True, False)] == [
        9,
        12,
    ]


def test_an_account_adds_up() -> None:
    figures = footprint.account(SPECS["longlive-1.3b"])
    assert [step.name for step in figures.steps] == ["denoise", "commit", "decode"]
    assert figures.chunk_seconds == 0.75
    assert 150e12 < figures.flop_per_chunk < 200e12
    cache = wan_card(SPECS["longlive-1.3b"]).cache
    assert cache is not None and figures.session_bytes == cache.bytes_per_session
