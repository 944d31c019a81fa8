"""Weight files: every way to be wrong is one line that names the file, the key and the nearest name."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from worldroom.models.weights import WeightsError, digest, load_module, load_tensors

EXPECTED = {"head.weight": (2, 3), "head.bias": (2,)}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "net.safetensors"
    save_file({"head.weight": torch.ones(2, 3), "head.bias": torch.zeros(2)}, file)
    return file


def problem(file: Path, dtypes: tuple[torch.dtype, ...] = (torch.float32,)) -> str:
    with pytest.raises(WeightsError) as error:
        load_tensors(file, EXPECTED, dtypes)
    message = str(error.value)
    assert str(file) in message and "\n" not in message
    return error.value.problem


def test_reads_what_is_expected(good: Path) -> None:
    assert load_tensors(good, EXPECTED, (torch.float32,))["head.weight"].tolist() == [[1.0] * 3] * 2


def test_fills_a_module_and_keeps_its_dtype(good: Path) -> None:
    module = torch.nn.ModuleDict({"head": torch.nn.Linear(3, 2, dtype=torch.bfloat16)})
    load_module(good, module, (torch.float32,))
    assert module["head"].weight.dtype is torch.bfloat16 and float(module["head"].weight.sum()) == 6.0


def test_missing_file(tmp_path: Path) -> None:
    assert problem(tmp_path / "nothing.safetensors").startswith("is missing")


@pytest.mark.parametrize("keep", [0, 4, 60, 120, -1])
def test_truncated_file(good: Path, keep: int) -> None:
    good.write_bytes(good.read_bytes()[:keep])
    assert problem(good).startswith(f"is truncated or damaged at {good.stat().st_size} bytes")


def test_missing_key_names_the_nearest(good: Path) -> None:
    save_file({"head.wieght": torch.ones(2, 3), "head.bias": torch.zeros(2)}, good)
    assert problem(good) == "key 'head.weight' is missing (1 in all); nearest is 'head.wieght'"


def test_extra_key_names_the_nearest(good: Path) -> None:
    save_file({"head.weight": torch.ones(2, 3), "head.bias": torch.zeros(2), "head.bias2": torch.zeros(2)}, good)
    assert problem(good) == "key 'head.bias2' is not expected (1 in all); nearest is 'head.bias'"


def test_wrong_shape_dtype_and_values(good: Path) -> None:
    save_file({"head.weight": torch.ones(3, 2), "head.bias": torch.zeros(2)}, good)
    assert problem(good) == "key 'head.weight' has shape (3, 2), expected (2, 3)"
    save_file({"head.weight": torch.ones(2, 3), "head.bias": torch.zeros(2)}, good)
    assert problem(good, (torch.float16,)) == "key 'head.weight' has dtype torch.float32, expected torch.float16"
    save_file({"head.weight": torch.ones(2, 3), "head.bias": torch.tensor([0.0, torch.nan])}, good)
    assert problem(good) == "key 'head.bias' holds NaN or infinity"


def test_digest_sees_names_contents_and_order(good: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    other.write_bytes(good.read_bytes())
    seen = {digest([good]), digest([other]), digest([good, other]), digest([other, good]), digest([])}
    assert len(seen) == 5 and digest([]) == "none"
    with pytest.raises(WeightsError, match="is missing"):
        digest([tmp_path / "nothing"])
