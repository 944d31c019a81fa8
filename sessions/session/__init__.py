"""One session: its states, its inputs until a chunk takes them, and its prompts."""
