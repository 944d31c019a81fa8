"""Tensors in, tensors out: what a frame's time goes into. One operation, one file: torch, Triton, choose()."""
