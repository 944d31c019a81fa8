"""The driving world dreamed by its network alone: what it gets is its own past, the keys, the look and noise."""
