"""What families share: bytes of states, narrow and invariant linear layers, drawn weights; `video/` for pictures."""
