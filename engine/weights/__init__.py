"""Whose weights are on the device: cards take turns where they do not fit together."""
