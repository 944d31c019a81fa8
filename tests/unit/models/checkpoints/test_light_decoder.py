"""`cards check` of a light decoder: its pictures against the full one's, within what its manifest declares."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from worldroom.models.checkpoints.check import Finding, check
from worldroom.models.checkpoints.manifest import Manifest
from worldroom.models.shared.random_weights import draw
from worldroom.models.shared.video.vae import WanVae
from worldroom.models.wan.card import SPECS
from worldroom.models.wan.decoder_error import film
from worldroom.models.wan.tiny_decoder import TinyDecoder
from worldroom.models.wan.weights import manifest
from worldroom.tests.exported import export_component

SPEC = replace(SPECS["wan-tiny-random"], name="self-forcing-1.3b", random=False)


def published(root: Path, lighter: float) -> Manifest:
    """Both decoders in the published layout. The full one makes grey pictures, the light one so much lighter ones."""
    made = manifest(SPEC)
    assert made is not None
    full, light = WanVae(SPEC.vae), TinyDecoder(SPEC.vae.channels, SPEC.tiny_widths)
    for network in (full, light):
        draw(network, 1)
    _constant(full.decoder.head[-1], 0.0)
    _constant(light.decoder[-1], 0.5 + lighter)
    for name, network in (("vae", full), ("tiny_decoder", light)):
        component = made.component(name)
        export_component(component, component.layouts[0], network.state_dict(), root)
    return replace(made, components=tuple(made.component(name) for name in ("vae", "tiny_decoder")), folders=())


def _constant(conv: nn.Module, value: float) -> None:
    assert isinstance(conv, nn.Conv2d | nn.Conv3d) and conv.bias is not None
    nn.init.zeros_(conv.weight)
    nn.init.constant_(conv.bias, value)


def checked(root: Path, lighter: float) -> Finding:
    _, tiny = check(published(root, lighter), root)
    return tiny


def test_within_its_tolerance_it_is_found_and_its_error_is_told(tmp_path: Path) -> None:
    finding = checked(tmp_path, 0.07)
    assert finding.found is not None and finding.error == pytest.approx(0.07, abs=1e-5)


def test_beyond_it_it_is_refused_with_both_numbers(tmp_path: Path) -> None:
    finding = checked(tmp_path, 0.09)
    assert finding.found is None and finding.error == pytest.approx(0.09, abs=1e-5)
    wanted = "'tiny_decoder' is 0.09 away from 'vae' (rms of pictures in 0..1); 0.08 is declared"
    assert finding.problem == f"{tmp_path}: {wanted}"


def test_a_decoder_of_other_latents_is_refused(tmp_path: Path) -> None:
    published(tmp_path, 0.0)
    made = manifest(SPEC)
    assert made is not None
    component, drawn = made.component("vae"), WanVae(SPEC.vae)
    draw(drawn, 2)
    export_component(component, component.layouts[0], drawn.state_dict(), tmp_path)
    (tiny,) = (finding for finding in check(made, tmp_path) if finding.component == "tiny_decoder")
    assert tiny.found is None and tiny.error is not None and tiny.error > 0.08


def test_without_the_full_decoder_its_own_keys_are_all_that_is_checked(tmp_path: Path) -> None:
    made = published(tmp_path, 0.3)
    (tmp_path / "Wan2.1_VAE.pth").unlink()
    vae, tiny = check(made, tmp_path)
    assert vae.found is None and tiny.found is not None and tiny.error is None


def test_the_film_moves_and_has_all_colours() -> None:
    pictures = film()
    assert pictures.shape == (3, 9, 64, 64) and pictures.abs().max() <= 1
    assert not torch.equal(pictures[:, 0], pictures[:, 8]) and (pictures.std((1, 2, 3)) > 0.2).all()
