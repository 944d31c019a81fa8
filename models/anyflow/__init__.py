"""AnyFlow FAR, a causal video model in diffusers, run through its own classes behind our loop contract."""
