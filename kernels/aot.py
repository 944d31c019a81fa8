"""Every kernel built for GPUs that are not here: registers, spilled bytes, shared memory of a program.

    python -m worldroom.kernels.aot [--json] [kernel ..]        not under TRITON_INTERPRET

Needs Triton, no GPU. Registers and stack are read from the cubin with the cuobjdump that Triton ships; ptxas puts
spilled registers on the stack and these kernels have no other use of it, so stack bytes are spills.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from . import (
    attention_kernel,
    frames_to_yuv,
    invariant_matmul,
    invariant_reduce,
    noise,
    norm_modulate,
    qk_norm_rope,
    sampler_step,
)
from .backend import INTERPRETED, Build, triton

OPERATIONS = (
    attention_kernel,
    frames_to_yuv,
    invariant_matmul,
    invariant_reduce,
    noise,
    norm_modulate,
    qk_norm_rope,
    sampler_step,
)
TARGETS = (80, 90, 100, 120)
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")


class Built(msgspec.Struct, frozen=True):
    """One kernel on one architecture. `ptx`: whether anything in it is fused or approximated is told by its text."""

    kernel: str
    label: str
    sm: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    warps: int
    fused: int
    approximated: int


def all_builds(names: Sequence[str] = ()) -> list[Build]:
    """Of these files, or of all."""
    return [build for module in OPERATIONS for build in module.builds() if not names or _name(build) in names]


def build_all(names: Sequence[str] = ()) -> Iterator[Built]:
    """Raises RuntimeError without Triton or under its interpreter, triton's own error where a kernel does not build."""
    if triton is None or INTERPRETED:
        raise RuntimeError("building needs triton, and TRITON_INTERPRET unset")
    for build in all_builds(names):
        for sm in TARGETS:
            yield _built(build, sm)


def _name(build: Build) -> str:
    return str(build.kernel.__module__.rpartition(".")[2])


def _built(build: Build, sm: int) -> Built:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = build.kernel.arg_names
    signature = {name: "constexpr" if name in build.constants else build.types[name] for name in names}
    whole = {name for name in names if signature[name].startswith("*") or name in build.divisible}
    aligned = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(names) if name in whole}
    source = ASTSource(build.kernel, signature, dict(build.constants), aligned)
    options = {"num_warps": build.warps, **build.options}
    made = triton.compile(source, target=GPUTarget("cuda", sm, 32), options=options)
    registers, stack = _usage(made.asm["cubin"])
    ptx = made.asm["ptx"]
    return Built(
        _name(build),
        build.label,
        sm,
        registers,
        stack,
        made.metadata.shared,
        build.warps,
        len(re.findall(r"\bfma\.", ptx)),
        len(re.findall(r"\.approx", ptx)),
    )


def _usage(cubin: bytes) -> tuple[int, int]:
    """Registers and stack bytes of a thread."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        said = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, timeout=60, check=True)
    found = _USAGE.search(said.stdout + said.stderr)
    if found is None:
        raise RuntimeError(f"cuobjdump said nothing about registers: {said.stdout[:200]!r}")
    return int(found[1]), int(found[2])


def main() -> None:
    """Print the table, or JSON; exit status 1 where something spills."""
    built = []
    as_json = "--json" in sys.argv
    if not as_json:
        print(
            f"{'kernel':24} {'built for':22} {'sm':>4} {'registers':>9} {'spilled B':>9} {'shared B':>9} {'warps':>5}"
        )
    for one in build_all([word for word in sys.argv[1:] if word != "--json"]):
        built.append(one)
        if not as_json:
            print(
                f"{one.kernel:24} {one.label:22} {one.sm:4} {one.registers:9} {one.spilled_bytes:9}"
                f" {one.shared_bytes:9} {one.warps:5}"
            )
    if as_json:
        print(msgspec.json.encode(built).decode())
    sys.exit(any(one.spilled_bytes for one in built))


if __name__ == "__main__":
    main()
