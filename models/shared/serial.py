"""Loop states and carries <-> bytes: msgpack with arrays and tensors as extension types; strict and versioned.

    [ contract version | type name | body ]   body: the struct as msgpack, arrays as Ext(ARRAY, [dtype, shape, bytes])

A reader refuses another version, another type, unknown fields and arrays whose bytes do not fit their shape. Tensors
(Ext TENSOR) may live on any device; they come back on the CPU and a runtime moves them where it needs them. Imports
torch only where there is a tensor: a worker of the toy alone does without.
"""

import sys
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar, get_args, runtime_checkable

import msgspec
import numpy as np

from ..contract.version import CONTRACT_VERSION, check_contract

if TYPE_CHECKING:
    import torch

ARRAY = 1
TENSOR = 2
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "uint64")

T = TypeVar("T", bound=msgspec.Struct)


class SerialError(ValueError):
    """Bytes that are not a state of the expected type."""


@runtime_checkable
class Portable(Protocol):
    """A field of this type holds an array or a tensor."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def nbytes(self) -> int: ...


def is_tensor(value: object) -> "TypeGuard[torch.Tensor]":
    """Without importing torch: where nobody has, nothing is a tensor."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


class _ArrayBody(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    type: str
    body: msgspec.Raw


def dumps(value: msgspec.Struct) -> bytes:
    """Bytes of a struct whose fields are msgspec types or numpy arrays of `DTYPES`."""
    body = msgspec.msgpack.encode(value, enc_hook=_array_out)
    return msgspec.msgpack.encode(_Envelope(CONTRACT_VERSION, _name(type(value)), msgspec.Raw(body)))


def loads(data: bytes, kind: type[T]) -> T:
    """Inverse of `dumps`; raises `SerialError` or `UnknownContract`. Arrays come back writable and own their memory."""
    try:
        envelope = msgspec.msgpack.decode(data, type=_Envelope)
        check_contract(f"a '{envelope.type}'", envelope.version)
        if envelope.type != _name(kind):
            raise SerialError(f"state is a '{envelope.type}', expected a '{_name(kind)}'")
        return msgspec.msgpack.decode(envelope.body, type=kind, dec_hook=_array_in, ext_hook=_ext_in)
    except msgspec.MsgspecError as error:
        raise SerialError(f"not a '{_name(kind)}': {error}") from error


def _name(kind: type) -> str:
    return kind.__qualname__


def _array_out(value: object) -> msgspec.msgpack.Ext:
    if is_tensor(value):
        return msgspec.msgpack.Ext(TENSOR, _tensor_body(value.detach().cpu().contiguous()))
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"a state cannot hold a {type(value).__name__}")
    if value.dtype.name not in DTYPES:
        raise SerialError(f"a state cannot hold an array of {value.dtype.name}: {', '.join(DTYPES)}")
    body = _ArrayBody(value.dtype.name, value.shape, np.ascontiguousarray(value).tobytes())
    return msgspec.msgpack.Ext(ARRAY, msgspec.msgpack.encode(body))


def _tensor_body(value: "torch.Tensor") -> bytes:
    import torch

    if value.dtype is torch.bfloat16:
        array = value.view(torch.uint16).numpy()
        return msgspec.msgpack.encode(_ArrayBody("bfloat16", value.shape, array.tobytes()))
    array = value.numpy()
    if array.dtype.name not in DTYPES:
        raise SerialError(f"a state cannot hold a tensor of {value.dtype}: bfloat16, {', '.join(DTYPES)}")
    return msgspec.msgpack.encode(_ArrayBody(array.dtype.name, value.shape, array.tobytes()))


def _ext_in(code: int, data: memoryview) -> "np.ndarray[Any, Any] | torch.Tensor":
    if code == TENSOR:
        import torch

        body = msgspec.msgpack.decode(data, type=_ArrayBody)
        if body.dtype == "bfloat16":
            bits = msgspec.structs.replace(body, dtype="uint16")
            return torch.from_numpy(_array(bits, (*DTYPES, "uint16"))).view(torch.bfloat16)
        return torch.from_numpy(_array(body, DTYPES))
    if code != ARRAY:
        raise msgspec.ValidationError(f"unknown extension type {code}")
    return _array(msgspec.msgpack.decode(data, type=_ArrayBody), DTYPES)


def _array(body: _ArrayBody, allowed: tuple[str, ...]) -> "np.ndarray[Any, Any]":
    if body.dtype not in allowed or any(n < 0 for n in body.shape):
        raise msgspec.ValidationError(f"array of {body.dtype} {body.shape} is not allowed")
    dtype = np.dtype(body.dtype)
    expected = int(np.prod(body.shape, dtype=np.int64)) * dtype.itemsize
    if len(body.data) != expected:
        raise msgspec.ValidationError(f"array {body.dtype} {body.shape} needs {expected} bytes, has {len(body.data)}")
    return np.frombuffer(body.data, dtype).reshape(body.shape).copy()


def _array_in(kind: Any, value: object) -> object:
    """msgspec asks for every field whose type it does not know: an array must be of exactly the declared dtype
    (`NDArray[Any]`: of any that is allowed)."""
    if kind is Portable:
        return value
    if "torch" in sys.modules and kind is sys.modules["torch"].Tensor:
        if not is_tensor(value):
            raise msgspec.ValidationError(f"expected a tensor, got {type(value).__name__}")
        return value
    if not isinstance(value, np.ndarray):
        raise msgspec.ValidationError(f"expected an array, got {type(value).__name__}")
    _, dtype = get_args(kind)
    (scalar,) = get_args(dtype)
    if scalar is not Any and value.dtype.type is not scalar:
        raise msgspec.ValidationError(f"expected an array of {scalar.__name__}, got {value.dtype.name}")
    return value
