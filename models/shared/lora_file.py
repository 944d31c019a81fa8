"""LoRA files as training tools write them: which layer a key is for, which side, and how strong it is.

    W' = W + alpha / rank * B A        A [rank, in], B [out, rank]        (2106.09685, section 4.1)

    PEFT        base_model.model.LAYER.lora_A[.name].weight       alpha in adapter_config.json beside the file
    diffusers   transformer.LAYER.lora_A.weight                   alpha in the file's header, or it equals the rank
    kohya       lora_unet_LAYER.lora_down.weight, .alpha          with '_' for every '.' of the layer

Anything else is an error that names the key. Knows no family: a family says its layers and their other names.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..contract.adapters import BadAdapter

_KEY = re.compile(r"^(?P<layer>.+?)[._](?:lora|lora_linear_layer)[._](?P<side>A|B|up|down)(?:\.[A-Za-z]\w*)?\.weight$")
_WRAPPERS = re.compile(r"^(?:base_model\.|model\.|_fsdp_wrapped_module\.|transformer\.|diffusion_model\.|unet\.)+")
_FLAT = re.compile(r"^lora_(?:unet|transformer|dit)_")
_REFUSED = (
    (re.compile(r"^(?:lora_te|text_encoder|te)\d?[._]"), "it changes the text encoder, which takes no adapters"),
    (re.compile(r"\.(?:dora_scale|lora_magnitude_vector)"), "DoRA scales whole rows of a weight: it is not low-rank"),
    (re.compile(r"\.(?:diff|diff_b|hada_w\w*|lokr_w\w*)$"), "it is no low-rank pair"),
)
_SIDES = {"A": "A", "down": "A", "B": "B", "up": "B"}

Aliases = Callable[[str], Sequence[str]]


def same_names(layer: str) -> tuple[str, ...]:
    """No program calls it otherwise."""
    return ()


@dataclass(frozen=True, slots=True)
class LowRankPair:
    """One layer's A [rank, in] and B [out, rank]; `scale` is alpha / rank."""

    a_RK: Tensor
    b_NR: Tensor
    scale: float

    @property
    def rank(self) -> int:
        return self.a_RK.shape[0]

    def delta(self) -> Tensor:
        """What is added to the weight, in float32."""
        return self.b_NR.float() @ self.a_RK.float() * self.scale


@dataclass(frozen=True, slots=True)
class LowRank:
    """Pairs by the name of the layer they change."""

    pairs: Mapping[str, LowRankPair]

    @property
    def rank(self) -> int:
        return max(pair.rank for pair in self.pairs.values())

    @property
    def nbytes(self) -> int:
        return sum(pair.a_RK.nbytes + pair.b_NR.nbytes for pair in self.pairs.values())


def layers_of(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Shapes of all two-dimensional weights by the layer's name: what a LoRA may change."""
    named = ((name.rpartition("."), value) for name, value in module.state_dict().items())
    return {layer: tuple(value.shape) for (layer, _, kind), value in named if kind == "weight" and value.ndim == 2}


def read_table(
    table: Mapping[str, Tensor],
    layers: Mapping[str, tuple[int, ...]],
    alpha: float | None = None,
    aliases: Aliases = same_names,
) -> LowRank:
    """A LoRA's table checked against the layers it is for. `alpha` None = the rank, where the table says none.

    Raises `BadAdapter` that names the first wrong key.
    """
    names = _names(layers, aliases)
    sides: dict[str, dict[str, Tensor]] = {}
    alphas: dict[str, float] = {}
    for key, value in table.items():
        if reason := next((reason for pattern, reason in _REFUSED if pattern.search(key)), None):
            raise BadAdapter(f"key '{key}': {reason}")
        if key.endswith(".alpha"):
            alphas[_layer(key, key.removesuffix(".alpha"), names)] = float(value)
            continue
        match = _KEY.match(key)
        if match is None:
            raise BadAdapter(f"key '{key}' is no LoRA weight: it should end in lora_A.weight or lora_B.weight")
        sides.setdefault(_layer(key, match["layer"], names), {})[_SIDES[match["side"]]] = value
    if not sides:
        raise BadAdapter("the LoRA holds no weights")
    return LowRank(
        {layer: _pair(layer, both, layers[layer], alphas.get(layer, alpha)) for layer, both in sides.items()}
    )


def read_file(file: Path, layers: Mapping[str, tuple[int, ...]], aliases: Aliases = same_names) -> LowRank:
    """A safetensors file, with what lies beside it. Raises `BadAdapter`."""
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            table = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise BadAdapter(f"'{file.name}' is no safetensors file: {error}") from error
    for key, value in table.items():
        if not value.is_floating_point() or not bool(torch.isfinite(value.float()).all()):
            raise BadAdapter(f"key '{key}' holds {value.dtype} that is not finite numbers")
    return read_table(table, layers, _alpha(file, metadata), aliases)


@torch.no_grad()
def merge(module: nn.Module, low_rank: LowRank) -> None:
    """Add it to the weights for good."""
    parameters = dict(module.named_parameters())
    for layer, pair in low_rank.pairs.items():
        parameter = parameters[f"{layer}.weight"]
        parameter.copy_(parameter.float() + pair.delta().to(parameter.device))


def _alpha(file: Path, metadata: Mapping[str, str]) -> float | None:
    """As the file beside it or its own header says."""
    beside = next((p for p in (file.with_suffix(".json"), file.with_name("adapter_config.json")) if p.is_file()), None)
    try:
        if beside is not None:
            told = json.loads(beside.read_bytes())
        elif "lora_adapter_metadata" in metadata:
            told = {
                key.rpartition(".")[2]: value for key, value in json.loads(metadata["lora_adapter_metadata"]).items()
            }
        else:
            return float(metadata["ss_network_alpha"]) if "ss_network_alpha" in metadata else None
        alpha, rank = float(told["lora_alpha"]), float(told["r"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadAdapter(
            f"the configuration of '{file.name}' cannot be read: {type(error).__name__} {error}"
        ) from error
    if told.get("use_dora") or told.get("alpha_pattern"):
        raise BadAdapter(f"'{file.name}' has DoRA or an alpha of its own for some layers: that is not read here")
    return alpha * (rank**0.5 if told.get("use_rslora") else 1.0)


def _names(layers: Mapping[str, tuple[int, ...]], aliases: Aliases) -> dict[str, str]:
    """A layer by every name it may have."""
    names: dict[str, str] = {}
    for layer in layers:
        for name in (layer, *aliases(layer)):
            names[name] = names[name.replace(".", "_")] = layer
    return names


def _layer(key: str, name: str, names: Mapping[str, str]) -> str:
    bare = _FLAT.sub("", _WRAPPERS.sub("", name))
    if bare not in names:
        raise BadAdapter(f"key '{key}' is for layer '{bare}', which the network does not have")
    return names[bare]


def _pair(layer: str, both: Mapping[str, Tensor], shape: tuple[int, ...], alpha: float | None) -> LowRankPair:
    if set(both) != {"A", "B"}:
        raise BadAdapter(f"'{layer}' has only side {', '.join(both)} of its LoRA")
    a, b = both["A"], both["B"]
    if a.ndim != 2 or b.ndim != 2 or (b.shape[0], a.shape[1]) != shape or a.shape[0] != b.shape[1]:
        raise BadAdapter(f"'{layer}' is {shape}, its LoRA is {tuple(b.shape)} x {tuple(a.shape)}")
    rank = a.shape[0]
    return LowRankPair(a, b, 1.0 if alpha is None else alpha / rank)
