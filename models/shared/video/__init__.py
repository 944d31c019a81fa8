"""What families of the Wan line share: rotary positions, attention parts, the causal video autoencoder, its account."""
