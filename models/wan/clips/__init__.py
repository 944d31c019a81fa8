"""Whole clips instead of a live rollout: their loop, its sampler, guidance."""
