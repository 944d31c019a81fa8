"""Adapters beside a network: read from the files people have, unfused, per row, and told apart by every cache."""

import json
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import save_file
from worldroom.models import catalog
from worldroom.models.contract.adapters import BadAdapter
from worldroom.models.contract.cache import CacheView
from worldroom.models.contract.conditions import AdapterShare
from worldroom.models.contract.loop import StepKind
from worldroom.models.contract.recipe import Precision, RuntimeChoice
from worldroom.models.shared import lora_file
from worldroom.models.shared.adapters import Stack, UnknownAdapter
from worldroom.models.shared.video.block_names import other_names
from worldroom.models.wan import random_weights
from worldroom.models.wan.rows import Denoised, DenoiseRow, Sharing
from worldroom.models.wan.runtime import WanRuntime
from worldroom.tests.lora_files import LAYERS, SPEC, pairs, peft_file

INVARIANT = RuntimeChoice("renoise", 4, Precision.FP32, invariant=True)
SNOW, RAIN = (AdapterShare("snow", 0.75),), (AdapterShare("rain", -1.0), AdapterShare("snow", 0.5))


def runtime(sharing: Sharing) -> WanRuntime:
    made = WanRuntime(SPEC, random_weights.networks(SPEC, torch.float32), torch.float32, sharing)
    made.allocate(4)
    return made


def flat(layer: str) -> str:
    return "lora_unet_" + layer.replace(".", "_")


def test_files_of_every_tool_say_the_same(tmp_path: Path) -> None:
    made = pairs(seed=1, rank=4)
    wanted = lora_file.read_table({f"{layer}.lora_{s}.weight": v for (layer, s), v in made.items()}, LAYERS, 8.0)
    tables: dict[str, tuple[dict[str, torch.Tensor], dict[str, str]]] = {
        "peft": ({f"base_model.model.{layer}.lora_{s}.default.weight": v for (layer, s), v in made.items()}, {}),
        "diffusers": (
            {f"transformer.{other_names(layer)[0]}.lora_{s}.weight": v for (layer, s), v in made.items()},
            {"lora_adapter_metadata": json.dumps({"transformer.r": 4, "transformer.lora_alpha": 8})},
        ),
        "kohya": (
            {f"{flat(layer)}.lora_{'down' if s == 'A' else 'up'}.weight": v for (layer, s), v in made.items()}
            | {f"{flat(layer)}.alpha": torch.tensor(8.0) for layer, _ in made},
            {},
        ),
        "comfy": (
            {f"diffusion_model.{layer}.lora_{s}.weight": v for (layer, s), v in made.items()},
            {"ss_network_alpha": "8.0"},
        ),
    }
    for tool, (table, metadata) in tables.items():
        (tmp_path / tool).mkdir()
        save_file(
            {key: value.contiguous() for key, value in table.items()}, tmp_path / tool / "a.safetensors", metadata
        )
    (tmp_path / "peft" / "adapter_config.json").write_text('{"r": 4, "lora_alpha": 8, "peft_type": "LORA"}')
    for tool in tables:
        read = lora_file.read_file(tmp_path / tool / "a.safetensors", LAYERS, other_names)
        assert (read.rank, read.nbytes) == (4, wanted.nbytes)
        assert set(read.pairs) == set(wanted.pairs)
        for layer, pair in read.pairs.items():
            assert torch.equal(pair.delta(), wanted.pairs[layer].delta()), (tool, layer)


@pytest.mark.parametrize(
    ("key", "shape", "says"),
    [
        ("lora_te1_text_model_q.lora_down.weight", (4, 48), "changes the text encoder"),
        ("blocks.0.self_attn.q.dora_scale", (48,), "DoRA"),
        ("blocks.0.self_attn.q.diff_b", (48,), "no low-rank pair"),
        ("blocks.9.self_attn.q.lora_A.weight", (4, 48), "layer 'blocks.9.self_attn.q', which the network"),
        ("blocks.0.self_attn.q.lora_A.weight", (4, 40), "has only side A"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_its_key(
    key: str, shape: tuple[int, ...], says: str, tmp_path: Path
) -> None:
    save_file({key: torch.zeros(shape)}, tmp_path / "a.safetensors")
    with pytest.raises(BadAdapter, match=says):
        lora_file.read_file(tmp_path / "a.safetensors", LAYERS, other_names)
    (tmp_path / "b.safetensors").write_bytes(b"PK\3\4 pickle")
    with pytest.raises(BadAdapter, match=r"'b\.safetensors' is no safetensors file"):
        lora_file.read_file(tmp_path / "b.safetensors", LAYERS)
    save_file({"blocks.0.self_attn.q.lora_A.weight": torch.full((4, 48), torch.nan)}, tmp_path / "c.safetensors")
    with pytest.raises(BadAdapter, match="not finite"):
        lora_file.read_file(tmp_path / "c.safetensors", LAYERS)


def denoised(made: WanRuntime, stacks: list[Stack], seeds: list[int]) -> list[torch.Tensor]:
    rows, views = [], []
    for slot, (stack, seed) in enumerate(zip(stacks, seeds, strict=True)):
        (row, view), *_ = made.warm_up_rows(StepKind.DENOISE, 1)
        assert isinstance(row, DenoiseRow) and view is not None and row.x_CFHW is not None
        x = torch.randn(row.x_CFHW.shape, generator=torch.Generator().manual_seed(seed))
        prompt = msgspec.structs.replace(row.prompt, adapters=stack)
        rows.append(msgspec.structs.replace(row, x_CFHW=x, prompt=prompt))
        views.append(CacheView(slot, (), view.staged, view.spare))
    results = made.execute(StepKind.DENOISE, rows, views)
    return [result.x_CFHW for result in results if isinstance(result, Denoised)]


def attached(sharing: Sharing, folder: Path) -> WanRuntime:
    made = runtime(sharing)
    for seed, name in enumerate(("snow", "rain")):
        made.adapters.attach(name, made.adapters.read(peft_file(folder / f"{name}.safetensors", seed, rank=4 + seed)))
    return made


@pytest.mark.parametrize("sharing", [Sharing.INVARIANT, Sharing.ALONE])
def test_rows_with_different_stacks_in_one_batch_have_the_bits_they_have_alone(
    sharing: Sharing, tmp_path: Path
) -> None:
    made = attached(sharing, tmp_path)
    stacks: list[Stack] = [SNOW, RAIN, (), SNOW]
    together = denoised(made, stacks, [1, 2, 3, 4])
    for at, stack in enumerate(stacks):
        (alone,) = denoised(made, [stack], [at + 1])
        assert torch.equal(together[at], alone), at
    assert torch.equal(denoised(runtime(sharing), [()], [3])[0], together[2]), "a row without any is as it always was"


def test_shared_plainly_they_are_within_tolerance_and_equal_to_merged_weights(tmp_path: Path) -> None:
    made = attached(Sharing.PLAIN, tmp_path)
    together = denoised(made, [SNOW, RAIN, (), SNOW], [1, 2, 3, 4])
    merged = random_weights.networks(SPEC, torch.float32)
    for share in RAIN:
        file = tmp_path / f"{share.key}.safetensors"
        low_rank = lora_file.read_file(file, LAYERS)
        scaled = {
            layer: lora_file.LowRankPair(p.a_RK, p.b_NR, p.scale * share.scale) for layer, p in low_rank.pairs.items()
        }
        lora_file.merge(merged.transformer, lora_file.LowRank(scaled))
    reference = WanRuntime(SPEC, merged, torch.float32, Sharing.PLAIN)
    reference.allocate(4)
    (wanted,) = denoised(reference, [()], [2])
    torch.testing.assert_close(together[1], wanted, atol=2e-5, rtol=1e-4)
    (plain,) = denoised(made, [()], [2])
    assert not torch.allclose(together[1], plain, atol=1e-3), "the stack changes what the row becomes"


def test_a_swap_is_never_answered_with_what_another_stack_made(tmp_path: Path) -> None:
    """Keys and values of a prompt pass through the adapters: they are kept by prompt and stack."""
    made = attached(Sharing.ALONE, tmp_path)
    first, second = denoised(made, [SNOW], [1]), denoised(made, [RAIN], [1])
    fresh = attached(Sharing.ALONE, tmp_path)
    assert torch.equal(denoised(fresh, [RAIN], [1])[0], second[0]) and not torch.equal(first[0], second[0])
    made.adapters.detach("rain")
    with pytest.raises(UnknownAdapter, match="adapter rain is not attached"):
        denoised(made, [RAIN], [1])
    made.adapters.attach("rain", made.adapters.read(peft_file(tmp_path / "other.safetensors", 9, rank=4)))
    assert not torch.equal(denoised(made, [RAIN], [1])[0], second[0])


def test_work_grows_with_the_rank() -> None:
    made = runtime(Sharing.PLAIN)
    assert made.adapters.overhead(0) == 0.0
    assert made.adapters.overhead(8) == 2 * made.adapters.overhead(4) > 0
    loaded = catalog.load("wan-tiny-random", INVARIANT)
    assert loaded.adapters is not None
