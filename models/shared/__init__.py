"""What families share: bytes of states, narrow and invariant linear layers, random weights; `video/` for pictures."""
