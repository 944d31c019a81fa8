"""The edge: bytes to events, packets out. Knows no model and imports no tensor library."""
