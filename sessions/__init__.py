"""One room's world through time: inputs, prompts, journal and replay. Sees the engine through its door alone."""
