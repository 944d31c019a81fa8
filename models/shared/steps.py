"""What every family's steps do alike: rows met with their views, pictures checked, embeddings mixed.

Imports no tensor library: tensors are mixed by their own operators.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..contract.cache import CacheView
from ..contract.loop import StepKind
from .serial import is_tensor

if TYPE_CHECKING:
    from torch import Tensor

Row = TypeVar("Row")
Value = TypeVar("Value")
Features = Sequence[tuple[object, float]]


def paired(rows: Sequence[Row], views: Sequence[CacheView | None]) -> list[tuple[Row, CacheView | None]]:
    """Each row with what it may read; raises ValueError when they are not equally many."""
    if len(rows) != len(views):
        raise ValueError(f"{len(rows)} rows but {len(views)} cache views")
    return list(zip(rows, views, strict=True))


def needed(value: Value | None, what: str = "a cache view") -> Value:
    """The value; raises ValueError when a step was given none."""
    if value is None:
        raise ValueError(f"this step needs {what} and was given none")
    return value


def misplaced(kind: StepKind, row: object) -> ValueError:
    """A row in a step that is not its own."""
    return ValueError(f"a {type(row).__name__} cannot run in a '{kind}' step")


def check_pictures(frames_FHWC: NDArray[np.uint8], height: int, width: int) -> None:
    """Raise ValueError unless a world may start from them."""
    if frames_FHWC.ndim != 4 or frames_FHWC.shape[1:] != (height, width, 3) or frames_FHWC.dtype != np.uint8:
        given = f"{frames_FHWC.dtype} {list(frames_FHWC.shape)}"
        raise ValueError(f"first frames are uint8 [F, {height}, {width}, 3], got {given}")


def last_picture(frames_FHWC: NDArray[np.uint8] | None, height: int, width: int) -> NDArray[np.uint8] | None:
    """The one picture that a world starts from; None = it was given none. Raises ValueError on another size."""
    if frames_FHWC is None:
        return None
    check_pictures(frames_FHWC, height, width)
    return np.ascontiguousarray(frames_FHWC[-1])


def mixed(features: Features, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The shares' embeddings, weighted and added up, in float32 and in their order; no share is an embedding of zeros.

    Raises TypeError on what is no float array of that shape.
    """
    total = np.zeros(shape, np.float32)
    for embedding, weight in features:
        if not isinstance(embedding, np.ndarray) or embedding.shape != shape:
            raise TypeError(f"a prompt's embedding is a float32 array of {shape}, got {_said(embedding)}")
        total += np.float32(weight) * embedding.astype(np.float32)
    return total


def tensors(features: Features) -> "list[tuple[Tensor, float]]":
    """Embeddings that are tensors, with their weights; raises TypeError on anything else, and where there is none."""
    shares = [(embedding, weight) for embedding, weight in features if is_tensor(embedding)]
    if not shares or len(shares) != len(features):
        raise TypeError(f"one prompt embedding or more, all of them tensors: {[type(e).__name__ for e, _ in features]}")
    return shares


def mixed_tensors(features: Features) -> "Tensor":
    """The shares' embeddings, weighted and added up in their order; raises TypeError as `tensors` does."""
    (first, share), *rest = tensors(features)
    total = first * share
    for embedding, weight in rest:
        total = total + embedding * weight
    return total


def _said(embedding: object) -> str:
    shape = embedding.shape if isinstance(embedding, np.ndarray) else ""
    return f"{type(embedding).__name__} {shape}".strip()
