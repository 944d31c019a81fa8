"""What a compiled block holds on a GPU, traced without one: launchers are followed into the graph, to the kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

TRACED = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _triton
from worldroom.models.wan.blocks import Block
from worldroom.models.wan.spec import WanShape

_triton.has_triton = lambda: True  # no GPU, no driver: dynamo would not look for kernels
held = []

def note(graph, given):
    held.append([str(node.target) for node in graph.graph.nodes if "triton_kernel" in str(node.target)])
    return graph

def trace(function, *given):
    torch.compile(function, dynamic=False, fullgraph=True, backend=note)(*given)

block = Block(WanShape(dim=48, heads=4, ffn=96, rows=4, columns=4))
with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
    for module in block.modules():
        for name, weight in [*module.named_parameters(recurse=False)]:
            module.register_parameter(name, torch.nn.Parameter(torch.empty(weight.shape, device="cuda")))
    x, m = torch.empty(2, 12, 48, device="cuda"), torch.empty(2, 3, 48, device="cuda")
    trace(Block.ahead, block, x, m, m)
    trace(Block.between, block, x, x, m)
    trace(Block.behind, block, x, x, m, m, m)
print([len(names) for names in held])
"""


def test_parts_of_a_block_are_whole_graphs_with_the_kernels_in_them() -> None:
    """ahead: a norm; between: gate and norm, norm of q; behind: residual and norm, gate. In a process of its own: this
    one interprets.
    """
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", TRACED], env=env, capture_output=True, text=True, timeout=240)
    assert done.stdout.strip() == "[1, 2, 2]", done.stdout + done.stderr
