"""One checkpoint file, shard set or folder as a table of tensors: names, shapes and dtypes first, values on demand.

    .safetensors                header only              .pt .pth .bin       torch's zip, weights only, mapped
    *.index.json                shards named inside      folder              as diffusers and transformers save it

Never runs code out of a file: a pickle that wants more than tensors is refused. Every fault is a `WeightsError`.
"""

import json
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..weights import WeightsError, nearest
from .manifest import Shape

STEMS = ("diffusion_pytorch_model", "model", "pytorch_model")
_SAFE_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One stored tensor; `read` fetches its values."""

    file: Path
    shape: Shape
    dtype: str
    read: Callable[[], Tensor]


Table = Mapping[str, StoredTensor]


def open_stored(path: Path, unwrap: Sequence[str] = ()) -> dict[str, StoredTensor]:
    """The table of a file, an index of shards or a component's folder; raises `WeightsError`."""
    if path.is_dir():
        return open_stored(_weights_in(path), unwrap)
    if not path.is_file():
        raise WeightsError(path, "is missing")
    if path.name.endswith(".index.json"):
        return _shards(path)
    match path.suffix:
        case ".safetensors":
            return _safetensors(path)
        case ".pt" | ".pth" | ".bin" | ".ckpt":
            return _torch_file(path, unwrap)
        case _:
            raise WeightsError(path, f"'{path.suffix}' is no weight file: .safetensors, .pt, .pth, .bin, .index.json")


def without(table: Table, ignore: Sequence[str]) -> dict[str, StoredTensor]:
    """The table less the keys that match one of the regular expressions in full."""
    patterns = [re.compile(pattern) for pattern in ignore]
    return {key: entry for key, entry in table.items() if not any(p.fullmatch(key) for p in patterns)}


def _weights_in(folder: Path) -> Path:
    for stem in STEMS:
        for ending in (".safetensors.index.json", ".safetensors", ".bin.index.json", ".bin"):
            if (folder / f"{stem}{ending}").is_file():
                return folder / f"{stem}{ending}"
    raise WeightsError(folder, f"holds none of {', '.join(f'{stem}.safetensors' for stem in STEMS)}, .bin or an index")


def _safetensors(file: Path) -> dict[str, StoredTensor]:
    try:
        with safe_open(file, framework="pt") as opened:
            table = {}
            for key in opened.keys():  # noqa: SIM118 - not a dict
                found = opened.get_slice(key)
                dtype = _SAFE_DTYPES.get(found.get_dtype(), found.get_dtype())
                table[key] = StoredTensor(file, tuple(found.get_shape()), dtype, _safetensors_reader(file, key))
            return table
    except SafetensorError as error:
        reason = str(error).replace("\n", " ")
        raise WeightsError(file, f"is truncated or damaged at {file.stat().st_size} bytes ({reason})") from error


def _safetensors_reader(file: Path, key: str) -> Callable[[], Tensor]:
    def read() -> Tensor:
        with safe_open(file, framework="pt") as opened:
            tensor: Tensor = opened.get_tensor(key)
            return tensor

    return read


def _torch_file(file: Path, unwrap: Sequence[str]) -> dict[str, StoredTensor]:
    """A zip is opened on the `meta` device: its headers alone, whatever its size. An older file is read whole."""
    device = "meta" if _is_zip(file) else "cpu"
    try:
        loaded: object = torch.load(file, map_location=device, weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).split("\n", 1)[0]
        raise WeightsError(file, f"wants to run code when opened and is refused ({reason[:160]})") from error
    except (RuntimeError, EOFError, ValueError, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        raise WeightsError(file, f"is truncated or damaged at {file.stat().st_size} bytes ({reason[:160]})") from error
    return _entries(file, _unwrapped(file, loaded, unwrap))


def _is_zip(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(4) == b"PK\x03\x04"


def _unwrapped(file: Path, loaded: object, unwrap: Sequence[str]) -> Mapping[str, object]:
    """The first of `unwrap` that is a table inside; without `unwrap` the table itself."""
    if not isinstance(loaded, Mapping):
        raise WeightsError(file, f"holds a {type(loaded).__name__}, not a table of tensors")
    for name in unwrap:
        inner = loaded.get(name)
        if isinstance(inner, Mapping):
            return inner
    if unwrap and not all(isinstance(value, Tensor) for value in loaded.values()):
        near = nearest(unwrap[0], sorted(map(str, loaded)))
        raise WeightsError(file, f"entry '{unwrap[0]}' is missing{near}")
    return loaded


def _entries(file: Path, table: Mapping[str, object]) -> dict[str, StoredTensor]:
    entries = {}
    for key, value in table.items():
        if not isinstance(value, Tensor):
            raise WeightsError(file, f"key '{key}' is a {type(value).__name__}, not a tensor")
        dtype = str(value.dtype).removeprefix("torch.")
        entries[str(key)] = StoredTensor(file, tuple(value.shape), dtype, _torch_reader(file, value))
    return entries


def _torch_reader(file: Path, value: Tensor) -> Callable[[], Tensor]:
    """Reads the bytes of one tensor where the zip says they lie; a tensor with values is its own reader."""
    if not value.is_meta:
        return lambda: value
    start = value.untyped_storage()._checkpoint_offset or 0

    def read() -> Tensor:
        if value.numel() == 0:
            return torch.empty(value.shape, dtype=value.dtype)
        last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
        begin, count = int(value.storage_offset()) * value.itemsize, (last + 1) * value.itemsize
        with file.open("rb") as opened:
            opened.seek(start + begin)
            raw = bytearray(opened.read(count))
        if len(raw) != count:
            raise WeightsError(file, f"ends inside a tensor of {list(value.shape)}")
        return torch.frombuffer(raw, dtype=value.dtype).as_strided(value.shape, value.stride())

    return read


def _shards(index: Path) -> dict[str, StoredTensor]:
    """Every key must lie in the shard the index names, and no shard may hold a key the index does not know."""
    try:
        weight_map = json.loads(index.read_text())["weight_map"]
        named = {str(key): str(file) for key, file in weight_map.items()}
    except (json.JSONDecodeError, KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise WeightsError(index, f"is no index of shards: needs a 'weight_map' ({error})") from error
    table: dict[str, StoredTensor] = {}
    for shard in sorted(set(named.values())):
        if Path(shard).name != shard:
            raise WeightsError(index, f"names the shard '{shard}', which is not a file beside it")
        inside = open_stored(index.parent / shard)
        mine = {key for key, file in named.items() if file == shard}
        if lost := sorted(mine - set(inside)):
            near = nearest(lost[0], sorted(inside))
            raise WeightsError(index.parent / shard, f"key '{lost[0]}' is missing ({len(lost)} in all){near}")
        if extra := sorted(set(inside) - mine):
            near = nearest(extra[0], sorted(mine))
            raise WeightsError(index.parent / shard, f"key '{extra[0]}' is not in {index.name}{near}")
        table.update(inside)
    return table
