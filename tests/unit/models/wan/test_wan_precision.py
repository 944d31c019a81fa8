"""Narrow numbers and compiled blocks: what they cost in bytes, what a recipe allows, what is refused."""

import shutil

import pytest
import torch
from torch import nn
from worldroom.models import catalog
from worldroom.models.contract.cache_key import key_of
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Precision, RecipeMismatch, RuntimeChoice
from worldroom.models.shared import compiled
from worldroom.models.shared.fp8 import Fp8Linear, computes, narrow
from worldroom.models.wan.card import SPECS, cache_of
from worldroom.models.wan.slab import Slab


def test_a_card_serves_the_precisions_its_recipe_declares_and_no_other() -> None:
    for name in ("self-forcing-1.3b", "wan-tiny-random"):
        recipe = catalog.card(name).recipe
        assert {precision for precision, _ in recipe.narrow} <= set(recipe.precisions)
        assert all(tolerance > 0 for _, tolerance in recipe.narrow)
        recipe.check(RuntimeChoice("renoise", 4, Precision.BF16_KV8))
    with pytest.raises(RecipeMismatch, match="precision 'fp8'"):
        catalog.card("drive").recipe.check(RuntimeChoice("flow-x0", 1, Precision.FP8))
    with pytest.raises(RecipeMismatch, match="mode 'compiled'"):
        catalog.card("drive").recipe.check(RuntimeChoice("flow-x0", 1, Precision.FP32, compiled=True))


def test_keys_and_values_of_eight_bits_take_about_half() -> None:
    spec = SPECS["self-forcing-1.3b"]
    wide, slim = cache_of(spec, Precision.BF16), cache_of(spec, Precision.BF16_KV8)
    assert wide is not None and slim is not None
    assert wide.bytes_per_entry == 3 * 1560 * 2 * 30 * 1536 * 2
    assert slim.bytes_per_entry == 3 * 1560 * 2 * 30 * (1536 + 12 * 4)
    loaded = catalog.load("wan-tiny-random", RuntimeChoice("renoise", 4, Precision.FP32_KV8))
    loaded.runtime.allocate(1)
    assert loaded.slab is not None and loaded.card.cache is not None
    assert len(loaded.slab.read_entry(0, 0)) == loaded.card.cache.bytes_per_entry


def test_a_narrow_slab_gives_back_what_it_was_given_to_half_a_step() -> None:
    slab = Slab((1, 2, 1, 2, 5, 3, 8), torch.float32, torch.device("cpu"), narrow=True)
    k, v = torch.randn(5, 3, 8), torch.randn(5, 3, 8) * 100
    slab.write(0, 1, torch.stack((k, v))[None])
    for kept, given in zip(slab.read(0, (1,), 0), (k, v), strict=True):
        step = given.abs().amax(-1, keepdim=True) / 127
        assert bool(((kept - given).abs() <= step / 2 * 1.001).all())


def test_fp8_keeps_rows_to_their_largest_value_and_half_the_bytes_of_bf16() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 16))
    with torch.no_grad():
        net[0].weight[3] *= 1000
    wide, x = [p.clone() for p in net.parameters()], torch.randn(4, 64)
    expected = net[0](x)
    assert narrow(net) == 2
    layer = net[0]
    assert isinstance(layer, Fp8Linear) and layer.weight.element_size() == 1
    back = layer.weight.float() * layer.scale
    assert bool(((back - wide[0]).abs() <= wide[0].abs().amax(1, keepdim=True) / 16).all())
    assert float((layer(x) - expected).detach().abs().max() / expected.detach().abs().max()) < 0.05


def test_a_product_in_fp8_is_within_its_two_roundings_and_rows_do_not_feel_each_other() -> None:
    torch.manual_seed(1)
    x = torch.randn(3, 5, 64)
    x[1] *= 1000
    layer = nn.Linear(64, 32)
    wide, scaled = Fp8Linear(layer), Fp8Linear(layer, lambda x, weight: True)
    made, expected = scaled(x).detach(), wide(x).detach()
    assert made.shape == (3, 5, 32) and made.dtype == x.dtype
    for row in range(3):
        assert float((made[row] - expected[row]).abs().max() / expected[row].abs().max()) < 0.05
        assert torch.equal(scaled(x[row : row + 1])[0], made[row]), "its scale is its own"
    assert not computes(x, layer.weight), "a CPU widens"


def test_compiled_blocks_are_refused_where_nothing_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    choice = RuntimeChoice("renoise", 4, Precision.FP32, compiled=True)
    with pytest.raises(compiled.NoCompiler, match=r"need a C\+\+ compiler .* none was found"):
        catalog.load("wan-tiny-random", choice)
    monkeypatch.setenv("CXX", "nonesuch-c++")
    with pytest.raises(compiled.NoCompiler, match="CXX names 'nonesuch-c\\+\\+'"):
        catalog.load("wan-tiny-random", choice)


def test_forms_are_kept_by_everything_they_were_made_for_and_a_wrong_one_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiles = []

    def fake_compile(function, dynamic, fullgraph):  # type: ignore[no-untyped-def]
        compiles.append(function)
        return function

    monkeypatch.setattr(torch, "compile", fake_compile)
    cache = compiled.CompileCache(key_of(catalog.load("wan-tiny-random")), 1e-3)

    def double(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * 2,)

    for kind in (StepKind.DENOISE, StepKind.COMMIT, StepKind.DENOISE):
        for size in (2, 3):
            (made,) = cache.of(kind)("part", double, torch.ones(size))
            assert made.tolist() == [2.0] * size
    assert len(compiles) == len(cache.keys) == 4
    assert cache.keys[0].step == StepKind.COMMIT, "the one used longest ago goes first"
    monkeypatch.setattr(torch, "compile", lambda function, **how: lambda x: (x * 2.1,))
    with pytest.raises(
        compiled.CompileMismatch, match=r"other of 'wan-tiny-random@1' compiled for decode is off by 0\.05"
    ):
        cache.of(StepKind.DECODE)("other", double, torch.ones(2))
    for size in range(4, 4 + compiled.KEPT):
        monkeypatch.setattr(torch, "compile", fake_compile)
        cache.of(StepKind.DENOISE)("part", double, torch.ones(size))
    assert len(cache.keys) == compiled.KEPT
