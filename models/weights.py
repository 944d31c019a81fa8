"""Weight files on disk: safetensors read against the exact table of keys a network expects.

Every fault is one `WeightsError` of one line that names the file, the key and the nearest expected name, so a
wrong, torn or missing file is refused at load and never becomes a bad picture. Knows no family.
"""

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

Shape = tuple[int, ...]


class WeightsError(ValueError):
    """A weight file that cannot be used; the message is one line for a person."""

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"weights file {file}: {problem}")
        self.file, self.problem = file, problem


class NotPulled(WeightsError):
    """A published card without its weights."""

    def __init__(self, card: str) -> None:
        ValueError.__init__(self, f"the weights of '{card}' are not here: `worldroom cards pull {card}` fetches them")
        self.file, self.problem = Path(card), "are not here"


def load_tensors(
    file: Path, expected: Mapping[str, Shape], dtypes: Sequence[torch.dtype], device: str = "cpu"
) -> dict[str, torch.Tensor]:
    """Exactly the tensors of `expected`, each of one of `dtypes`; raises `WeightsError`."""
    if not file.is_file():
        raise WeightsError(file, "is missing; a fresh clone has it, `worldroom train` makes it anew")
    try:
        with safe_open(file, framework="pt", device=device) as opened:
            found = set(opened.keys())
            _compare_keys(file, found, expected)
            tensors = {key: opened.get_tensor(key) for key in expected}
    except SafetensorError as error:
        reason = str(error).replace("\n", " ")
        raise WeightsError(file, f"is truncated or damaged at {file.stat().st_size} bytes ({reason})") from error
    for key, tensor in tensors.items():
        if tuple(tensor.shape) != tuple(expected[key]):
            raise WeightsError(file, f"key '{key}' has shape {tuple(tensor.shape)}, expected {tuple(expected[key])}")
        if tensor.dtype not in dtypes:
            allowed = ", ".join(map(str, dtypes))
            raise WeightsError(file, f"key '{key}' has dtype {tensor.dtype}, expected {allowed}")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise WeightsError(file, f"key '{key}' holds NaN or infinity")
    return tensors


def load_module(file: Path, module: torch.nn.Module, dtypes: Sequence[torch.dtype]) -> None:
    """Fill a module's parameters and buffers; keys, shapes and dtypes must match its state dict exactly."""
    state = module.state_dict()
    tensors = load_tensors(file, {key: tuple(value.shape) for key, value in state.items()}, dtypes)
    module.load_state_dict({key: tensors[key].to(state[key].dtype) for key in state})


def digest(files: Sequence[Path]) -> str:
    """sha256 over names and contents, in the order given; 'none' for a card without weights."""
    if not files:
        return "none"
    total = hashlib.sha256()
    for file in files:
        if not file.is_file():
            raise WeightsError(file, "is missing; a fresh clone has it, `worldroom train` makes it anew")
        total.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        total.update(file.read_bytes())
    return total.hexdigest()


def _compare_keys(file: Path, found: set[str], expected: Mapping[str, Shape]) -> None:
    missing, extra = sorted(set(expected) - found), sorted(found - set(expected))
    if missing:
        near = nearest(missing[0], extra)
        raise WeightsError(file, f"key '{missing[0]}' is missing ({len(missing)} in all){near}")
    if extra:
        near = nearest(extra[0], sorted(expected))
        raise WeightsError(file, f"key '{extra[0]}' is not expected ({len(extra)} in all){near}")


def nearest(key: str, names: Sequence[str]) -> str:
    """The near name as the end of a message, or nothing when no name is near."""
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.4)
    return f"; nearest is '{near[0]}'" if near else ""
