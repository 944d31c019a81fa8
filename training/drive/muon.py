"""Muon in float32: momentum, then the update's matrix is replaced by its nearest orthogonal one.

torch.optim.Muon orthogonalises in bf16, which CPUs without AVX512-BF16 compute a thousand times slower than float32.
Sources: Jordan et al. 2024 (Muon); Amsel et al. 2505.16932 (the polynomials, four of them).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_POLYNOMIALS = (
    (8.28721201814563, -23.595886519098837, 17.300387312530933),
    (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
    (3.9486908534822946, -2.908902115956949, 0.5518191394370137),
    (3.3184196573706015, -2.488488024314874, 0.51004894012372),
)


def orthogonalised(matrix: Tensor) -> Tensor:
    """About the matrix with the same singular vectors and all singular values 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() * 1.02 + 1e-7)
    for a, b, c in _POLYNOMIALS:
        square = x @ x.T
        x = torch.addmm(x, torch.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon:
    """One momentum buffer per matrix; `rate` is set from outside before each step."""

    def __init__(self, matrices: Sequence[Tensor], rate: float, momentum: float = 0.95, decay: float = 0.01) -> None:
        self.matrices, self.rate, self.momentum, self.decay = list(matrices), rate, momentum, decay
        self.buffers = [torch.zeros_like(m) for m in self.matrices]

    @torch.no_grad()
    def step(self) -> None:
        """Nesterov momentum; the step is scaled by sqrt(max(1, rows / columns)). Gradients are cleared."""
        for matrix, buffer in zip(self.matrices, self.buffers, strict=True):
            if matrix.grad is None:
                raise ValueError(f"a matrix of shape {tuple(matrix.shape)} got no gradient")
            buffer.lerp_(matrix.grad, 1 - self.momentum)
            update = orthogonalised(matrix.grad.lerp(buffer, self.momentum))
            scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
            matrix.mul_(1 - self.rate * self.decay).add_(update, alpha=-self.rate * scale)
            matrix.grad = None
