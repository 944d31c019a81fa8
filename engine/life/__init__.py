"""One session's life in the engine: chunks, prompts, checkpoints, sleep and revival."""
