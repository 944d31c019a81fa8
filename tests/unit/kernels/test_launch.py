"""Which backend runs, and why; asking for Triton where it cannot run is an error and never a quiet fallback."""

from __future__ import annotations

import pytest
import torch
from worldroom.kernels import backend, norm_modulate
from worldroom.kernels.backend import Backend, Choice, choice, runs_triton
from worldroom.kernels.checks import BadInput

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def test_a_gpu_gets_triton_unless_something_refuses() -> None:
    assert choice(GPU, [(False, "too wide")]).backend is Backend.TRITON
    assert choice(GPU, [(False, "odd"), (True, "width 20000 is above 16384")]) == Choice(
        Backend.TORCH, "width 20000 is above 16384"
    )
    assert choice(CPU, []) == Choice(Backend.TORCH, "device is cpu")


def test_without_triton_torch_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "triton", None)
    assert choice(GPU, []) == Choice(Backend.TORCH, "triton is not installed")
    with pytest.raises(BadInput, match="triton cannot run on cuda"):
        runs_triton(Backend.TRITON, choice(GPU, []), GPU)


def test_triton_on_a_cpu_needs_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, m = torch.ones(1, 2, 4), torch.zeros(1, 1, 4)
    assert norm_modulate.norm_modulate(x, m, m, backend=Backend.TRITON).tolist() == [[[0.0] * 4] * 2]
    monkeypatch.setattr(backend, "INTERPRETED", False)
    with pytest.raises(BadInput, match="TRITON_INTERPRET=1"):
        norm_modulate.norm_modulate(x, m, m, backend=Backend.TRITON)


def test_what_is_asked_for_wins_over_what_is_chosen() -> None:
    chosen = Choice(Backend.TRITON, "")
    assert runs_triton(None, chosen, GPU) and not runs_triton(Backend.TORCH, chosen, GPU)
