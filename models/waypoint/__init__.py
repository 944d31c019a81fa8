"""Waypoint: one latent frame a step, steered by buttons, mouse and scroll; built from public facts alone."""
