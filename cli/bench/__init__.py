"""Measurements anyone can run: one file a measurement, and the command that lists them."""
