"""Clients that measure a server of their own: latency, fan-out, joining, driving, memory, a real browser."""
