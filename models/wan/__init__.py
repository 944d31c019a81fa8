"""Wan 2.1: the causal chunk-by-chunk descendants (Self-Forcing, LongLive, Krea) and the bidirectional original."""
