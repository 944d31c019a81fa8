"""One session in the engine: its chunks, prompts, checkpoints, suspension and restore."""
