"""Who comes in, who waits, who is sent away."""
