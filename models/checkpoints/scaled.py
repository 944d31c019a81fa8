"""fp8 weights with their scales beside them, as quantising tools write them: stored value times scale is the weight.

x.weight  float8    x.scale_weight or x.weight_scale  one number, or one for each row    scaled_fp8  a mark
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from ..weights import WeightsError
from .stored import StoredTensor

_SCALES = ("scale_weight", "weight_scale")
_NO_WEIGHTS = ("scaled_fp8", "scale_input", "input_scale")


def unscaled(path: Path, table: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """The table in which every scaled weight reads as float32; raises `WeightsError` for a scale that fits nothing."""
    scales = {key: entry for key, entry in table.items() if key.rpartition(".")[2] in _SCALES}
    if not scales:
        return dict(table)
    plain = {
        key: entry for key, entry in table.items() if key not in scales and key.rpartition(".")[2] not in _NO_WEIGHTS
    }
    for key, scale in scales.items():
        name = f"{key.rpartition('.')[0]}.weight"
        weight = plain.get(name)
        if weight is None:
            raise WeightsError(path, f"scaled fp8: '{key}' scales '{name}', which is not there")
        rows = (weight.shape[0], 1)
        if scale.shape not in ((), (1,), rows[:1], rows):
            raise WeightsError(path, f"scaled fp8: '{key}' has shape {scale.shape}, one number or {rows} is expected")
        plain[name] = replace(weight, dtype="float32", read=_product(weight, scale))
    return plain


def _product(weight: StoredTensor, scale: StoredTensor) -> Callable[[], Tensor]:
    def read() -> Tensor:
        by = scale.read().float()
        return weight.read().float() * (by.reshape(-1, 1) if by.numel() > 1 else by.reshape(()))

    return read
