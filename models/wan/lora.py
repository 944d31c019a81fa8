"""Low-rank weights on top of a Wan transformer: merged once at load.

    W' = W + alpha / rank * B A        A [rank, in], B [out, rank]        (2106.09685, section 4.1)

Names are those of the layer they belong to, with `lora_A` and `lora_B` before `weight`; wrappers that training tools
put in front of a layer's name and adapter names in between are taken off. Anything else is an error that names the key.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_KEY = re.compile(
    r"^(?:base_model\.|model\.|_fsdp_wrapped_module\.)*(?P<layer>.+)\.lora_(?P<side>[AB])(?:\.[a-z]\w*)?\.weight$"
)


@dataclass(frozen=True, slots=True)
class LowRank:
    """Pairs (A, B) by the weight they change, and the scale alpha / rank."""

    pairs: Mapping[str, tuple[Tensor, Tensor]]
    scale: float

    def delta(self, weight: str) -> Tensor:
        """What is added to one weight, in float32."""
        a, b = self.pairs[weight]
        return b.float() @ a.float() * self.scale


def read(table: Mapping[str, Tensor], alpha: float, module: nn.Module) -> LowRank:
    """A LoRA's table checked against the network it is for; raises ValueError that names the first wrong key."""
    shapes = {name: tuple(value.shape) for name, value in module.named_parameters()}
    sides: dict[str, dict[str, Tensor]] = {}
    for key, value in table.items():
        match = _KEY.match(key)
        if match is None:
            raise ValueError(f"key '{key}' is no LoRA weight: it should end in lora_A.weight or lora_B.weight")
        weight = match["layer"] + ".weight"
        if weight not in shapes:
            raise ValueError(f"key '{key}' is for layer '{match['layer']}', which the network does not have")
        sides.setdefault(weight, {})[match["side"]] = value
    if not sides:
        raise ValueError("the LoRA holds no weights")
    pairs = {}
    for weight, both in sides.items():
        if set(both) != {"A", "B"}:
            raise ValueError(f"'{weight}' has only side {', '.join(both)} of its LoRA")
        a, b = both["A"], both["B"]
        if (b.shape[0], a.shape[1]) != shapes[weight] or a.shape[0] != b.shape[1]:
            raise ValueError(f"'{weight}' is {shapes[weight]}, its LoRA is {tuple(b.shape)} x {tuple(a.shape)}")
        pairs[weight] = (a, b)
    ranks = {a.shape[0] for a, _ in pairs.values()}
    if len(ranks) != 1:
        raise ValueError(f"a LoRA has one rank, this one has {sorted(ranks)}")
    return LowRank(pairs, alpha / ranks.pop())


@torch.no_grad()
def merge(module: nn.Module, low_rank: LowRank) -> None:
    """Add it to the weights for good."""
    parameters = dict(module.named_parameters())
    for weight in low_rank.pairs:
        parameter = parameters[weight]
        parameter.copy_(parameter.float() + low_rank.delta(weight).to(parameter.device))
