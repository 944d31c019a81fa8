"""Data sheets of devices: what a vendor promises, and what part of it steps are assumed to reach. Measures nothing."""

import msgspec

from .contract.recipe import Precision

SHARE_OF_PEAK = 0.4
"""Of the FLOP/s, dense, that steps are assumed to reach."""
SHARE_OF_BANDWIDTH = 0.7
"""Of the bytes a second that steps are assumed to reach."""
USABLE = 0.9
"""Of the memory."""


class DataSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """GB (10**9) of memory, dense TFLOP/s of bf16 and of fp32, GB/s from memory; `source` names the sheet."""

    name: str
    title: str
    memory_gb: int
    bf16_tflops: float
    fp32_tflops: float
    bandwidth_gbps: float
    source: str

    def flops(self, precision: Precision) -> float:
        """FLOP/s; narrow weights and caches are computed with as bf16."""
        return 1e12 * (self.fp32_tflops if precision.full else self.bf16_tflops)


RTX_4090 = DataSheet("rtx4090", "RTX 4090", 24, 165.2, 82.6, 1008, "NVIDIA Ada GPU architecture whitepaper, appendix A")
A10G = DataSheet("a10g", "A10G", 24, 70, 35, 600, "NVIDIA A10G datasheet, as in AWS g5")
L40S = DataSheet("l40s", "L40S", 48, 362, 91.6, 864, "NVIDIA L40S datasheet")
A100 = DataSheet("a100", "A100 80GB", 80, 312, 19.5, 2039, "NVIDIA A100 80GB SXM datasheet")
H100 = DataSheet("h100", "H100 SXM", 80, 989, 67, 3350, "NVIDIA H100 SXM datasheet, half of its figure with sparsity")
H200 = DataSheet("h200", "H200", 141, 989, 67, 4800, "NVIDIA H200 SXM datasheet, half of its figure with sparsity")
B200 = DataSheet("b200", "B200", 180, 2250, 75, 7700, "NVIDIA HGX B200 datasheet, an eighth of the board")
CPU_AVX2 = DataSheet(
    "cpu-avx2",
    "cores with AVX2 at 3 GHz, one for each queue",
    16,
    0.096,
    0.096,
    20,
    "two 8-wide fused multiply-adds a cycle (Intel Haswell, AMD Zen 2, later ones) x 3 GHz; half of two DDR4-2666",
)
DATA_SHEETS = {sheet.name: sheet for sheet in (H100, H200, B200, A100, L40S, RTX_4090, A10G, CPU_AVX2)}
