"""The parity ladder: each component, each whole rollout and each batch against something that was written apart."""
