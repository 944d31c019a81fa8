"""Pools of cache entries and features: their books, their bytes, and worlds written down."""
