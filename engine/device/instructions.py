"""What this process computes with, by name: chunks made elsewhere may differ in the last bits."""

import sys


def instruction_set() -> str:
    """`cpu AVX512`, `cuda NVIDIA H200`; '' where no tensor library is loaded, as for cards that compute in integers."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    if torch.cuda.is_available():
        return f"cuda {torch.cuda.get_device_name()}"
    return f"cpu {torch.backends.cpu.get_cpu_capability()}"
