"""What the worlds of the road share: their autoencoder, the words of a look, free text, transformer blocks."""
