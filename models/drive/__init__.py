"""Drive: a small causal latent diffusion world of a road, its weights included, trained by `training/drive`."""
